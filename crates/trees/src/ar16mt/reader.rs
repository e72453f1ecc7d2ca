//! Reading accounts and slots by plain name, and the whole state in the order of names.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_store::{Table, Value};
use arbor_tree::Hash;
use arbor_versions::View;

use super::names::{LeafName, Named};
use super::records::decode_leaf;
use super::{LEAVES, NAMES};
use crate::header_root::header_root;
use crate::named_records::slot_near;
use arbor_state_tree::{Account, AccountOrder, Accounts, BY_NAME, StateError, WithSlots, corrupt};
use arbor_state_tree::{Ahead, Flat, FlatKey, FlatRecords};
use arbor_verify::ar16mt::Header;

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

/// An account by its fields' values; the first one's key is its header's.
fn account_of(
    key: &Hash,
    value: impl Fn(usize) -> Result<Hash, StateError>,
) -> Result<Option<Account>, StateError> {
    let header = Header::decode(&value(0)?).map_err(|why| corrupt("leaves", key, why))?;
    let Some(header) = header else {
        return Ok(None);
    };
    Ok(Some(Account {
        nonce: header.nonce,
        balance: U256::from_be_bytes(value(1)?),
        code_hash: match header.has_code {
            true => value(2)?.into(),
            false => KECCAK256_EMPTY,
        },
    }))
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

/// The accounts that exist and whose addresses begin with `prefix`, ascending by address.
pub(super) fn accounts<'a>(
    flat: &'a dyn Flat,
    prefix: &[u8],
) -> Result<impl Iterator<Item = Result<WithSlots, StateError>> + use<'a>, StateError> {
    let mut names = flat.entries(NAMES, prefix)?.map(name).peekable();
    let mut next = move || {
        let Some(first) = names.next().transpose()? else {
            return Ok(None);
        };
        let address = first.address();
        let mut slots = Vec::from_iter(first.slot());
        let same =
            |named: &Result<Named, _>| named.as_ref().is_ok_and(|named| named.address() == address);
        while let Some(named) = names.next_if(same) {
            slots.extend(named?.slot());
        }
        Ok(Some(with_values(flat, address, &slots)?))
    };
    let all = std::iter::from_fn(move || next().transpose());
    Ok(all.filter_map(Result::transpose))
}

fn name(entry: Result<(Box<[u8]>, Value), StateError>) -> Result<Named, StateError> {
    Named::decode(&entry?.0)
}

/// An account with those slots that are not zero; `None` if there is none.
fn with_values(
    flat: &dyn Flat,
    address: Address,
    slots: &[U256],
) -> Result<Option<WithSlots>, StateError> {
    let names: Vec<_> = slots
        .iter()
        .map(|slot| LeafName::Slot(address, *slot))
        .collect();
    let mut found = Vec::with_capacity(slots.len());
    for (slot, key) in slots.iter().zip(LeafName::keys(&names)) {
        let value = U256::from_be_bytes(value(flat, &key)?);
        if !value.is_zero() {
            found.push((*slot, value));
        }
    }
    let account = account(flat, address)?;
    match account {
        Some(account) => Ok(Some(WithSlots {
            address,
            account,
            slots: found,
            storage_root: None,
        })),
        None if found.is_empty() => Ok(None),
        None => {
            let why = "it has slots, but does not exist";
            Err(corrupt("names", address.as_slice(), why))
        }
    }
}

/// The Merkle-Patricia root of the same accounts.
pub(crate) fn flat_root(flat: &(dyn Flat + Sync)) -> Result<B256, StateError> {
    header_root(|first| accounts(flat, &[first]))
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
        let has_none = |table| Ok::<bool, StateError>(flat.entries(table, &[])?.next().is_none());
        if has_none(NAMES)? && !has_none(LEAVES)? {
            let why = "its leaves were written by their keys alone, as `arbor loadtest` does, so that no names lead from accounts and slots to them. \
                       Accounts cannot be listed; `arbor prove --range` shows leaves by key, and `arbor snapshot` writes all of them";
            return Err(StateError::Read(why.to_owned()));
        }
        Ok(Box::new(accounts(flat, first.as_slice())?))
    }

    fn root(&self, flat: &Ahead<'_>) -> Result<B256, StateError> {
        flat_root(flat)
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
