//! The nodes that reading and changing some keys needs, and a tree of these alone.

use std::collections::BTreeSet;

use crate::apply::check;
use crate::arena::{Arena, Id, Kind, Node};
use crate::merge::merge;
use crate::proof::{Message, Messages, NodeMessage};
use crate::settle::{Heights, find_dirty, hash};
use crate::work::Work;
use crate::{Hash, Hasher, LeafUpdate, Packing, Path, Reader, TreeError, TreeStats};

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
    check(updates)?;
    let keys = touched.iter().copied();
    let keys: BTreeSet<Path> = keys
        .chain(updates.iter().map(|update| update.key))
        .collect();
    let ways = keys.iter().map(|key| LeafUpdate {
        key: *key,
        value: [0; 32],
    });
    let mut work = Work::begin(reader, packing)?;
    work.descend(&ways.collect::<Vec<_>>())?;
    let mut wanted = BTreeSet::new();
    for key in &keys {
        work.way(key, |id| {
            wanted.insert(id);
        });
    }
    loop {
        let moved = moved(&work, updates)?;
        let unread = moved.iter().copied();
        let unread: Vec<Id> = unread
            .filter(|id| work.arena.get(*id).kind == Kind::Unread)
            .collect();
        if unread.is_empty() {
            wanted.extend(moved);
            break;
        }
        work.read_branches(&unread)?;
    }
    work.forget_hashes();
    let root = work.hash(hasher)?;
    let mut messages: Vec<NodeMessage> = wanted.into_iter().map(|id| work.message(id)).collect();
    messages.sort_unstable();
    Ok((root, messages))
}

/// The nodes of a tree that updates put below another branch than before.
fn moved<R: Reader>(work: &Work<'_, R>, updates: &[LeafUpdate]) -> Result<Vec<Id>, TreeError> {
    let mut arena = work.arena.clone();
    let top = merge(&mut arena, work.top, updates)?;
    let mut moved = Vec::new();
    let mut next = Vec::from_iter(top.map(|top| (top, 0)));
    while let Some((id, start)) = next.pop() {
        let node = arena.get(id);
        if (id as usize) < work.arena.len() && usize::from(work.arena.get(id).start) != start {
            moved.push(id);
        }
        if let Kind::Branch(children) = node.kind {
            next.extend(children.map(|child| (child, node.path.len() + 1)));
        }
    }
    // A leaf that another one comes next to goes deeper, and was on its way.
    Ok(moved)
}

/// A tree of which only some nodes are known.
#[derive(Clone, Debug)]
pub struct WitnessTree {
    hasher: Hasher,
    arena: Arena,
    top: Option<Id>,
    root: Hash,
}

impl WitnessTree {
    /// The tree with a root, of whose nodes these messages are known, in any order. Messages that
    /// no node leads to are passed over.
    pub fn new<'m>(
        hasher: Hasher,
        root: Hash,
        messages: impl IntoIterator<Item = &'m [u8]>,
    ) -> Self {
        let messages = Messages::new(hasher, messages);
        let mut arena = Arena::default();
        let top = (root != [0; 32]).then(|| grow(&mut arena, &messages, root, Path::ROOT));
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
    pub fn apply(&mut self, updates: &[LeafUpdate]) -> Result<Hash, TreeError> {
        check(updates)?;
        self.top = merge(&mut self.arena, self.top, updates)?;
        let Some(top) = self.top else {
            self.root = [0; 32];
            return Ok(self.root);
        };
        let (mut heights, mut unknown) = (Heights::default(), Vec::new());
        find_dirty(&mut self.arena, top, 0, &mut heights, &mut unknown);
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

/// Adds the node with a hash and all known ones below it. One that cannot be where it is counts as
/// unknown.
fn grow(arena: &mut Arena, messages: &Messages<'_>, hash: Hash, known: Path) -> Id {
    let start = known.len();
    let (path, kind) = match messages.node(&hash) {
        Ok(Message::Leaf { key, value }) if known.is_prefix_of(&key) && value != [0; 32] => {
            (key, Kind::Leaf { value })
        }
        Ok(Message::Branch { prefix, children })
            if start + prefix.len() < crate::LONGEST_KEY * 8 =>
        {
            let bits = 0..prefix.len();
            let path = bits.fold(known, |path, bit| path.with_bit(prefix.bit(bit)));
            let [left, right] = children;
            let left = grow(arena, messages, left, path.with_bit(false));
            let right = grow(arena, messages, right, path.with_bit(true));
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
