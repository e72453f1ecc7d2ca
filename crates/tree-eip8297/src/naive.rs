//! The tree by its definition: sorted keys as lists of bits, and every root computed from nothing.

use std::collections::BTreeMap;

use crate::{Hash, Hasher};

/// The root of a tree with these leaves.
///
/// # Panics
/// If a key is the beginning of another one.
#[must_use]
pub fn root(hasher: Hasher, leaves: &BTreeMap<Vec<u8>, Hash>) -> Hash {
    let leaves: Vec<Leaf<'_>> = leaves
        .iter()
        .map(|(key, value)| Leaf {
            bits: key
                .iter()
                .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
                .collect(),
            key,
            value,
        })
        .collect();
    match leaves.is_empty() {
        true => [0; 32],
        false => node(hasher, &leaves, 0),
    }
}

struct Leaf<'a> {
    bits: Vec<u8>,
    key: &'a [u8],
    value: &'a Hash,
}

/// The hash of the node that has these leaves, whose first `depth` bits are behind it.
fn node(hasher: Hasher, leaves: &[Leaf<'_>], depth: usize) -> Hash {
    let first = &leaves[0];
    if leaves.len() == 1 {
        return hasher.hash(&[&[0], first.key, &first.value[..]].concat());
    }
    let is_shared = |at: &usize| leaves.iter().all(|leaf| leaf.bits[*at] == first.bits[*at]);
    let count = (depth..).take_while(is_shared).count();
    let (left, right): (Vec<_>, Vec<_>) =
        (0..leaves.len()).partition(|leaf| leaves[*leaf].bits[depth + count] == 0);
    let child = |of: Vec<usize>| {
        let range = of[0]..of[0] + of.len();
        node(hasher, &leaves[range], depth + count + 1)
    };
    let prefix = &first.bits[depth..depth + count];
    let packed = prefix.chunks(8).map(|bits| {
        let byte = bits.iter().fold(0, |byte, bit| byte << 1 | bit);
        byte << (8 - bits.len())
    });
    let mut message = vec![1];
    message.extend((count as u16).to_be_bytes());
    message.extend(packed);
    message.extend(child(left));
    message.extend(child(right));
    hasher.hash(&message)
}
