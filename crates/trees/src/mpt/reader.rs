//! Reading a Merkle-Patricia state: flat records by plain name, and the tries at the head and at older versions.

use std::sync::Arc;

use alloy_primitives::{Address, U256};
use arbor_hashing::keccak256_fixed;
use arbor_store::{Table, Value};
use arbor_tree::{
    Hash, Leaf, NodeReader, NodeRequest, Path, Position, PositionKey, ReadError as NodeError,
};
use arbor_tree_mpt::{EMPTY_ROOT, Over};
use arbor_versions::View;

use super::keys::{
    ACCOUNT_NODES, ACCOUNTS, SLOTS, STORAGE_NODES, account_key, contract_key, flat_slot_key,
    slot_key,
};
use super::prove::Provable;
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use super::undo::Undone;
use arbor_state_tree::WithSlots;
use arbor_state_tree::{Account, Accounts, ReadError, StateError};
use arbor_state_tree::{Flat, FlatKey};
use arbor_state_tree::{Then, own};
use arbor_verify::mpt::Base;

/// An account, by its name.
pub(crate) fn account(flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
    let record = account_record(flat, &account_key(address))?;
    Ok(record.map(|record| record.account))
}

/// Accounts, by their names.
pub(crate) fn accounts_named(
    flat: &dyn Flat,
    addresses: &[Address],
) -> Result<Vec<Option<Account>>, StateError> {
    let mut keys = vec![Hash::default(); addresses.len()];
    let names: Vec<[u8; 20]> = addresses.iter().map(|address| address.0.0).collect();
    keccak256_fixed(&names, &mut keys);
    let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let records = keys.iter().zip(flat.values(ACCOUNTS, &wanted)?);
    let account = |(key, bytes): (&Hash, Option<Value>)| {
        let record = bytes.map(|bytes| AccountRecord::decode(key, &bytes));
        Ok(record.transpose()?.map(|record| record.account))
    };
    records.map(account).collect()
}

pub(crate) fn flat_keys(
    accounts: &[Address],
    slots: &[(Address, U256)],
) -> [(Table, Vec<FlatKey>); 2] {
    let account = |&address: &Address| account_key(address).into();
    let slot = |&(address, slot): &(Address, U256)| -> FlatKey {
        flat_slot_key(&account_key(address), &slot_key(slot)).into()
    };
    [
        (ACCOUNTS, accounts.iter().map(account).collect()),
        (SLOTS, slots.iter().map(slot).collect()),
    ]
}

/// The accounts whose keys begin with `prefix`, with their slots: ascending by the hash of the
/// address, and slots by the hash of the slot's number.
pub(super) fn listing<'a>(flat: &'a dyn Flat, prefix: &[u8]) -> Result<Accounts<'a>, StateError> {
    let accounts = flat.entries(ACCOUNTS, prefix)?;
    Ok(Box::new(accounts.map(|entry| {
        let (key, bytes) = entry?;
        let record = AccountRecord::decode(&key, &bytes)?;
        let slots = flat.entries(SLOTS, &key)?.map(|entry| {
            let (key, bytes) = entry?;
            let slot = SlotRecord::decode(&key, &bytes)?;
            Ok((slot.slot, slot.value))
        });
        Ok(WithSlots {
            address: record.address,
            account: record.account,
            slots: slots.collect::<Result<_, StateError>>()?,
            storage_root: Some(record.storage_root),
        })
    })))
}

/// A slot's value, by its name; zero if absent.
pub(crate) fn storage(flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
    slot_value(flat, &contract_key(address), slot)
}

/// Whether an account has a slot that is not zero.
pub(crate) fn has_storage(flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
    let record = account_record(flat, &account_key(address))?;
    Ok(record.is_some_and(|record| record.has_storage()))
}

pub(super) fn account_record(
    flat: &dyn Flat,
    key: &Hash,
) -> Result<Option<AccountRecord>, StateError> {
    flat.value(ACCOUNTS, key)?
        .map(|bytes| AccountRecord::decode(key, &bytes))
        .transpose()
}

fn slot_value(flat: &dyn Flat, account: &Hash, slot: U256) -> Result<U256, StateError> {
    let key = flat_slot_key(account, &slot_key(slot));
    match flat.value(SLOTS, &key)? {
        Some(bytes) => Ok(SlotRecord::decode(&key, &bytes)?.value),
        None => Ok(U256::ZERO),
    }
}

/// The tries of the latest version.
#[derive(Clone, Copy)]
pub(crate) struct AtHead<'a>(pub(crate) View<'a>);

impl AtHead<'_> {
    pub(crate) fn root(self) -> Hash {
        self.0.head().map_or(EMPTY_ROOT, |meta| meta.root)
    }

    /// The records of accounts, by their keys.
    pub(super) fn account_values(self, keys: &[Hash]) -> Result<Vec<Option<Value>>, StateError> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        Ok(self.0.multi_get(ACCOUNTS, &keys)?)
    }
}

impl Base for AtHead<'_> {
    fn root(&self) -> Hash {
        AtHead::root(*self)
    }

    fn account_record(&self, _: Address, key: &Hash) -> Result<Option<AccountRecord>, ReadError> {
        Ok(account_record(&self.0, key)?)
    }
}

impl Provable for AtHead<'_> {
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError> {
        slot_value(&self.0, account, slot)
    }
}

/// The tries of an older version.
#[derive(Clone, Copy)]
pub(crate) struct AtVersion<'t>(pub(crate) &'t dyn Then);

impl<'t> AtVersion<'t> {
    fn nodes(&self) -> Result<Over<'t, AtHead<'t>>, StateError> {
        Ok(own::<Undone>(self.0.nodes()?)
            .laid
            .over(AtHead(self.0.view())))
    }
}

impl Base for AtVersion<'_> {
    fn root(&self) -> Hash {
        self.0.meta().root
    }

    fn account_record(&self, _: Address, key: &Hash) -> Result<Option<AccountRecord>, ReadError> {
        Ok(account_record(self.0, key)?)
    }
}

impl Provable for AtVersion<'_> {
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError> {
        slot_value(self.0, account, slot)
    }
}

impl NodeReader for AtVersion<'_> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, NodeError> {
        AtVersion::nodes(self)?.nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, NodeError> {
        AtVersion::nodes(self)?.leaf(request)
    }
}

impl NodeReader for AtHead<'_> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, NodeError> {
        let keys: Vec<PositionKey> = requests.iter().map(|r| r.position.key()).collect();
        let mut found = vec![None; requests.len()];
        for inner in [false, true] {
            let of_table = |index: &usize| requests[*index].position.trie.is_some() == inner;
            let places: Vec<usize> = (0..requests.len()).filter(of_table).collect();
            if places.is_empty() {
                continue;
            }
            let table = if inner { STORAGE_NODES } else { ACCOUNT_NODES };
            let wanted: Vec<&[u8]> = places.iter().map(|&place| &*keys[place]).collect();
            let values = self.0.multi_get(table, &wanted).map_err(StateError::from)?;
            for (place, value) in places.into_iter().zip(values) {
                found[place] = value;
            }
        }
        Ok(found)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, NodeError> {
        Ok(leaf_below(self.0, &request.position)?)
    }
}

/// The leaf at or below a position that has one, from the flat tables.
fn leaf_below(view: View<'_>, position: &Position) -> Result<Option<Leaf>, StateError> {
    let table: Table = if position.trie.is_some() {
        SLOTS
    } else {
        ACCOUNTS
    };
    let owner: &[u8] = position.trie.as_ref().map_or(&[], |owner| owner.as_slice());
    let path = position.path.packed();
    let whole_bytes = position.path.len() / 2;
    let prefix = [owner, &path[..whole_bytes]].concat();
    let from = [owner, &path[..position.path.len().div_ceil(2)]].concat();
    let leaf =
        |(key, bytes): (Box<[u8]>, Value)| leaf_of(position, &key[owner.len()..], &key, &bytes);
    // Where the tree has a leaf there is but one, mostly among what was changed lately.
    let unflushed = view.first_unflushed(table, &prefix, &from)?;
    if let Some(found) = unflushed.map(leaf).transpose()?.flatten() {
        return Ok(Some(found));
    }
    match view.scan(table, &prefix, &from)?.next() {
        Some(entry) => leaf(entry?),
        None => Ok(None),
    }
}

/// The leaf that a flat record says, if it is at or below a position. The tree's key is the end of the record's.
fn leaf_of(
    position: &Position,
    tree_key: &[u8],
    key: &[u8],
    bytes: &[u8],
) -> Result<Option<Leaf>, StateError> {
    let inner = position.trie.is_some();
    let tree_key = Hash::try_from(tree_key).map_err(|_| StateError::Corrupt {
        table: if inner { "slots" } else { "accounts" },
        key: key.to_vec(),
        why: "key of the wrong length",
    })?;
    if !Path::from_key(&tree_key).starts_with(&position.path) {
        return Ok(None);
    }
    let value = if inner {
        SlotRecord::leaf(SlotRecord::decode(key, bytes)?.value).into_vec()
    } else {
        AccountRecord::decode(key, bytes)?.filled_leaf()
    };
    Ok(Some(Leaf {
        key: tree_key,
        value,
    }))
}
