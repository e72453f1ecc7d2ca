//! A tree of some nodes alone.

use crate::apply::check;
use crate::arena::{Arena, Id, Kind, Node};
use crate::merge::merge;
use crate::multiproof::Multiproof;
use crate::node_hash::{NodeHash, NodeView, Value};
use crate::settle::{Heights, find_dirty, hash};
use crate::{Hash, LeafUpdate, Path, TreeError, TreeStats};

/// A node as it is found by its hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FoundNode {
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

/// A tree of which only some nodes are known.
#[derive(Clone, Debug)]
pub struct WitnessTree<H> {
    hasher: H,
    arena: Arena,
    top: Option<Id>,
    root: Hash,
}

impl<H: NodeHash> WitnessTree<H> {
    /// The tree with a root, whose nodes are looked up by their hashes. A node that cannot be where
    /// its hash stands counts as unknown.
    pub fn grow(hasher: H, root: Hash, find: impl Fn(&Hash) -> Option<FoundNode>) -> Self {
        let mut arena = Arena::default();
        let top = (root != [0; 32]).then(|| grow::<H>(&mut arena, &find, root, Path::ROOT));
        Self {
            hasher,
            arena,
            top,
            root,
        }
    }

    /// The tree that a proof is a part of. The caller compares its [root](Self::root).
    #[must_use]
    pub fn of_proof(hasher: H, proof: &Multiproof<H>) -> Self {
        let mut arena = Arena::default();
        let (top, root) = proof.grow(hasher, &mut arena);
        Self {
            hasher,
            arena,
            top,
            root,
        }
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.root
    }

    /// Returns the value of a key; `None` if it is absent.
    ///
    /// # Errors
    /// [`TreeError::MissingNode`] if the known nodes do not say; [`TreeError::Prefix`] if the key
    /// begins another one, or the other way round.
    pub fn get(&self, key: &Path) -> Result<Option<Hash>, TreeError> {
        let mut next = self.top;
        while let Some(id) = next {
            let node = self.arena.get(id);
            let (path, kind) = (node.path, node.kind);
            let shared = path.shared(key);
            next = match kind {
                Kind::Leaf { value } if path == *key => return Ok(Some(value)),
                Kind::Unknown | Kind::Unread => {
                    let hash = node.hash;
                    return Err(TreeError::MissingNode { path, hash });
                }
                _ if shared < path.len().min(key.len()) => return Ok(None),
                Kind::Branch(children) if path.len() < key.len() => {
                    Some(children[usize::from(key.bit(path.len()))])
                }
                _ => return Err(TreeError::Prefix(*key)),
            };
        }
        Ok(None)
    }

    /// Returns whether any key begins with a path.
    ///
    /// # Errors
    /// [`TreeError::MissingNode`] if the known nodes do not say.
    pub fn has_below(&self, place: &Path) -> Result<bool, TreeError> {
        Ok(self.top_below(place)?.is_some())
    }

    /// Returns the keys that begin with a path, ascending.
    ///
    /// # Errors
    /// [`TreeError::MissingNode`] if one of the nodes below it is not known.
    pub fn keys_below(&self, place: &Path) -> Result<Vec<Path>, TreeError> {
        let (mut keys, mut next) = (Vec::new(), Vec::from_iter(self.top_below(place)?));
        while let Some(id) = next.pop() {
            let node = self.arena.get(id);
            let (path, hash) = (node.path, node.hash);
            match node.kind {
                Kind::Leaf { .. } => keys.push(path),
                Kind::Branch([left, right]) => next.extend([right, left]),
                Kind::Unknown | Kind::Unread => return Err(TreeError::MissingNode { path, hash }),
            }
        }
        Ok(keys)
    }

    /// Returns the known nodes as one proof, which has no hash that follows from others.
    #[must_use]
    pub fn multiproof(&self) -> Multiproof<H> {
        Multiproof::of_known(&self.arena, self.top)
    }

    /// Lists the known nodes, each before those below it.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        let mut next = Vec::from_iter(self.top);
        std::iter::from_fn(move || {
            loop {
                let id = next.pop()?;
                if let Kind::Branch([left, right]) = self.arena.get(id).kind {
                    next.extend([right, left]);
                }
                if let Some(node) = self.arena.view(id) {
                    return Some(node);
                }
            }
        })
    }

    /// Visits the leaves that are known, and returns the number of known nodes.
    pub fn visit(&self, mut leaf: impl FnMut(&Path, &Hash)) -> usize {
        let (mut count, mut next) = (0, Vec::from_iter(self.top));
        while let Some(id) = next.pop() {
            let node = self.arena.get(id);
            match &node.kind {
                Kind::Leaf { value } => leaf(&node.path, value),
                Kind::Branch(children) => next.extend(*children),
                Kind::Unknown | Kind::Unread => continue,
            }
            count += 1;
        }
        count
    }

    /// The topmost node whose path begins with another one.
    fn top_below(&self, place: &Path) -> Result<Option<Id>, TreeError> {
        let mut next = self.top;
        while let Some(id) = next {
            let node = self.arena.get(id);
            let (path, kind) = (node.path, node.kind);
            if place.is_prefix_of(&path) {
                return Ok(Some(id));
            }
            next = match kind {
                Kind::Unknown | Kind::Unread => {
                    let hash = node.hash;
                    return Err(TreeError::MissingNode { path, hash });
                }
                Kind::Branch(children) if path.is_prefix_of(place) => {
                    Some(children[usize::from(place.bit(path.len()))])
                }
                _ => None,
            };
        }
        Ok(None)
    }

    /// Applies updates, ascending by key, and returns the root after them. After an error the tree
    /// is not to be used any more.
    ///
    /// # Errors
    /// [`TreeError`]: also nodes that it takes and that are not known.
    pub fn apply(&mut self, updates: &[LeafUpdate<H::Value>]) -> Result<Hash, TreeError> {
        check(updates)?;
        self.top = merge(&mut self.arena, self.top, updates)?;
        let Some(top) = self.top else {
            self.root = [0; 32];
            return Ok(self.root);
        };
        let (mut heights, mut unknown) = (Heights::default(), Vec::new());
        find_dirty::<H>(&mut self.arena, top, 0, &mut heights, &mut unknown);
        if let Some(id) = unknown.first() {
            let node = self.arena.get(*id);
            let (path, hash) = (node.path, node.hash);
            return Err(TreeError::MissingNode { path, hash });
        }
        hash(
            &mut self.arena,
            self.hasher,
            heights,
            &mut TreeStats::default(),
        );
        self.root = self.arena.get(top).hash;
        Ok(self.root)
    }
}

/// Adds the node with a hash and all known ones below it.
fn grow<H: NodeHash>(
    arena: &mut Arena,
    find: &impl Fn(&Hash) -> Option<FoundNode>,
    hash: Hash,
    known: Path,
) -> Id {
    let start = known.len();
    let has_value = |value: &Hash| H::Value::HAS_ZEROS || *value != [0; 32];
    let (path, kind) = match find(&hash) {
        Some(FoundNode::Leaf { key, value }) if known.is_prefix_of(&key) && has_value(&value) => {
            (key, Kind::Leaf { value })
        }
        Some(FoundNode::Branch { prefix, children })
            if start + prefix.len() < crate::LONGEST_KEY * 8 =>
        {
            let bits = 0..prefix.len();
            let path = bits.fold(known, |path, bit| path.with_bit(prefix.bit(bit)));
            let [left, right] = children;
            let left = grow::<H>(arena, find, left, path.with_bit(false));
            let right = grow::<H>(arena, find, right, path.with_bit(true));
            (path, Kind::Branch([left, right]))
        }
        _ => (known, Kind::Unknown),
    };
    arena.add(Node {
        path,
        start: start as u16,
        kind,
        is_dirty: false,
        hash,
    })
}
