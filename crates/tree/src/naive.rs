//! A deliberately naive nested Merkle-Patricia trie: sorted maps, and every root computed from
//! nothing by the rules of the Yellow Paper, appendix D.

use std::collections::BTreeMap;

use alloy_primitives::keccak256;
use alloy_rlp::{Encodable, Header};

use crate::Hash;

/// Computes the root of a trie whose keys may have any length, also one beginning with another.
pub fn root(leaves: &BTreeMap<Vec<u8>, Vec<u8>>) -> Hash {
    let leaves: Vec<_> = leaves
        .iter()
        .map(|(key, value)| {
            let nibbles: Vec<u8> = key.iter().flat_map(|b| [b >> 4, b & 15]).collect();
            (nibbles, value.as_slice())
        })
        .collect();
    let rlp = if leaves.is_empty() {
        vec![0x80]
    } else {
        node(&leaves, 0)
    };
    keccak256(rlp).0
}

/// The RLP of the node that holds all these leaves, which share their first `depth` nibbles.
fn node(leaves: &[(Vec<u8>, &[u8])], depth: usize) -> Vec<u8> {
    let (first, value) = &leaves[0];
    if leaves.len() == 1 {
        return list(&[string(&hex_prefix(&first[depth..], true)), string(value)]);
    }
    let shares = |n: &usize| leaves.iter().all(|(key, _)| key.get(*n) == first.get(*n));
    let shared = (depth..first.len()).take_while(shares).count();
    if shared > 0 {
        let path = string(&hex_prefix(&first[depth..depth + shared], false));
        return list(&[path, reference(node(leaves, depth + shared))]);
    }
    let mut items: Vec<Vec<u8>> = Vec::new();
    for nibble in 0..16 {
        let below = leaves
            .iter()
            .filter(|(key, _)| key.get(depth) == Some(&nibble));
        let below: Vec<_> = below.cloned().collect();
        items.push(if below.is_empty() {
            string(&[])
        } else {
            reference(node(&below, depth + 1))
        });
    }
    let ends = leaves.iter().find(|(key, _)| key.len() == depth);
    items.push(string(ends.map_or(&[], |(_, value)| value)));
    list(&items)
}

fn reference(rlp: Vec<u8>) -> Vec<u8> {
    if rlp.len() < 32 {
        rlp
    } else {
        string(&keccak256(rlp).0)
    }
}

fn hex_prefix(nibbles: &[u8], leaf: bool) -> Vec<u8> {
    let flag = if leaf { 2 } else { 0 };
    let mut digits = if nibbles.len() % 2 == 1 {
        vec![flag + 1]
    } else {
        vec![flag, 0]
    };
    digits.extend_from_slice(nibbles);
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes.encode(&mut out);
    out
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let payload = items.concat();
    let mut out = Vec::new();
    Header {
        list: true,
        payload_length: payload.len(),
    }
    .encode(&mut out);
    out.extend(payload);
    out
}

/// One key of the outer trie: the bytes before and after the inner root, and the inner trie.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct NaiveOuter {
    /// Bytes of the leaf before the inner root.
    pub before: Vec<u8>,
    /// Bytes of the leaf after the inner root.
    pub after: Vec<u8>,
    /// The leaves of the inner trie.
    pub inner: BTreeMap<Hash, Vec<u8>>,
}

impl NaiveOuter {
    /// The root of the inner trie.
    pub fn inner_root(&self) -> Hash {
        let leaves = self
            .inner
            .iter()
            .map(|(key, value)| (key.to_vec(), value.clone()));
        root(&leaves.collect())
    }

    /// The leaf of the outer trie.
    pub fn leaf(&self) -> Vec<u8> {
        [&self.before, &self.inner_root()[..], &self.after].concat()
    }
}

/// A nested trie as plain maps.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct NaiveForest {
    /// The keys of the outer trie.
    pub outer: BTreeMap<Hash, NaiveOuter>,
}

impl NaiveForest {
    /// The root of the outer trie.
    pub fn root(&self) -> Hash {
        let leaves = self
            .outer
            .iter()
            .map(|(key, outer)| (key.to_vec(), outer.leaf()));
        root(&leaves.collect())
    }
}
