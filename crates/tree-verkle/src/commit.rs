//! The arithmetic of an update: leaves first, then the internal nodes from the deepest level up, each level in one batch.

use crate::{
    InternalRecord, LeafRecord, NodeChange, NodeKey, Record, StemUpdate, TreeError, TreeStats,
    plan::{Child, Leaf, OldLeaf, Plan},
    tools::{BATCH, LeafState, LeafWork, Tools},
};
use arbor_ipa::{Fr, Point, Term};
use std::ops::Range;

pub(crate) struct Commit<'a> {
    tools: Tools<'a>,
    updates: &'a [StemUpdate],
    plan: &'a Plan,
    /// Images of leaves before and after, by their index in the plan; zero where there is none.
    leaves: Vec<[Fr; 2]>,
    /// The same of internal nodes.
    internals: Vec<[Fr; 2]>,
    nodes: Vec<NodeChange>,
    stats: TreeStats,
}

impl<'a> Commit<'a> {
    pub(crate) fn new(tools: Tools<'a>, updates: &'a [StemUpdate], plan: &'a Plan) -> Self {
        Self {
            tools,
            updates,
            leaves: vec![[Fr::ZERO; 2]; plan.leaves.len()],
            internals: vec![[Fr::ZERO; 2]; plan.internals.len()],
            nodes: Vec::new(),
            stats: plan.stats,
            plan,
        }
    }

    /// The nodes written, the root's commitment, and counts.
    pub(crate) fn run(mut self) -> Result<(Vec<NodeChange>, Point, TreeStats), TreeError> {
        let count = self.plan.leaves.len();
        for start in (0..count).step_by(BATCH) {
            self.leaves(start..count.min(start + BATCH))?;
        }
        let root = self.internal_nodes();
        Ok((self.nodes, root, self.stats))
    }

    /// Computes some leaves, and writes them.
    fn leaves(&mut self, range: Range<usize>) -> Result<(), TreeError> {
        let leaves = &self.plan.leaves[range.clone()];
        let mut states = self.states(leaves)?;
        let images = &mut self.leaves[range];
        for (images, state) in images.iter_mut().zip(&states) {
            images[0] = state.image;
        }
        let changes = |leaf: &Leaf| match (leaf.update, leaf.new) {
            (Some(update), Some(_)) => &self.updates[update].changes[..],
            _ => &[],
        };
        let work: Vec<_> = leaves
            .iter()
            .map(|leaf| LeafWork {
                stem: &leaf.stem,
                changes: changes(leaf),
            })
            .collect();
        self.tools.change(&work, &mut states);
        let mut written = Vec::new();
        for ((leaf, state), images) in leaves.iter().zip(&states).zip(images) {
            let Some(key) = leaf.new else { continue };
            images[1] = state.image;
            let record = LeafRecord {
                stem: leaf.stem,
                suffixes: leaf.suffixes,
                halves: state.halves,
                commitment: state.commitment,
                image: Some(state.image),
            };
            written.push((key, Record::Leaf(record)));
            self.stats.leaf(&leaf.suffixes);
        }
        self.write(&written);
        Ok(())
    }

    /// The leaves as they were.
    fn states(&self, leaves: &[Leaf]) -> Result<Vec<LeafState>, TreeError> {
        let mut states = vec![LeafState::NEW; leaves.len()];
        let mut stored: Vec<usize> = Vec::new();
        let mut records: Vec<LeafRecord> = Vec::new();
        for (at, leaf) in leaves.iter().enumerate() {
            match &leaf.old {
                None => {}
                Some((_, OldLeaf::Known(state))) => states[at] = **state,
                Some((key, OldLeaf::Stored(record))) => {
                    let key = *key;
                    let record = Record::leaf(&key, record)
                        .map_err(|error| TreeError::Record { key, error })?;
                    stored.push(at);
                    records.push(record);
                }
            }
        }
        for (at, state) in stored.into_iter().zip(self.tools.load(&records)) {
            states[at] = state;
        }
        Ok(states)
    }

    /// Computes and writes the internal nodes; the root's commitment.
    fn internal_nodes(&mut self) -> Point {
        // The images of all nodes as they were, in one batch.
        let nodes = &self.plan.internals;
        let unknown: Vec<usize> = (0..nodes.len())
            .filter(|&at| nodes[at].old.1.is_none())
            .collect();
        let points: Vec<_> = unknown.iter().map(|&at| nodes[at].old.0).collect();
        for (&at, image) in unknown.iter().zip(self.tools.images(&points)) {
            self.internals[at][0] = image;
        }
        for (images, node) in self.internals.iter_mut().zip(nodes) {
            if let Some(image) = node.old.1 {
                images[0] = image;
            }
        }
        let mut written = Vec::new();
        let mut root = nodes.first().map_or(Point::IDENTITY, |root| root.old.0);
        for level in self.plan.levels.iter().rev() {
            let changes = |at: &usize| nodes[*at].stays && !nodes[*at].slots.is_empty();
            let level: Vec<usize> = level.iter().copied().filter(changes).collect();
            let lists: Vec<Vec<Term>> = level.iter().map(|&at| self.terms(at)).collect();
            let mut points = self.tools.committer.sums(&lists);
            for (point, &at) in points.iter_mut().zip(&level) {
                *point += nodes[at].old.0;
            }
            for ((&at, image), &commitment) in
                level.iter().zip(self.tools.images(&points)).zip(&points)
            {
                self.internals[at][1] = image;
                let node = &nodes[at];
                if node.key == NodeKey::ROOT {
                    root = commitment;
                }
                if !node.is_empty() {
                    let record = InternalRecord {
                        leaves: node.leaves,
                        internals: node.internals,
                        commitment,
                        image: Some(image),
                    };
                    written.push((node.key, Record::Internal(record)));
                }
            }
        }
        self.stats.internals_written += written.len();
        self.write(&written);
        root
    }

    /// What its children's changes add to an internal node.
    fn terms(&self, at: usize) -> Vec<Term> {
        let image = |child: Child, when: usize| match child {
            Child::Nothing => Fr::ZERO,
            Child::Leaf(at) => self.leaves[at][when],
            Child::Internal(at) => self.internals[at][when],
        };
        let slots = self.plan.internals[at].slots.iter();
        slots
            .map(|slot| {
                (
                    usize::from(slot.byte),
                    image(slot.new, 1) - image(slot.old, 0),
                )
            })
            .collect()
    }

    fn write(&mut self, written: &[(NodeKey, Record)]) {
        let records = self.tools.records(written);
        let changes = written
            .iter()
            .zip(records)
            .map(|((key, _), record)| NodeChange {
                key: *key,
                record: Some(record),
            });
        self.nodes.extend(changes);
    }
}
