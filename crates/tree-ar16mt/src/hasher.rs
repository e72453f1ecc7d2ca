//! The hash function, and the hashes of empty subtrees.

use std::sync::LazyLock;

use arbor_hashing::blake2s::{self, Chain};

use crate::{DEPTH, Entry, Hash};

/// The hashes of empty subtrees by height: 0 is an empty leaf, 256 an empty tree.
pub(crate) type Empty = [Hash; DEPTH + 1];

/// The hash function of a tree.
pub trait Hasher: Copy + Send + Sync + 'static {
    /// Its name, as a database keeps it.
    const NAME: &'static str;

    /// The hashes of empty subtrees by height.
    fn empty(&self) -> &'static [Hash; DEPTH + 1];

    /// The hashes of leaves.
    fn leaves(&self, entries: &[Entry]) -> Vec<Hash>;

    /// Sets `hashes` to those of nodes of two children.
    fn pairs_into(&self, pairs: &[[Hash; 2]], hashes: &mut Vec<Hash>);

    /// The hashes of nodes of two children.
    fn pairs(&self, pairs: &[[Hash; 2]]) -> Vec<Hash> {
        let mut hashes = Vec::new();
        self.pairs_into(pairs, &mut hashes);
        hashes
    }

    /// Takes chains of hashes from a height up, against empty subtrees, each to where it ends.
    fn fold(&self, from: usize, chains: &mut [Chain]);
}

/// BLAKE2s-256, as zkSync has it: a leaf is the hash of its index (8 bytes, big-endian) and its value, a node that of its children.
#[derive(Clone, Copy, Debug)]
pub struct Blake2s(blake2s::Blake2s);

static EMPTY: LazyLock<Box<Empty>> = LazyLock::new(|| {
    let mut empty = Box::new([[0; 32]; DEPTH + 1]);
    let hash = blake2s::Blake2s::new();
    empty[0] = hash.hash(&[0; 40]);
    for height in 0..DEPTH {
        empty[height + 1] = hash.hash([empty[height]; 2].as_flattened());
    }
    empty
});

impl Blake2s {
    /// With the widest instructions that the processor has.
    #[must_use]
    pub fn new() -> Self {
        Self(blake2s::Blake2s::new())
    }
}

impl Default for Blake2s {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher for Blake2s {
    const NAME: &'static str = "blake2s256";

    fn empty(&self) -> &'static Empty {
        &EMPTY
    }

    fn leaves(&self, entries: &[Entry]) -> Vec<Hash> {
        let message = |entry: &Entry| {
            let mut message = [0; 40];
            message[..8].copy_from_slice(&entry.index.to_be_bytes());
            message[8..].copy_from_slice(&entry.value);
            message
        };
        let messages: Vec<[u8; 40]> = entries.iter().map(message).collect();
        let mut hashes = vec![[0; 32]; entries.len()];
        self.0.hash_fixed(&messages, &mut hashes);
        hashes
    }

    fn pairs_into(&self, pairs: &[[Hash; 2]], hashes: &mut Vec<Hash>) {
        hashes.resize(pairs.len(), [0; 32]);
        self.0.hash_pairs(pairs, hashes);
    }

    fn fold(&self, from: usize, chains: &mut [Chain]) {
        self.0.fold(&EMPTY[..], from, chains);
    }
}

/// No hash at all: everything is zero, and costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoOp;

impl Hasher for NoOp {
    const NAME: &'static str = "no_op256";

    fn empty(&self) -> &'static Empty {
        &[[0; 32]; DEPTH + 1]
    }

    fn leaves(&self, entries: &[Entry]) -> Vec<Hash> {
        vec![[0; 32]; entries.len()]
    }

    fn pairs_into(&self, pairs: &[[Hash; 2]], hashes: &mut Vec<Hash>) {
        hashes.resize(pairs.len(), [0; 32]);
    }

    fn fold(&self, _: usize, _: &mut [Chain]) {}
}
