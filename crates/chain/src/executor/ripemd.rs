//! The touch of 0x3, the address of RIPEMD-160, that survives a revert (EIP-161).
//!
//! EIP-161 deletes an account that is empty at the end of a transaction and was touched. A revert
//! takes touches back, except the one of 0x3: go-ethereum had that fault in mainnet's block
//! 2,675,119. In go-ethereum the exception is for adding zero to the balance of an empty account.
//! A transfer of value is a balance change, and a revert takes that back. revm keeps the touch in
//! both cases. The functions here note the touches without value, and take back the other ones.

use alloy_primitives::{Address, U256};
use arbor_state::StateView;
use revm::context_interface::journaled_state::entry::JournalEntry;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::primitives::PRECOMPILE3;
use revm::primitives::constants::CALL_STACK_LIMIT;

use super::context::BlockEvm;

impl<S: StateView + ?Sized> BlockEvm<'_, S> {
    /// Notes a call of 0x3 that transfers no value, static ones included.
    pub(super) fn note_ripemd_call(&mut self, init: &FrameInit) {
        let FrameInput::Call(call) = &init.frame_input else {
            return;
        };
        if init.depth as u64 <= CALL_STACK_LIMIT && call.transfer_value() == Some(U256::ZERO) {
            self.note_ripemd_touch(call.target_address);
        }
    }

    /// Notes a SELFDESTRUCT with 0x3 as beneficiary that transfers no balance. It is called at the
    /// end of each frame.
    pub(super) fn note_ripemd_beneficiary(&mut self) {
        let journal = &self.evm.ctx.journaled_state.inner.journal;
        // A creation sets its code after the last instruction. A failed frame has no entries left.
        let last = journal
            .iter()
            .rev()
            .find(|entry| !matches!(entry, JournalEntry::CodeChange { .. }));
        let (beneficiary, balance) = match last {
            Some(JournalEntry::AccountDestroyed {
                target,
                had_balance,
                ..
            }) => (*target, *had_balance),
            // The account stays (EIP-6780). A call without value has no such entry.
            Some(JournalEntry::BalanceTransfer { to, balance, .. }) => (*to, *balance),
            _ => return,
        };
        if balance.is_zero() {
            self.note_ripemd_touch(beneficiary);
        }
    }

    fn note_ripemd_touch(&mut self, address: Address) {
        if address == PRECOMPILE3 {
            let state = &self.evm.ctx.journaled_state.inner.state;
            let account = state.get(&address);
            self.ripemd_touched |= account.is_some_and(|account| account.is_empty());
        }
    }

    /// Takes back the touch of an empty 0x3 if only reverted transfers of value caused it. It is
    /// called at the end of each transaction and system call.
    pub(super) fn settle_ripemd_touch(&mut self) {
        let ctx = &mut self.evm.ctx;
        // The fee, even of zero, touches its recipient, and nothing reverts that.
        let gets_fee = ctx.block.beneficiary == PRECOMPILE3;
        if std::mem::take(&mut self.ripemd_touched) || gets_fee {
            return;
        }
        let state = &mut ctx.journaled_state.inner.state;
        if let Some(account) = state.get_mut(&PRECOMPILE3)
            && account.is_empty()
        {
            account.unmark_touch();
        }
    }
}
