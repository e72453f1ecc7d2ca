//! Hashing many nodes at a time.

use arbor_hashing::{KeccakBatch, keccak};

use crate::node::Reference;

/// RLP nodes written one after the other and hashed together; its buffers are reused.
#[derive(Default)]
pub(crate) struct Lanes {
    batch: KeccakBatch,
    /// Nodes hashed so far.
    pub(crate) hashed: u64,
    /// Keccak-f\[1600\] permutations so far.
    pub(crate) permutations: u64,
}

impl Lanes {
    /// Nodes hashed in one batch: enough to fill the lanes, few enough to stay in the cache.
    pub(crate) const BATCH: usize = 128;
    /// Bytes of the longest branch: 16 hashes and no value in a list.
    pub(crate) const LONGEST_BRANCH: usize = 3 + 16 * 33 + 1;

    /// Empty ones with room for so many nodes, at most for a batch: buffers that grow are copied over and over.
    pub(crate) fn for_nodes(nodes: usize) -> Self {
        Self::with_room(nodes, Self::LONGEST_BRANCH)
    }

    /// The same for nodes of so many bytes.
    pub(crate) fn with_room(nodes: usize, each: usize) -> Self {
        let nodes = nodes.min(Self::BATCH);
        Self {
            batch: KeccakBatch::with_capacity(nodes, nodes * each),
            ..Self::default()
        }
    }

    /// Adds the node that `write` appends.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let position = self.batch.push_with(write);
        let len = self.batch.message(position).len();
        self.hashed += 1;
        self.permutations += (len / keccak::RATE + 1) as u64;
    }

    /// Hashes the nodes added, forgets them, and gives each one's reference by hash with its RLP.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(usize, Reference, &[u8])) {
        self.batch.finish();
        for (position, hash) in self.batch.digests().iter().enumerate() {
            let rlp = self.batch.message(position);
            each(position, Reference::hash(*hash), rlp);
        }
        self.batch.clear();
    }
}
