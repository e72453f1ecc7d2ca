//! Witnesses: the nodes that a block needs, as a bag of RLP.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use arbor_hashing::keccak256_batch;
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, Path, Position, ReadError, nibble_of};

use crate::apply::apply;
use crate::error::TreeError;
use crate::load::whole_key;
use crate::node::{NodeError, Reference, RlpNode, write_extension, write_leaf};
use crate::prove::prove_many;
use crate::record::Record;
use crate::update::OuterUpdate;

/// Why a witness does not give what is asked of it.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// A node is not in the witness.
    #[error("the witness lacks node 0x{}", Path::from_key(.hash))]
    Missing {
        /// Its hash.
        hash: Hash,
        /// Where it hangs.
        position: Position,
    },
    /// A node of the witness is malformed.
    #[error("node 0x{} of the witness: {error}", Path::from_key(.hash))]
    Node {
        /// Its hash.
        hash: Hash,
        /// What is wrong.
        error: NodeError,
    },
}

/// A reader over a bag of RLP nodes, which it finds by hash.
///
/// A child that the bag lacks may be a leaf or not. It counts as an inner node, and reading it
/// fails with an error that names the trie, the path and the hash. Where the bag has an extension but
/// lacks the branch below it, the record is [bare](Record::bare_branch).
#[derive(Clone, Default)]
pub struct WitnessNodes {
    nodes: HashMap<Hash, Vec<u8>>,
}

impl WitnessNodes {
    /// Takes the nodes of a witness, in any order. What is no trie node does no harm until it is read.
    pub fn new(nodes: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let nodes: Vec<Vec<u8>> = nodes.into_iter().collect();
        let mut hashes = vec![Hash::default(); nodes.len()];
        keccak256_batch(&nodes, &mut hashes);
        Self {
            nodes: hashes.into_iter().zip(nodes).collect(),
        }
    }

    /// Adds nodes.
    pub fn extend(&mut self, nodes: impl IntoIterator<Item = Vec<u8>>) {
        self.nodes.extend(Self::new(nodes).nodes);
    }

    /// Returns the RLP of a node.
    pub fn get(&self, hash: &Hash) -> Option<&[u8]> {
        self.nodes.get(hash).map(Vec::as_slice)
    }

    /// Number of different nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the value of a key in the trie with the given root, `None` where it is absent.
    ///
    /// `trie` is the outer key that the trie hangs under, `None` for the outer trie; it serves the
    /// error message.
    ///
    /// # Errors
    /// When a node on the key's path is missing or malformed.
    pub fn value(
        &self,
        trie: Option<Hash>,
        root: Hash,
        key: &Hash,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        if root == crate::EMPTY_ROOT {
            return Ok(None);
        }
        let mut path = Path::ROOT;
        let mut current = Reference::hash(root);
        loop {
            let position = Position { trie, path };
            let rlp = match (current.as_hash(), current.as_inline()) {
                (Some(hash), _) => {
                    let request = NodeRequest {
                        position,
                        expected: Some(hash),
                    };
                    self.find(&request)?.1
                }
                (None, Some(rlp)) => rlp,
                (None, None) => return Ok(None),
            };
            let node = RlpNode::parse(rlp).map_err(|error| TreeError::Node { position, error })?;
            let too_deep = Err(TreeError::TooDeep { position });
            match node {
                RlpNode::Leaf(suffix, value) => {
                    return match whole_key(&path, &suffix) {
                        Some(found) => Ok((found == *key).then(|| value.to_vec())),
                        None => too_deep,
                    };
                }
                RlpNode::Extension(prefix, _) if path.len() + prefix.len() >= Path::MAX => {
                    return too_deep;
                }
                RlpNode::Extension(prefix, child) => {
                    if prefix.shared_with_key(key, path.len()) < prefix.len() {
                        return Ok(None);
                    }
                    path = path.join(&prefix);
                    current = child;
                }
                RlpNode::Branch(_) if path.len() == Path::MAX => return too_deep,
                RlpNode::Branch(children) => {
                    let nibble = nibble_of(key, path.len());
                    path.push(nibble);
                    current = children[usize::from(nibble)];
                }
            }
        }
    }

    /// Calls `see` for each node that a root leads to, with its place, and `leaf` for each leaf. A
    /// node that is not there is passed over, and so is all below a malformed one.
    ///
    /// `trie` is the outer key that the trie hangs under, `None` for the outer trie.
    pub fn walk(
        &self,
        trie: Option<Hash>,
        root: Hash,
        see: &mut dyn FnMut(&Hash, Position),
        leaf: &mut dyn FnMut(Hash, &[u8]),
    ) {
        let mut next = vec![(Path::ROOT, Reference::hash(root))];
        // A real trie has a node once. One that was made up could have it without end.
        let mut seen = HashSet::new();
        while let Some((path, reference)) = next.pop() {
            let rlp = match (reference.as_hash(), reference.as_inline()) {
                (Some(hash), _) => {
                    let Some(rlp) = self.get(&hash).filter(|_| seen.insert(hash)) else {
                        continue;
                    };
                    see(&hash, Position { trie, path });
                    rlp
                }
                (None, inlined) => inlined.unwrap_or_default(),
            };
            match RlpNode::parse(rlp) {
                Ok(RlpNode::Leaf(suffix, value)) => {
                    if let Some(key) = whole_key(&path, &suffix) {
                        leaf(key, value);
                    }
                }
                Ok(RlpNode::Extension(prefix, child)) if path.len() + prefix.len() < Path::MAX => {
                    next.push((path.join(&prefix), child));
                }
                Ok(RlpNode::Branch(children)) if path.len() < Path::MAX => {
                    let children = (0..).zip(children);
                    next.extend(children.map(|(nibble, child)| (path.child(nibble), child)));
                }
                _ => {}
            }
        }
    }

    /// Finds the node that a request expects; every request must name a hash.
    fn find(&self, request: &NodeRequest) -> Result<(Hash, &[u8]), ReadError> {
        let hash = request.expected.unwrap_or_default();
        let rlp = self.get(&hash).ok_or_else(|| missing(request, hash))?;
        Ok((hash, rlp))
    }

    fn record(&self, request: &NodeRequest) -> Result<Option<Arc<[u8]>>, ReadError> {
        let (hash, rlp) = self.find(request)?;
        let record = Record::from_rlp(rlp, &|hash| self.get(hash));
        let record = record.map_err(|error| malformed(request, hash, error))?;
        Ok(record.map(|record| {
            let mut bytes = Vec::new();
            record.encode_into(&mut bytes);
            bytes.into()
        }))
    }
}

impl NodeReader for WitnessNodes {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        requests
            .iter()
            .map(|request| self.record(request))
            .collect()
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        let (hash, rlp) = self.find(request)?;
        match RlpNode::parse(rlp) {
            Ok(RlpNode::Leaf(suffix, value)) => match whole_key(&request.position.path, &suffix) {
                Some(key) => {
                    let value = value.to_vec();
                    Ok(Some(Leaf { key, value }))
                }
                None => Err(malformed(request, hash, NodeError::TooDeep)),
            },
            Ok(_) => Ok(None),
            Err(error) => Err(malformed(request, hash, error)),
        }
    }
}

fn missing(request: &NodeRequest, hash: Hash) -> ReadError {
    ReadError {
        what: request.position.to_string(),
        cause: Box::new(WitnessError::Missing {
            hash,
            position: request.position,
        }),
    }
}

fn malformed(request: &NodeRequest, hash: Hash, error: NodeError) -> ReadError {
    ReadError {
        what: request.position.to_string(),
        cause: Box::new(WitnessError::Node { hash, error }),
    }
}

/// An outer key that was read, and the keys read in its inner trie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The outer key, present or not.
    pub key: Hash,
    /// The root of its inner trie before the block; [`EMPTY_ROOT`](crate::EMPTY_ROOT) where the key
    /// is absent.
    pub inner_root: Hash,
    /// The inner keys, present or not.
    pub inner: Vec<Hash>,
}

/// Returns the nodes that a collapse may have lengthened into a leaf or an extension.
///
/// They are the same node without the first nibbles of its path, the longest path first. A branch
/// was lengthened by none, and a node that is not RLP by none either.
pub fn shortened(rlp: &[u8]) -> Vec<Vec<u8>> {
    let mut nodes = Vec::new();
    match RlpNode::parse(rlp) {
        Ok(RlpNode::Leaf(suffix, value)) => {
            let mut key = Hash::default();
            let begin = Path::MAX - suffix.len();
            for (index, nibble) in (begin..).zip(suffix.nibbles()) {
                key[index / 2] |= nibble << (4 * (1 - index % 2));
            }
            for from in begin + 1..=Path::MAX {
                let mut node = Vec::new();
                write_leaf(&mut node, &key, from, value);
                nodes.push(node);
            }
        }
        Ok(RlpNode::Extension(prefix, child)) => {
            for from in 1..prefix.len() {
                let mut node = Vec::new();
                write_extension(&mut node, &prefix.suffix(from), &child);
                nodes.push(node);
            }
        }
        Ok(RlpNode::Branch(_)) | Err(_) => {}
    }
    nodes
}

/// Lists every RLP node that reading some keys and then applying some updates needs, each once.
///
/// [`apply`] and reads over a [`WitnessNodes`] of exactly these nodes succeed. Nodes that
/// removals need to join branches are among them; the branch below an extension is not, where all
/// keys part within that.
///
/// # Errors
/// As [`apply`] and [`prove_many`].
pub fn witness(
    reader: &dyn NodeReader,
    root: Hash,
    accesses: &[Access],
    updates: &[OuterUpdate],
) -> Result<Vec<Vec<u8>>, TreeError> {
    let recorder = Recorder::new(reader);
    recorder.record(root, accesses, updates)?;
    Ok(recorder.into_nodes())
}

/// A reader over another that keeps, as RLP, each node that is read through it.
///
/// Whatever reads the same over a [`WitnessNodes`] of these nodes succeeds, if every key that passes an extension is
/// among those that are [recorded](Recorder::record): the branch below an extension is not kept otherwise.
pub struct Recorder<R> {
    reader: R,
    nodes: Mutex<Bag>,
}

/// Nodes in the order in which they were first seen.
#[derive(Default)]
struct Bag {
    seen: HashSet<Vec<u8>>,
    list: Vec<Vec<u8>>,
}

impl<R: NodeReader> Recorder<R> {
    /// Nothing was read yet.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            nodes: Mutex::new(Bag::default()),
        }
    }

    /// The reader below.
    pub const fn base(&self) -> &R {
        &self.reader
    }

    /// Keeps what reading some keys and then applying some updates needs.
    ///
    /// # Errors
    /// As [`apply`] and [`prove_many`].
    pub fn record(
        &self,
        root: Hash,
        accesses: &[Access],
        updates: &[OuterUpdate],
    ) -> Result<(), TreeError> {
        let read = accesses.iter().map(|access| access.key);
        let mut keys: Vec<Hash> = read
            .chain(updates.iter().map(|update| update.key))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        self.prove(None, root, &keys)?;
        for access in accesses {
            self.prove(Some(access.key), access.inner_root, &access.inner)?;
        }
        for update in updates {
            let keys: Vec<Hash> = update.inner.iter().map(|inner| inner.key).collect();
            self.prove(Some(update.key), update.inner_root, &keys)?;
        }
        apply(self, root, updates)?;
        Ok(())
    }

    fn prove(&self, trie: Option<Hash>, root: Hash, keys: &[Hash]) -> Result<(), TreeError> {
        let proofs = prove_many(&self.reader, trie, root, keys)?;
        self.note(proofs.into_iter().flatten());
        Ok(())
    }

    /// The nodes that were read, each once.
    pub fn into_nodes(self) -> Vec<Vec<u8>> {
        let bag = self.nodes.into_inner();
        bag.unwrap_or_else(PoisonError::into_inner).list
    }

    fn note(&self, nodes: impl IntoIterator<Item = Vec<u8>>) {
        let mut bag = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        for node in nodes {
            if bag.seen.insert(node.clone()) {
                bag.list.push(node);
            }
        }
    }
}

impl<R: NodeReader> NodeReader for Recorder<R> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        let records = self.reader.nodes(requests)?;
        for record in records.iter().flatten() {
            // A malformed record is reported by whoever asked for it.
            if let Ok(record) = Record::decode(record) {
                // Keys that pass an extension are proven, and joining needs no branch below it.
                self.note(record.rlp_nodes().0.into_iter().take(1));
            }
        }
        Ok(records)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        let leaf = self.reader.leaf(request)?;
        if let Some(leaf) = &leaf {
            let mut rlp = Vec::new();
            write_leaf(
                &mut rlp,
                &leaf.key,
                request.position.path.len(),
                &leaf.value,
            );
            self.note([rlp]);
        }
        Ok(leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_shortened_by_each_of_its_first_nibbles() {
        let key: Hash = std::array::from_fn(|place| 0x10 + place as u8);
        let leaf = |from: usize| {
            let mut rlp = Vec::new();
            write_leaf(&mut rlp, &key, from, b"a value");
            rlp
        };
        let nodes = shortened(&leaf(61));
        assert_eq!(nodes, [leaf(62), leaf(63), leaf(64)]);
        assert_eq!(shortened(&leaf(0)).len(), 64);
        let extension = |nibbles: &[u8]| {
            let mut rlp = Vec::new();
            let child = Reference::hash(key);
            write_extension(&mut rlp, &Path::from_nibbles(nibbles), &child);
            rlp
        };
        let nodes = shortened(&extension(&[1, 2, 3]));
        assert_eq!(nodes, [extension(&[2, 3]), extension(&[3])]);
        assert!(shortened(&extension(&[1])).is_empty());
        assert!(shortened(b"\x80").is_empty());
    }
}
