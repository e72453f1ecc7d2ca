//! The part of a forest of tries that updates touch, in memory.

use arbor_tree::{Hash, NodeRequest, Path, Position};

use crate::EMPTY_ROOT;
use crate::arena::Arena;
use crate::error::TreeError;
use crate::lanes::Lanes;
use crate::node::{NodeError, Reference};
use crate::record::Record;
use crate::update::OuterUpdate;

/// What hangs at a nibble of a node, or at the root of a trie.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    Empty,
    /// A leaf in memory.
    Leaf(u32),
    /// A node in memory.
    Node(u32),
    /// A leaf that has not been read.
    StoredLeaf(Reference),
    /// A node that has not been read.
    StoredNode(Reference),
}

/// Where a slot is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Root(u32),
    Child(u32, u8),
}

/// One RLP node to hash and the slot that refers to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) work: Work,
    pub(crate) place: Place,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// A leaf, by index.
    Leaf(u32),
    /// The branch of a node; for a node with a prefix the result stays with the node.
    Branch(u32),
    /// The extension of a node, after its branch if that is known.
    Extension(u32),
}

/// An inner node in memory.
pub(crate) struct Node {
    pub(crate) trie: u32,
    /// Where it hangs.
    pub(crate) path: Path,
    /// Children not in memory are in the record; of the others it holds a link.
    pub(crate) record: Record,
    /// Mask of children in memory.
    pub(crate) linked: u16,
    /// How the parent referred to the node when it was read, while it hangs there.
    pub(crate) stored_as: Option<Reference>,
    /// How the parent refers to the node, while it is not dirty.
    pub(crate) reference: Reference,
    pub(crate) dirty: bool,
    /// When its branch is hashed.
    pub(crate) height: u16,
}

impl Node {
    /// Depth in nibbles of the slots of its branch: their paths are one nibble longer.
    pub(crate) fn depth(&self) -> usize {
        self.path.len() + self.record.prefix().len()
    }

    /// Path of the slot at a nibble.
    pub(crate) fn slot_path(&self, nibble: u8) -> Path {
        self.path.join(self.record.prefix()).child(nibble)
    }

    pub(crate) fn slot(&self, nibble: u8) -> Slot {
        let bit = 1 << nibble;
        if self.record.children() & bit == 0 {
            return Slot::Empty;
        }
        let leaf = self.record.leaves() & bit != 0;
        match (self.linked & bit != 0, leaf) {
            (true, true) => Slot::Leaf(self.record.link(nibble)),
            (true, false) => Slot::Node(self.record.link(nibble)),
            (false, true) => Slot::StoredLeaf(self.record.child(nibble)),
            (false, false) => Slot::StoredNode(self.record.child(nibble)),
        }
    }

    pub(crate) fn set_slot(&mut self, nibble: u8, slot: Slot) {
        self.linked &= !(1 << nibble);
        match slot {
            Slot::Empty => self.record.set_child(nibble, &Reference::NONE, false),
            Slot::StoredLeaf(child) => self.record.set_child(nibble, &child, true),
            Slot::StoredNode(child) => self.record.set_child(nibble, &child, false),
            Slot::Leaf(link) => self.record.set_link(nibble, link, true),
            Slot::Node(link) => self.record.set_link(nibble, link, false),
        }
        if matches!(slot, Slot::Leaf(_) | Slot::Node(_)) {
            self.linked |= 1 << nibble;
        }
    }
}

/// The value of a leaf in memory.
pub(crate) enum Value<'a> {
    Given(&'a [u8]),
    /// The template of an outer update, by its index.
    Template(u32),
    Owned(Vec<u8>),
}

pub(crate) struct MemoryLeaf<'a> {
    pub(crate) key: Hash,
    pub(crate) value: Value<'a>,
}

/// One trie of the forest.
pub(crate) struct Trie {
    /// Outer key; `None` for the outer trie.
    pub(crate) owner: Option<Hash>,
    /// Index of its outer update (0 for the outer trie).
    pub(crate) update: u32,
    pub(crate) root: Slot,
    /// The old root hash; the new one once it is committed.
    pub(crate) hash: Hash,
    /// After which height the root hash is known.
    pub(crate) height: u16,
}

impl Trie {
    pub(crate) fn new(owner: Option<Hash>, update: u32, hash: Hash) -> Self {
        let root = if hash == EMPTY_ROOT {
            Slot::Empty
        } else {
            Slot::StoredNode(Reference::hash(hash))
        };
        Self {
            owner,
            update,
            root,
            hash,
            height: 0,
        }
    }
}

/// All tries that a set of updates touches; the outer one is trie 0.
pub(crate) struct Forest<'a> {
    pub(crate) updates: &'a [OuterUpdate],
    /// Whether the outer trie is left as it is, and only the inner ones change.
    pub(crate) inner_only: bool,
    pub(crate) tries: Vec<Trie>,
    /// Trie of each outer update; 0 where its inner trie does not change.
    pub(crate) inner_tries: Vec<u32>,
    pub(crate) nodes: Arena<Node>,
    pub(crate) leaves: Vec<MemoryLeaf<'a>>,
    /// Positions that a stored node has left, by removal or by moving.
    pub(crate) vacated: Vec<(u32, Path)>,
    /// What is to be hashed, by height.
    pub(crate) tasks: Vec<Vec<Task>>,
    pub(crate) lanes: Lanes,
    pub(crate) nodes_read: u64,
    pub(crate) leaves_read: u64,
}

impl<'a> Forest<'a> {
    pub(crate) fn new(root: Hash, updates: &'a [OuterUpdate]) -> Self {
        let mut tries = vec![Trie::new(None, 0, root)];
        let mut inner_tries = Vec::with_capacity(updates.len());
        for (index, update) in (0..).zip(updates) {
            if update.inner.is_empty() {
                inner_tries.push(0);
            } else {
                inner_tries.push(tries.len() as u32);
                tries.push(Trie::new(Some(update.key), index, update.inner_root));
            }
        }
        let leaves = updates.iter().map(|update| 1 + update.inner.len()).sum();
        Self {
            updates,
            inner_only: false,
            tries,
            inner_tries,
            nodes: Arena::default(),
            leaves: Vec::with_capacity(leaves),
            vacated: Vec::new(),
            tasks: Vec::new(),
            lanes: Lanes::default(),
            nodes_read: 0,
            leaves_read: 0,
        }
    }

    pub(crate) fn position(&self, trie: u32, path: Path) -> Position {
        let trie = self.tries[trie as usize].owner;
        Position { trie, path }
    }

    pub(crate) fn request(&self, trie: u32, path: Path, reference: &Reference) -> NodeRequest {
        NodeRequest {
            position: self.position(trie, path),
            expected: reference.as_hash(),
        }
    }

    pub(crate) fn slot(&self, place: Place) -> Slot {
        match place {
            Place::Root(trie) => self.tries[trie as usize].root,
            Place::Child(node, nibble) => self.nodes[node as usize].slot(nibble),
        }
    }

    pub(crate) fn set_slot(&mut self, place: Place, slot: Slot) {
        match place {
            Place::Root(trie) => self.tries[trie as usize].root = slot,
            Place::Child(node, nibble) => self.nodes[node as usize].set_slot(nibble, slot),
        }
    }

    /// Trie and path of a slot.
    pub(crate) fn locate(&self, place: Place) -> (u32, Path) {
        match place {
            Place::Root(trie) => (trie, Path::ROOT),
            Place::Child(node, nibble) => {
                let node = &self.nodes[node as usize];
                (node.trie, node.slot_path(nibble))
            }
        }
    }

    /// Adds a node that is not stored and returns its index.
    pub(crate) fn add_new_node(&mut self, trie: u32, path: Path, prefix: Path) -> u32 {
        self.nodes.push(Node {
            trie,
            path,
            record: Record::empty(prefix),
            linked: 0,
            stored_as: None,
            reference: Reference::NONE,
            dirty: true,
            height: 0,
        })
    }

    pub(crate) fn add_leaf(&mut self, key: Hash, value: Value<'a>) -> u32 {
        self.leaves.push(MemoryLeaf { key, value });
        (self.leaves.len() - 1) as u32
    }

    /// Puts a node that was read into its slot and returns its index.
    pub(crate) fn attach(
        &mut self,
        place: Place,
        reference: Reference,
        record: &[u8],
    ) -> Result<u32, TreeError> {
        let (trie, path) = self.locate(place);
        let index = self.add_new_node(trie, path, Path::ROOT);
        let node = &mut self.nodes[index as usize];
        if let Err(error) = node.record.read(record) {
            let position = self.position(trie, path);
            return Err(TreeError::Record { position, error });
        }
        node.stored_as = Some(reference);
        self.attach_node(place, reference, index)
    }

    /// Puts a node that its parent inlines into its slot and returns its index.
    pub(crate) fn attach_inlined(
        &mut self,
        place: Place,
        reference: Reference,
    ) -> Result<u32, TreeError> {
        let rlp = reference.as_inline().unwrap_or_default();
        let record = match Record::from_rlp(rlp, &|_| None) {
            Ok(Some(record)) => Ok(record),
            Ok(None) => Err(NodeError::NotMinimal),
            Err(error) => Err(error),
        };
        let record = record.map_err(|error| {
            let (trie, path) = self.locate(place);
            let position = self.position(trie, path);
            TreeError::Node { position, error }
        })?;
        let (trie, path) = self.locate(place);
        let index = self.add_new_node(trie, path, Path::ROOT);
        self.nodes[index as usize].record = record;
        self.attach_node(place, reference, index)
    }

    /// Puts a node just read into its slot.
    fn attach_node(
        &mut self,
        place: Place,
        reference: Reference,
        index: u32,
    ) -> Result<u32, TreeError> {
        let node = &mut self.nodes[index as usize];
        if node.depth() >= Path::MAX {
            let (trie, path) = (node.trie, node.path);
            let position = self.position(trie, path);
            return Err(TreeError::TooDeep { position });
        }
        node.reference = reference;
        node.dirty = false;
        self.set_slot(place, Slot::Node(index));
        Ok(index)
    }

    /// Notes that a stored node no longer hangs where it was read.
    pub(crate) fn vacate(&mut self, node: u32) {
        let node = &mut self.nodes[node as usize];
        if node.stored_as.take().is_some() {
            self.vacated.push((node.trie, node.path));
        }
    }
}
