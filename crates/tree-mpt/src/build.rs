//! Building a trie bottom-up from sorted leaves.

use std::sync::Arc;

use arbor_tree::{Hash, Path, Position, nibble_of, shared_nibbles};

use crate::error::TreeError;
use crate::forest::{Forest, Place, Slot, Trie, Value};
use crate::record::Record;

/// Leaves and nodes kept before a batch is hashed.
const BATCH: usize = 4096;

/// Builds a trie from all its leaves, ascending by key, and returns its root.
///
/// Each node is hashed once, in wide batches, and given to `sink` with its position and
/// [record](crate::Record); of all positions with paths of one length each comes after those before
/// it. Memory is bounded by one batch and the nodes on one path. `trie` is the outer key
/// that the trie hangs under, `None` for the outer trie.
///
/// # Errors
/// When keys do not ascend strictly, or a value is empty.
pub fn build<I>(
    trie: Option<Hash>,
    leaves: I,
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Hash, TreeError>
where
    I: IntoIterator<Item = (Hash, Vec<u8>)>,
{
    let mut builder = Builder::new(trie, sink);
    each(leaves, |key, value, shared| {
        builder.add(key, value, shared);
    })?;
    Ok(builder.finish())
}

/// Builds tries, each from all its leaves, and returns their roots in order; for the rest like [`build`].
///
/// Small tries are hashed together in the same wide batches. Their nodes come to `sink` in the order of the tries, for each as
/// [`build`] gives them.
///
/// # Errors
/// When the keys of a trie do not ascend strictly, or a value is empty.
pub fn build_many<I, L>(
    tries: I,
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Vec<Hash>, TreeError>
where
    I: IntoIterator<Item = (Hash, L)>,
    L: IntoIterator<Item = (Hash, Vec<u8>)>,
{
    let mut builder = Builder::new(None, sink);
    builder.forest.tries.clear();
    let mut roots = Vec::new();
    for (owner, leaves) in tries {
        builder.begin(owner);
        each(leaves, |key, value, shared| {
            builder.add(key, value, shared);
        })?;
        builder.forest.list(Place::Root(builder.trie));
        if builder.is_full() {
            builder.take_roots(&mut roots);
        }
    }
    builder.take_roots(&mut roots);
    Ok(roots)
}

/// The leaves of a trie whose keys begin with some nibbles, built apart from the rest of it.
///
/// [`build_part`] makes it, [`join`] puts the parts of a trie together: so that cores, or machines, share a
/// trie's keys by ranges.
#[derive(Clone, Debug)]
pub struct Part(Option<Top>);

/// What of a part depends on its neighbours.
#[derive(Clone, Debug)]
struct Top {
    first: Hash,
    last: Hash,
    node: TopNode,
}

#[derive(Clone, Debug)]
enum TopNode {
    /// The value of the only leaf.
    Leaf(Vec<u8>),
    /// The topmost branch, with all its children hashed; its prefix is not known yet.
    Branch { depth: usize, record: Box<Record> },
}

impl Part {
    /// The bytes of a part, to be joined by another process: nothing for a part without leaves; else the first key and the
    /// last (32 bytes each) and, of a single leaf, 0xff and its value, or of more leaves the depth of the topmost branch (a byte) and its
    /// [record](Record).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Some(top) = &self.0 else { return out };
        out.extend_from_slice(&top.first);
        out.extend_from_slice(&top.last);
        match &top.node {
            TopNode::Leaf(value) => {
                out.push(ONLY_LEAF);
                out.extend_from_slice(value);
            }
            TopNode::Branch { depth, record } => {
                out.push(*depth as u8);
                record.encode_into(&mut out);
            }
        }
        out
    }

    /// Reads the bytes of a part; `None` if they are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self(None));
        }
        let (first, rest) = bytes.split_first_chunk()?;
        let (last, rest) = rest.split_first_chunk()?;
        let node = match rest.split_first()? {
            (&ONLY_LEAF, value) if !value.is_empty() => TopNode::Leaf(value.to_vec()),
            (&depth, record) if usize::from(depth) < Path::MAX => TopNode::Branch {
                depth: depth.into(),
                record: Box::new(Record::decode(record).ok()?),
            },
            _ => return None,
        };
        let (first, last) = (*first, *last);
        Some(Self(Some(Top { first, last, node })))
    }
}

/// In the bytes of a part in place of a depth: the part has one leaf.
const ONLY_LEAF: u8 = 0xff;

/// Builds a part of a trie from all leaves whose keys begin with the same nibbles, ascending by key.
///
/// Gives `sink` every node but the part's topmost, which [`join`] gives; for the rest like [`build`]. Which nibbles they are need
/// not be said: it is enough that no other part has a key that begins with what this part's keys share.
///
/// # Errors
/// When keys do not ascend strictly, or a value is empty.
pub fn build_part<I>(
    trie: Option<Hash>,
    leaves: I,
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Part, TreeError>
where
    I: IntoIterator<Item = (Hash, Vec<u8>)>,
{
    let mut builder = Builder::new(trie, sink);
    let mut ends = None;
    let mut only = None;
    each(leaves, |key, value, shared| {
        let first = ends.map_or(key, |(first, _)| first);
        ends = Some((first, key));
        match (shared, builder.open.first()) {
            (None, None) => only = Some(value),
            // The last leaf closes all branches but the topmost.
            (None, Some(top)) => {
                let depth = top.depth;
                builder.add(key, value, Some(depth));
            }
            (Some(shared), _) => builder.add(key, value, Some(shared)),
        }
    })?;
    let Some((first, last)) = ends else {
        return Ok(Part(None));
    };
    let node = match only {
        Some(value) => TopNode::Leaf(value),
        None => builder.into_topmost(),
    };
    Ok(Part(Some(Top { first, last, node })))
}

/// Joins the parts of a trie, ascending by key, and returns its root. Gives `sink` the parts' topmost nodes and those above.
///
/// # Errors
/// When parts do not ascend, or one has keys among those of another.
pub fn join<I>(
    trie: Option<Hash>,
    parts: I,
    sink: &mut dyn FnMut(Position, Arc<[u8]>),
) -> Result<Hash, TreeError>
where
    I: IntoIterator<Item = Part>,
{
    let mut builder = Builder::new(trie, sink);
    let mut tops = parts.into_iter().filter_map(|part| part.0);
    let mut next = tops.next();
    while let Some(top) = next {
        next = tops.next();
        let shared = match &next {
            Some(after) if after.first <= top.last => {
                return Err(TreeError::UnsortedKey { key: after.first });
            }
            Some(after) => {
                let shared = shared_nibbles(&top.last, &after.first);
                if top.node.holds(shared) || after.node.holds(shared) {
                    return Err(TreeError::MixedParts { key: after.first });
                }
                Some(shared)
            }
            None => None,
        };
        builder.add_top(top, shared);
    }
    Ok(builder.finish())
}

impl TopNode {
    /// Whether a key that shares so many nibbles with one of the part belongs into it.
    fn holds(&self, shared: usize) -> bool {
        matches!(self, Self::Branch { depth, .. } if *depth <= shared)
    }
}

/// Checks leaves, and calls `add` with each and the number of nibbles that it shares with the next.
fn each<I>(leaves: I, mut add: impl FnMut(Hash, Vec<u8>, Option<usize>)) -> Result<(), TreeError>
where
    I: IntoIterator<Item = (Hash, Vec<u8>)>,
{
    let mut leaves = leaves.into_iter();
    let mut next = leaves.next();
    while let Some((key, value)) = next {
        if value.is_empty() {
            return Err(TreeError::EmptyValue { key });
        }
        next = leaves.next();
        let shared = match &next {
            Some((after, _)) if *after <= key => {
                return Err(TreeError::UnsortedKey { key: *after });
            }
            Some((after, _)) => Some(shared_nibbles(&key, after)),
            None => None,
        };
        add(key, value, shared);
    }
    Ok(())
}

/// A branch some of whose children are still to come.
struct Open {
    depth: usize,
    /// Index in the forest. Until the branch is closed the node has no prefix, and as its path the
    /// `depth` nibbles above its children.
    node: u32,
}

struct Builder<'a> {
    forest: Forest<'static>,
    /// The trie being built; those before it are whole.
    trie: u32,
    /// From the root down.
    open: Vec<Open>,
    sink: &'a mut dyn FnMut(Position, Arc<[u8]>),
}

impl<'a> Builder<'a> {
    fn new(trie: Option<Hash>, sink: &'a mut dyn FnMut(Position, Arc<[u8]>)) -> Self {
        let mut forest = Forest::new(crate::EMPTY_ROOT, &[]);
        forest.tries[0].owner = trie;
        Self {
            forest,
            trie: 0,
            open: Vec::new(),
            sink,
        }
    }

    /// Adds a leaf that shares so many nibbles with the one after it (`None`: it is the last).
    fn add(&mut self, key: Hash, value: Vec<u8>, shared: Option<usize>) {
        let leaf = self.forest.add_leaf(key, Value::Owned(value));
        self.open_at(shared, &key);
        let place = self.place_below(&key);
        self.forest.set_slot(place, Slot::Leaf(leaf));
        self.close_below(shared, &key);
    }

    /// Adds the topmost node of a part, like [`add`](Self::add).
    fn add_top(&mut self, top: Top, shared: Option<usize>) {
        match top.node {
            TopNode::Leaf(value) => self.add(top.last, value, shared),
            TopNode::Branch { depth, record } => {
                self.open_at(shared, &top.last);
                let path = Path::prefix_of_key(&top.last, depth);
                let node = self.forest.add_new_node(self.trie, path, Path::ROOT);
                self.forest.nodes[node as usize].record = *record;
                self.open.push(Open { depth, node });
                self.close_below(shared, &top.last);
            }
        }
    }

    /// Closes the branches that the next key does not go into.
    fn close_below(&mut self, shared: Option<usize>, key: &Hash) {
        while let Some(open) = self
            .open
            .pop_if(|open| shared.is_none_or(|shared| open.depth > shared))
        {
            self.open_at(shared, key);
            self.close(&open, key);
        }
        // Without an open branch this was the last leaf, and the root is still to be listed.
        if self.is_full() && !self.open.is_empty() {
            self.flush();
        }
    }

    /// Opens a branch at a depth, unless the deepest open one is there or deeper.
    fn open_at(&mut self, depth: Option<usize>, key: &Hash) {
        let Some(depth) = depth else { return };
        if self.open.last().is_none_or(|open| open.depth < depth) {
            let path = Path::prefix_of_key(key, depth);
            let node = self.forest.add_new_node(self.trie, path, Path::ROOT);
            self.open.push(Open { depth, node });
        }
    }

    /// The slot that a key has in the deepest open branch.
    fn place_below(&self, key: &Hash) -> Place {
        match self.open.last() {
            Some(open) => Place::Child(open.node, nibble_of(key, open.depth)),
            None => Place::Root(self.trie),
        }
    }

    /// Hangs a branch that has all its children under the deepest open one, or at the root.
    fn close(&mut self, open: &Open, key: &Hash) {
        let place = self.place_below(key);
        let start = self.open.last().map_or(0, |above| above.depth + 1);
        let node = &mut self.forest.nodes[open.node as usize];
        node.path.truncate(start);
        let prefix = Path::slice_of_key(key, start, open.depth);
        node.record.set_prefix(prefix);
        self.forest.set_slot(place, Slot::Node(open.node));
        self.forest.list_children(open.node);
    }

    /// Hashes everything below the open branches, gives it away and forgets all but those.
    fn flush(&mut self) {
        for open in &self.open {
            self.forest.list_children(open.node);
        }
        self.commit();
        self.forest.leaves.clear();
        for front in 0..self.open.len() {
            let from = self.open[front].node;
            self.forest.nodes.swap(front, from as usize);
            self.open[front].node = front as u32;
            let moved = self.open[front + 1..].iter_mut();
            for open in moved.filter(|open| open.node as usize == front) {
                open.node = from;
            }
        }
        self.forest.nodes.truncate(self.open.len());
    }

    /// Begins another trie.
    fn begin(&mut self, owner: Hash) {
        self.trie = self.forest.tries.len() as u32;
        let trie = Trie::new(Some(owner), 0, crate::EMPTY_ROOT);
        self.forest.tries.push(trie);
    }

    fn is_full(&self) -> bool {
        self.forest.leaves.len() + self.forest.nodes.len() > BATCH
    }

    /// Hashes and forgets the tries, all of which are whole.
    fn take_roots(&mut self, roots: &mut Vec<Hash>) {
        self.commit();
        roots.extend(self.forest.tries.drain(..).map(|trie| trie.hash));
        self.forest.leaves.clear();
        self.forest.nodes.truncate(0);
    }

    fn commit(&mut self) {
        let changed = self.forest.commit();
        let mut nodes = self.forest.node_changes(&changed);
        nodes.sort_unstable_by_key(|node| {
            let Position { trie, path } = node.position;
            (trie, path.len(), path)
        });
        for node in nodes {
            if let Some(record) = node.record {
                (self.sink)(node.position, record);
            }
        }
    }

    /// Hashes all below the one branch that is open, and returns that.
    fn into_topmost(mut self) -> TopNode {
        self.flush();
        let Some(top) = self.open.first() else {
            unreachable!("invariant: two leaves share a branch, and the last one left it open");
        };
        TopNode::Branch {
            depth: top.depth,
            record: Box::new(self.forest.nodes[top.node as usize].record.clone()),
        }
    }

    fn finish(mut self) -> Hash {
        self.forest.list(Place::Root(0));
        self.commit();
        self.forest.tries[0].hash
    }
}
