//! What a set of updates does to the shape of a tree: which nodes change, come, go and move. No point is computed here.
//!
//! From the root down, a level at a time, the nodes on the way to all stems are read in one batch. Where the way ends, in nothing or in a leaf, the
//! stems that have values afterwards decide what stands there: nothing, one leaf, or internal nodes down to where the stems part. Then, from the deepest
//! level up, an internal node that is left with nothing goes, and one that is left with one leaf is replaced by it.

use crate::{
    ByteSet, NodeKey, NodeReader, Record, RecordError, Stem, StemUpdate, TreeError, TreeStats,
};
use arbor_ipa::{Fr, Point, ValueChange};
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

/// An internal node on the way to a change.
#[derive(Debug)]
pub(crate) struct Internal {
    pub(crate) key: NodeKey,
    /// Commitment and kept image; of a new node the identity and zero.
    pub(crate) old: (Point, Option<Fr>),
    /// Whether it was there before.
    existed: bool,
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
    fn set_child(&mut self, byte: u8, child: Child) {
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
    /// Where it was, and its record.
    pub(crate) old: Option<(NodeKey, Arc<[u8]>)>,
    /// Where it is afterwards.
    pub(crate) new: Option<NodeKey>,
    /// Its suffixes afterwards.
    pub(crate) suffixes: ByteSet,
}

/// All nodes that an update touches.
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
    parent: Option<usize>,
    /// The updates below it.
    updates: Range<usize>,
}

/// Indices of the plan's leaves with their stems, ascending, for placing.
type Alive<'a> = &'a [usize];

/// Plans updates, whose stems and suffixes ascend, and each of which changes something.
pub(crate) fn plan(reader: &impl NodeReader, updates: &[StemUpdate]) -> Result<Plan, TreeError> {
    let mut plan = Plan {
        levels: vec![Vec::new(); NodeKey::MAX_DEPTH],
        ..Plan::default()
    };
    let mut wanted = vec![Wanted {
        key: NodeKey::ROOT,
        parent: None,
        updates: 0..updates.len(),
    }];
    while !wanted.is_empty() {
        let keys: Vec<_> = wanted.iter().map(|wanted| wanted.key).collect();
        let records = reader.nodes(&keys)?;
        let mut next = Vec::new();
        for (wanted, record) in wanted.into_iter().zip(records) {
            plan.arrive(updates, wanted, record, &mut next)?;
        }
        wanted = next;
    }
    plan.collapse(reader)?;
    Ok(plan)
}

impl Plan {
    /// Takes in a node that was read, or the absence of the root.
    fn arrive(
        &mut self,
        updates: &[StemUpdate],
        wanted: Wanted,
        record: Option<Arc<[u8]>>,
        next: &mut Vec<Wanted>,
    ) -> Result<(), TreeError> {
        let Wanted {
            key,
            parent,
            updates: range,
        } = wanted;
        let malformed = |error: RecordError| TreeError::Record { key, error };
        let decoded = record.as_ref().map(|record| Record::decode(&key, record));
        match (decoded.transpose().map_err(malformed)?, parent) {
            (None, Some(_)) => Err(TreeError::Missing(key)),
            (Some(Record::Leaf(leaf)), Some(parent)) => {
                self.stats.leaves_read += 1;
                let old = record.map(|record| (key, record));
                let displaced = Leaf {
                    stem: leaf.stem,
                    update: None,
                    old,
                    new: None,
                    suffixes: leaf.suffixes,
                };
                if !key_leads_to(&key, &leaf.stem) || !self.internals[parent].leaves.has(last(&key))
                {
                    return Err(malformed(RecordError::Kind("not what its parent says")));
                }
                self.settle(updates, parent, &key, range, Some(displaced))
            }
            (Some(Record::Leaf(_)), None) => {
                Err(malformed(RecordError::Kind("a leaf, not the root")))
            }
            (Some(Record::Internal(record)), parent) => {
                self.stats.internals_read += 1;
                if parent.is_some_and(|parent| !self.internals[parent].internals.has(last(&key))) {
                    return Err(malformed(RecordError::Kind("not what its parent says")));
                }
                let index = self.add_internal(Internal {
                    key,
                    old: (record.commitment, record.image),
                    existed: true,
                    parent: None,
                    leaves: record.leaves,
                    internals: record.internals,
                    slots: Vec::new(),
                    stays: true,
                });
                if let Some(parent) = parent {
                    let child = Child::Internal(index);
                    self.internals[index].parent =
                        Some((parent, self.add_slot(parent, last(&key), child, child)));
                }
                self.visit(updates, index, range, next)
            }
            (None, None) => {
                let root = self.add_internal(Internal::new(NodeKey::ROOT));
                self.visit(updates, root, range, next)
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
        let key = self.internals[index].key;
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
                    parent: Some(index),
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
            self.stats.values += update.changes.len();
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
                self.leaves[leaf].new = Some(key);
                Child::Leaf(leaf)
            }
            many => {
                let index = self.add_internal(Internal::new(key));
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
    fn collapse(&mut self, reader: &impl NodeReader) -> Result<(), TreeError> {
        for depth in (1..NodeKey::MAX_DEPTH).rev() {
            let lonely: Vec<usize> = self.levels[depth]
                .iter()
                .copied()
                .filter(|&index| {
                    let node = &self.internals[index];
                    node.existed && node.internals.is_empty() && node.leaves.len() <= 1
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
            let records = if keys.is_empty() {
                Vec::new()
            } else {
                reader.nodes(&keys)?
            };
            for ((index, key), record) in unread.into_iter().zip(records) {
                let record = record.ok_or(TreeError::Missing(key))?;
                let leaf = Record::leaf(&key, &record)
                    .map_err(|error| TreeError::Record { key, error })?;
                self.stats.leaves_read += 1;
                let child = self.add_leaf(
                    Leaf {
                        stem: leaf.stem,
                        update: None,
                        old: Some((key, record)),
                        new: None,
                        suffixes: leaf.suffixes,
                    },
                    &mut Vec::new(),
                );
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
            self.leaves[leaf].new = Some(key);
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
        if !leaf.suffixes.is_empty() {
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
            old: (Point::IDENTITY, Some(Fr::ZERO)),
            existed: false,
            parent: None,
            leaves: ByteSet::EMPTY,
            internals: ByteSet::EMPTY,
            slots: Vec::new(),
            stays: true,
        }
    }

    /// Whether it must be deleted if nothing else is written in its place.
    pub(crate) fn was_stored(&self) -> bool {
        self.existed
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
        }
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

fn key_leads_to(key: &NodeKey, stem: &Stem) -> bool {
    stem.starts_with(key.path())
}
