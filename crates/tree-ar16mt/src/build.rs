//! Building a tree from all its leaves.

use std::sync::Arc;

use arbor_tree::{Path, ReadError};

use crate::apply::{apply_below, empty_root};
use crate::row::height;
use crate::work::{Batch, Done, Place, Work};
use crate::{
    Child, Entry, Hash, Hasher, Leaf, LeafUpdate, NodeChange, Reader, StoredLeaf, TreeError,
};

/// Takes a node's path and record.
type Sink<'a> = &'a mut dyn FnMut(Path, Arc<[u8]>);

/// There is nothing yet.
struct Nothing;

impl Reader for Nothing {
    fn nodes(&self, paths: &[Path]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        Ok(vec![None; paths.len()])
    }

    fn leaves_below(&self, paths: &[Path]) -> Result<Vec<Option<StoredLeaf>>, ReadError> {
        Ok(vec![None; paths.len()])
    }
}

/// A subtree built apart from the rest of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    path: Path,
    /// What its leaves come to; `None` without leaves.
    top: Option<Child>,
}

/// Nibbles of the paths of the parts that [`build`] makes: their leaves are few enough for a core's caches.
const APART: usize = 3;

/// Builds a tree from all its leaves, ascending by key, and returns its root. Each node goes to `sink` with its record.
///
/// # Errors
/// Keys that do not ascend, an index 0.
pub fn build<H: Hasher>(
    hasher: H,
    leaves: impl IntoIterator<Item = (Hash, Entry)>,
    sink: Sink<'_>,
) -> Result<Hash, TreeError> {
    let leaves: Vec<(Hash, Entry)> = leaves.into_iter().collect();
    let path = |key: &Hash| Path::prefix_of_key(key, APART);
    let mut parts = Vec::new();
    for leaves in leaves.chunk_by(|(a, _), (b, _)| path(a) == path(b)) {
        let leaves = (path(&leaves[0].0), leaves.iter().copied());
        parts.push(build_part(hasher, leaves, sink)?);
    }
    for length in (0..APART).rev() {
        let above = |part: &Part| {
            let mut path = part.path;
            path.truncate(length);
            path
        };
        let siblings = parts.chunk_by(|a, b| above(a) == above(b));
        let joined = siblings.map(|parts| join(hasher, above(&parts[0]), parts, sink));
        parts = joined.collect::<Result<_, _>>()?;
    }
    Ok(parts
        .first()
        .map_or(empty_root(hasher), |part| part.hash(hasher)))
}

/// Builds the subtree at a path from its leaves, ascending by key: so that cores, or machines, share a tree by ranges of keys. Memory grows with the leaves.
///
/// # Errors
/// As [`build`]; a key that does not begin with the path.
pub fn build_part<H: Hasher>(
    hasher: H,
    (path, leaves): (Path, impl IntoIterator<Item = (Hash, Entry)>),
    sink: Sink<'_>,
) -> Result<Part, TreeError> {
    let update = |(key, entry)| LeafUpdate {
        key,
        existed: false,
        new: Some(entry),
    };
    let updates: Vec<LeafUpdate> = leaves.into_iter().map(update).collect();
    let (top, nodes) = apply_below(&Nothing, hasher, (path, None), &updates)?;
    give(nodes, sink);
    Ok(Part { path, top })
}

/// Joins the parts right below a path, ascending, to the one there; none are missing but those without leaves.
///
/// # Errors
/// Parts that do not ascend, or are elsewhere.
pub fn join<H: Hasher>(
    hasher: H,
    path: Path,
    parts: &[Part],
    sink: Sink<'_>,
) -> Result<Part, TreeError> {
    let is_right_below =
        |part: &Part| part.path.len() == path.len() + 1 && part.path.starts_with(&path);
    let follows = |(at, part): &(usize, &Part)| *at == 0 || parts[at - 1].path < part.path;
    let mut numbered = parts.iter().enumerate();
    if let Some((_, other)) = numbered.find(|part| !is_right_below(part.1) || !follows(part)) {
        return Err(TreeError::Parts(other.path));
    }
    let batch = Batch {
        updates: &[],
        reads: &[],
        unread: false,
        counted: false,
    };
    let mut work = Work::new(&Nothing, hasher, batch, (None, path), 0);
    let node = work.add_node(Place::Top, path);
    for part in parts {
        work.put(Place::Below(node, part.path.nibble(path.len())), part.top);
    }
    work.hash();
    let Done { top, nodes, .. } = work.finish();
    give(nodes, sink);
    Ok(Part { path, top })
}

fn give(nodes: Vec<NodeChange>, sink: Sink<'_>) {
    for node in nodes {
        if let Some(record) = node.record {
            sink(node.path, record);
        }
    }
}

impl Part {
    /// The bytes of a part, to be joined by another process: the number of nibbles of its path, a byte for each of them, and nothing
    /// without leaves; else a byte 0 and the hash of a node, or a byte 1 and a leaf's hash, fold and stem.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.path.len() as u8];
        out.extend((0..self.path.len()).map(|place| self.path.nibble(place)));
        match &self.top {
            None => {}
            Some(Child::Internal(hash)) => {
                out.push(0);
                out.extend_from_slice(hash);
            }
            Some(Child::Leaf(leaf)) => {
                out.push(1);
                out.extend_from_slice(&leaf.hash);
                out.extend_from_slice(&leaf.fold);
                out.extend_from_slice(&leaf.stem);
            }
        }
        out
    }

    /// Reads the bytes of a part; `None` if they are none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first()?;
        let (nibbles, rest) = rest.split_at_checked(usize::from(*length))?;
        if nibbles.len() > Path::MAX || nibbles.iter().any(|nibble| *nibble > 15) {
            return None;
        }
        let top = match rest.split_first() {
            None => None,
            Some((0, hash)) => Some(Child::Internal(hash.try_into().ok()?)),
            Some((1, leaf)) => {
                let (hash, rest) = leaf.split_first_chunk()?;
                let (fold, stem) = rest.split_first_chunk()?;
                Some(Child::Leaf(Leaf {
                    hash: *hash,
                    fold: *fold,
                    stem: stem.try_into().ok()?,
                }))
            }
            Some(_) => return None,
        };
        let path = Path::from_nibbles(nibbles);
        Some(Self { path, top })
    }

    /// The hash at its top: the tree's root, if it is the part at the root.
    pub fn hash<H: Hasher>(&self, hasher: H) -> Hash {
        let empty = || hasher.empty()[height(self.path.len())];
        self.top.map_or_else(empty, |child| *child.hash())
    }
}
