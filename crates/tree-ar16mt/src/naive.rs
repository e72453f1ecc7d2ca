//! The tree by its definition: 256 levels, one hash after the other.

use std::collections::BTreeMap;

use arbor_hashing::blake2s::Blake2s;

use crate::{DEPTH, Entry, Hash};

/// The root of a tree with these leaves.
#[must_use]
pub fn root(leaves: &BTreeMap<Hash, Entry>) -> Hash {
    let leaves: Vec<(Hash, Entry)> = leaves.iter().map(|(key, entry)| (*key, *entry)).collect();
    subtree(&leaves, 0, &empty())
}

/// The hashes of empty subtrees by height.
fn empty() -> Vec<Hash> {
    let mut empty = vec![Blake2s::new().hash(&[0; 40])];
    for height in 0..DEPTH {
        empty.push(node(&empty[height], &empty[height]));
    }
    empty
}

fn node(left: &Hash, right: &Hash) -> Hash {
    Blake2s::new().hash(&[&left[..], &right[..]].concat())
}

/// The hash of the subtree with these leaves, which share the first bits of their keys.
fn subtree(leaves: &[(Hash, Entry)], bits: usize, empty: &[Hash]) -> Hash {
    if leaves.is_empty() {
        return empty[DEPTH - bits];
    }
    if bits == DEPTH {
        let (_, entry) = leaves[0];
        return Blake2s::new().hash(&[&entry.index.to_be_bytes()[..], &entry.value].concat());
    }
    let is_left = |(key, _): &(Hash, Entry)| key[bits / 8] >> (7 - bits % 8) & 1 == 0;
    let (left, right) = leaves.split_at(leaves.partition_point(is_left));
    let (left, right) = (
        subtree(left, bits + 1, empty),
        subtree(right, bits + 1, empty),
    );
    node(&left, &right)
}
