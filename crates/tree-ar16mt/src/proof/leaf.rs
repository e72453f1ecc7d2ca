//! The proof of one key.

use arbor_hashing::blake2s::Chain;

use crate::{DEPTH, Entry, Hash, Hasher};

/// What a key holds under a root, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeafProof {
    /// What the key holds; `None` if it was never written.
    pub entry: Option<Entry>,
    /// The hashes beside the way from the leaf to the root, the lowest first, at most 256. Those of empty subtrees at its beginning are left out, so it
    /// ends below the root and begins wherever it may.
    pub path: Vec<Hash>,
}

impl LeafProof {
    /// The root that follows from the proof; `None` if its path is too long for any.
    #[must_use]
    pub fn root<H: Hasher>(&self, hasher: H, key: &Hash) -> Option<Hash> {
        root_of(hasher, key, self.entry, &self.path)
    }

    /// Whether the proof shows that a key holds what it says under a root.
    #[must_use]
    pub fn verify<H: Hasher>(&self, hasher: H, root: &Hash, key: &Hash) -> bool {
        // Index 0 is that of leaves that are not there: it may not pass for an entry.
        self.entry.is_none_or(|entry| entry.index > 0)
            && self.root(hasher, key).as_ref() == Some(root)
    }

    /// The root after the key holds something else; `None` if the path is too long.
    #[must_use]
    pub fn root_after<H: Hasher>(&self, hasher: H, key: &Hash, entry: Entry) -> Option<Hash> {
        root_of(hasher, key, Some(entry), &self.path)
    }
}

/// The hash of a subtree of a height that has what a key holds alone.
pub(crate) fn subtree<H: Hasher>(
    hasher: H,
    key: &Hash,
    entry: Option<Entry>,
    height: usize,
) -> Hash {
    let Some(entry) = entry else {
        return hasher.empty()[height];
    };
    let (key, hash, to) = (*key, hasher.leaves(&[entry])[0], height);
    let mut chain = [Chain { key, hash, to }];
    hasher.fold(0, &mut chain);
    chain[0].hash
}

fn root_of<H: Hasher>(hasher: H, key: &Hash, entry: Option<Entry>, path: &[Hash]) -> Option<Hash> {
    let from = DEPTH.checked_sub(path.len())?;
    let hash = subtree(hasher, key, entry, from);
    let heights = (from..DEPTH).zip(path);
    Some(heights.fold(hash, |hash, (height, sibling)| {
        let pair = if bit(key, height) {
            [*sibling, hash]
        } else {
            [hash, *sibling]
        };
        hasher.pairs(&[pair])[0]
    }))
}

/// Whether a key's way to the leaf goes right from the node whose children are at a height.
pub(crate) fn bit(key: &Hash, height: usize) -> bool {
    key[31 - height / 8] >> (height % 8) & 1 == 1
}
