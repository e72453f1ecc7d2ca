//! The accounts, slots and chunks of code that a block reads and changes, by plain name.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_state::{AccountChange, ReadError, StateChanges};
use arbor_verify::verkle::{CHUNK, CODE, HEADER_SLOTS, MAIN_STORAGE_INDEX};

use crate::executor::{CodeReads, LeafName, Reads};

/// How a block accesses an account, a slot or a chunk of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Execution reads it.
    pub read: bool,
    /// It differs after the block.
    pub changed: bool,
}

impl Access {
    /// Whether the block reads or changes it at all.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.read || self.changed
    }
}

/// The accesses of a block to one account.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountAccesses {
    /// The account itself. Like in [`StateChanges`], an account with a changed slot is changed.
    pub account: Access,
    /// Its slots by number. Slots that disappear because the whole storage is cleared are not listed.
    pub slots: BTreeMap<U256, Access>,
    /// The chunks of its code, each of 31 bytes, by number. A chunk that is read may lie beyond the end of the code.
    pub chunks: BTreeMap<u32, Access>,
}

/// The leaves that the transactions of a block touch and pay for under EIP-4762, each counted once a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PaidLeaves {
    /// Leaves with an account's own fields.
    pub header: u64,
    /// Leaves with chunks of code.
    pub code: u64,
    /// Leaves with slots.
    pub storage: u64,
}

impl PaidLeaves {
    pub(super) fn of(leaves: &BTreeSet<LeafName>) -> Self {
        let header = U256::from(CODE - u32::from(HEADER_SLOTS));
        let mut paid = Self::default();
        for leaf in leaves {
            let count = match position(leaf) {
                Some(position) if position < header => &mut paid.header,
                Some(position) if position >= U256::from(CODE) => &mut paid.code,
                _ => &mut paid.storage,
            };
            *count += 1;
        }
        paid
    }
}

/// The position of a leaf among those of an account that begin with its fields; `None` if it is a slot further on.
fn position((name, suffix): &LeafName) -> Option<U256> {
    (name.index < MAIN_STORAGE_INDEX).then(|| name.index * U256::from(256) + U256::from(*suffix))
}

/// The number of the chunk of code that a leaf has; `None` if it has something else.
pub(super) fn chunk_of(leaf: &LeafName) -> Option<u32> {
    let chunk = position(leaf)?.checked_sub(U256::from(CODE))?;
    u32::try_from(chunk).ok()
}

/// The number of accounts, slots and chunks that a block reads and changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessCounts {
    /// Accounts read.
    pub accounts_read: u64,
    /// Accounts changed.
    pub accounts_changed: u64,
    /// Slots read.
    pub slots_read: u64,
    /// Slots changed.
    pub slots_changed: u64,
    /// Chunks of code read.
    pub chunks_read: u64,
    /// Chunks of code changed.
    pub chunks_changed: u64,
}

/// All that a block reads and changes, system calls, withdrawals and rewards included.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockAccesses {
    /// The accesses by account.
    pub accounts: BTreeMap<Address, AccountAccesses>,
    /// The leaves that transactions pay for; `None` if the chain does not charge for them.
    pub paid: Option<PaidLeaves>,
}

impl BlockAccesses {
    /// Collects the accesses of an executed block. `new_slots` are slots that execution reads without asking the state
    /// for them. `code` returns the code with a hash.
    ///
    /// # Errors
    /// The errors that `code` returns.
    pub(super) fn new(
        reads: &Reads,
        new_slots: &BTreeMap<Address, BTreeSet<U256>>,
        chunks: &CodeReads,
        changes: &StateChanges,
        code: &dyn Fn(B256) -> Result<Bytes, ReadError>,
    ) -> Result<Self, ReadError> {
        let mut accesses = Self::default();
        for (address, slots) in &reads.accounts {
            let of_account = accesses.accounts.entry(*address).or_default();
            of_account.account.read = true;
            for slot in slots {
                of_account.slots.entry(*slot).or_default().read = true;
            }
        }
        for (address, slots) in new_slots {
            let of_account = accesses.accounts.entry(*address).or_default();
            for slot in slots {
                of_account.slots.entry(*slot).or_default().read = true;
            }
        }
        for (address, chunks) in &chunks.chunks {
            let of_account = accesses.accounts.entry(*address).or_default();
            for chunk in chunks {
                of_account.chunks.entry(*chunk).or_default().read = true;
            }
        }
        for (address, change) in &changes.accounts {
            let of_account = accesses.accounts.entry(*address).or_default();
            of_account.account.changed = true;
            for slot in change.slots.keys() {
                of_account.slots.entry(*slot).or_default().changed = true;
            }
            for chunk in 0..changed_chunks(change, code)? {
                of_account.chunks.entry(chunk).or_default().changed = true;
            }
        }
        Ok(accesses)
    }

    /// Counts the accesses.
    #[must_use]
    pub fn counts(&self) -> AccessCounts {
        let mut counts = AccessCounts::default();
        for of_account in self.accounts.values() {
            let account = of_account.account;
            counts.accounts_read += u64::from(account.read);
            counts.accounts_changed += u64::from(account.changed);
            for slot in of_account.slots.values() {
                counts.slots_read += u64::from(slot.read);
                counts.slots_changed += u64::from(slot.changed);
            }
            for chunk in of_account.chunks.values() {
                counts.chunks_read += u64::from(chunk.read);
                counts.chunks_changed += u64::from(chunk.changed);
            }
        }
        counts
    }
}

/// The number of chunks that a change of an account's code changes: those of the longer one of both codes; none if the
/// code stays.
fn changed_chunks(
    change: &AccountChange,
    code: &dyn Fn(B256) -> Result<Bytes, ReadError>,
) -> Result<u32, ReadError> {
    let [old, new] = [change.old, change.new]
        .map(|account| account.map_or(KECCAK256_EMPTY, |account| account.code_hash));
    if old == new {
        return Ok(0);
    }
    let mut chunks = 0;
    for hash in [old, new] {
        if hash != KECCAK256_EMPTY {
            chunks = chunks.max(code(hash)?.len().div_ceil(CHUNK));
        }
    }
    // Code is far shorter than 2^32 chunks.
    Ok(chunks as u32)
}

#[cfg(test)]
mod tests {
    use arbor_state::{Account, SlotChange};
    use arbor_verify::verkle::StemName;

    use super::*;

    fn account(code: u8) -> Option<Account> {
        Some(Account {
            code_hash: B256::repeat_byte(code),
            ..Account::default()
        })
    }

    #[test]
    fn the_longer_code_of_a_change_counts() {
        let code = |hash: B256| Ok(vec![0; usize::from(hash[0]) * 31 - 1].into());
        let chunks = |old, new| {
            let change = AccountChange {
                old,
                new,
                ..AccountChange::default()
            };
            changed_chunks(&change, &code).expect("the code is known")
        };
        assert_eq!(chunks(None, account(3)), 3);
        assert_eq!(chunks(account(5), account(2)), 5);
        assert_eq!(chunks(account(2), None), 2);
        assert_eq!(chunks(account(2), account(2)), 0);
        assert_eq!(chunks(None, Some(Account::default())), 0);
    }

    /// Slots of a contract made in the block had no rows unless they changed.
    #[test]
    fn slots_read_of_a_new_contract_are_read() {
        let address = Address::repeat_byte(1);
        let slots = [7_u64, 8, 9, 10].map(U256::from);
        let change = AccountChange {
            new: Some(Account::default()),
            slots: BTreeMap::from([(
                slots[2],
                SlotChange {
                    old: U256::ZERO,
                    new: U256::ONE,
                },
            )]),
            ..AccountChange::default()
        };
        let changes = StateChanges {
            accounts: BTreeMap::from([(address, change)]),
            ..StateChanges::default()
        };
        let new_slots = BTreeMap::from([(address, BTreeSet::from(slots))]);
        let no_code = |hash: B256| Err(ReadError::MissingCode(hash));
        let (reads, chunks) = (Reads::default(), CodeReads::default());
        let accesses = BlockAccesses::new(&reads, &new_slots, &chunks, &changes, &no_code);
        let accesses = accesses.expect("no code changes");
        let of_slots = accesses.accounts[&address].slots.iter();
        let of_slots: Vec<(u64, bool, bool)> = of_slots
            .map(|(slot, access)| (slot.to(), access.read, access.changed))
            .collect();
        let expected = [
            (7, true, false),
            (8, true, false),
            (9, true, true),
            (10, true, false),
        ];
        assert_eq!(of_slots, expected);
    }

    #[test]
    fn each_leaf_is_of_one_kind() {
        let leaf = |index: u64, suffix| {
            let name = StemName {
                address: Address::ZERO,
                index: U256::from(index),
            };
            (name, suffix)
        };
        let mut leaves = BTreeSet::from([leaf(0, 1), leaf(0, 63), leaf(0, 64), leaf(0, 127)]);
        leaves.extend([leaf(0, 128), leaf(1, 0), leaf(2, 7)]);
        let mut far = leaf(0, 0);
        far.0.index = MAIN_STORAGE_INDEX;
        leaves.insert(far);
        let paid = PaidLeaves::of(&leaves);
        assert_eq!((paid.header, paid.code, paid.storage), (2, 3, 3));
        assert_eq!(chunk_of(&leaf(0, 127)), None);
        assert_eq!(chunk_of(&leaf(0, 128)), Some(0));
        assert_eq!(chunk_of(&leaf(1, 0)), Some(128));
        assert_eq!(chunk_of(&far), None);
    }
}
