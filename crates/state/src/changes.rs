//! What a version changed, by name, from the history of a database.

use alloy_primitives::KECCAK256_EMPTY;
use arbor_state_tree::{AccountChange, SlotChange, StateChanges, StateError, StateView};
use arbor_versions::{Change, Version};

use crate::head::Head;

impl Head<'_> {
    /// Whether the tree's records lead to the names of what [changed](Self::changes_of).
    ///
    /// # Errors
    /// None of today's trees has any.
    pub fn has_changed_names(self) -> Result<bool, StateError> {
        Ok(self.tree().records().changed_names(&[])?.is_some())
    }

    /// Returns what a version changed: the accounts, slots and codes, with old and new values, as its block's execution gave them, but
    /// for what a block set and reset. `None` if the tree's records do not lead to names.
    ///
    /// # Errors
    /// A version that is not retained, or whose predecessor is not; the store's errors.
    pub fn changes_of(self, version: Version) -> Result<Option<StateChanges>, StateError> {
        let view = self.view();
        let before = Version(version.0.saturating_sub(1));
        let undo = view.undo_of(version)?;
        let now = undo
            .iter()
            .map(|write| view.get_at(version, write.table, &write.key));
        let now = now.collect::<Result<Vec<_>, _>>()?;
        let changes = undo.iter().zip(&now).map(|(write, now)| Change {
            table: write.table,
            key: &write.key,
            old: write.value.as_deref(),
            new: now.as_deref(),
        });
        let Some(names) = self
            .tree()
            .records()
            .changed_names(&changes.collect::<Vec<_>>())?
        else {
            return Ok(None);
        };
        let (before, then) = (self.at(before)?, self.at(version)?);
        let mut found = StateChanges::default();
        for (address, slots) in names {
            let mut change = AccountChange {
                old: before.account(address)?,
                new: then.account(address)?,
                ..AccountChange::default()
            };
            match change.new {
                None => change.storage_cleared = change.old.is_some(),
                Some(_) => {
                    for slot in slots {
                        let (old, new) =
                            (before.storage(address, slot)?, then.storage(address, slot)?);
                        if old != new {
                            change.slots.insert(slot, SlotChange { old, new });
                        }
                    }
                }
            }
            if change.old == change.new && change.slots.is_empty() {
                continue;
            }
            let code = |account: Option<arbor_state_tree::Account>| {
                account.map_or(KECCAK256_EMPTY, |account| account.code_hash)
            };
            let hash = code(change.new);
            if hash != code(change.old) && hash != KECCAK256_EMPTY {
                found.codes.insert(hash, then.code(hash)?);
            }
            found.accounts.insert(address, change);
        }
        Ok(Some(found))
    }
}
