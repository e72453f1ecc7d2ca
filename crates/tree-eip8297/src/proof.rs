//! Proofs by the messages of nodes.

use std::cell::Cell;
use std::collections::HashMap;

use arbor_tree_binary::{FoundNode, Shown, WitnessTree, select, select_for_updates};
use foldhash::fast::RandomState;

use crate::hasher::{BRANCH, LEAF, write_node};
use crate::{Hash, Hasher, LONGEST_KEY, LeafUpdate, Multiproof, Packing, Path, Reader, TreeError};

/// The message of a node, by which a verifier finds it under its hash.
pub type NodeMessage = Vec<u8>;

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
    let selection = select(reader, hasher, packing, keys)?;
    let proofs = keys.iter().map(|key| {
        let mut messages = Vec::new();
        selection.way(key, |node| {
            let mut message = Vec::new();
            write_node(&node, &mut message);
            messages.push(message);
        });
        messages
    });
    Ok((selection.root(), proofs.collect()))
}

/// Proves keys, present or absent, in any order, by one proof. Returns the root, too.
///
/// # Errors
/// [`TreeError`].
pub fn prove_many(
    reader: &impl Reader,
    hasher: Hasher,
    packing: Packing,
    keys: &[Path],
) -> Result<(Hash, Multiproof), TreeError> {
    let selection = select(reader, hasher, packing, keys)?;
    Ok((selection.root(), selection.multiproof()))
}

/// Returns the root of a tree, and the messages of the nodes that it takes to read some keys and to
/// apply updates, ascending by key. Beside the nodes on their ways these are the ones that a
/// removal leaves alone below a branch. Each comes once, the messages ascend.
///
/// # Errors
/// [`TreeError`].
pub fn witness(
    reader: &impl Reader,
    hasher: Hasher,
    packing: Packing,
    touched: &[Path],
    updates: &[LeafUpdate],
) -> Result<(Hash, Vec<NodeMessage>), TreeError> {
    let selection = select_for_updates(reader, hasher, packing, touched, updates)?;
    let messages = selection.nodes().map(|node| {
        let mut message = Vec::new();
        write_node(&node, &mut message);
        message
    });
    let mut messages: Vec<NodeMessage> = messages.collect();
    messages.sort_unstable();
    Ok((selection.root(), messages))
}

/// The tree with a root, of whose nodes these messages are known, in any order. Messages that no
/// node leads to are passed over.
pub fn witness_tree<'m>(
    hasher: Hasher,
    root: Hash,
    messages: impl IntoIterator<Item = &'m [u8]>,
) -> WitnessTree<Hasher> {
    let messages = Messages::new(hasher, messages);
    WitnessTree::grow(hasher, root, |hash| messages.node(hash).ok())
}

/// Returns the messages of the nodes that a proof shows, ascending, and the root that the proof leads to.
#[must_use]
pub fn messages_of(hasher: Hasher, proof: &Multiproof) -> (Hash, Vec<NodeMessage>) {
    let tree = WitnessTree::of_proof(hasher, proof);
    let messages = tree.nodes().map(|node| {
        let mut message = Vec::new();
        write_node(&node, &mut message);
        message
    });
    let mut messages: Vec<NodeMessage> = messages.collect();
    messages.sort_unstable();
    (tree.root(), messages)
}

/// Reads the message of a node; `None` if it is not one.
#[must_use]
pub fn read_message(message: &[u8]) -> Option<FoundNode> {
    let (kind, rest) = message.split_first()?;
    match *kind {
        LEAF => {
            let (key, value) = rest.split_last_chunk::<32>()?;
            let key = Path::of_key(key).ok().filter(|key| !key.is_empty())?;
            Some(FoundNode::Leaf { key, value: *value })
        }
        BRANCH => {
            let (bits, rest) = rest.split_first_chunk::<2>()?;
            let (rest, right) = rest.split_last_chunk::<32>()?;
            let (packed, left) = rest.split_last_chunk::<32>()?;
            let bits = usize::from(u16::from_be_bytes(*bits));
            let prefix = Path::of_bits(bits, packed).ok()?;
            Some(FoundNode::Branch {
                prefix,
                children: [*left, *right],
            })
        }
        _ => None,
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
    pub(crate) fn node(&self, hash: &Hash) -> Result<FoundNode, Hash> {
        let known = self.0.get(hash).ok_or(*hash)?;
        known.is_shown.set(true);
        read_message(known.message).ok_or(*hash)
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
                FoundNode::Leaf { key: other, value } => {
                    let is_here = known.is_prefix_of(&other) && value != [0; 32];
                    return match other == *key {
                        _ if !is_here => Err(hash),
                        true => Ok(Shown::Value(value)),
                        // Keys are free of prefixes.
                        false if other.shared(key) == other.len().min(key.len()) => Err(hash),
                        false => Ok(Shown::Absent),
                    };
                }
                FoundNode::Branch { prefix, children } => {
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
