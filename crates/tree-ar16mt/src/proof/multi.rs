//! One proof of many keys.
//!
//! As bytes: the number of keys (4 bytes, big-endian); for each key, ascending, the key, a byte 0 or 1, if it is 1 the entry's index (8 bytes, big-endian) and value, and the
//! height (2 bytes, big-endian) up to which there are empty subtrees beside its way, at most that at which the way parts from the other keys'; the number of hashes (4 bytes); the hashes. These are what is beside the
//! keys' ways and not on any other's, in the order in which a walk from the root, left before right, comes back from each.

use super::leaf::{bit, subtree};
use super::{LeafProof, prove};
use crate::{DEPTH, Entry, Hash, Hasher, Reader, TreeError};

/// Proves what many keys hold, or that they hold nothing, under one root. A hash that several ways share stands once, and one that follows from other keys not at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Multiproof {
    keys: Vec<Key>,
    hashes: Vec<Hash>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Key {
    key: Hash,
    entry: Option<Entry>,
    /// Below this height everything beside its way is empty; at most the height at which its way parts from the other keys'.
    lone: usize,
}

/// Bytes that are no multiproof.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MultiproofError {
    /// They end within a field.
    #[error("a multiproof that ends too early: at byte {0} something should follow")]
    Short(usize),
    /// They have more behind it.
    #[error("a multiproof with bytes behind its end, which is at byte {0}")]
    Long(usize),
    /// Keys that do not ascend.
    #[error("the multiproof's keys do not ascend at {}", const_hex::encode(.0))]
    Order(Hash),
    /// A byte, index or height that cannot be.
    #[error("the multiproof's {what} of key {} cannot be (before byte {offset})", const_hex::encode(.key))]
    Field {
        /// Which of these.
        what: &'static str,
        /// Of which key.
        key: Hash,
        /// The byte behind it.
        offset: usize,
    },
    /// More or fewer hashes than the keys' ways need, by the heights that are said.
    #[error("a multiproof with {0} hashes, which are not as many as its keys and heights need")]
    Hashes(usize),
}

impl Multiproof {
    /// Proves keys, in any order.
    ///
    /// # Errors
    /// As [`prove`].
    pub fn new<H: Hasher>(
        reader: &impl Reader,
        hasher: H,
        keys: &[Hash],
    ) -> Result<Self, TreeError> {
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let proofs = prove(reader, hasher, &sorted)?;
        let mut proof = Self {
            keys: Vec::with_capacity(sorted.len()),
            hashes: Vec::new(),
        };
        for (key, LeafProof { entry, path }) in sorted.iter().zip(&proofs) {
            let (key, lone) = (*key, DEPTH - path.len());
            proof.keys.push(Key {
                key,
                entry: *entry,
                lone,
            });
        }
        if !sorted.is_empty() {
            let mut hashes = Vec::new();
            let empty = hasher.empty();
            collect(&mut proof.keys, &proofs, DEPTH, empty, &mut hashes);
            proof.hashes = hashes;
        }
        Ok(proof)
    }

    /// What the keys hold, ascending.
    pub fn entries(&self) -> impl Iterator<Item = (&Hash, Option<Entry>)> {
        self.keys.iter().map(|key| (&key.key, key.entry))
    }

    /// Whether the proof shows under a root what it says. One of no keys shows nothing.
    ///
    /// # Errors
    /// When it has more or fewer hashes than it needs.
    pub fn verify<H: Hasher>(&self, hasher: H, root: &Hash) -> Result<bool, MultiproofError> {
        Ok(self.root_with(hasher, |_, entry| entry)? == Some(*root))
    }

    /// The root when each key holds what is said, from what it holds now; `None` for a proof of no keys.
    ///
    /// # Errors
    /// As [`Self::verify`].
    pub fn root_with<H: Hasher>(
        &self,
        hasher: H,
        entry: impl Fn(&Hash, Option<Entry>) -> Option<Entry>,
    ) -> Result<Option<Hash>, MultiproofError> {
        let wrong = MultiproofError::Hashes(self.hashes.len());
        let mut rest = self.hashes.iter();
        if self.keys.is_empty() {
            return if self.hashes.is_empty() {
                Ok(None)
            } else {
                Err(wrong)
            };
        }
        let lone =
            |key: &Key, height| subtree(hasher, &key.key, entry(&key.key, key.entry), height);
        let root = climb(hasher, &self.keys, &lone, DEPTH, &mut rest).ok_or(wrong)?;
        if rest.next().is_some() {
            return Err(wrong);
        }
        Ok(Some(root))
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = (self.keys.len() as u32).to_be_bytes().to_vec();
        for key in &self.keys {
            out.extend_from_slice(&key.key);
            out.push(u8::from(key.entry.is_some()));
            if let Some(entry) = key.entry {
                out.extend_from_slice(&entry.index.to_be_bytes());
                out.extend_from_slice(&entry.value);
            }
            out.extend_from_slice(&(key.lone as u16).to_be_bytes());
        }
        out.extend_from_slice(&(self.hashes.len() as u32).to_be_bytes());
        out.extend_from_slice(self.hashes.as_flattened());
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`MultiproofError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, MultiproofError> {
        let mut rest = Rest { all: bytes, at: 0 };
        let count = u32::from_be_bytes(rest.take()?);
        let mut keys: Vec<Key> = Vec::new();
        for _ in 0..count {
            let key: Hash = rest.take()?;
            if keys.last().is_some_and(|last| last.key >= key) {
                return Err(MultiproofError::Order(key));
            }
            let entry = match rest.take::<1>()? {
                [0] => None,
                [1] => Some(Entry {
                    index: u64::from_be_bytes(rest.take()?),
                    value: rest.take()?,
                }),
                _ => return Err(rest.wrong("byte for an entry", key)),
            };
            if entry.is_some_and(|entry| entry.index == 0) {
                return Err(rest.wrong("index", key));
            }
            let lone = usize::from(u16::from_be_bytes(rest.take()?));
            if lone > DEPTH {
                return Err(rest.wrong("height", key));
            }
            keys.push(Key { key, entry, lone });
        }
        let count = u32::from_be_bytes(rest.take()?) as usize;
        let (hashes, left) = bytes[rest.at..].as_chunks::<32>();
        if hashes.len() < count {
            return Err(MultiproofError::Short(bytes.len()));
        }
        if hashes.len() > count || !left.is_empty() {
            return Err(MultiproofError::Long(rest.at + 32 * count));
        }
        let hashes = hashes.to_vec();
        Ok(Self { keys, hashes })
    }
}

/// Bytes, and how many of them were read.
struct Rest<'b> {
    all: &'b [u8],
    at: usize,
}

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], MultiproofError> {
        let mut rest = &self.all[self.at..];
        let taken = super::take(&mut rest).ok_or(MultiproofError::Short(self.all.len()))?;
        self.at += N;
        Ok(taken)
    }

    /// What was read last is none.
    fn wrong(&self, what: &'static str, key: Hash) -> MultiproofError {
        let offset = self.at;
        MultiproofError::Field { what, key, offset }
    }
}

/// Where keys part that share everything above a height: the height of the node's children, and how many of the keys go left.
fn parting(keys: &[Key], height: usize) -> (usize, usize) {
    let (first, last) = (&keys[0].key, &keys[keys.len() - 1].key);
    let apart = (0..height)
        .rev()
        .find(|height| bit(first, *height) != bit(last, *height));
    // Keys ascend, so the first and the last differ, and at no height above the one that is looked at.
    let apart = apart.unwrap_or(0);
    (apart, keys.partition_point(|key| !bit(&key.key, apart)))
}

/// Adds the hashes beside the ways of keys below a height. Each key's empty subtrees are told of as far up as its way is its own, so that a proof has one form.
fn collect(
    keys: &mut [Key],
    proofs: &[LeafProof],
    height: usize,
    empty: &[Hash],
    out: &mut Vec<Hash>,
) {
    let start = match keys {
        [one] => {
            one.lone = one.lone.min(height);
            one.lone
        }
        _ => {
            let (apart, left) = parting(keys, height);
            let ((k0, k1), (p0, p1)) = (keys.split_at_mut(left), proofs.split_at(left));
            collect(k0, p0, apart, empty, out);
            collect(k1, p1, apart, empty, out);
            apart + 1
        }
    };
    // Absent keys may part where everything beside their ways is empty.
    let path = &proofs[0].path;
    let beside = |height: usize| match height.checked_sub(DEPTH - path.len()) {
        Some(at) => path[at],
        None => empty[height],
    };
    out.extend((start..height).map(beside));
}

/// The hash that follows for the subtree of keys below a height; `None` if hashes are missing, or a key's empty subtrees reach above its own way.
fn climb<'h, H: Hasher>(
    hasher: H,
    keys: &[Key],
    subtree: &impl Fn(&Key, usize) -> Hash,
    height: usize,
    rest: &mut impl Iterator<Item = &'h Hash>,
) -> Option<Hash> {
    let (hash, start) = match keys {
        [one] => {
            let lone = one.lone;
            if lone > height {
                return None;
            }
            (subtree(one, lone), lone)
        }
        _ => {
            let (apart, left) = parting(keys, height);
            let (left, right) = keys.split_at(left);
            let left = climb(hasher, left, subtree, apart, rest)?;
            let right = climb(hasher, right, subtree, apart, rest)?;
            (hasher.pairs(&[[left, right]])[0], apart + 1)
        }
    };
    (start..height).try_fold(hash, |hash, height| {
        let sibling = *rest.next()?;
        let pair = if bit(&keys[0].key, height) {
            [sibling, hash]
        } else {
            [hash, sibling]
        };
        Some(hasher.pairs(&[pair])[0])
    })
}
