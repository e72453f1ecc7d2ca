//! revm's EVM with the engine in the place of its interpreter's loop.

use std::fmt;

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use revm::bytecode::Bytecode;
use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::context::{
    BlockEnv, CfgEnv, Context, ContextTr, Evm, FrameStack, Journal, JournalTr, TxEnv,
};
use revm::context_interface::context::ContextError;
use revm::database_interface::Database;
use revm::handler::instructions::EthInstructions;
use revm::handler::{
    EthFrame, EvmTr, FrameData, FrameResult, Handler, ItemOrResult, MainnetHandler,
};
use revm::interpreter::interpreter::{EthInterpreter, ExtBytecode};
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::interpreter_types::{InputsTr, LoopControl};
use revm::interpreter::{
    GasTable, Host, InstructionResult, InstructionTable, Interpreter, InterpreterAction,
};
use revm::primitives::B256;
use revm::{MainBuilder, MainnetEvm};

use super::{CACHE_BYTES, Engine, run_plain};
use crate::debug::Observer;
use crate::interface::is_analyzed;
use crate::{Backend, Frames, GasSchedule, HasFrames, Interface};

/// A mainnet context that keeps frames' state.
pub type FramesContext<DB> = Context<BlockEnv, TxEnv, CfgEnv, DB, Journal<DB>, Frames>;

type Inner<DB> = MainnetEvm<FramesContext<DB>>;

/// The database failed, or the call's environment was refused.
pub type ExecutionError<DB> = EVMError<<DB as Database>::Error>;

/// What an EVM with an interface switched on does with frames: brings their code in, tells the host that they begin, and executes them.
///
/// For whoever has an EVM of his own; [`EngineEvm`] is one.
pub struct Runner {
    interface: Interface,
    backend: Backend,
    engine: Option<Engine>,
    observer: Option<Box<dyn Observer + Send>>,
    analyzed: Cache<B256, Bytecode, CodeBytes>,
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runner = f.debug_struct("Runner");
        runner
            .field("interface", &self.interface)
            .field("engine", &self.engine);
        runner.finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct CodeBytes;

impl Weighter<B256, Bytecode> for CodeBytes {
    fn weight(&self, _: &B256, code: &Bytecode) -> u64 {
        code.len() as u64 + 256
    }
}

impl Runner {
    /// With `engine`, frames are executed by one, else by revm's interpreter.
    #[must_use]
    pub fn new(interface: Interface, backend: Backend, engine: bool) -> Self {
        Self {
            interface,
            backend,
            engine: engine.then(|| Engine::new(interface, backend)),
            observer: None,
            analyzed: Cache::with_weighter(1024, CACHE_BYTES, CodeBytes),
        }
    }

    /// To be called with what a frame will be made of, before it is.
    pub fn begin(&mut self, init: &mut FrameInit, frames: &mut Frames) {
        frames.begin(init.depth);
        let interface = self.interface;
        if let FrameInput::Call(inputs) = &mut init.frame_input
            && must_be_analyzed(interface, &inputs.known_bytecode.1)
        {
            let (hash, code) = &mut inputs.known_bytecode;
            let analyzed = self.analyzed.get_or_insert_with(hash, || {
                Ok::<_, std::convert::Infallible>(interface.analyze(code.original_bytes()))
            });
            if let Ok(Some(analyzed)) = analyzed {
                *code = analyzed.clone();
            }
        }
    }

    /// To be called with a frame that has just been made.
    pub fn begun(&self, frame: &mut EthFrame<EthInterpreter>) {
        let code = &mut frame.interpreter.bytecode;
        if matches!(frame.data, FrameData::Create(_)) && must_be_analyzed(self.interface, code) {
            let analyzed = self.interface.analyze(code.original_bytes());
            *code = ExtBytecode::new_with_optional_hash(analyzed, code.hash());
        }
    }

    /// Enters the interface's opcodes into an instruction table.
    pub fn install<H: Host + HasFrames>(
        &self,
        instructions: &mut EthInstructions<EthInterpreter, H>,
        schedule: GasSchedule,
    ) {
        self.interface.install(instructions, schedule, self.backend);
    }

    /// The interface that is switched on.
    #[must_use]
    pub const fn interface(&self) -> Interface {
        self.interface
    }

    /// Executes the topmost frame until it returns, halts or calls: what [`EvmTr::frame_run`] of revm's own EVM does, and with the same result.
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub fn frame_run<CTX, INSP, PRECOMPILES>(
        &mut self,
        evm: &mut Evm<
            CTX,
            INSP,
            EthInstructions<EthInterpreter, CTX>,
            PRECOMPILES,
            EthFrame<EthInterpreter>,
        >,
    ) -> Result<ItemOrResult<FrameInit, FrameResult>, ContextError<<CTX::Db as Database>::Error>>
    where
        CTX: ContextTr + Host + HasFrames,
    {
        let frame = evm.frame_stack.get();
        let instructions = &evm.instruction;
        let (table, gas) = (instructions.instruction_table(), instructions.gas_table());
        let interpreter = &mut frame.interpreter;
        let context = &mut evm.ctx;
        let action = match (&mut self.observer, &mut self.engine) {
            (Some(observer), _) => observed(observer.as_mut(), interpreter, table, gas, context),
            (None, Some(engine)) => engine.run(interpreter, table, gas, context),
            (None, None) => run_plain(interpreter, table, gas, context),
        };
        let next = frame.process_next_action::<_, ContextError<_>>(context, action)?;
        if next.is_result() {
            frame.set_finished(true);
        }
        Ok(next)
    }
}

/// revm's loop, with an observer who may break it off.
fn observed<H: Host + HasFrames>(
    observer: &mut dyn Observer,
    interpreter: &mut Interpreter<EthInterpreter>,
    instructions: &InstructionTable<EthInterpreter, H>,
    gas_table: &GasTable,
    host: &mut H,
) -> InterpreterAction {
    let halt = loop {
        let depth = interpreter.input.depth();
        let frame = host.frames().map(|frames| frames.view(depth));
        if !observer.before(interpreter, frame.unwrap_or_default()) {
            break InstructionResult::Stop;
        }
        if let Err(result) = interpreter.step(instructions, gas_table, host) {
            break result;
        }
    };
    if interpreter.bytecode.action().is_none() {
        interpreter.halt(halt);
    }
    interpreter.take_next_action()
}

fn must_be_analyzed(interface: Interface, code: &Bytecode) -> bool {
    interface.has_immediates() && code.is_legacy() && !code.is_empty() && !is_analyzed(code)
}

/// A mainnet EVM with an interface switched on.
#[derive(Debug)]
pub struct EngineEvm<DB: Database> {
    inner: Inner<DB>,
    runner: Runner,
}

impl<DB: Database> EngineEvm<DB> {
    /// Switches an interface on over a context; with `engine`, frames are executed by one.
    pub fn new<CHAIN>(
        context: Context<BlockEnv, TxEnv, CfgEnv, DB, Journal<DB>, CHAIN>,
        interface: Interface,
        schedule: GasSchedule,
        backend: Backend,
        engine: bool,
    ) -> Self {
        let frames = Frames::new(schedule.registers);
        let mut inner = context.with_chain(frames).build_mainnet();
        let runner = Runner::new(interface, backend, engine);
        runner.install(&mut inner.instruction, schedule);
        Self { inner, runner }
    }

    /// Tells somebody of every instruction from now on; none of them is decoded.
    pub fn observe(&mut self, observer: Box<dyn Observer + Send>) {
        self.runner.observer = Some(observer);
    }

    /// Makes a call that costs no intrinsic gas, and forgets what it changed.
    ///
    /// The accounts that a transaction warms before it is executed are warm: the caller and the callee, from Berlin on all
    /// precompiles (EIP-2929), and from Shanghai on the coinbase (EIP-3651).
    ///
    /// # Errors
    ///
    /// If the database fails.
    pub fn call(
        &mut self,
        transaction: TxEnv,
    ) -> Result<ExecutionResult<HaltReason>, ExecutionError<DB>> {
        let caller = transaction.caller;
        self.inner.ctx.tx = transaction;
        let mut handler: MainnetHandler<Self, ExecutionError<DB>, EthFrame<EthInterpreter>> =
            MainnetHandler::default();
        let result = handler.load_accounts(self).and_then(|()| {
            JournalTr::load_account(&mut self.inner.ctx.journaled_state, caller)?;
            handler.run_system_call(self)
        });
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
        mut init: FrameInit,
    ) -> Result<
        ItemOrResult<&mut Self::Frame, FrameResult>,
        ContextError<<<Self::Context as ContextTr>::Db as Database>::Error>,
    > {
        self.runner.begin(&mut init, &mut self.inner.ctx.chain);
        let mut begun = self.inner.frame_init(init)?;
        if let ItemOrResult::Item(frame) = &mut begun {
            self.runner.begun(frame);
        }
        Ok(begun)
    }

    fn frame_run(
        &mut self,
    ) -> Result<
        ItemOrResult<FrameInit, FrameResult>,
        ContextError<<<Self::Context as ContextTr>::Db as Database>::Error>,
    > {
        self.runner.frame_run(&mut self.inner)
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
