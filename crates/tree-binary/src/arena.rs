//! The part of a tree that an update works on.

use std::cell::Cell;

use crate::node_hash::{Contents, NodeView};
use crate::{Hash, Path};

/// A node's index.
pub(crate) type Id = u32;

/// A node. Its hash is that of its message unless it is dirty.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// A leaf's key; for a branch the path down to the bit in which its children differ.
    pub(crate) path: Path,
    /// Bits of the path that lead to the node: see [`NodeView`].
    pub(crate) start: u16,
    pub(crate) kind: Kind,
    /// Whether the hash is to be computed.
    pub(crate) is_dirty: bool,
    pub(crate) hash: Hash,
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A leaf.
    Leaf { value: Hash },
    /// A branch with its children: that of a zero first.
    Branch([Id; 2]),
    /// A branch whose record has not been read.
    Unread,
    /// A node of a witness that the witness does not have. Its path is that of the node above and
    /// one more bit.
    Unknown,
}

/// Nodes that refer to each other.
#[derive(Clone, Default, Debug)]
pub(crate) struct Arena(Vec<Node>);

/// The most nodes for which a thread keeps the memory from one arena to the next: 10 MB.
const KEPT: usize = 1 << 16;

thread_local! {
    /// The memory of an arena that is gone. Each block has an arena of thousands of nodes, which would else be moved several times
    /// while they grow.
    static SPARE: Cell<Vec<Node>> = const { Cell::new(Vec::new()) };
}

impl Drop for Arena {
    fn drop(&mut self) {
        let mut nodes = std::mem::take(&mut self.0);
        nodes.clear();
        // Without the thread's storage, at its end, the memory is freed.
        let _ = SPARE.try_with(|spare| {
            let before = spare.take();
            let is_larger = nodes.capacity() > before.capacity() && nodes.capacity() <= KEPT;
            spare.set(if is_larger { nodes } else { before });
        });
    }
}

impl Arena {
    /// An arena without nodes, in the memory that an earlier one of this thread left.
    pub(crate) fn recycled() -> Self {
        Self(SPARE.try_with(Cell::take).unwrap_or_default())
    }

    pub(crate) fn add(&mut self, node: Node) -> Id {
        let id = self.0.len() as Id;
        self.0.push(node);
        id
    }

    /// Takes over the nodes of another part, and returns what is added to their indices.
    pub(crate) fn append(&mut self, mut other: Self) -> Id {
        let offset = self.0.len() as Id;
        self.0.extend(other.0.drain(..).map(|mut node| {
            if let Kind::Branch(children) = &mut node.kind {
                children.iter_mut().for_each(|child| *child += offset);
            }
            node
        }));
        offset
    }

    /// The nodes with a property.
    pub(crate) fn find(&self, is: impl Fn(Id, &Node) -> bool) -> Vec<Id> {
        let nodes = (0..).zip(&self.0);
        nodes
            .filter(|(id, node)| is(*id, node))
            .map(|(id, _)| id)
            .collect()
    }

    /// Nodes so far: later ones have larger indices.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, id: Id) -> &Node {
        &self.0[id as usize]
    }

    /// A leaf or branch as it is hashed; `None` for a node of which only the hash is known.
    pub(crate) fn view(&self, id: Id) -> Option<NodeView<'_>> {
        let node = self.get(id);
        let contents = match &node.kind {
            Kind::Leaf { value } => Contents::Leaf(value),
            Kind::Branch(children) => Contents::Branch(children.map(|id| &self.get(id).hash)),
            Kind::Unread | Kind::Unknown => return None,
        };
        Some(NodeView {
            path: &node.path,
            start: usize::from(node.start),
            contents,
        })
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> &mut Node {
        &mut self.0[id as usize]
    }

    /// Has the hashes of all leaves and branches computed.
    pub(crate) fn forget_hashes(&mut self) {
        for node in &mut self.0 {
            node.is_dirty |= matches!(node.kind, Kind::Leaf { .. } | Kind::Branch(_));
        }
    }

    /// Adds a leaf whose hash is to be computed.
    pub(crate) fn add_leaf(&mut self, key: Path, value: Hash) -> Id {
        self.add(Node {
            path: key,
            start: 0,
            kind: Kind::Leaf { value },
            is_dirty: true,
            hash: [0; 32],
        })
    }

    /// Adds a branch whose hash is to be computed; where its prefix begins is not known yet.
    pub(crate) fn add_branch(&mut self, path: Path, children: [Id; 2]) -> Id {
        self.add(Node {
            path,
            start: 0,
            kind: Kind::Branch(children),
            is_dirty: true,
            hash: [0; 32],
        })
    }
}
