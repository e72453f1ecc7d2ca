//! What a set of updates does to the shape of a tree: which nodes change, come, go and move. No point is computed here.
//!
//! From the root down, a level at a time, the nodes on the way to all stems are read in one batch. Where the way ends, in nothing or in a leaf, the
//! stems that have values afterwards decide what stands there: nothing, one leaf, or internal nodes down to where the stems part. Then, from the deepest
//! level up, an internal node that is left with nothing goes, and one that is left with one leaf is replaced by it.

use crate::{
    ByteSet, InternalRecord, NodeKey, NodeReader, Record, RecordError, Stem, StemUpdate, TreeError,
    TreeStats,
    record::{Head, Kept},
    tools::LeafState,
};
use arbor_ipa::{Point, Ratio, ValueChange};
use std::ops::Range;
use std::sync::Arc;

/// What hangs under a byte of an internal node, by its index in the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Child {
    Nothing,
    Leaf(usize),
    Internal(usize),
}

/// A byte of an internal node under which something changes.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) byte: u8,
    pub(crate) old: Child,
    pub(crate) new: Child,
}

/// Where nodes come from: a store's records, or the nodes that a proof tells of.
pub(crate) trait Source: Sync {
    /// The nodes at these places, in their order.
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Node>>, TreeError>;
}

/// A node as it was.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A record as it is stored.
    Stored(Arc<[u8]>),
    /// An internal node that is known in part: not all its children are.
    Part(InternalRecord),
    /// A leaf that is known in part: its stem, suffixes that it has as far as they were asked for, and what changes of those need.
    PartLeaf(Stem, ByteSet, Box<LeafState>),
}

/// A store's records as a source.
pub(crate) struct Stored<R>(pub(crate) R);

impl<R: NodeReader> Source for Stored<R> {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Node>>, TreeError> {
        let records = self.0.nodes(keys)?.into_iter();
        Ok(records.map(|record| record.map(Node::Stored)).collect())
    }
}

/// The root as it was.
pub(crate) struct Root {
    /// None of an empty tree.
    record: Option<InternalRecord>,
    /// Whether all its children are known.
    whole: bool,
}

impl Root {
    /// Reads it.
    pub(crate) fn read(source: &impl Source) -> Result<Self, TreeError> {
        let key = NodeKey::ROOT;
        let (record, whole) = match source.nodes(&[key])?.pop().flatten() {
            None => (None, true),
            Some(Node::Part(record)) => (Some(record), false),
            Some(Node::Stored(record)) => {
                let record = Record::internal(&key, &record);
                let record = record.map_err(|error| TreeError::Record { key, error })?;
                (Some(record), true)
            }
            Some(Node::PartLeaf(..)) => {
                let error = RecordError::Kind("a leaf, not an internal node");
                return Err(TreeError::Record { key, error });
            }
        };
        Ok(Self { record, whole })
    }

    /// Whether there was one.
    pub(crate) fn existed(&self) -> bool {
        self.record.is_some()
    }

    /// Its commitment: of none the identity.
    pub(crate) fn commitment(&self) -> Point {
        self.record
            .map_or(Point::IDENTITY, |record| record.commitment)
    }

    /// The root in a plan.
    pub(crate) fn node(&self) -> Internal {
        match &self.record {
            None => Internal::new(NodeKey::ROOT),
            Some(record) => Internal::known(NodeKey::ROOT, record, self.whole),
        }
    }
}

/// How a leaf was.
#[derive(Debug)]
pub(crate) enum OldLeaf {
    Stored(Arc<[u8]>),
    Known(Box<LeafState>),
}

/// An internal node on the way to a change.
#[derive(Debug)]
pub(crate) struct Internal {
    pub(crate) key: NodeKey,
    /// Its commitment; of a new node the identity.
    pub(crate) old: Kept,
    /// Whether it was there before.
    existed: bool,
    /// Whether all its children are known.
    whole: bool,
    /// Its parent, and the slot there.
    parent: Option<(usize, usize)>,
    /// Children after the update.
    pub(crate) leaves: ByteSet,
    pub(crate) internals: ByteSet,
    pub(crate) slots: Vec<Slot>,
    /// Whether it is there afterwards.
    pub(crate) stays: bool,
}

impl Internal {
    pub(crate) fn set_child(&mut self, byte: u8, child: Child) {
        self.leaves.set(byte, matches!(child, Child::Leaf(_)));
        self.internals
            .set(byte, matches!(child, Child::Internal(_)));
    }
}

/// A leaf that changes, comes, goes or moves.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) stem: Stem,
    /// Index of its update.
    pub(crate) update: Option<usize>,
    /// At which depth it was, and how.
    old: Option<(u8, OldLeaf)>,
    /// At which depth it is afterwards.
    new: Option<u8>,
    /// Its suffixes afterwards, as far as they are known.
    pub(crate) suffixes: ByteSet,
    /// Whether it may have others.
    unseen: bool,
}

/// All nodes that an update touches below some of the root's children, and the root, the first of the internal ones.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) internals: Vec<Internal>,
    pub(crate) leaves: Vec<Leaf>,
    /// Internal nodes by depth.
    pub(crate) levels: Vec<Vec<usize>>,
    pub(crate) stats: TreeStats,
}

/// A node to be read.
struct Wanted {
    key: NodeKey,
    /// Its parent's index in the plan.
    parent: usize,
    /// The updates below it.
    updates: Range<usize>,
}

/// Indices of the plan's leaves with their stems, ascending, for placing.
type Alive<'a> = &'a [usize];

/// Plans updates, whose stems and suffixes ascend, and each of which changes something.
pub(crate) fn plan(
    source: &impl Source,
    root: &Root,
    updates: &[StemUpdate],
) -> Result<Plan, TreeError> {
    let mut plan = Plan {
        leaves: Vec::with_capacity(updates.len()),
        levels: vec![Vec::new(); NodeKey::MAX_DEPTH],
        ..Plan::default()
    };
    let mut wanted = Vec::new();
    let root = plan.add_internal(root.node());
    plan.visit(updates, root, 0..updates.len(), &mut wanted)?;
    while !wanted.is_empty() {
        let keys: Vec<_> = wanted.iter().map(|wanted| wanted.key).collect();
        let nodes = source.nodes(&keys)?;
        let mut next = Vec::new();
        for (wanted, node) in wanted.into_iter().zip(nodes) {
            plan.arrive(updates, wanted, node, &mut next)?;
        }
        wanted = next;
    }
    plan.collapse(source)?;
    Ok(plan)
}

impl Plan {
    /// Takes in a node that was read.
    fn arrive(
        &mut self,
        updates: &[StemUpdate],
        wanted: Wanted,
        node: Option<Node>,
        next: &mut Vec<Wanted>,
    ) -> Result<(), TreeError> {
        let Wanted {
            key,
            parent,
            updates: range,
        } = wanted;
        let node = node.ok_or(TreeError::Missing(key))?;
        let arrived = Arrived::new(&key, node).map_err(|error| TreeError::Record { key, error })?;
        let misplaced = TreeError::Record {
            key,
            error: RecordError::Kind("not what its parent says"),
        };
        match arrived {
            Arrived::Leaf(leaf) => {
                self.stats.leaves_read += 1;
                if !self.internals[parent].leaves.has(last(&key)) {
                    return Err(misplaced);
                }
                self.settle(updates, parent, &key, range, Some(leaf))
            }
            Arrived::Internal(node) => {
                self.stats.internals_read += 1;
                let index = self.add_internal(node);
                if !self.internals[parent].internals.has(last(&key)) {
                    return Err(misplaced);
                }
                let child = Child::Internal(index);
                let slot = self.add_slot(parent, last(&key), child, child);
                self.internals[index].parent = Some((parent, slot));
                self.visit(updates, index, range, next)
            }
        }
    }

    /// Shares an internal node's updates among its children.
    fn visit(
        &mut self,
        updates: &[StemUpdate],
        index: usize,
        range: Range<usize>,
        next: &mut Vec<Wanted>,
    ) -> Result<(), TreeError> {
        let node = &mut self.internals[index];
        node.slots.reserve_exact(range.len().min(256));
        let key = node.key;
        let byte_of = |update: &StemUpdate| update.stem[key.depth()];
        let mut start = range.start;
        while start < range.end {
            let byte = byte_of(&updates[start]);
            let same = updates[start..range.end].partition_point(|update| byte_of(update) == byte);
            let below = start..start + same;
            start = below.end;
            let node = &self.internals[index];
            if node.internals.has(byte) || node.leaves.has(byte) {
                next.push(Wanted {
                    key: key.child(byte),
                    parent: index,
                    updates: below,
                });
            } else {
                self.settle(updates, index, &key.child(byte), below, None)?;
            }
        }
        Ok(())
    }

    /// Decides what hangs at a place where nothing or a leaf was.
    fn settle(
        &mut self,
        updates: &[StemUpdate],
        parent: usize,
        key: &NodeKey,
        range: Range<usize>,
        displaced: Option<Leaf>,
    ) -> Result<(), TreeError> {
        let mut before = Child::Nothing;
        let mut alive = Vec::with_capacity(range.len() + 1);
        let mut displaced = displaced;
        for index in range {
            let update = &updates[index];
            if let Some(leaf) = displaced.take_if(|leaf| leaf.stem < update.stem) {
                before = self.add_leaf(leaf, &mut alive);
            }
            let same = displaced.take_if(|leaf| leaf.stem == update.stem);
            let existed = same.is_some();
            let mut leaf = same.unwrap_or_else(|| Leaf::new(update.stem));
            leaf.update = Some(index);
            change_suffixes(&mut leaf.suffixes, update)?;
            let child = self.add_leaf(leaf, &mut alive);
            if existed {
                before = child;
            }
        }
        if let Some(leaf) = displaced {
            before = self.add_leaf(leaf, &mut alive);
        }
        let after = self.place(*key, &alive);
        let slot = self.add_slot(parent, last(key), before, after);
        if let Child::Internal(index) = after {
            self.internals[index].parent = Some((parent, slot));
        }
        Ok(())
    }

    /// Puts leaves, those that have values, below a place where nothing is.
    fn place(&mut self, key: NodeKey, alive: Alive) -> Child {
        match alive {
            [] => Child::Nothing,
            &[leaf] => {
                self.leaves[leaf].new = Some(key.depth() as u8);
                Child::Leaf(leaf)
            }
            many => {
                let mut node = Internal::new(key);
                node.slots.reserve_exact(many.len().min(256));
                let index = self.add_internal(node);
                let mut rest = many;
                while let Some(&first) = rest.first() {
                    let byte = self.leaves[first].stem[key.depth()];
                    let same =
                        rest.partition_point(|&leaf| self.leaves[leaf].stem[key.depth()] == byte);
                    let (below, others) = rest.split_at(same);
                    let child = self.place(key.child(byte), below);
                    let slot = self.add_slot(index, byte, Child::Nothing, child);
                    if let Child::Internal(child) = child {
                        self.internals[child].parent = Some((index, slot));
                    }
                    rest = others;
                }
                Child::Internal(index)
            }
        }
    }

    /// From the deepest level up: takes away internal nodes with nothing below, and puts a leaf that is left alone in its parent's place.
    fn collapse(&mut self, source: &impl Source) -> Result<(), TreeError> {
        for depth in (1..NodeKey::MAX_DEPTH).rev() {
            let lonely: Vec<usize> = self.levels[depth]
                .iter()
                .copied()
                .filter(|&index| {
                    let node = &self.internals[index];
                    node.existed
                        && node.whole
                        && node.internals.is_empty()
                        && node.leaves.len() <= 1
                })
                .collect();
            // The one leaf that is left may not have been touched, and then it must be read.
            let mut unread = Vec::new();
            for &index in &lonely {
                let node = &self.internals[index];
                let only = node.leaves.first();
                let slot = only.and_then(|byte| node.slots.iter().find(|slot| slot.byte == byte));
                let child = slot.map_or(Child::Nothing, |slot| slot.new);
                if let (Some(byte), None) = (only, slot) {
                    unread.push((index, node.key.child(byte)));
                } else {
                    self.replace(index, child);
                }
            }
            let keys: Vec<_> = unread.iter().map(|(_, key)| *key).collect();
            let nodes = if keys.is_empty() {
                Vec::new()
            } else {
                source.nodes(&keys)?
            };
            for ((index, key), node) in unread.into_iter().zip(nodes) {
                let node = node.ok_or(TreeError::Missing(key))?;
                let arrived =
                    Arrived::new(&key, node).map_err(|error| TreeError::Record { key, error })?;
                let Arrived::Leaf(leaf) = arrived else {
                    let error = RecordError::Kind("not what its parent says");
                    return Err(TreeError::Record { key, error });
                };
                self.stats.leaves_read += 1;
                let child = self.add_leaf(leaf, &mut Vec::new());
                self.replace(index, child);
            }
        }
        Ok(())
    }

    /// Takes away an internal node, leaving a leaf of it or nothing in its place.
    fn replace(&mut self, index: usize, child: Child) {
        let node = &mut self.internals[index];
        node.stays = false;
        let key = node.key;
        if let Child::Leaf(leaf) = child {
            self.leaves[leaf].new = Some(key.depth() as u8);
        }
        if let Some((parent, slot)) = node.parent {
            let parent = &mut self.internals[parent];
            parent.slots[slot].new = child;
            parent.set_child(last(&key), child);
        }
    }

    fn add_internal(&mut self, node: Internal) -> usize {
        let index = self.internals.len();
        self.levels[node.key.depth()].push(index);
        self.internals.push(node);
        index
    }

    fn add_leaf(&mut self, leaf: Leaf, alive: &mut Vec<usize>) -> Child {
        let index = self.leaves.len();
        if leaf.unseen || !leaf.suffixes.is_empty() {
            alive.push(index);
        }
        self.leaves.push(leaf);
        Child::Leaf(index)
    }

    fn add_slot(&mut self, node: usize, byte: u8, old: Child, new: Child) -> usize {
        let node = &mut self.internals[node];
        node.set_child(byte, new);
        node.slots.push(Slot { byte, old, new });
        node.slots.len() - 1
    }
}

impl Internal {
    fn new(key: NodeKey) -> Self {
        Self {
            key,
            old: Kept::Ratio(Ratio::IDENTITY),
            existed: false,
            whole: true,
            parent: None,
            leaves: ByteSet::EMPTY,
            internals: ByteSet::EMPTY,
            slots: Vec::new(),
            stays: true,
        }
    }

    fn old(key: NodeKey, (leaves, internals, old): (ByteSet, ByteSet, Kept), whole: bool) -> Self {
        Self {
            old,
            existed: true,
            whole,
            leaves,
            internals,
            ..Self::new(key)
        }
    }

    fn known(key: NodeKey, record: &InternalRecord, whole: bool) -> Self {
        let kept = Kept::Point(record.commitment, record.image);
        Self::old(key, (record.leaves, record.internals, kept), whole)
    }

    /// Whether it has no children.
    pub(crate) fn is_empty(&self) -> bool {
        self.leaves.is_empty() && self.internals.is_empty()
    }

    /// Whether it is made where nothing or one leaf was. The root stands for nothing, too.
    pub(crate) fn is_new(&self) -> bool {
        !self.existed && self.key != NodeKey::ROOT
    }

    /// Whether its record goes, unless another node is written in its place.
    pub(crate) fn goes(&self) -> bool {
        self.existed && (!self.stays || self.is_empty())
    }
}

impl Leaf {
    fn new(stem: Stem) -> Self {
        Self {
            stem,
            update: None,
            old: None,
            new: None,
            suffixes: ByteSet::EMPTY,
            unseen: false,
        }
    }

    /// Where it was, and how.
    pub(crate) fn old(&self) -> Option<(NodeKey, &OldLeaf)> {
        let (depth, old) = self.old.as_ref()?;
        Some((NodeKey::on_way(&self.stem, usize::from(*depth)), old))
    }

    /// Where it is afterwards.
    pub(crate) fn new_key(&self) -> Option<NodeKey> {
        let depth = self.new?;
        Some(NodeKey::on_way(&self.stem, usize::from(depth)))
    }

    /// Whether it was there before.
    pub(crate) fn existed(&self) -> bool {
        self.old.is_some()
    }

    /// Whether it is there afterwards.
    pub(crate) fn stays(&self) -> bool {
        self.new.is_some()
    }
}

/// A node that was read.
enum Arrived {
    Internal(Internal),
    Leaf(Leaf),
}

impl Arrived {
    fn new(key: &NodeKey, node: Node) -> Result<Self, RecordError> {
        let leaf = |stem, suffixes, old| {
            let unseen = matches!(old, OldLeaf::Known(_));
            Self::Leaf(Leaf {
                old: Some((key.depth() as u8, old)),
                suffixes,
                unseen,
                ..Leaf::new(stem)
            })
        };
        Ok(match node {
            Node::Stored(record) => match Head::decode(key, &record)? {
                Head::Leaf(stem, suffixes) => leaf(stem, suffixes, OldLeaf::Stored(record)),
                Head::Internal => Self::Internal(Internal::old(
                    *key,
                    InternalRecord::parts(key, &record)?,
                    true,
                )),
            },
            Node::Part(record) => Self::Internal(Internal::known(*key, &record, false)),
            Node::PartLeaf(stem, suffixes, state) => leaf(stem, suffixes, OldLeaf::Known(state)),
        })
    }
}

fn change_suffixes(suffixes: &mut ByteSet, update: &StemUpdate) -> Result<(), TreeError> {
    for ValueChange { suffix, old, new } in &update.changes {
        if suffixes.has(*suffix) != old.is_some() {
            return Err(TreeError::Old {
                stem: update.stem,
                suffix: *suffix,
                said: old.is_some(),
            });
        }
        suffixes.set(*suffix, new.is_some());
    }
    Ok(())
}

/// The last byte on the way to a place that is not the root.
fn last(key: &NodeKey) -> u8 {
    key.path().last().copied().unwrap_or(0)
}
