//! Proofs that some entries are all there are in a range of keys.

use arbor_hashing::blake2s::Chain;

use super::leaf::bit;
use super::prove::shared_bits;
use crate::{DEPTH, Entry, Hash, Hasher};

/// Why entries are no range that a digest can take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RangeError {
    /// A path of more than 256 hashes.
    #[error("the path of key {} has {hashes} hashes: at most 256 are possible", const_hex::encode(.key))]
    Path {
        /// Whose it is.
        key: Hash,
        /// How many it has.
        hashes: usize,
    },
    /// A key that is not between those that the range goes from and to.
    #[error("key {} is not in the range", const_hex::encode(.0))]
    Outside(Hash),
    /// Keys that do not ascend.
    #[error("key {} does not follow the one before it: keys must ascend", const_hex::encode(.0))]
    Order(Hash),
    /// An entry with index 0.
    #[error("leaf {} has index 0: indices begin with 1", const_hex::encode(.0))]
    Index(Hash),
}

/// The root that follows from all entries between two keys, given one after the other, and from the paths of these two ([`LeafProof::path`](crate::LeafProof::path)).
///
/// If it is the tree's root, the entries are in the tree, and there are no others between. The two keys are those of the first and the last entry, or keys that hold nothing
/// ([`Self::after`], [`Self::root_before`]). It keeps one hash for each level, however many entries there are.
#[derive(Clone, Debug)]
pub struct RangeDigest<H> {
    hasher: H,
    /// By height the hash to the left of the way to the current key; only those to which the way goes right are looked at.
    left: [Hash; DEPTH],
    current: (Hash, Option<Entry>),
    /// Below this height there is nothing to the left of the current key within the range.
    lone: usize,
}

impl<H: Hasher> RangeDigest<H> {
    /// Begins with the first entry and the path of its proof.
    ///
    /// # Errors
    /// A path that is too long, an index 0.
    pub fn new(hasher: H, first: (Hash, Entry), path: &[Hash]) -> Result<Self, RangeError> {
        check_index(&first)?;
        Self::begin(hasher, (first.0, Some(first.1)), path)
    }

    /// Begins with a key that holds nothing, and the path that proves it.
    ///
    /// # Errors
    /// A path that is too long.
    pub fn after(hasher: H, key: Hash, path: &[Hash]) -> Result<Self, RangeError> {
        Self::begin(hasher, (key, None), path)
    }

    fn begin(hasher: H, current: (Hash, Option<Entry>), path: &[Hash]) -> Result<Self, RangeError> {
        Ok(Self {
            hasher,
            left: whole(hasher, &current.0, path)?,
            current,
            lone: DEPTH - path.len(),
        })
    }

    /// Takes the entries that follow, ascending by key. More at a time take less time: leaves are folded side by side as far as they are alone.
    ///
    /// # Errors
    /// Keys that do not ascend, an index 0. What was taken before the error is not undone.
    pub fn extend(&mut self, entries: &[(Hash, Entry)]) -> Result<(), RangeError> {
        entries.iter().try_for_each(check_index)?;
        let entries = entries.iter().map(|(key, entry)| (*key, Some(*entry)));
        self.take(&entries.collect::<Vec<_>>())
    }

    fn take(&mut self, entries: &[(Hash, Option<Entry>)]) -> Result<(), RangeError> {
        let mut all = vec![self.current];
        all.extend_from_slice(entries);
        let mut lone = self.lone;
        let mut chains = Vec::with_capacity(entries.len());
        for pair in all.windows(2) {
            if pair[0].0 >= pair[1].0 {
                return Err(RangeError::Order(pair[1].0));
            }
            let apart = DEPTH - 1 - shared_bits(&pair[0].0, &pair[1].0);
            chains.push((lone.min(apart), apart));
            lone = apart;
        }
        let taken = &all[..entries.len()];
        let bottoms = self.bottoms(taken);
        let mut folded = Vec::with_capacity(taken.len());
        for (((key, _), (to, _)), hash) in taken.iter().zip(&chains).zip(bottoms) {
            let (key, to) = (*key, *to);
            folded.push(Chain { key, hash, to });
        }
        self.hasher.fold(0, &mut folded);
        for (chain, (from, apart)) in folded.iter().zip(&chains) {
            let hash = self.climb(&chain.key, chain.hash, *from, *apart, self.hasher.empty());
            // The next key goes right here, and has nothing to its left below.
            self.left[..*apart].copy_from_slice(&self.hasher.empty()[..*apart]);
            self.left[*apart] = hash;
        }
        (self.current, self.lone) = (all[all.len() - 1], lone);
        Ok(())
    }

    /// The root, with the path of the last entry's proof.
    ///
    /// # Errors
    /// A path that is too long.
    pub fn root(&self, last: &[Hash]) -> Result<Hash, RangeError> {
        let right = whole(self.hasher, &self.current.0, last)?;
        let hash = self.bottoms(&[self.current])[0];
        Ok(self.climb(&self.current.0, hash, 0, DEPTH, &right))
    }

    /// The root, where the range ends with a key that holds nothing, with the path that proves it.
    ///
    /// # Errors
    /// A path that is too long; a key that does not follow the last entry's.
    pub fn root_before(mut self, key: Hash, path: &[Hash]) -> Result<Hash, RangeError> {
        self.take(&[(key, None)])?;
        self.root(path)
    }

    /// The hashes of leaves, there or not.
    fn bottoms(&self, leaves: &[(Hash, Option<Entry>)]) -> Vec<Hash> {
        let there: Vec<Entry> = leaves.iter().filter_map(|(_, entry)| *entry).collect();
        let mut there = self.hasher.leaves(&there).into_iter();
        let empty = self.hasher.empty()[0];
        let hash = |(_, entry): &(Hash, Option<Entry>)| match entry {
            Some(_) => there.next().unwrap_or(empty),
            None => empty,
        };
        leaves.iter().map(hash).collect()
    }

    /// Takes a hash up the way of a key, with what is to the left of it and what is given for the right.
    fn climb(&self, key: &Hash, hash: Hash, from: usize, to: usize, right: &[Hash]) -> Hash {
        (from..to).fold(hash, |hash, height| {
            let pair = if bit(key, height) {
                [self.left[height], hash]
            } else {
                [hash, right[height]]
            };
            self.hasher.pairs(&[pair])[0]
        })
    }
}

fn check_index(leaf: &(Hash, Entry)) -> Result<(), RangeError> {
    if leaf.1.index == 0 {
        return Err(RangeError::Index(leaf.0));
    }
    Ok(())
}

/// The path of a key with those hashes of empty subtrees that it leaves out.
fn whole<H: Hasher>(hasher: H, key: &Hash, path: &[Hash]) -> Result<[Hash; DEPTH], RangeError> {
    let (key, hashes) = (*key, path.len());
    let from = DEPTH.checked_sub(hashes);
    let from = from.ok_or(RangeError::Path { key, hashes })?;
    let mut whole = [[0; 32]; DEPTH];
    whole.copy_from_slice(&hasher.empty()[..DEPTH]);
    whole[from..].copy_from_slice(path);
    Ok(whole)
}
