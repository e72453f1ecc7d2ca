//! A version's entries, for a file.

use std::io::Write;
use std::num::NonZeroUsize;

use alloy_primitives::Bytes;
use arbor_state_tree::{CODE, Flat, LeafWrite, Leaves, Then};
use arbor_versions::Version;

use super::{
    CODE_BYTES, Chunk, EntriesBlock, EntriesHead, EntriesWriter, Order, RecoveryError, Totals,
};
use crate::{Historical, StateError};

/// Blocks before the last that are kept, for `BLOCKHASH`.
const BLOCKS: u64 = 256;

/// The leaves of a state's tree.
fn leaves_of<'a>(then: &'a Historical<'_>) -> Result<&'a dyn Leaves, RecoveryError> {
    let tree = then.tree();
    let none = || RecoveryError::NoLeaves(tree.kind().name);
    tree.leaves().ok_or_else(none)
}

impl Historical<'_> {
    /// What a list of this version's entries begins with.
    ///
    /// # Errors
    /// [`RecoveryError::NoLeaves`]; the store's errors.
    pub fn entries_head(
        &self,
        network: crate::Network,
        genesis_json: Option<String>,
        (order, together): (Order, NonZeroUsize),
    ) -> Result<EntriesHead, RecoveryError> {
        leaves_of(self)?;
        let last = self.meta().version.0;
        let mut blocks = Vec::new();
        for version in last.saturating_sub(BLOCKS)..=last {
            let meta = self
                .view()
                .meta(Version(version))
                .map_err(StateError::from)?;
            blocks.extend(meta.map(|meta| EntriesBlock {
                number: meta.block_number,
                hash: meta.block_hash.into(),
                root: meta.root.into(),
                record: meta.extra.into(),
            }));
        }
        let identity = self.tree().identity(network);
        Ok(EntriesHead {
            tree: identity.tree,
            revision: identity.revision,
            hash: identity.hash,
            chain_id: identity.chain_id,
            genesis: network.genesis_hash,
            rules: None,
            genesis_json,
            order,
            together,
            blocks,
        })
    }

    /// Writes all entries of this version behind a [head](Self::entries_head). `progress` is called after each chunk of
    /// leaves with the part of the leaves that is written, 0 to 1, and what the file has.
    ///
    /// # Errors
    /// [`RecoveryError::NoLeaves`]; the store's errors; what keeps the file from being written.
    pub fn write_entries<W: Write>(
        &self,
        out: W,
        head: &EntriesHead,
        progress: &dyn Fn(f64, Totals),
    ) -> Result<(W, Totals), RecoveryError> {
        let tree = leaves_of(self)?;
        let mut out = EntriesWriter::new(out, head)?;
        let together = head.together.get();
        // Of names and codes none goes.
        let view = self.view();
        gathered(tree.names(view)?, together, |names| {
            out.chunk(&Chunk::Names(names))
        })?;
        let (mut codes, mut bytes) = (Vec::new(), 0);
        for entry in view.entries(CODE, &[])? {
            let (_, code) = entry?;
            bytes += code.len();
            codes.push(Bytes::copy_from_slice(&code));
            if bytes >= CODE_BYTES {
                out.chunk(&Chunk::Codes(std::mem::take(&mut codes)))?;
                bytes = 0;
            }
        }
        if !codes.is_empty() {
            out.chunk(&Chunk::Codes(codes))?;
        }
        let leaves = tree.entries(self)?;
        match head.order {
            Order::Key => gathered(leaves, together, |leaves| {
                let part = leaves.last().map_or(0.0, |leaf| part_of_keys(&leaf.key));
                out.chunk(&Chunk::Leaves(leaves))?;
                progress(part, out.totals());
                Ok(())
            })?,
            Order::Index => {
                let leaves: Result<Vec<LeafWrite>, StateError> = leaves.collect();
                let mut leaves = leaves?;
                leaves.sort_unstable_by_key(|leaf| (leaf.index, leaf.key));
                let all = leaves.len();
                for some in leaves.chunks(together) {
                    out.chunk(&Chunk::Leaves(some.to_vec()))?;
                    progress(out.totals().leaves as f64 / all as f64, out.totals());
                }
            }
        }
        out.finish()
    }
}

/// Returns the part of the keys that is below a key, 0 to 1. Keys are hashes, so about that part of the leaves.
fn part_of_keys(key: &[u8; 32]) -> f64 {
    let first = key.first_chunk().expect("invariant: 32 bytes");
    f64::from(u32::from_be_bytes(*first)) / f64::from(u32::MAX)
}

/// Passes items on, so many at a time.
fn gathered<T>(
    items: impl Iterator<Item = Result<T, StateError>>,
    together: usize,
    mut put: impl FnMut(Vec<T>) -> Result<(), RecoveryError>,
) -> Result<(), RecoveryError> {
    let mut some = Vec::new();
    for item in items {
        some.push(item?);
        if some.len() == together {
            put(std::mem::take(&mut some))?;
        }
    }
    match some.is_empty() {
        true => Ok(()),
        false => put(some),
    }
}
