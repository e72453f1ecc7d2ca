//! Loading the flat tables of a whole state.

use crate::named_records::slot_key;
use arbor_state_tree::{ACCOUNTS, AccountSource, KeyedAccount, LoadedCodes, SLOTS, StateError};
use arbor_store::Write;
use arbor_versions::Versions;

use super::changes::code_size;
use super::records::{AccountRecord, encode_slot};

/// Fills the flat tables of an empty database, and the codes. The source is read twice, in the
/// order of names. After each time `progress` is called, with 1 and with 2.
pub(crate) fn load_flat(
    versions: &mut Versions,
    source: &dyn AccountSource,
    progress: &mut dyn FnMut(u64),
) -> Result<(), StateError> {
    let codes = LoadedCodes::of(source);
    load_each(versions, source, |account| {
        account_write(&account, &codes).map(|write| vec![write])
    })?;
    codes.store(versions)?;
    progress(1);
    load_each(versions, source, |account| Ok(slot_writes(account)))?;
    progress(2);
    Ok(())
}

/// Loads what is made of each account, ascending by address.
fn load_each(
    versions: &mut Versions,
    source: &dyn AccountSource,
    make: impl Fn(KeyedAccount) -> Result<Vec<Write>, StateError>,
) -> Result<(), StateError> {
    let mut failed = None;
    let made = source.stream(None)?;
    let made = made.map_while(|account| {
        let writes = account.map_err(StateError::from).and_then(&make);
        writes.map_err(|error| failed = Some(error)).ok()
    });
    let loaded = versions.load(&mut made.flatten());
    match failed {
        Some(error) => Err(error),
        None => Ok(loaded?),
    }
}

fn account_write(account: &KeyedAccount, codes: &LoadedCodes<'_>) -> Result<Write, StateError> {
    let code_size = code_size(codes.size(account.address, &account.account)?)?;
    Ok(Write {
        table: ACCOUNTS,
        key: account.address.as_slice().into(),
        value: Some(AccountRecord::following(None, account.account, code_size).encode()),
    })
}

fn slot_writes(account: KeyedAccount) -> Vec<Write> {
    let slots = account.slots.into_iter();
    let writes = slots.map(|slot| Write {
        table: SLOTS,
        key: slot_key(account.address, slot.slot).into(),
        value: Some(encode_slot(slot.value)),
    });
    writes.collect()
}
