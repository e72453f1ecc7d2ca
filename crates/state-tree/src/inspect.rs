//! What a tree says of its stored records, one by one, for statistics of a database.

use alloy_primitives::{Address, B256};
use arbor_store::Table;

/// A stored record of one of a tree's tables.
#[derive(Clone, Copy, Debug)]
pub struct StoredRecord<'a> {
    /// Its table.
    pub table: Table,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// Something that a stored record stands for. One record may stand for several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen<'a> {
    /// Nodes of a trie.
    Nodes(SeenNodes),
    /// An account that exists.
    Account {
        /// Its address.
        address: Address,
        /// The hash of its code; `None` if it has no code, or the record does not have the hash.
        code_hash: Option<B256>,
    },
    /// A slot that has a record. Records of one owner come one after another.
    Slot {
        /// The account: its address, or the key that
        /// [`account_from`](crate::FlatRecords::account_from) finds it by.
        owner: &'a [u8],
    },
}

/// Nodes of one kind at one depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenNodes {
    /// The trie: `accounts`, `storage`, or `state` of a tree that has one trie for all.
    pub trie: &'static str,
    /// The kind, as the tree's specification names it.
    pub kind: &'static str,
    /// Steps from the trie's root: nibbles or bytes of the path, as the tree has them.
    pub depth: usize,
    /// How many there are.
    pub count: u64,
    /// Values that the node holds, of a tree whose leaves hold several.
    pub values: Option<u16>,
}
