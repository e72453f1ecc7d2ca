//! Building a tree from all its leaves.

use std::sync::Arc;

use arbor_tree::{Path, ReadError};

use crate::apply::{part, top_hash};
use crate::work::{Batch, Done, Place, Visit, Work};
use crate::{Child, Entry, Hash, Hasher, LeafUpdate, Reader, StoredLeaf, TreeError};

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

/// The leaves of a tree whose keys begin with one byte, built apart from the rest of it.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The byte, and what the leaves come to; `None` without leaves.
    top: Option<(u8, Child)>,
}

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
    let parts = leaves.chunk_by(|(a, _), (b, _)| a[0] == b[0]);
    let parts: Result<Vec<Part>, TreeError> = parts
        .map(|leaves| build_part(hasher, leaves.iter().copied(), sink))
        .collect();
    join(hasher, parts?, sink)
}

/// Builds what the leaves of one first byte come to, as [`build`] does for all: so that cores, or machines, share a tree by ranges of keys. Memory grows with the leaves.
///
/// # Errors
/// As [`build`]; keys whose first bytes differ.
pub fn build_part<H: Hasher>(
    hasher: H,
    leaves: impl IntoIterator<Item = (Hash, Entry)>,
    sink: Sink<'_>,
) -> Result<Part, TreeError> {
    let update = |(key, entry)| LeafUpdate {
        key,
        existed: false,
        new: Some(entry),
    };
    let updates: Vec<LeafUpdate> = leaves.into_iter().map(update).collect();
    crate::apply::check(&updates)?;
    let Some(first) = updates.first().map(|update| update.key) else {
        return Ok(Part { top: None });
    };
    if let Some(other) = updates.iter().find(|update| update.key[0] != first[0]) {
        return Err(TreeError::OtherPart(other.key));
    }
    let visit = Visit {
        place: Place::Top,
        path: Path::prefix_of_key(&first, 2),
        child: None,
        updates: 0..updates.len(),
    };
    let batch = Batch {
        updates: &updates,
        reads: &[],
        unread: false,
        counted: false,
    };
    let Done { top, nodes, .. } = part(&Nothing, hasher, batch, visit)?;
    for node in nodes {
        if let Some(record) = node.record {
            sink(node.path, record);
        }
    }
    let top = top.map(|child| (first[0], child));
    Ok(Part { top })
}

/// Joins parts, ascending by their first bytes, to a tree, and returns its root.
///
/// # Errors
/// Parts that do not ascend.
pub fn join<H: Hasher>(
    hasher: H,
    parts: impl IntoIterator<Item = Part>,
    sink: Sink<'_>,
) -> Result<Hash, TreeError> {
    let mut tops: Vec<(u8, Child)> = Vec::new();
    for part in parts {
        let Some(top) = part.top else { continue };
        if tops.last().is_some_and(|last| last.0 >= top.0) {
            return Err(TreeError::Parts(top.0));
        }
        tops.push(top);
    }
    let mut work = Work::of_parts(hasher, &tops);
    work.hash();
    let Done { top, nodes, .. } = work.finish();
    for node in nodes {
        if let Some(record) = node.record {
            sink(node.path, record);
        }
    }
    Ok(top_hash(hasher, top))
}

impl<H: Hasher> Work<'static, Nothing, H> {
    /// The two uppermost levels of nodes above what begins with each byte.
    fn of_parts(hasher: H, tops: &[(u8, Child)]) -> Self {
        let batch = Batch {
            updates: &[],
            reads: &[],
            unread: false,
            counted: false,
        };
        let mut work = Self::new(&Nothing, hasher, batch, None, Path::ROOT);
        let root = work.add_node(Place::Top, Path::ROOT);
        for group in tops.chunk_by(|(a, _), (b, _)| a >> 4 == b >> 4) {
            let nibble = group[0].0 >> 4;
            let path = Path::ROOT.child(nibble);
            let node = work.add_node(Place::Below(root, nibble), path);
            for (byte, child) in group {
                work.put(Place::Below(node, byte & 15), Some(*child));
            }
        }
        work
    }
}
