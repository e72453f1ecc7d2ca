//! What a check of a database looks at beside the nodes: that every flat record can be read, and was
//! reached through a stem.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, hex};
use arbor_state_tree::{ACCOUNTS, Check, CheckedPart, ReadError, SLOTS, StateError, corrupt};
use arbor_verify::stems::{HeaderLayout, LeafValue};
use rayon::prelude::*;

use super::ordered::UnderStem;
use super::reader::RECORDS;
use super::records::{AccountRecord, decode_slot};
use crate::header_root::checked_root;
use crate::named_records::{account_key, slot_name};

/// The flat records of a check under way.
pub(crate) struct RecordCheck<'a> {
    pub(crate) check: &'a Check<'a>,
    layout: HeaderLayout,
    /// Records that are stored, also those of accounts and slots that are gone.
    stored: Records,
    /// Records that were reached through stems.
    reached: Records,
}

/// Numbers of records.
#[derive(Default)]
struct Records {
    accounts: AtomicU64,
    slots: AtomicU64,
}

impl Records {
    /// The numbers with the names that the join knows them by.
    fn named(self, names: [&str; 2]) -> impl Iterator<Item = (String, u64)> {
        let numbers = [self.accounts.into_inner(), self.slots.into_inner()];
        names.map(str::to_owned).into_iter().zip(numbers)
    }
}

impl<'a> RecordCheck<'a> {
    pub(crate) fn new(check: &'a Check<'a>, layout: HeaderLayout) -> Self {
        Self {
            check,
            layout,
            stored: Records::default(),
            reached: Records::default(),
        }
    }

    /// The values under a stem, which are counted as reached; nothing if they cannot be known, which
    /// is reported elsewhere or here.
    pub(crate) fn values(&self, under: &UnderStem<'_>) -> Result<Vec<(u8, LeafValue)>, StateError> {
        match under.values(self.check.view, self.layout) {
            Ok(values) => {
                let Records { accounts, slots } = &self.reached;
                accounts.fetch_add(under.accounts(), Ordering::Relaxed);
                slots.fetch_add(under.slots(), Ordering::Relaxed);
                Ok(values)
            }
            // Reported where every record is looked at.
            Err(StateError::View(ReadError::MissingCode(_))) => Ok(Vec::new()),
            Err(error @ StateError::NoRoom { .. }) => {
                self.fault(error.to_string());
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Reads every account and slot whose address begins with one of some bytes, builds their part of the Merkle-Patricia
    /// trie, and returns with the subtrees what the join needs. `bytes` is the memory for accounts of that trie.
    pub(crate) fn finish(
        self,
        subtrees: Vec<Bytes>,
        (firsts, bytes): (&[u8], usize),
    ) -> Result<CheckedPart, StateError> {
        let are_readable = self.read(firsts)?;
        let account_trie = RECORDS.checked_trie(are_readable, &self.check.view, (firsts, bytes))?;
        let stored = self.stored.named(STORED);
        Ok(CheckedPart {
            subtrees,
            sums: stored.chain(self.reached.named(REACHED)).collect(),
            account_trie,
            ..CheckedPart::default()
        })
    }

    /// Reads accounts and slots, and counts those that are not gone. Returns whether all could be read.
    fn read(&self, firsts: &[u8]) -> Result<bool, StateError> {
        let check = self.check;
        let all_readable = AtomicBool::new(true);
        let unreadable = |error: StateError| {
            all_readable.store(false, Ordering::Relaxed);
            self.fault(error.to_string());
        };
        for (table, name) in [(ACCOUNTS, "accounts"), (SLOTS, "slots")] {
            if firsts.contains(&0) && check.view.get(table, &[])?.is_some() {
                unreadable(corrupt(name, &[], "a key is empty"));
            }
        }
        firsts.par_iter().try_for_each(|first| {
            for entry in check.scan(ACCOUNTS, &[*first], &[])? {
                let (key, bytes) = entry?;
                self.stored.accounts.fetch_add(1, Ordering::Relaxed);
                let record = account_key(&key).and_then(|_| AccountRecord::decode(&key, &bytes));
                if record.as_ref().is_ok_and(|record| record.account.is_some()) {
                    check.count(&check.counts.accounts);
                }
                match record.map(|record| record.code_hash()) {
                    Ok(KECCAK256_EMPTY) => {}
                    Ok(hash) if check.has_code(hash)? => {}
                    Ok(hash) => self.fault(format!(
                        "account {}: code {hash} is missing",
                        hex::encode(&key)
                    )),
                    Err(error) => unreadable(error),
                }
            }
            for entry in check.scan(SLOTS, &[*first], &[])? {
                let (key, bytes) = entry?;
                self.stored.slots.fetch_add(1, Ordering::Relaxed);
                match slot_name(&key).and_then(|_| decode_slot(&key, &bytes)) {
                    Ok(value) if value.is_zero() => {}
                    Ok(_) => check.count(&check.counts.slots),
                    Err(error) => unreadable(error),
                }
            }
            Ok::<(), StateError>(())
        })?;
        Ok(all_readable.into_inner())
    }

    fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }
}

/// The numbers of records of accounts and slots that are stored, by the names of the sums.
const STORED: [&str; 2] = ["accountRecords", "slotRecords"];
/// Those of records that were reached through stems.
const REACHED: [&str; 2] = ["accountsReached", "slotsReached"];

/// Compares how many records of accounts and slots are stored with how many were reached through stems. Returns the
/// Merkle-Patricia root of the flat tables, zero if they have none.
pub(crate) fn check_records(check: &Check<'_>, parts: &[CheckedPart]) -> Result<B256, StateError> {
    for (what, (stored, reached)) in ["accounts", "slots"].iter().zip(STORED.iter().zip(REACHED)) {
        let stored = CheckedPart::sum(parts, stored);
        let reached = CheckedPart::sum(parts, reached);
        if stored != reached {
            check.tell_fault(format!(
                "{stored} {what} are stored, {reached} lie under a stem"
            ));
        }
    }
    checked_root(check, parts)
}
