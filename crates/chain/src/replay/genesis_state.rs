//! The state of a genesis.

use alloy_primitives::U256;
use arbor_state::{
    AccountChange, BlockRef, Computed, RootPlace, SlotChange, State, StateChanges, StateError,
};

use super::ReplayError;
use super::error::Failure;
use super::record::BlockRecord;
use crate::executor::Ancestor;
use crate::genesis::{Alloc, Genesis, info};

/// Packed bytes of accounts that are committed as the changes of a block, in one piece: some
/// 12,000, which take 4 kB each meanwhile. A kill leaves them whole or absent. More are loaded, and
/// a load that was killed must be begun again.
const MOST_AS_CHANGES: usize = 1 << 19;

impl Genesis {
    /// Makes the state of block 0 the first version of an empty database. Its root is the header's,
    /// if headers carry roots of the state's tree; else the accounts are those from which that
    /// header was made. A population and many accounts are [loaded](Self::is_loaded): `progress` is
    /// called with the parts done and their number, and the version is flushed.
    ///
    /// # Errors
    /// A state root that is not the header's; errors of the state.
    pub fn commit(
        &self,
        state: &mut State,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), ReplayError> {
        let failed = |error| ReplayError::State { number: 0, error };
        let computed = self.compute(state, progress).map_err(failed)?;
        if state.next_root().map_err(failed)? == RootPlace::InHeaders
            && computed.root() != self.header.state_root
        {
            return Err(ReplayError::StateRoot(Box::new(Failure {
                number: 0,
                hash: self.hash,
                expected: self.header.state_root,
                actual: computed.root(),
                changes: match self.is_loaded() {
                    true => StateChanges::default(),
                    false => listed_changes(&self.alloc),
                },
                receipts: Vec::new(),
            })));
        }
        let record = BlockRecord {
            block: Ancestor {
                hash: self.hash,
                header: self.header.clone(),
                ommers: Vec::new(),
            },
            total_difficulty: Some(self.header.difficulty),
        };
        let block = BlockRef {
            number: 0,
            hash: self.hash,
            record: record.encode(),
        };
        state.commit(&block, computed).map_err(failed)?;
        match self.is_loaded() {
            true => state.flush().map_err(failed),
            false => Ok(()),
        }
    }

    /// Whether the state is loaded, range by range, so that its accounts take little memory: a
    /// population, or more than about 12,000 accounts.
    pub fn is_loaded(&self) -> bool {
        self.alloc.population().is_some() || self.alloc.packed_bytes() > MOST_AS_CHANGES
    }

    /// What is to be committed as version 0 of an empty database, its root among it.
    pub fn compute(
        &self,
        state: &mut State,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        match self.is_loaded() {
            true => {
                let source = self.alloc.source(state.tree().order());
                state.load(&*source, progress)
            }
            false => state.compute(&listed_changes(&self.alloc)),
        }
    }
}

/// Accounts as changes of the empty state.
pub fn listed_changes(accounts: &Alloc) -> StateChanges {
    let mut changes = StateChanges::default();
    for account in accounts.iter() {
        let new = info(&account);
        if !account.code.is_empty() {
            changes.codes.insert(new.code_hash, account.code);
        }
        let slots = account.storage.into_iter().map(|(slot, new)| {
            let old = U256::ZERO;
            (U256::from_be_bytes(slot.0), SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes.accounts.insert(account.address, change);
    }
    changes
}
