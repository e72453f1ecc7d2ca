//! Leaves as some trees have them: written by key, or proven as a block's witness.

use std::fmt;
use std::sync::Arc;

use arbor_tree::Hash;
use arbor_verify::verkle::{Committer, Witness};

/// A leaf written by its key, below any account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafWrite {
    /// Its key, most significant byte first.
    pub key: Hash,
    /// Its index, from 1 on. No two leaves may share one.
    pub index: u64,
    /// Its value.
    pub value: Hash,
}

/// The witness of a block's state access.
#[derive(Clone)]
pub struct BlockLeaves {
    /// All leaves that the block touches as they are before it, and the new values of those that it changes.
    pub witness: Witness,
    /// How many of its keys are chunks of code that are read. All of them are there before the block.
    pub chunks: usize,
    /// The tables that it was made with, to check it with.
    pub committer: Arc<Committer>,
}

impl fmt::Debug for BlockLeaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.witness.keys().count();
        f.debug_struct("BlockLeaves")
            .field("keys", &keys)
            .field("chunks", &self.chunks)
            .finish()
    }
}
