//! Hashes of the nodes that have changed, those of one height together.

use arbor_cpu::threads::prelude::*;

use crate::arena::{Arena, Id, Kind};
use crate::node_hash::{NodeHash, NodeKind};
use crate::{Hash, TreeStats};

/// Messages that a thread hashes together.
const MESSAGES_OF_A_THREAD: usize = 1 << 11;

/// Nodes to be hashed, by height: each after its children.
#[derive(Default)]
pub(crate) struct Heights(Vec<Vec<Id>>);

impl Heights {
    fn put(&mut self, height: usize, id: Id) {
        if self.0.len() <= height {
            self.0.resize_with(height + 1, Vec::new);
        }
        self.0[height].push(id);
    }
}

/// Finds the nodes to be hashed below a node that `start` bits lead to. A node under another branch
/// than before may have another hash. If it has not been read, its hash cannot be computed: such
/// nodes are put into `unread`.
///
/// Returns the height, 0 for a node with a known hash.
pub(crate) fn find_dirty<H: NodeHash>(
    arena: &mut Arena,
    id: Id,
    start: usize,
    heights: &mut Heights,
    unread: &mut Vec<Id>,
) -> usize {
    let node = arena.get_mut(id);
    let kind = match node.kind {
        Kind::Leaf { .. } => NodeKind::Leaf,
        Kind::Branch(_) | Kind::Unread | Kind::Unknown => NodeKind::Branch,
    };
    let before = usize::from(node.start);
    let is_moved = before != start && H::is_moved(kind, node.path.len(), [before, start]);
    match node.kind {
        Kind::Leaf { .. } => {
            node.start = start as u16;
            node.is_dirty |= is_moved;
            if !node.is_dirty {
                return 0;
            }
            heights.put(0, id);
            1
        }
        Kind::Branch(children) => {
            node.start = start as u16;
            node.is_dirty |= is_moved;
            if !node.is_dirty {
                return 0;
            }
            let below = node.path.len() + 1;
            let height = children
                .into_iter()
                .map(|child| find_dirty::<H>(arena, child, below, heights, unread))
                .fold(0, usize::max);
            heights.put(height, id);
            height + 1
        }
        Kind::Unread | Kind::Unknown => {
            match is_moved {
                true => unread.push(id),
                false => node.start = start as u16,
            }
            0
        }
    }
}

/// Hashes nodes, the lowest first.
pub(crate) fn hash<H: NodeHash>(
    arena: &mut Arena,
    hash: H,
    heights: Heights,
    stats: &mut TreeStats,
) {
    for ids in heights.0 {
        let some = |ids: &[Id]| digests(arena, hash, ids);
        let digests: Vec<Hash> = match ids.len() > 2 * MESSAGES_OF_A_THREAD {
            true => {
                let parts: Vec<Vec<Hash>> =
                    ids.par_chunks(MESSAGES_OF_A_THREAD).map(some).collect();
                parts.concat()
            }
            false => some(&ids),
        };
        for (id, digest) in ids.into_iter().zip(digests) {
            let node = arena.get_mut(id);
            node.hash = digest;
            node.is_dirty = false;
            stats.calls += H::calls(node.path.len(), usize::from(node.start));
            match node.kind {
                Kind::Leaf { .. } => stats.leaf_hashes += 1,
                _ => stats.branch_hashes += 1,
            }
        }
    }
}

fn digests<H: NodeHash>(arena: &Arena, hash: H, ids: &[Id]) -> Vec<Hash> {
    hash.hash_nodes(ids.iter().filter_map(|id| arena.view(*id)))
}
