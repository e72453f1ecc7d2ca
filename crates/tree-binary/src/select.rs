//! The nodes of a tree that some keys lead to.

use std::collections::{BTreeSet, HashSet};

use foldhash::fast::RandomState;

use crate::apply::check;
use crate::arena::{Id, Kind};
use crate::merge::merge;
use crate::multiproof::Multiproof;
use crate::node_hash::{NodeHash, NodeView, Value};
use crate::work::Work;
use crate::{Hash, LeafUpdate, Packing, Path, Reader, TreeError};

/// Nodes of a tree, all of whose hashes were computed.
pub struct Selection<'r, R, H> {
    root: Hash,
    work: Work<'r, R, H>,
    selected: HashSet<Id, RandomState>,
}

/// Selects the nodes on the ways to keys, present or absent, in any order.
///
/// # Errors
/// [`TreeError`].
pub fn select<'r, R: Reader, H: NodeHash>(
    reader: &'r R,
    hash: H,
    packing: Packing,
    keys: &[Path],
) -> Result<Selection<'r, R, H>, TreeError> {
    let keys: BTreeSet<Path> = keys.iter().copied().collect();
    let work = read_ways(reader, hash, packing, &keys)?;
    Selection::of(work, &keys, Vec::new())
}

/// Selects the nodes that it takes to read some keys and to apply updates, ascending by key. Beside
/// the nodes on their ways these are the ones that a removal leaves alone below a branch.
///
/// # Errors
/// [`TreeError`].
pub fn select_for_updates<'r, R: Reader, H: NodeHash>(
    reader: &'r R,
    hash: H,
    packing: Packing,
    touched: &[Path],
    updates: &[LeafUpdate<H::Value>],
) -> Result<Selection<'r, R, H>, TreeError> {
    check(updates)?;
    let keys = touched.iter().copied();
    let keys: BTreeSet<Path> = keys
        .chain(updates.iter().map(|update| update.key))
        .collect();
    let mut work = read_ways(reader, hash, packing, &keys)?;
    loop {
        let moved = moved(&work, updates)?;
        let unread = moved.iter().copied();
        let unread: Vec<Id> = unread
            .filter(|id| work.arena.get(*id).kind == Kind::Unread)
            .collect();
        if unread.is_empty() {
            return Selection::of(work, &keys, moved);
        }
        work.read_branches(&unread)?;
    }
}

/// Reads the branches on the ways to keys.
fn read_ways<'r, R: Reader, H: NodeHash>(
    reader: &'r R,
    hash: H,
    packing: Packing,
    keys: &BTreeSet<Path>,
) -> Result<Work<'r, R, H>, TreeError> {
    let value = H::Value::REMOVAL;
    let ways = keys.iter().map(|key| LeafUpdate { key: *key, value });
    let mut work = Work::begin(reader, hash, packing)?;
    work.descend(&ways.collect::<Vec<_>>())?;
    Ok(work)
}

/// The nodes of a tree that updates put below another branch than before.
fn moved<R: Reader, H: NodeHash>(
    work: &Work<'_, R, H>,
    updates: &[LeafUpdate<H::Value>],
) -> Result<Vec<Id>, TreeError> {
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

impl<'r, R: Reader, H: NodeHash> Selection<'r, R, H> {
    fn of(work: Work<'r, R, H>, keys: &BTreeSet<Path>, more: Vec<Id>) -> Result<Self, TreeError> {
        let mut selection = Self {
            root: [0; 32],
            work,
            selected: more.into_iter().collect(),
        };
        let mut on_way = HashSet::<Id, RandomState>::default();
        for key in keys {
            selection.work.way(key, |id| {
                on_way.insert(id);
            });
        }
        selection.selected.extend(on_way);
        loop {
            // No stored hash is believed.
            selection.work.arena.forget_hashes();
            selection.root = selection.work.hash()?;
            let more = selection.witnesses();
            if more.is_empty() {
                return Ok(selection);
            }
            let unread = more.iter().copied();
            let unread = unread.filter(|id| selection.work.arena.get(*id).kind == Kind::Unread);
            let unread: Vec<Id> = unread.collect();
            if !unread.is_empty() {
                selection.work.read_branches(&unread)?;
            }
            selection.selected.extend(more);
        }
    }

    /// Nodes without which selected branches could be other nodes.
    fn witnesses(&self) -> Vec<Id> {
        let mut more = Vec::new();
        for id in &self.selected {
            let node = self.work.arena.get(*id);
            let Kind::Branch([left, _]) = node.kind else {
                continue;
            };
            let hash = &self.work.arena.get(left).hash;
            if H::shows_left(&node.path, hash) && !self.selected.contains(&left) {
                more.push(left);
            }
            if H::shows_leaf(&node.path, usize::from(node.start)) && !self.has_leaf_below(*id) {
                more.push(self.first_unselected(*id));
            }
        }
        more
    }

    fn has_leaf_below(&self, id: Id) -> bool {
        self.selected.contains(&id)
            && match self.work.arena.get(id).kind {
                Kind::Leaf { .. } => true,
                Kind::Branch(children) => children.into_iter().any(|id| self.has_leaf_below(id)),
                Kind::Unread | Kind::Unknown => false,
            }
    }

    /// The first node on the way to a branch's first leaf that is not selected.
    fn first_unselected(&self, id: Id) -> Id {
        match self.work.arena.get(id).kind {
            Kind::Branch([left, _]) if self.selected.contains(&id) => self.first_unselected(left),
            _ => id,
        }
    }

    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.root
    }

    /// Visits the nodes on the way of a key, from the top on: down to the leaf, or to the node that
    /// is not on the key's way any more. The key is one of those that the nodes were selected for.
    pub fn way(&self, key: &Path, mut visit: impl FnMut(NodeView<'_>)) {
        let arena = &self.work.arena;
        self.work
            .way(key, |id| arena.view(id).into_iter().for_each(&mut visit));
    }

    /// The selected nodes, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        let ids = self.selected.iter();
        ids.filter_map(|id| self.work.arena.view(*id))
    }

    /// The selected nodes as one proof.
    #[must_use]
    pub fn multiproof(&self) -> Multiproof<H> {
        Multiproof::of(&self.work.arena, &self.selected, self.work.top)
    }
}
