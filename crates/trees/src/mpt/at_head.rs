//! The tries of the latest version.

use std::sync::Arc;

use alloy_primitives::{Address, U256};
use arbor_store::{Table, Value};
use arbor_tree::{
    Hash, Leaf, NodeReader, NodeRequest, Path, Position, PositionKey, ReadError as NodeError,
};
use arbor_tree_mpt::EMPTY_ROOT;
use arbor_versions::View;

use super::keys::{ACCOUNT_NODES, ACCOUNTS, SLOTS, STORAGE_NODES};
use super::prove::Provable;
use super::reader::{account_record, slot_value};
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use arbor_state_tree::{ReadError, StateError};
use arbor_verify::mpt::Base;

/// The tries of the latest version.
#[derive(Clone, Copy)]
pub(crate) struct AtHead<'a>(pub(crate) View<'a>);

impl AtHead<'_> {
    pub(crate) fn root(self) -> Hash {
        self.0.root().unwrap_or(EMPTY_ROOT)
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
    let at_hand = view.at_hand(table, &prefix, &from)?;
    if let Some(found) = at_hand.map(leaf).transpose()?.flatten() {
        return Ok(Some(found));
    }
    match view.scan(table, &prefix, &from)?.next() {
        Some(entry) => leaf(entry?),
        None => Ok(None),
    }
}

/// The leaf that a flat record says, if it is at or below a position. The tree's key is the end of
/// the record's.
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
