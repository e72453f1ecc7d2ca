//! The flat records, read by plain name.

use alloy_primitives::Address;
use arbor_state_tree::{ACCOUNTS, Flat, StateError};
use arbor_store::Value;

use super::records::{AccountRecord, decode_slot};
use crate::named_records::NamedRecords;

/// The flat records: what is gone has none.
pub(super) static RECORDS: NamedRecords = NamedRecords {
    account: |key, bytes| Ok(Some(AccountRecord::decode(key, bytes)?.account)),
    slot: decode_slot,
    past_chunks: None,
};

pub(super) fn account_record(
    flat: &dyn Flat,
    address: Address,
) -> Result<Option<AccountRecord>, StateError> {
    let key = address.as_slice();
    record(key, flat.value(ACCOUNTS, key)?)
}

/// The record that bytes are.
pub(super) fn record(
    key: &[u8],
    bytes: Option<Value>,
) -> Result<Option<AccountRecord>, StateError> {
    let record = bytes.map(|bytes| AccountRecord::decode(key, &bytes));
    record.transpose()
}
