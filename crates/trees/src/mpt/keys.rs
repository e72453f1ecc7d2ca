//! Names to tree keys, and the tables they index.

use std::cell::RefCell;

use alloy_primitives::Address;
use arbor_store::Table;
use arbor_tree::{Hash, Position};
use arbor_versions::{TableKind, TableSpec};

use arbor_state_tree::CODE;
pub(crate) use arbor_verify::mpt::{account_key, slot_key};

/// Layout of keys and records; a change of either raises it. Databases of layout 1 had accounts, slots and nodes apart.
pub(crate) const LAYOUT: u32 = 2;
/// Inner nodes of the account trie by position.
pub(crate) const ACCOUNT_NODES: Table = Table(3);
/// Accounts by the Keccak-256 of the address. This table and the next two are stored by account: a small one is in one block of a file.
pub(crate) const ACCOUNTS: Table = Table(0x80);
/// Slots by the account's key, then the Keccak-256 of the slot's number (32 bytes, big-endian).
pub(crate) const SLOTS: Table = Table(0x81);
/// Inner nodes of the storage tries by the account's key and position.
pub(crate) const STORAGE_NODES: Table = Table(0x82);

/// The tables of a Merkle-Patricia state.
pub(crate) const TABLES: [TableSpec; 5] = [
    spec(ACCOUNT_NODES, "account nodes", TableKind::Nodes),
    spec(CODE, "code", TableKind::Blobs),
    spec(ACCOUNTS, "accounts", TableKind::Flat),
    spec(SLOTS, "slots", TableKind::Flat),
    spec(STORAGE_NODES, "storage nodes", TableKind::Nodes),
];

const fn spec(table: Table, name: &'static str, kind: TableKind) -> TableSpec {
    TableSpec { table, name, kind }
}

/// Contracts whose keys a thread remembers; a power of two.
const CONTRACTS: usize = 64;

thread_local! {
    /// The keys of contracts whose slots were read lately: an entry gives way to the next address with the same place.
    static CONTRACT_KEYS: RefCell<[Option<(Address, Hash)>; CONTRACTS]> =
        const { RefCell::new([None; CONTRACTS]) };
}

/// As [`account_key`], for an account of which many slots are looked up: a few contracts are asked for most.
pub(crate) fn contract_key(address: Address) -> Hash {
    CONTRACT_KEYS.with_borrow_mut(|keys| {
        let known = &mut keys[usize::from(address[19]) % CONTRACTS];
        match known {
            Some((same, key)) if *same == address => *key,
            _ => known.insert((address, account_key(address))).1,
        }
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_with_the_same_place_have_their_own_keys() {
        for round in 0..2 {
            for number in 0..=u8::MAX {
                let address = Address::repeat_byte(number);
                assert_eq!(contract_key(address), account_key(address), "{round}");
                assert_eq!(contract_key(address), account_key(address), "{round}");
            }
        }
    }
}
