//! No contract is created where there is storage (EIP-7610).
//!
//! An account with storage and neither code nor nonce can only be from before Spurious Dragon. revm looks at code and nonce, so
//! such an account is shown to it as one with code for as long as it decides whether a creation collides.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY};
use arbor_state::StateView;
use revm::MainnetEvm;
use revm::context::FrameStack;
use revm::context_interface::context::ContextError;
use revm::handler::{EvmTr, FrameResult, ItemOrResult};
use revm::interpreter::CreateInputs;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::primitives::constants::CALL_STACK_LIMIT;

use super::context::{BlockContext, BlockEvm};
use arbor_revm_state::ViewError;

type Inner<'a, S> = MainnetEvm<BlockContext<'a, S>>;
type Parts<'e, E> = (
    &'e <E as EvmTr>::Context,
    &'e <E as EvmTr>::Instructions,
    &'e <E as EvmTr>::Precompiles,
    &'e FrameStack<<E as EvmTr>::Frame>,
);
type PartsMut<'e, E> = (
    &'e mut <E as EvmTr>::Context,
    &'e mut <E as EvmTr>::Instructions,
    &'e mut <E as EvmTr>::Precompiles,
    &'e mut FrameStack<<E as EvmTr>::Frame>,
);

impl<S: StateView + ?Sized> BlockEvm<'_, S> {
    /// Where a contract would come to be, if there is an account with nothing but storage.
    fn only_storage_at(
        &mut self,
        depth: usize,
        inputs: &CreateInputs,
    ) -> Result<Option<Address>, ViewError> {
        let journal = &mut self.evm.ctx.journaled_state;
        let Some(caller) = journal.inner.state.get(&inputs.caller()) else {
            return Ok(None);
        };
        // A creation that fails before it looks at the address must not read it, or a witness would have to have it.
        if depth as u64 > CALL_STACK_LIMIT || caller.info.balance < inputs.value() {
            return Ok(None);
        }
        let address = inputs.created_address(caller.info.nonce);
        let found = journal.database.has_only_storage(address)?;
        Ok(found.then_some(address))
    }

    fn show_code_hash(&mut self, address: Address, code_hash: B256) {
        let journal = &mut self.evm.ctx.journaled_state;
        if let Some(account) = journal.inner.state.get_mut(&address) {
            account.info.code_hash = code_hash;
        }
    }
}

impl<'a, S: StateView + ?Sized> EvmTr for BlockEvm<'a, S> {
    type Context = <Inner<'a, S> as EvmTr>::Context;
    type Instructions = <Inner<'a, S> as EvmTr>::Instructions;
    type Precompiles = <Inner<'a, S> as EvmTr>::Precompiles;
    type Frame = <Inner<'a, S> as EvmTr>::Frame;

    fn all(&self) -> Parts<'_, Self> {
        self.evm.all()
    }

    fn all_mut(&mut self) -> PartsMut<'_, Self> {
        self.evm.all_mut()
    }

    fn frame_init(
        &mut self,
        mut init: FrameInit,
    ) -> Result<ItemOrResult<&mut Self::Frame, FrameResult>, ContextError<ViewError>> {
        if let Some(runner) = &mut self.runner {
            runner.begin(&mut init, &mut self.evm.ctx.chain);
        }
        self.note_ripemd_call(&init);
        let occupied = match &init.frame_input {
            FrameInput::Create(inputs) => self
                .only_storage_at(init.depth, inputs)
                .map_err(ContextError::Db)?,
            _ => None,
        };
        let Some(address) = occupied else {
            if let ItemOrResult::Result(outcome) = self.evm.frame_init(init)? {
                return Ok(ItemOrResult::Result(outcome));
            }
            if let Some(runner) = &self.runner {
                runner.begun(self.evm.frame_stack.get());
            }
            self.charge_creation();
            return Ok(ItemOrResult::Item(self.evm.frame_stack.get()));
        };
        self.overlay().show_as_contract(Some(address));
        self.show_code_hash(address, B256::ZERO);
        let outcome = match self.evm.frame_init(init)? {
            ItemOrResult::Result(outcome) => Ok(ItemOrResult::Result(outcome)),
            ItemOrResult::Item(_) => Err(ContextError::Custom(format!(
                "a contract was created over the storage of {address:#x}"
            ))),
        };
        self.show_code_hash(address, KECCAK256_EMPTY);
        self.overlay().show_as_contract(None);
        outcome
    }

    fn frame_run(
        &mut self,
    ) -> Result<ItemOrResult<FrameInit, FrameResult>, ContextError<ViewError>> {
        let ran = match (&self.access_events, &self.code_reads, &mut self.runner) {
            (Some(_), ..) => self.frame_run_metered(),
            (None, Some(_), _) => self.frame_run_recorded(),
            (None, None, Some(runner)) => runner.frame_run(&mut self.evm),
            (None, None, None) => self.evm.frame_run(),
        };
        if matches!(ran, Ok(ItemOrResult::Result(_))) {
            self.note_ripemd_beneficiary();
        }
        self.check_memory(ran)
    }

    fn frame_return_result(
        &mut self,
        result: FrameResult,
    ) -> Result<Option<FrameResult>, ContextError<ViewError>> {
        self.evm.frame_return_result(result)
    }
}
