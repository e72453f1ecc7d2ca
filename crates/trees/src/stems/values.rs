//! The leaves under a stem, looked up in the flat tables.

use crate::named_records::{slot_key, slot_name};
use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256};
use arbor_versions::View;

use super::reader::stored_code;
use super::records::{AccountRecord, decode_slot};
use arbor_state_tree::Flat;
use arbor_state_tree::StateError;
use arbor_state_tree::{ACCOUNTS, SLOTS};
use arbor_verify::stems::{
    HEADER_SLOTS, HeaderLayout, LeafValue, StemContents, StemName, chunk_place, slot_place,
};

/// Reads leaves of one version.
#[derive(Clone, Copy)]
pub(crate) struct Leaves<'a> {
    pub(crate) flat: &'a (dyn Flat + Sync),
    /// Where code lies, whatever the version.
    pub(crate) view: View<'a>,
    pub(crate) layout: HeaderLayout,
}

/// The leaves under a stem, ascending by suffix.
pub(crate) type StemLeaves = Vec<(u8, LeafValue)>;

/// The leaves that an account's fields and code have under one of its stems: that of the chunk of code with this number, which is 0 for the one that begins with the fields.
pub(crate) fn account_leaves(
    view: View<'_>,
    layout: HeaderLayout,
    (address, record): (Address, &AccountRecord),
    first_chunk: u32,
) -> Result<StemLeaves, StateError> {
    let (mut leaves, chunks) = match first_chunk {
        0 => (record.header_leaves(address, layout)?, 0..128),
        first => (Vec::new(), first..first + 256),
    };
    if chunks.start >= record.chunks {
        return Ok(leaves);
    }
    let code = match record.code_hash() {
        KECCAK256_EMPTY => Bytes::new(),
        hash => stored_code(view, hash)?,
    };
    let code = record.code_leaves(&code);
    let values = chunks.map_while(|chunk| Some((chunk_place(chunk).1, code.get(chunk)?)));
    leaves.extend(values);
    Ok(leaves)
}

impl Leaves<'_> {
    /// The leaves under a stem with this name; none if nothing is there at this version.
    pub(crate) fn under(&self, name: &StemName) -> Result<StemLeaves, StateError> {
        let mut leaves = match name.contents() {
            StemContents::Header => {
                let mut leaves = self.of_account(name, 0)?;
                self.slots(name, U256::ZERO, &mut leaves)?;
                leaves
            }
            StemContents::Code(first) => self.of_account(name, first)?,
            StemContents::Storage(first) => {
                let mut leaves = StemLeaves::new();
                self.slots(name, first, &mut leaves)?;
                leaves
            }
            StemContents::Nothing => StemLeaves::new(),
        };
        leaves.sort_unstable_by_key(|(suffix, _)| *suffix);
        Ok(leaves)
    }

    fn of_account(&self, name: &StemName, first_chunk: u32) -> Result<StemLeaves, StateError> {
        let key = name.address.as_slice();
        let Some(bytes) = self.flat.value(ACCOUNTS, key)? else {
            return Ok(StemLeaves::new());
        };
        let record = AccountRecord::decode(key, &bytes)?;
        let account = (name.address, &record);
        account_leaves(self.view, self.layout, account, first_chunk)
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
                leaves.push((suffix, value.to_be_bytes()));
            } else if name.index.is_zero() && suffix >= HEADER_SLOTS {
                // The rest lies under the stem of the main storage.
                break;
            }
        }
        Ok(())
    }
}
