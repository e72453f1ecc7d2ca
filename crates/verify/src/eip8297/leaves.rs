//! Leaves of whole codes, and of accounts that change.

use alloy_primitives::B256;
use arbor_tree::Hash;
use arbor_tree_eip8297::LeafUpdate;

use super::embedding::{Embedding, code_key, header_key};
use super::header::FIELDS;
use crate::stems::chunk_code;

/// The leaves of a code, by its hash: a chunk of zeros has none. In the order of the code.
#[must_use]
pub fn code_leaves(embedding: Embedding, code_hash: B256, code: &[u8]) -> Vec<LeafUpdate> {
    let leaves = code_leaves_with_chunks(embedding, code_hash, code).into_iter();
    leaves.map(|(_, leaf)| leaf).collect()
}

/// The same with the numbers of the chunks.
pub(super) fn code_leaves_with_chunks(
    embedding: Embedding,
    code_hash: B256,
    code: &[u8],
) -> Vec<(u32, LeafUpdate)> {
    let chunks = chunk_code(code);
    let groups: Vec<(B256, u32)> = (0..chunks.len().div_ceil(256) as u32)
        .map(|group| (code_hash, group))
        .collect();
    let groups = embedding.code_groups(&groups);
    let leaves = (0u32..).zip(&chunks).map(|(chunk, value)| {
        let key = code_key(&groups[chunk as usize / 256], chunk as u8);
        (chunk, LeafUpdate { key, value: *value })
    });
    leaves.filter(|(_, leaf)| leaf.value != [0; 32]).collect()
}

/// The updates that lead from an account's fields to others; zeros stand for absent leaves.
pub fn field_updates(
    account: &Hash,
    before: [Hash; 3],
    after: [Hash; 3],
) -> impl Iterator<Item = LeafUpdate> {
    let account = *account;
    let fields = FIELDS.into_iter().zip(before.into_iter().zip(after));
    let changed = fields.filter(|(_, (before, after))| before != after);
    changed.map(move |(suffix, (_, value))| LeafUpdate {
        key: header_key(&account, suffix),
        value,
    })
}
