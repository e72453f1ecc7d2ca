//! What a check of a database looks at beside the nodes: that every flat record can be read, and was
//! reached through a stem.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alloy_primitives::{B256, KECCAK256_EMPTY, hex};
use arbor_state_tree::{ACCOUNTS, Check, ReadError, SLOTS, StateError, corrupt};
use arbor_verify::stems::{HeaderLayout, LeafValue};
use rayon::prelude::*;

use super::ordered::UnderStem;
use super::reader::RECORDS;
use super::records::{AccountRecord, decode_slot};
use crate::named_records::{account_key, slot_name};

/// The flat records of a check under way.
pub(crate) struct RecordCheck<'a> {
    pub(crate) check: &'a Check<'a>,
    layout: HeaderLayout,
    /// Records that were reached through stems.
    accounts: AtomicU64,
    slots: AtomicU64,
}

impl<'a> RecordCheck<'a> {
    pub(crate) fn new(check: &'a Check<'a>, layout: HeaderLayout) -> Self {
        Self {
            check,
            layout,
            accounts: AtomicU64::new(0),
            slots: AtomicU64::new(0),
        }
    }

    /// The values under a stem, which are counted as reached; nothing if they cannot be known, which
    /// is reported elsewhere or here.
    pub(crate) fn values(&self, under: &UnderStem<'_>) -> Result<Vec<(u8, LeafValue)>, StateError> {
        match under.values(self.check.view, self.layout) {
            Ok(values) => {
                self.accounts.fetch_add(under.accounts(), Ordering::Relaxed);
                self.slots.fetch_add(under.slots(), Ordering::Relaxed);
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

    /// Looks at every account and slot, and whether each was reached through a stem. Returns the
    /// Merkle-Patricia root of the flat tables, zero if they have none.
    pub(crate) fn finish(&self) -> Result<B256, StateError> {
        if !self.every_record_has_its_leaf()? {
            return Ok(B256::ZERO);
        }
        match RECORDS.header_root(&self.check.view) {
            // A slot of nobody.
            Err(error @ StateError::Corrupt { .. }) => {
                self.fault(error.to_string());
                Ok(B256::ZERO)
            }
            root => root,
        }
    }

    /// Returns whether all records could be read.
    fn every_record_has_its_leaf(&self) -> Result<bool, StateError> {
        let check = self.check;
        let all_readable = AtomicBool::new(true);
        let unreadable = |error: StateError| {
            all_readable.store(false, Ordering::Relaxed);
            self.fault(error.to_string());
        };
        for (table, name) in [(ACCOUNTS, "accounts"), (SLOTS, "slots")] {
            if check.view.get(table, &[])?.is_some() {
                unreadable(corrupt(name, &[], "a key is empty"));
            }
        }
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            for entry in check.scan(ACCOUNTS, &[first], &[])? {
                let (key, bytes) = entry?;
                check.count(&check.counts.accounts);
                let record = account_key(&key).and_then(|_| AccountRecord::decode(&key, &bytes));
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
            for entry in check.scan(SLOTS, &[first], &[])? {
                let (key, bytes) = entry?;
                check.count(&check.counts.slots);
                let slot = slot_name(&key).and_then(|_| decode_slot(&key, &bytes));
                slot.map_or_else(unreadable, drop);
            }
            Ok::<(), StateError>(())
        })?;
        let pairs = [
            ("accounts", &check.counts.accounts, &self.accounts),
            ("slots", &check.counts.slots, &self.slots),
        ];
        for (what, stored, reached) in pairs {
            let (stored, reached) = (
                stored.load(Ordering::Relaxed),
                reached.load(Ordering::Relaxed),
            );
            if stored != reached {
                self.fault(format!(
                    "{stored} {what} are stored, {reached} lie under a stem"
                ));
            }
        }
        Ok(all_readable.into_inner())
    }

    fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }
}
