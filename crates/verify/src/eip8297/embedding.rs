//! Names to tree keys.

use alloy_primitives::{Address, B256, U256};
use arbor_tree::Hash;
use arbor_tree_eip8297::{Hasher, Path};

use super::header::CODE_HASH;

/// Slots that lie beside an account's fields.
pub const HEADER_SLOTS: u8 = 64;
/// The suffix of slot 0 there.
const HEADER_STORAGE: u8 = 64;

/// The first byte of the keys of accounts' fields and first slots.
pub const HEADER_ZONE: u8 = 0x00;
/// The first byte of the keys of code.
pub const CODE_ZONE: u8 = 0x01;
/// The first byte of the keys of all other slots.
pub const STORAGE_ZONE: u8 = 0xff;

/// Where accounts, slots and chunks of code lie in a tree with this hash function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Embedding(pub Hasher);

/// The group of 256 slots that a slot belongs to; `None` for a slot in an account's header.
#[must_use]
pub fn group_of(slot: U256) -> Option<U256> {
    (slot >= U256::from(HEADER_SLOTS)).then(|| slot >> 8)
}

fn padded(address: Address) -> [u8; 32] {
    address.into_word().0
}

impl Embedding {
    /// The hashes that stand for accounts.
    #[must_use]
    pub fn accounts(self, addresses: &[Address]) -> Vec<Hash> {
        let names: Vec<[u8; 32]> = addresses.iter().map(|address| padded(*address)).collect();
        self.0.hash_fixed(&names)
    }

    /// The hash that stands for an account.
    #[must_use]
    pub fn account(self, address: Address) -> Hash {
        self.0.hash(&padded(address))
    }

    /// The hashes that stand for groups of slots.
    #[must_use]
    pub fn groups(self, names: &[(Address, U256)]) -> Vec<Hash> {
        let name = |(address, group): &(Address, U256)| pair(padded(*address), group.to_be_bytes());
        let names: Vec<[u8; 64]> = names.iter().map(name).collect();
        self.0.hash_fixed(&names)
    }

    /// The hashes that stand for groups of 256 chunks of code.
    #[must_use]
    pub fn code_groups(self, names: &[(B256, u32)]) -> Vec<Hash> {
        let name = |(code, group): &(B256, u32)| pair(code.0, U256::from(*group).to_be_bytes());
        let names: Vec<[u8; 64]> = names.iter().map(name).collect();
        self.0.hash_fixed(&names)
    }

    /// The keys of slots, each with the hash of its account. A group's hash is computed once for
    /// neighbours.
    #[must_use]
    pub fn slots(self, slots: &[(Hash, Address, U256)]) -> Vec<Path> {
        let mut names: Vec<(Address, U256)> = Vec::new();
        let mut places = Vec::with_capacity(slots.len());
        for (_, address, slot) in slots {
            let place = group_of(*slot).map(|group| {
                let name = (*address, group);
                if names.last() != Some(&name) {
                    names.push(name);
                }
                names.len() - 1
            });
            places.push(place);
        }
        let groups = self.groups(&names);
        let keys = slots.iter().zip(places).map(|((account, _, slot), place)| {
            let suffix = slot.byte(0);
            match place {
                Some(place) => storage_key(account, &groups[place], suffix),
                None => header_key(account, HEADER_STORAGE + suffix),
            }
        });
        keys.collect()
    }
}

fn pair(first: [u8; 32], second: [u8; 32]) -> [u8; 64] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(&first);
    both[32..].copy_from_slice(&second);
    both
}

fn key(bytes: &[u8]) -> Path {
    Path::of_key(bytes).expect("invariant: no key of the embedding has more than 66 bytes")
}

/// The key of a leaf beside an account's fields.
#[must_use]
pub fn header_key(account: &Hash, suffix: u8) -> Path {
    let mut bytes = [HEADER_ZONE; 34];
    bytes[1..33].copy_from_slice(account);
    bytes[33] = suffix;
    key(&bytes)
}

/// Whether a key is that of an account's code hash.
pub(super) fn is_code_hash(key: &Path) -> bool {
    let key = key.packed();
    key.first() == Some(&HEADER_ZONE) && key.last() == Some(&CODE_HASH)
}

/// The path that all slots in an account's header are below.
#[must_use]
pub fn header_slots(account: &Hash) -> Path {
    // Suffixes 64 to 127 have the bits 01 first.
    header_key(account, HEADER_STORAGE).prefix(8 * 33 + 2)
}

/// The path that all other slots of an account are below.
#[must_use]
pub fn storage_of(account: &Hash) -> Path {
    storage_key(account, &[0; 32], 0).prefix(8 * 33)
}

/// The keys on whose ways it shows whether an account has any slot.
#[must_use]
pub fn storage_ways(account: &Hash) -> [Path; 2] {
    [
        header_key(account, HEADER_STORAGE),
        storage_key(account, &[0; 32], 0),
    ]
}

/// The key of a chunk of code in a group.
#[must_use]
pub fn code_key(group: &Hash, suffix: u8) -> Path {
    let mut bytes = [CODE_ZONE; 34];
    bytes[1..33].copy_from_slice(group);
    bytes[33] = suffix;
    key(&bytes)
}

fn storage_key(account: &Hash, group: &Hash, suffix: u8) -> Path {
    let mut bytes = [STORAGE_ZONE; 66];
    bytes[1..33].copy_from_slice(account);
    bytes[33..65].copy_from_slice(group);
    bytes[65] = suffix;
    key(&bytes)
}
