//! The flat records, read by plain name, and codes.

use alloy_primitives::{B256, Bytes};
use arbor_versions::View;

use super::records::{AccountRecord, decode_slot};
use crate::named_records::NamedRecords;
use arbor_state_tree::CODE;
use arbor_state_tree::{ReadError, StateChanges, StateError};

/// The flat records of trees of stems: those of what is gone stay.
pub(crate) static RECORDS: NamedRecords = NamedRecords {
    account: |key, bytes| Ok(AccountRecord::decode(key, bytes)?.account),
    slot: decode_slot,
    past_chunks: Some(|key, bytes| Ok(AccountRecord::decode(key, bytes)?.past_chunks())),
};

/// Finds codes after changes on top of a version: those of the changes, and those stored.
pub(crate) fn code_after<'a>(
    view: View<'a>,
    changes: &'a StateChanges,
) -> impl Fn(B256) -> Result<Bytes, StateError> + 'a {
    move |hash| match changes.codes.get(&hash) {
        Some(code) => Ok(code.clone()),
        None => stored_code(view, hash),
    }
}

/// The code with a hash.
pub(crate) fn stored_code(view: View<'_>, code_hash: B256) -> Result<Bytes, StateError> {
    let code = view.get(CODE, code_hash.as_slice())?;
    let code = code.ok_or(StateError::View(ReadError::MissingCode(code_hash)))?;
    Ok(Bytes::copy_from_slice(&code))
}
