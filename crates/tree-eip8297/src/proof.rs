//! Proofs of single keys: the messages of the nodes on the way to them.

use std::cell::Cell;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::arena::{Id, Kind};
use crate::hasher::{BRANCH, LEAF, write_branch, write_leaf};
use crate::path::LONGEST_KEY;
use crate::work::Work;
use crate::{Hash, Hasher, LeafUpdate, Packing, Path, Reader, TreeError};

/// The message of a node, by which a verifier finds it under its hash.
pub type NodeMessage = Vec<u8>;

/// What a proof shows of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// It has this value.
    Value(Hash),
    /// It is absent.
    Absent,
}

/// Proves keys, present or absent: for each the messages of the nodes on its way, from the root on.
/// The last is the key's leaf, or the node at which the way parts from the key. The keys may come
/// in any order.
///
/// Returns the root, too.
///
/// # Errors
/// [`TreeError`].
pub fn prove(
    reader: &impl Reader,
    hasher: Hasher,
    packing: Packing,
    keys: &[Path],
) -> Result<(Hash, Vec<Vec<NodeMessage>>), TreeError> {
    let (root, work) = read_ways(reader, hasher, packing, keys)?;
    let proofs = keys.iter().map(|key| {
        let mut messages = Vec::new();
        work.way(key, |id| messages.push(work.message(id)));
        messages
    });
    Ok((root, proofs.collect()))
}

/// Reads the ways to keys, and computes the hashes of all that was read.
pub(crate) fn read_ways<'r, R: Reader>(
    reader: &'r R,
    hasher: Hasher,
    packing: Packing,
    keys: &[Path],
) -> Result<(Hash, Work<'r, R>), TreeError> {
    let mut updates: Vec<LeafUpdate> = keys
        .iter()
        .map(|key| LeafUpdate {
            key: *key,
            value: [0; 32],
        })
        .collect();
    updates.sort_unstable_by_key(|update| update.key);
    updates.dedup();
    let mut work = Work::begin(reader, packing)?;
    work.descend(&updates)?;
    work.forget_hashes();
    let root = work.hash(hasher)?;
    Ok((root, work))
}

impl<R: Reader> Work<'_, R> {
    /// Visits the nodes on the way of a key, from the top on: down to the leaf, or to the node that
    /// is not on the key's way any more.
    pub(crate) fn way(&self, key: &Path, mut visit: impl FnMut(Id)) {
        let mut next = self.top;
        while let Some(id) = next {
            visit(id);
            let node = self.arena.get(id);
            next = match node.kind {
                Kind::Branch(children)
                    if node.path.len() < key.len() && node.path.is_prefix_of(key) =>
                {
                    Some(children[usize::from(key.bit(node.path.len()))])
                }
                _ => None,
            };
        }
    }

    /// The message of a node with its children's hashes.
    pub(crate) fn message(&self, id: Id) -> NodeMessage {
        let node = self.arena.get(id);
        let mut message = Vec::new();
        match &node.kind {
            Kind::Leaf { value } => write_leaf(&node.path, value, &mut message),
            Kind::Branch(children) => {
                let hashes = children.map(|child| &self.arena.get(child).hash);
                write_branch(&node.path, usize::from(node.start), hashes, &mut message);
            }
            Kind::Unread | Kind::Unknown => {}
        }
        message
    }
}

/// A node as its message has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// A leaf.
    Leaf {
        /// Its whole key.
        key: Path,
        /// Its value.
        value: Hash,
    },
    /// A branch.
    Branch {
        /// The bits from the branch above on.
        prefix: Path,
        /// The hashes of its children.
        children: [Hash; 2],
    },
}

impl Message {
    /// Reads a message; `None` if it is not one.
    #[must_use]
    pub fn read(message: &[u8]) -> Option<Self> {
        let (kind, rest) = message.split_first()?;
        match *kind {
            LEAF => {
                let (key, value) = rest.split_last_chunk::<32>()?;
                let key = Path::of_key(key).ok().filter(|key| !key.is_empty())?;
                Some(Self::Leaf { key, value: *value })
            }
            BRANCH => {
                let (bits, rest) = rest.split_first_chunk::<2>()?;
                let (rest, right) = rest.split_last_chunk::<32>()?;
                let (packed, left) = rest.split_last_chunk::<32>()?;
                let bits = usize::from(u16::from_be_bytes(*bits));
                let prefix = Path::of_bits(bits, packed).ok()?;
                Some(Self::Branch {
                    prefix,
                    children: [*left, *right],
                })
            }
            _ => None,
        }
    }
}

/// Messages by their hashes.
#[derive(Debug)]
pub struct Messages<'a>(HashMap<Hash, Known<'a>, RandomState>);

#[derive(Debug)]
struct Known<'a> {
    message: &'a [u8],
    is_shown: Cell<bool>,
}

impl<'a> Messages<'a> {
    /// Hashes messages.
    pub fn new(hasher: Hasher, messages: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let messages: Vec<&[u8]> = messages.into_iter().collect();
        // Longer ones are no nodes, and not every function takes them.
        let longest = 1 + 2 + LONGEST_KEY + 64;
        let nodes = messages
            .into_iter()
            .filter(|message| message.len() <= longest);
        let nodes: Vec<&[u8]> = nodes.collect();
        let mut batch = hasher.batch();
        for node in &nodes {
            batch.push_with(|out| out.extend_from_slice(node));
        }
        let known = nodes.into_iter().map(|message| Known {
            message,
            is_shown: Cell::new(false),
        });
        Self(batch.finish().iter().copied().zip(known).collect())
    }

    /// How many different messages showed something so far.
    #[must_use]
    pub fn shown(&self) -> usize {
        self.0.values().filter(|known| known.is_shown.get()).count()
    }

    /// The node with a hash; the error names a hash without a message, or whose message is no node.
    pub(crate) fn node(&self, hash: &Hash) -> Result<Message, Hash> {
        let known = self.0.get(hash).ok_or(*hash)?;
        known.is_shown.set(true);
        Message::read(known.message).ok_or(*hash)
    }

    /// Finds what the messages show of a key under a root. The error is the hash of a node that is
    /// missing.
    ///
    /// A message that hashes to what its parent has is the parent's child, whatever it says of its
    /// own place: a leaf that names another key shows that the key is absent only if it can lie
    /// there, which this checks, like the length of prefixes.
    ///
    /// # Errors
    /// The hash of a node that is not there, or is not what can be there.
    pub fn show(&self, root: &Hash, key: &Path) -> Result<Shown, Hash> {
        if *root == [0; 32] {
            return Ok(Shown::Absent);
        }
        let (mut hash, mut known) = (*root, Path::ROOT);
        loop {
            match self.node(&hash)? {
                Message::Leaf { key: other, value } => {
                    let is_here = known.is_prefix_of(&other) && value != [0; 32];
                    return match other == *key {
                        _ if !is_here => Err(hash),
                        true => Ok(Shown::Value(value)),
                        // Keys are free of prefixes.
                        false if other.shared(key) == other.len().min(key.len()) => Err(hash),
                        false => Ok(Shown::Absent),
                    };
                }
                Message::Branch { prefix, children } => {
                    let len = known.len() + prefix.len();
                    if len >= 8 * LONGEST_KEY {
                        return Err(hash);
                    }
                    for bit in 0..prefix.len() {
                        known = known.with_bit(prefix.bit(bit));
                    }
                    let shared = known.shared(key);
                    if shared < known.len().min(key.len()) {
                        return Ok(Shown::Absent);
                    }
                    if key.len() <= known.len() {
                        return Err(hash);
                    }
                    let bit = key.bit(known.len());
                    known = known.with_bit(bit);
                    hash = children[usize::from(bit)];
                }
            }
        }
    }
}
