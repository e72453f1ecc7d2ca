//! The whole state, account by account, ascending by the hash of the address.

use super::keys::{ACCOUNTS, SLOTS};
use super::records::{AccountRecord, SlotRecord};
use crate::dump::{DumpAccount, Dumped};
use crate::flat::Flat;
use crate::{Historical, StateError};

pub(crate) fn dump<E: From<StateError>>(
    state: &Historical<'_>,
    sink: &mut dyn FnMut(DumpAccount) -> Result<(), E>,
) -> Result<(), E> {
    for entry in state.entries(ACCOUNTS, &[])? {
        let (key, bytes) = entry?;
        let record = AccountRecord::decode(&key, &bytes)?;
        let mut slots = Vec::new();
        for entry in state.entries(SLOTS, &key)? {
            let (key, bytes) = entry?;
            let slot = SlotRecord::decode(&key, &bytes)?;
            slots.push((slot.slot, slot.value));
        }
        sink(state.dumped(Dumped {
            address: record.address,
            account: record.account,
            storage_root: record.storage_root,
            slots,
        })?)?;
    }
    Ok(())
}
