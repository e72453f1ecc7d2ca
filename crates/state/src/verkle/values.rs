//! The leaves under a stem, from the flat tables.

use alloy_primitives::{Bytes, KECCAK256_EMPTY, U256};
use arbor_versions::View;

use super::header::HeaderLayout;
use super::places::{HEADER_SLOTS, StemContents, StemName, chunk_place, slot_place};
use super::records::{AccountRecord, decode_slot, slot_key, slot_name};
use super::{LeafValue, stored_code};
use crate::StateError;
use crate::flat::Flat;
use crate::tables::{ACCOUNTS, SLOTS};

/// Reads leaves of one version.
#[derive(Clone, Copy)]
pub(super) struct Leaves<'a> {
    pub(super) flat: &'a (dyn Flat + Sync),
    /// Where code lies, whatever the version.
    pub(super) view: View<'a>,
    pub(super) layout: HeaderLayout,
}

/// The leaves under a stem, and how many flat records they come from.
#[derive(Default)]
pub(super) struct StemLeaves {
    /// Ascending by suffix.
    pub(super) values: Vec<(u8, LeafValue)>,
    /// Accounts whose header this is: one or none.
    pub(super) accounts: u64,
    /// Slots among them.
    pub(super) slots: u64,
}

impl Leaves<'_> {
    /// The leaves under a stem with this name; none if nothing is there at this version.
    pub(super) fn under(&self, name: &StemName) -> Result<StemLeaves, StateError> {
        let mut leaves = StemLeaves::default();
        match name.contents() {
            StemContents::Header => {
                if let Some(record) = self.record(name)? {
                    leaves.values = record.header_leaves(self.layout)?;
                    leaves.accounts = 1;
                    self.chunks(&record, 0..128, &mut leaves)?;
                }
                self.slots(name, U256::ZERO, &mut leaves)?;
            }
            StemContents::Code(first) => {
                if let Some(record) = self.record(name)? {
                    self.chunks(&record, first..first + 256, &mut leaves)?;
                }
            }
            StemContents::Storage(first) => self.slots(name, first, &mut leaves)?,
            StemContents::Nothing => {}
        }
        leaves.values.sort_unstable_by_key(|(suffix, _)| *suffix);
        Ok(leaves)
    }

    fn record(&self, name: &StemName) -> Result<Option<AccountRecord>, StateError> {
        let key = name.address.as_slice();
        let record = self.flat.value(ACCOUNTS, key)?;
        record
            .map(|bytes| AccountRecord::decode(key, &bytes))
            .transpose()
    }

    fn chunks(
        &self,
        record: &AccountRecord,
        chunks: std::ops::Range<u32>,
        leaves: &mut StemLeaves,
    ) -> Result<(), StateError> {
        let chunks = chunks.start..chunks.end.min(record.chunks);
        if chunks.is_empty() {
            return Ok(());
        }
        let code = match record.code_hash() {
            KECCAK256_EMPTY => Bytes::new(),
            hash => stored_code(self.view, hash)?,
        };
        let values = record.code_leaves(&code);
        let here = chunks.map(|chunk| (chunk_place(chunk).1, values[chunk as usize]));
        leaves.values.extend(here);
        Ok(())
    }

    /// The slots of a stem whose numbers begin like `first`'s.
    fn slots(
        &self,
        name: &StemName,
        first: U256,
        leaves: &mut StemLeaves,
    ) -> Result<(), StateError> {
        let key = slot_key(name.address, first);
        for entry in self.flat.entries(SLOTS, &key[..key.len() - 1])? {
            let (key, bytes) = entry?;
            let (index, suffix) = slot_place(slot_name(&key)?.1);
            if index == name.index {
                let value = decode_slot(&key, &bytes)?;
                leaves.values.push((suffix, value.to_be_bytes()));
                leaves.slots += 1;
            } else if name.index.is_zero() && suffix >= HEADER_SLOTS {
                // The rest lies under the stem of the main storage.
                break;
            }
        }
        Ok(())
    }
}
