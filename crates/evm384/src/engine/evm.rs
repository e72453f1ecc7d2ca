//! revm's EVM with the engine in the place of its interpreter's loop.

use revm::MainnetEvm;
use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::context::{ContextTr, FrameStack, TxEnv};
use revm::context_interface::context::ContextError;
use revm::database_interface::Database;
use revm::handler::{EvmTr, FrameResult, Handler, ItemOrResult, MainnetContext, MainnetHandler};
use revm::interpreter::interpreter_action::FrameInit;

use super::Engine;
use crate::{Backend, GasSchedule, Interface};

type Inner<DB> = MainnetEvm<MainnetContext<DB>>;

/// The database failed, or the call's environment was refused.
pub type ExecutionError<DB> = EVMError<<DB as Database>::Error>;

/// A mainnet EVM whose frames an engine executes, or, without one, revm's interpreter.
#[derive(Debug)]
pub struct EngineEvm<DB: Database> {
    inner: Inner<DB>,
    engine: Option<Engine>,
}

impl<DB: Database> EngineEvm<DB> {
    /// Switches an interface on in an EVM; with `engine`, frames are executed by one.
    pub fn new(
        mut inner: Inner<DB>,
        interface: Interface,
        schedule: GasSchedule,
        backend: Backend,
        engine: bool,
    ) -> Self {
        interface.install(&mut inner.instruction, schedule, backend);
        Self {
            inner,
            engine: engine.then(|| Engine::new(interface, backend)),
        }
    }

    /// Makes a call that costs no intrinsic gas, and forgets what it changed.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub fn call(
        &mut self,
        transaction: TxEnv,
    ) -> Result<ExecutionResult<HaltReason>, ExecutionError<DB>> {
        self.inner.ctx.tx = transaction;
        let result = MainnetHandler::default().run_system_call(self);
        self.inner.ctx.journaled_state.inner.discard_tx();
        self.inner.ctx.journaled_state.inner.finalize();
        result
    }
}

impl<DB: Database> EvmTr for EngineEvm<DB> {
    type Context = <Inner<DB> as EvmTr>::Context;
    type Instructions = <Inner<DB> as EvmTr>::Instructions;
    type Precompiles = <Inner<DB> as EvmTr>::Precompiles;
    type Frame = <Inner<DB> as EvmTr>::Frame;

    fn all(
        &self,
    ) -> (
        &Self::Context,
        &Self::Instructions,
        &Self::Precompiles,
        &FrameStack<Self::Frame>,
    ) {
        self.inner.all()
    }

    fn all_mut(
        &mut self,
    ) -> (
        &mut Self::Context,
        &mut Self::Instructions,
        &mut Self::Precompiles,
        &mut FrameStack<Self::Frame>,
    ) {
        self.inner.all_mut()
    }

    fn frame_init(
        &mut self,
        init: FrameInit,
    ) -> Result<
        ItemOrResult<&mut Self::Frame, FrameResult>,
        ContextError<<<Self::Context as ContextTr>::Db as Database>::Error>,
    > {
        self.inner.frame_init(init)
    }

    fn frame_run(
        &mut self,
    ) -> Result<
        ItemOrResult<FrameInit, FrameResult>,
        ContextError<<<Self::Context as ContextTr>::Db as Database>::Error>,
    > {
        let Some(engine) = &mut self.engine else {
            return self.inner.frame_run();
        };
        let frame = self.inner.frame_stack.get();
        let context = &mut self.inner.ctx;
        let instructions = &self.inner.instruction;
        let action = engine.run(
            &mut frame.interpreter,
            instructions.instruction_table(),
            instructions.gas_table(),
            context,
        );
        let next = frame.process_next_action::<_, ContextError<DB::Error>>(context, action)?;
        if next.is_result() {
            frame.set_finished(true);
        }
        Ok(next)
    }

    fn frame_return_result(
        &mut self,
        result: FrameResult,
    ) -> Result<
        Option<FrameResult>,
        ContextError<<<Self::Context as ContextTr>::Db as Database>::Error>,
    > {
        self.inner.frame_return_result(result)
    }
}
