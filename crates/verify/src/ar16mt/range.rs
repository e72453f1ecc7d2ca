//! Proofs of all leaves between two keys.

use alloy_primitives::B256;
use arbor_tree::Hash;
use arbor_tree_ar16mt::{Blake2s, Entry, LeafProof, RangeDigest, RangeError};
use serde::{Deserialize, Serialize};

/// A leaf of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RangeEntry {
    /// Its key, most significant byte first.
    pub key: B256,
    /// Its index.
    pub index: u64,
    /// Its value.
    pub value: B256,
}

/// All leaves from one key to another, both included, and the paths of these two, whether they are leaves' or not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RangeProof {
    /// The first key that the range has.
    pub from: B256,
    /// The last one.
    pub to: B256,
    /// The leaves, ascending by key.
    pub entries: Vec<RangeEntry>,
    /// The hashes beside the way from the first key to the root, the lowest first, without those of empty subtrees at the beginning.
    pub from_path: Vec<B256>,
    /// Likewise for the last key.
    pub to_path: Vec<B256>,
}

impl RangeProof {
    /// Whether a tree with this root has these leaves from the first key to the last, and no others.
    ///
    /// # Errors
    /// Keys that do not ascend or are not in the range, an index 0, a path that is too long.
    pub fn verify(&self, root: B256) -> Result<bool, RangeError> {
        let [from, to] = [&self.from_path, &self.to_path].map(|path| hashes(path));
        let leaf = |entry: &RangeEntry| {
            let RangeEntry { key, index, value } = entry;
            let (index, value) = (*index, value.0);
            (key.0, Entry { index, value })
        };
        let entries: Vec<(Hash, Entry)> = self.entries.iter().map(leaf).collect();
        let outside = |(key, _): &&(Hash, Entry)| *key < self.from.0 || *key > self.to.0;
        if let Some((key, _)) = entries.iter().find(outside) {
            return Err(RangeError::Outside(*key));
        }
        let hasher = Blake2s::new();
        let first = entries.first().filter(|first| first.0 == self.from.0);
        let last = entries.last().filter(|last| last.0 == self.to.0);
        // The digest looks at what is beside the range alone, so the two paths are checked as a whole.
        for (key, leaf, path) in [(&self.from, first, &from), (&self.to, last, &to)] {
            let (entry, path) = (leaf.map(|(_, entry)| *entry), path.clone());
            let too_long = RangeError::Path {
                key: key.0,
                hashes: path.len(),
            };
            let actual = LeafProof { entry, path }.root(hasher, &key.0);
            if actual.ok_or(too_long)? != root.0 {
                return Ok(false);
            }
        }
        let mut digest = match first {
            Some(first) => RangeDigest::new(hasher, *first, &from)?,
            None => RangeDigest::after(hasher, self.from.0, &from)?,
        };
        digest.extend(&entries[usize::from(first.is_some())..])?;
        let found = match last.is_some() || self.from == self.to {
            true => digest.root(&to)?,
            false => digest.root_before(self.to.0, &to)?,
        };
        Ok(found == root.0)
    }
}

fn hashes(path: &[B256]) -> Vec<Hash> {
    path.iter().map(|hash| hash.0).collect()
}
