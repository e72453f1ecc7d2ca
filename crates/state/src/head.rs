//! Reading a database: its head, as execution does and as the tree does, and the way to its past.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Table, Value};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, Path, Position, PositionKey, ReadError};
use arbor_tree_mpt::EMPTY_ROOT;
use arbor_versions::{Meta, Version, View};

use crate::keys::{
    ACCOUNT_NODES, ACCOUNTS, CODE, SLOTS, STORAGE_NODES, account_key, flat_slot_key, slot_key,
};
use crate::records::{AccountRecord, SlotRecord};
use crate::{Account, Historical, StateError, StateView};

/// The latest version of a database and the retained ones before it, for reading: of the writer
/// ([`MptState::reader`](crate::MptState::reader)), or frozen ([`MptSnapshot`](crate::MptSnapshot)).
#[derive(Clone, Copy)]
pub struct Head<'a>(pub(crate) View<'a>);

impl<'a> Head<'a> {
    /// The latest version: its block, its root; `None` before genesis.
    pub fn meta(self) -> Option<&'a Meta> {
        self.0.head()
    }

    /// The root of the latest version; that of the empty trie before genesis.
    pub fn root(self) -> B256 {
        self.meta()
            .map_or(EMPTY_ROOT.into(), |meta| meta.root.into())
    }

    /// The versioned tables below.
    pub fn view(self) -> View<'a> {
        self.0
    }

    /// The state as it was at a retained version.
    pub fn at(self, version: Version) -> Result<Historical<'a>, StateError> {
        Historical::new(self, version)
    }
}

impl Head<'_> {
    pub(crate) fn account_value(&self, key: &Hash) -> Result<Option<Value>, StateError> {
        Ok(self.0.get(ACCOUNTS, key)?)
    }

    pub(crate) fn account_record(&self, key: &Hash) -> Result<Option<AccountRecord>, StateError> {
        self.account_value(key)?
            .map(|bytes| AccountRecord::decode(key, &bytes))
            .transpose()
    }

    pub(crate) fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError> {
        let key = flat_slot_key(account, &slot_key(slot));
        match self.0.get(SLOTS, &key)? {
            Some(bytes) => Ok(SlotRecord::decode(&key, &bytes)?.value),
            None => Ok(U256::ZERO),
        }
    }
}

impl StateView for Head<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self
            .account_record(&account_key(address))?
            .map(|record| record.account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
        self.slot_value(&account_key(address), slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, StateError> {
        let record = self.account_record(&account_key(address))?;
        Ok(record.is_some_and(|record| record.has_storage()))
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        match self.0.get(CODE, code_hash.as_slice())? {
            Some(bytes) => Ok(Bytes::copy_from_slice(&bytes)),
            None => Err(StateError::MissingCode(code_hash)),
        }
    }
}

impl NodeReader for Head<'_> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
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

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        Ok(first_leaf(self.0, &request.position)?)
    }
}

/// The first leaf at or below a position, from the flat tables.
fn first_leaf(view: View<'_>, position: &Position) -> Result<Option<Leaf>, StateError> {
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
    let Some(entry) = view.scan(table, &prefix, &from)?.next() else {
        return Ok(None);
    };
    let (key, bytes) = entry?;
    let tree_key: Hash = key[owner.len()..]
        .try_into()
        .map_err(|_| StateError::Corrupt {
            table: if position.trie.is_some() {
                "slots"
            } else {
                "accounts"
            },
            key: key.to_vec(),
            why: "key of the wrong length",
        })?;
    if !Path::from_key(&tree_key).starts_with(&position.path) {
        return Ok(None);
    }
    let value = match position.trie {
        Some(_) => SlotRecord::leaf(SlotRecord::decode(&key, &bytes)?.value),
        None => AccountRecord::decode(&key, &bytes)?.filled_leaf(),
    };
    Ok(Some(Leaf {
        key: tree_key,
        value,
    }))
}
