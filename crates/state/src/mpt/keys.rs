//! Names to tree keys, and the tables they index.

use alloy_primitives::{Address, U256};
use arbor_store::Table;
use arbor_tree::{Hash, Position};
use arbor_versions::{TableKind, TableSpec};

use crate::tables::COMMON;

/// Inner nodes of the account trie by position.
pub(crate) const ACCOUNT_NODES: Table = Table(3);
/// Inner nodes of the storage tries by position.
pub(crate) const STORAGE_NODES: Table = Table(4);
/// The tables of a Merkle-Patricia state. Accounts are keyed by the Keccak-256 of the address; slots by that, then the Keccak-256 of the
/// slot number (32 bytes big-endian).
pub(crate) const TABLES: [TableSpec; 5] = [
    COMMON[0],
    COMMON[1],
    TableSpec {
        table: ACCOUNT_NODES,
        name: "account nodes",
        kind: TableKind::Nodes,
    },
    TableSpec {
        table: STORAGE_NODES,
        name: "storage nodes",
        kind: TableKind::Nodes,
    },
    COMMON[2],
];

/// Key of an account in the trie and in its flat table.
pub(crate) fn account_key(address: Address) -> Hash {
    arbor_hashing::keccak256(address.as_slice())
}

/// Key of a slot in its storage trie.
pub(crate) fn slot_key(slot: U256) -> Hash {
    arbor_hashing::keccak256(&slot.to_be_bytes::<32>())
}

/// Key of a slot in the flat table.
pub(crate) fn flat_slot_key(account: &Hash, slot: &Hash) -> [u8; 64] {
    let mut key = [0; 64];
    key[..32].copy_from_slice(account);
    key[32..].copy_from_slice(slot);
    key
}

/// The table that holds a position's node.
pub(crate) fn node_table(position: &Position) -> Table {
    if position.trie.is_some() {
        STORAGE_NODES
    } else {
        ACCOUNT_NODES
    }
}
