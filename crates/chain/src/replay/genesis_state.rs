//! The state of a genesis.

use alloy_primitives::{B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{
    Account, AccountChange, IntermediateRoots, SlotChange, StateChanges, WitnessState,
};
use arbor_tree_mpt::EMPTY_ROOT;

use crate::genesis::{Genesis, GenesisAccount};

impl Genesis {
    /// The state of block 0 as changes of the empty state.
    pub fn state_changes(&self) -> StateChanges {
        state_changes(&self.alloc)
    }
}

/// The state root of a genesis, by the tree itself.
pub fn genesis_state_root(accounts: &[GenesisAccount]) -> B256 {
    let empty = WitnessState::new(EMPTY_ROOT.into(), [], []);
    let root = empty.pending_roots().root_after(&state_changes(accounts));
    root.expect("invariant: an empty state has nothing to read")
}

fn state_changes(accounts: &[GenesisAccount]) -> StateChanges {
    let mut changes = StateChanges::default();
    for account in accounts {
        let code_hash = match account.code.is_empty() {
            true => KECCAK256_EMPTY,
            false => keccak256(&account.code),
        };
        if !account.code.is_empty() {
            changes.codes.insert(code_hash, account.code.clone());
        }
        let slots = account.storage.iter().map(|(slot, value)| {
            (
                U256::from_be_bytes(slot.0),
                SlotChange {
                    old: U256::ZERO,
                    new: *value,
                },
            )
        });
        let new = Account {
            nonce: account.nonce,
            balance: account.balance,
            code_hash,
        };
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes.accounts.insert(account.address, change);
    }
    changes
}
