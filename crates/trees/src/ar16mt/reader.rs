//! Reading accounts and slots by plain name, and the whole state in the order of names.

use std::path::Path;

use alloy_primitives::{Address, B256, U256};
use arbor_store::Table;
use arbor_tree::Hash;
use arbor_versions::View;

use super::by_name::ByName;
use super::named_groups::{NamedSlots, account_of, group, keys_of, name, put_together};
use super::names::{LeafName, Named};
use super::records::decode_leaf;
use super::{LEAVES, NAMES};
use crate::header_root::{Select, Visit, header_root};
use crate::named_records::slot_near;
use arbor_state_tree::{Account, AccountOrder, Accounts, BY_NAME, StateError, WithSlots};
use arbor_state_tree::{Ahead, Arranged, Flat, FlatKey, FlatRecords};

/// The value of a leaf; zero if there is none.
fn value(flat: &dyn Flat, key: &Hash) -> Result<Hash, StateError> {
    match flat.value(LEAVES, key)? {
        Some(bytes) => Ok(decode_leaf(key, &bytes)?.value),
        None => Ok([0; 32]),
    }
}

/// An account, whose fields are leaves.
pub(super) fn account(flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
    let keys = LeafName::keys(&LeafName::fields(address));
    account_of(&keys[0], |field| value(flat, &keys[field]))
}

/// A slot's value; zero if absent.
pub(crate) fn storage(flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
    let key = LeafName::Slot(address, slot).key();
    Ok(U256::from_be_bytes(value(flat, &key)?))
}

/// The slots of an account that have leaves, ascending; later ones too, if this is an older version.
pub(super) fn slots<'a>(
    flat: &'a dyn Flat,
    address: Address,
) -> Result<impl Iterator<Item = Result<U256, StateError>> + 'a, StateError> {
    let names = flat.entries(NAMES, address.as_slice())?.map(name);
    Ok(names.filter_map(|named| named.map(Named::slot).transpose()))
}

/// The most leaves that are read together, but for an account that has more.
const TOGETHER: usize = 1 << 16;

/// The accounts that exist and whose addresses begin with `prefix`, ascending by address.
///
/// Names ascend by address and leaves by their hashes. So leaves are read in groups that ascend by
/// hash, since each read of one alone reads a block of the store. Groups grow: some callers take few
/// accounts. Leaves of accounts that are not selected are not read.
pub(super) fn accounts<'a>(
    flat: &'a dyn Flat,
    prefix: &[u8],
    select: Option<Select<'a>>,
) -> Result<impl Iterator<Item = Result<WithSlots, StateError>> + use<'a>, StateError> {
    let mut names = flat.entries(NAMES, prefix)?.map(name).peekable();
    let mut read = Vec::new().into_iter();
    let mut leaves = 16;
    let mut next = move || {
        loop {
            if let Some(account) = read.next() {
                return Ok(Some(account));
            }
            leaves = TOGETHER.min(2 * leaves);
            let mut group = group(&mut names, leaves)?;
            if group.is_empty() {
                return Ok(None);
            }
            if let Some(select) = select {
                let addresses: Vec<Address> = group.iter().map(|(address, _)| *address).collect();
                let mut is_selected = select(&addresses).into_iter();
                group.retain(|_| is_selected.next() == Some(true));
            }
            read = with_values(flat, &group)?.into_iter();
        }
    };
    Ok(std::iter::from_fn(move || next().transpose()))
}

/// Gives out those selected accounts whose addresses begin with a byte.
pub(super) fn list(
    flat: &dyn Flat,
    first: u8,
    select: Select<'_>,
    visit: Visit<'_>,
) -> Result<(), StateError> {
    let mut accounts = accounts(flat, &[first], Some(select))?;
    accounts.try_for_each(|account| visit(account?))
}

/// Those of the accounts that exist, with those slots that are not zero.
fn with_values(flat: &dyn Flat, group: &[NamedSlots]) -> Result<Vec<WithSlots>, StateError> {
    let keys = keys_of(group);
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_unstable_by_key(|at| keys[*at]);
    let wanted: Vec<&[u8]> = order.iter().map(|at| &keys[*at][..]).collect();
    let mut values = vec![[0; 32]; keys.len()];
    for (at, record) in order.iter().zip(flat.values(LEAVES, &wanted)?) {
        if let Some(bytes) = record {
            values[*at] = decode_leaf(&keys[*at], &bytes)?.value;
        }
    }
    put_together(group, &values)
}

/// Fails if there are leaves and no names.
fn check_named(flat: &dyn Flat) -> Result<(), StateError> {
    let has_none = |table| Ok::<bool, StateError>(flat.entries(table, &[])?.next().is_none());
    if has_none(NAMES)? && !has_none(LEAVES)? {
        let why = "its leaves were written by their keys alone, as `arbor loadtest` does, so that no names lead from accounts and slots to them. \
                   Accounts cannot be listed; `arbor prove --range` shows leaves by key, and `arbor snapshot` writes all of them";
        return Err(StateError::Read(why.to_owned()));
    }
    Ok(())
}

/// The flat records: leaves by key, and names that lead to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records;

impl FlatRecords for Records {
    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
        account(flat, address)
    }

    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        let names: Vec<LeafName> = addresses
            .iter()
            .flat_map(|of| LeafName::fields(*of))
            .collect();
        let keys = LeafName::keys(&names);
        let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let records = flat.values(LEAVES, &wanted)?;
        let accounts = keys.chunks(3).zip(records.chunks(3));
        let accounts = accounts.map(|(keys, records)| {
            account_of(&keys[0], |field| match &records[field] {
                Some(bytes) => Ok(decode_leaf(&keys[field], bytes)?.value),
                None => Ok([0; 32]),
            })
        });
        accounts.collect()
    }

    fn keys(&self, accounts: &[Address], slots: &[(Address, U256)]) -> [(Table, Vec<FlatKey>); 2] {
        let accounts: Vec<_> = accounts
            .iter()
            .flat_map(|of| LeafName::fields(*of))
            .collect();
        let slots: Vec<_> = slots
            .iter()
            .map(|&(address, slot)| LeafName::Slot(address, slot))
            .collect();
        [accounts, slots].map(|names| {
            let keys = LeafName::keys(&names).into_iter();
            (LEAVES, keys.map(FlatKey::from).collect())
        })
    }

    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        storage(flat, address, slot)
    }

    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
        for slot in slots(flat, address)? {
            if !storage(flat, address, slot?)?.is_zero() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn order(&self) -> &'static AccountOrder {
        &BY_NAME
    }

    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        check_named(flat)?;
        Ok(Box::new(accounts(flat, first.as_slice(), None)?))
    }

    fn arrange<'a>(
        &'a self,
        flat: &'a (dyn Flat + Sync),
        folder: &Path,
        bytes: usize,
    ) -> Result<Option<Box<dyn Arranged + 'a>>, StateError> {
        check_named(flat)?;
        Ok(Some(Box::new(ByName::new(flat, folder, bytes)?)))
    }

    fn root(&self, flat: &Ahead<'_>, bytes: usize) -> Result<B256, StateError> {
        header_root(
            &|first, select, visit| list(flat, first, select, visit),
            bytes,
        )
    }

    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
        for entry in view.scan(NAMES, &[], &from[..20])? {
            if let Named::Account(address) = Named::decode(&entry?.0)?
                && account(&view, address)?.is_some()
            {
                return Ok(Some(address));
            }
        }
        Ok(None)
    }

    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        let set = |prefix: &[u8], from: &[u8]| -> Result<Option<(Address, U256)>, StateError> {
            for entry in view.scan(NAMES, prefix, from)? {
                if let Named::Slot(address, slot) = Named::decode(&entry?.0)?
                    && !storage(&view, address, slot)?.is_zero()
                {
                    return Ok(Some((address, slot)));
                }
            }
            Ok(None)
        };
        slot_near(account, slot, set)
    }
}
