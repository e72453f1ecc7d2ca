//! Building a trie bottom-up from sorted leaves.

use std::sync::Arc;

use arbor_tree::{Hash, Path, Position, nibble_of, shared_nibbles};

use crate::error::TreeError;
use crate::forest::{Forest, Place, Slot, Value};

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
        builder.add(key, value, shared);
    }
    Ok(builder.finish())
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
        while let Some(open) = self
            .open
            .pop_if(|open| shared.is_none_or(|shared| open.depth > shared))
        {
            self.open_at(shared, &key);
            self.close(&open, &key);
        }
        if self.forest.leaves.len() + self.forest.nodes.len() > BATCH {
            self.flush();
        }
    }

    /// Opens a branch at a depth, unless the deepest open one is there or deeper.
    fn open_at(&mut self, depth: Option<usize>, key: &Hash) {
        let Some(depth) = depth else { return };
        if self.open.last().is_none_or(|open| open.depth < depth) {
            let path = Path::prefix_of_key(key, depth);
            let node = self.forest.add_new_node(0, path, Path::ROOT);
            self.open.push(Open { depth, node });
        }
    }

    /// The slot that a key has in the deepest open branch.
    fn place_below(&self, key: &Hash) -> Place {
        match self.open.last() {
            Some(open) => Place::Child(open.node, nibble_of(key, open.depth)),
            None => Place::Root(0),
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

    fn commit(&mut self) {
        let changed = self.forest.commit();
        let mut nodes = self.forest.node_changes(&changed);
        nodes.sort_unstable_by_key(|node| (node.position.path.len(), node.position.path));
        for node in nodes {
            if let Some(record) = node.record {
                (self.sink)(node.position, record);
            }
        }
    }

    fn finish(mut self) -> Hash {
        self.forest.list(Place::Root(0));
        self.commit();
        self.forest.tries[0].hash
    }
}
