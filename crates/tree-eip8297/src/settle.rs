//! Hashes of the nodes that have changed, those of one height together.

use arbor_cpu::threads::prelude::*;

use crate::arena::{Arena, Id, Kind};
use crate::hasher::{write_branch, write_leaf};
use crate::{Hash, Hasher, TreeStats};

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

/// Finds the nodes to be hashed below a node whose prefix begins with bit `start`. A branch that is
/// under another one than before has another prefix; of those that have not been read, which are
/// put into `unread`, the message is not known.
///
/// Returns the height, 0 for a node with a known hash.
pub(crate) fn find_dirty(
    arena: &mut Arena,
    id: Id,
    start: usize,
    heights: &mut Heights,
    unread: &mut Vec<Id>,
) -> usize {
    let node = arena.get_mut(id);
    let is_moved = usize::from(node.start) != start;
    match node.kind {
        Kind::Leaf { .. } if !node.is_dirty => 0,
        Kind::Leaf { .. } => {
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
                .map(|child| find_dirty(arena, child, below, heights, unread))
                .fold(0, usize::max);
            heights.put(height, id);
            height + 1
        }
        Kind::Unread | Kind::Unknown => {
            if is_moved {
                unread.push(id);
            }
            0
        }
    }
}

/// Hashes nodes, the lowest first.
pub(crate) fn hash(arena: &mut Arena, hasher: Hasher, heights: Heights, stats: &mut TreeStats) {
    for ids in heights.0 {
        let some = |ids: &[Id]| digests(arena, hasher, ids);
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
            match node.kind {
                Kind::Leaf { .. } => stats.leaf_hashes += 1,
                _ => stats.branch_hashes += 1,
            }
        }
    }
}

fn digests(arena: &Arena, hasher: Hasher, ids: &[Id]) -> Vec<Hash> {
    let mut batch = hasher.batch();
    for id in ids {
        let node = arena.get(*id);
        batch.push_with(|message| match &node.kind {
            Kind::Leaf { value } => write_leaf(&node.path, value, message),
            Kind::Branch(children) => {
                let hashes = children.map(|child| &arena.get(child).hash);
                write_branch(&node.path, usize::from(node.start), hashes, message);
            }
            Kind::Unread | Kind::Unknown => {}
        });
    }
    batch.finish().to_vec()
}
