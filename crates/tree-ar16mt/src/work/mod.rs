//! A part of the tree while it is changed: the nodes on the way to what changes, in one list, parents first.

mod arrive;
mod descend;
mod hash;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arbor_tree::Path;

use crate::record::{self, RecordError};
use crate::{
    CHECKPOINT, Child, DEPTH, Entry, Hash, Hasher, Leaf, LeafUpdate, NodeChange, Reader, Record,
    TreeError, TreeStats,
};

/// Height of the checkpoint.
const FOLD_HEIGHT: usize = DEPTH - CHECKPOINT;

/// A child while the tree is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// As it was, or finished.
    Child(Child),
    /// A node of the list, not hashed yet.
    Node,
    /// A leaf of the list of pending ones, whose hash is not known yet.
    Pending(usize),
}

impl Slot {
    /// The child, unless it is not hashed yet.
    fn child(&self) -> Option<&Child> {
        match self {
            Self::Child(child) => Some(child),
            Self::Node | Self::Pending(_) => None,
        }
    }
}

/// Where a child hangs: below a node of the list, or at the top of the part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Top,
    Below(usize, u8),
}

/// A node on the way. Parents come before their children.
pub(crate) struct Node {
    pub(crate) path: Path,
    pub(crate) place: Place,
    /// Its record before, if it was there.
    pub(crate) old: Option<Arc<[u8]>>,
    /// Ascending by nibble; of a node below which all is only read, those on the ways alone.
    children: Vec<(u8, Slot)>,
    pub(crate) gone: bool,
    /// Whether all below is only read, and so stays as it is.
    only_read: bool,
}

impl Node {
    /// The child under a nibble, unless it is yet to be hashed.
    pub(crate) fn child(&self, nibble: u8) -> Option<&Child> {
        let at = self.children.binary_search_by_key(&nibble, |child| child.0);
        self.children[at.ok()?].1.child()
    }

    /// The leaves right below, once they are hashed, ascending by nibble.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = (u8, &Leaf)> {
        self.children
            .iter()
            .filter_map(|(nibble, slot)| match slot {
                Slot::Child(Child::Leaf(leaf)) => Some((*nibble, leaf)),
                Slot::Child(Child::Internal(_)) | Slot::Node | Slot::Pending(_) => None,
            })
    }
}

/// Hashes of nodes that were computed elsewhere.
#[derive(Default)]
pub(crate) struct Hashed {
    /// By number in the list of nodes.
    pub(crate) nodes: Vec<(usize, Hash)>,
    /// How many hashes that took.
    pub(crate) hashes: u64,
}

/// What a pending leaf's chain starts with.
#[derive(Clone, Copy)]
enum Start {
    /// The bottom.
    Entry(Entry),
    /// A hash at a height.
    At(Hash, usize),
}

struct Pending {
    /// Its key, or the bits of it that its chain takes.
    key: Hash,
    start: Start,
}

/// A leaf that finds its place.
struct Placed {
    key: Hash,
    start: Start,
    /// Whether it was not there before.
    is_new: bool,
}

/// A child on the way, with the updates below it.
pub(crate) struct Visit {
    pub(crate) place: Place,
    pub(crate) path: Path,
    pub(crate) child: Option<Child>,
    pub(crate) updates: Range<usize>,
}

/// What is to be done, ascending by key.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) updates: &'a [LeafUpdate],
    /// Which of them change nothing: only what they hold is looked for. None, where it is empty.
    pub(crate) reads: &'a [bool],
    /// Whether nobody has looked which of the keys are there.
    pub(crate) unread: bool,
    /// Whether leaves that come and move are to be counted.
    pub(crate) counted: bool,
}

impl Batch<'_> {
    fn is_read(&self, at: usize) -> bool {
        self.reads.get(at).is_some_and(|read| *read)
    }

    /// Whether a child is a node below which there is something to be read, and nothing else. The root's hash stands nowhere, so that it is computed in any case.
    fn only_reads(&self, visit: &Visit) -> bool {
        let is_node = matches!(visit.child, Some(Child::Internal(_))) && !visit.path.is_empty();
        let mut updates = visit.updates.clone();
        is_node && !updates.is_empty() && updates.all(|at| self.is_read(at))
    }
}

/// A part of the tree.
pub(crate) struct Work<'a, R, H> {
    reader: &'a R,
    hasher: H,
    batch: Batch<'a>,
    nodes: Vec<Node>,
    pending: Vec<Pending>,
    top: Option<Slot>,
    top_path: Path,
    found: Vec<(Hash, Entry)>,
    stats: TreeStats,
}

/// How keys compare, mostly by their first bytes.
pub(crate) fn by_key(a: &Hash, b: &Hash) -> Ordering {
    leading(a).cmp(&leading(b)).then_with(|| a.cmp(b))
}

/// A key's first bytes as a number that is ordered as they are.
pub(crate) fn leading(key: &Hash) -> u64 {
    let bytes = key.first_chunk();
    bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// What became of a part.
pub(crate) struct Done {
    pub(crate) top: Option<Child>,
    pub(crate) nodes: Vec<NodeChange>,
    pub(crate) found: Vec<(Hash, Entry)>,
    pub(crate) stats: TreeStats,
}

impl<'a, R: Reader, H: Hasher> Work<'a, R, H> {
    /// Begins with nothing but the top; there is room for what some updates bring.
    pub(crate) fn new(
        reader: &'a R,
        hasher: H,
        batch: Batch<'a>,
        (top, top_path): (Option<Slot>, Path),
        room: usize,
    ) -> Self {
        // Below nothing there are only the nodes that leaves need, and no leaf has to make room.
        let (nodes, pending) = match top {
            None => (room / 2, room),
            Some(_) => (2 * room, room + room / 2),
        };
        Self {
            reader,
            hasher,
            batch,
            nodes: Vec::with_capacity(nodes),
            pending: Vec::with_capacity(pending),
            top,
            top_path,
            found: Vec::new(),
            stats: TreeStats::default(),
        }
    }

    /// Adds a node that was not there, with no children yet.
    pub(crate) fn add_node(&mut self, place: Place, path: Path) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            path,
            place,
            old: None,
            children: Vec::new(),
            gone: false,
            only_read: false,
        });
        self.set(place, Some(Slot::Node));
        node
    }

    /// Sets what hangs at a place.
    fn set(&mut self, place: Place, slot: Option<Slot>) {
        let Place::Below(node, nibble) = place else {
            self.top = slot;
            return;
        };
        let children = &mut self.nodes[node].children;
        match (
            children.binary_search_by_key(&nibble, |child| child.0),
            slot,
        ) {
            (Ok(at), Some(slot)) => children[at].1 = slot,
            (Ok(at), None) => drop(children.remove(at)),
            (Err(at), Some(slot)) => children.insert(at, (nibble, slot)),
            (Err(_), None) => {}
        }
    }

    /// Sets what has become of a child that was left to another part.
    pub(crate) fn put(&mut self, place: Place, child: Option<Child>) {
        self.set(place, child.map(Slot::Child));
    }

    /// Counts what another part did.
    pub(crate) fn count(&mut self, stats: &TreeStats) {
        self.stats.add(stats);
    }

    /// Computes all hashes.
    pub(crate) fn hash(&mut self) {
        self.fold();
        self.hash_rest(&Hashed::default());
    }

    /// Computes the hashes of leaves.
    pub(crate) fn fold(&mut self) {
        let started = Instant::now();
        self.found.sort_unstable_by(|a, b| by_key(&a.0, &b.0));
        self.collapse();
        self.fold_leaves();
        self.stats.hash += started.elapsed();
    }

    /// Takes over the hashes of some nodes from whoever knows them already, and computes those of the others.
    pub(crate) fn hash_rest(&mut self, known: &Hashed) {
        let started = Instant::now();
        self.stats.node_hashes += known.hashes;
        self.hash_nodes(&known.nodes);
        self.stats.hash += started.elapsed();
    }

    /// The leaf that is all there is below the top, once leaves are hashed.
    pub(crate) fn top_leaf(&self) -> Option<&Leaf> {
        match &self.top {
            Some(Slot::Child(Child::Leaf(leaf))) => Some(leaf),
            _ => None,
        }
    }

    /// What all below comes to, once it is hashed.
    fn top(&self) -> Option<Child> {
        self.top.map(|slot| match slot {
            Slot::Child(child) => child,
            Slot::Node | Slot::Pending(_) => unreachable!("all have been hashed"),
        })
    }

    /// Where its top hangs.
    pub(crate) fn top_path(&self) -> Path {
        self.top_path
    }

    /// The nodes, parents before their children.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The leaves that were found, with what they held, ascending by key.
    pub(crate) fn found(&self) -> &[(Hash, Entry)] {
        &self.found
    }

    /// What is to be written, once all is hashed.
    pub(crate) fn finish(mut self) -> Done {
        let started = Instant::now();
        let top = self.top();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut record = Vec::new();
        for node in self.nodes.into_iter().filter(|node| !node.only_read) {
            let Node { path, old, .. } = node;
            let children = node.children.iter();
            let children = children.filter_map(|(nibble, slot)| Some((*nibble, slot.child()?)));
            if !node.gone {
                record::encode(&path, children, &mut record);
            }
            let record = (!node.gone).then_some(&record[..]);
            // What comes and goes within one update leaves nothing, and what stays as it is needs no writing.
            if old.as_deref() != record {
                let record = record.map(Arc::from);
                nodes.push(NodeChange { path, record });
            }
        }
        self.stats.nodes_written +=
            nodes.iter().filter(|node| node.record.is_some()).count() as u64;
        self.stats.place += started.elapsed();
        Done {
            top,
            nodes,
            found: self.found,
            stats: self.stats,
        }
    }
}

pub(crate) fn decode(path: &Path, record: &[u8]) -> Result<Record, TreeError> {
    Record::decode(path, record).map_err(|error| malformed(path, error))
}

fn malformed(path: &Path, error: RecordError) -> TreeError {
    let path = *path;
    TreeError::Record { path, error }
}
