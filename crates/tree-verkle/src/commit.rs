//! The arithmetic of an update: leaves first, then the internal nodes from the deepest level up, each level in one batch.

use crate::{
    NodeChange, NodeKey, Record, Settings, StemUpdate, TreeError, TreeStats,
    plan::{Child, Plan},
    record::{InternalRecord, LeafRecord, encode},
};
use arbor_ipa::{Committer, Fr, Point, Term, half_terms, leaf_terms};

/// Leaves that are computed together: enough to make inversions cheap, few enough to stay small beside the tree.
const BATCH: usize = 8192;

pub(crate) struct Commit<'a> {
    committer: &'a Committer,
    settings: &'a Settings,
    updates: &'a [StemUpdate],
    plan: &'a Plan,
    /// Images of leaves before and after, by their index in the plan; zero where there is none.
    leaves: Vec<[Fr; 2]>,
    /// The same of internal nodes.
    internals: Vec<[Fr; 2]>,
    nodes: Vec<NodeChange>,
    stats: TreeStats,
}

/// A leaf's points and images.
#[derive(Clone, Copy)]
struct LeafState {
    halves: [Point; 2],
    half_images: [Fr; 2],
    commitment: Point,
    image: Fr,
}

impl Default for LeafState {
    fn default() -> Self {
        Self {
            halves: [Point::IDENTITY; 2],
            half_images: [Fr::ZERO; 2],
            commitment: Point::IDENTITY,
            image: Fr::ZERO,
        }
    }
}

impl<'a> Commit<'a> {
    pub(crate) fn new(
        committer: &'a Committer,
        settings: &'a Settings,
        updates: &'a [StemUpdate],
        plan: &'a Plan,
    ) -> Self {
        Self {
            committer,
            settings,
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
    fn leaves(&mut self, range: std::ops::Range<usize>) -> Result<(), TreeError> {
        let mut states = self.states(range.clone())?;
        for (at, state) in range.clone().zip(&states) {
            self.leaves[at][0] = state.image;
        }
        self.change(range.clone(), &mut states);
        let mut written = Vec::new();
        for (at, state) in range.zip(&states) {
            let leaf = &self.plan.leaves[at];
            let Some(key) = leaf.new else { continue };
            self.leaves[at][1] = state.image;
            if leaf.update.is_none() && leaf.old.as_ref().is_some_and(|(old, _)| *old == key) {
                continue;
            }
            let [c1, c2] = state.half_images;
            written.push((
                key,
                Record::Leaf(LeafRecord {
                    stem: leaf.stem,
                    suffixes: leaf.suffixes,
                    halves: state.halves,
                    commitment: Some(state.commitment),
                    images: Some([c1, c2, state.image]),
                }),
            ));
            self.stats.leaves_written += 1;
            self.stats.filled[(leaf.suffixes.len() - 1)
                .checked_ilog2()
                .map_or(0, |log| log as usize + 1)] += 1;
        }
        self.write(&written);
        Ok(())
    }

    /// The leaves as they were; all zero for those that are new. Of one whose commitment and image are not both kept, and of which nothing but
    /// its image is needed, the rest may be missing.
    fn states(&self, range: std::ops::Range<usize>) -> Result<Vec<LeafState>, TreeError> {
        let mut records: Vec<(usize, LeafRecord)> = Vec::new();
        for at in range.clone() {
            if let Some((key, record)) = &self.plan.leaves[at].old {
                let record = Record::leaf(key, record)
                    .map_err(|error| TreeError::Record { key: *key, error })?;
                records.push((at - range.start, record));
            }
        }
        let mut states = vec![LeafState::default(); range.len()];
        for (at, record) in &records {
            states[*at].halves = record.halves;
        }
        // Images of the halves, where they are not kept.
        let unknown: Vec<(usize, usize)> = records
            .iter()
            .filter(|(_, record)| record.images.is_none())
            .flat_map(|&(at, record)| (0..2).map(move |half| (at, half, record.suffixes)))
            .filter(|&(_, half, suffixes)| suffixes.has_half(half))
            .map(|(at, half, _)| (at, half))
            .collect();
        let points: Vec<_> = unknown
            .iter()
            .map(|&(at, half)| states[at].halves[half])
            .collect();
        for (&(at, half), image) in unknown.iter().zip(self.images(&points)) {
            states[at].half_images[half] = image;
        }
        for (at, record) in &records {
            if let Some([c1, c2, own]) = record.images {
                states[*at].half_images = [c1, c2];
                states[*at].image = own;
            }
            if let Some(commitment) = record.commitment {
                states[*at].commitment = commitment;
            }
        }
        // Commitments, where they are not kept; then images, where they are not.
        let unknown: Vec<usize> = records
            .iter()
            .filter(|(_, record)| record.commitment.is_none())
            .map(|&(at, _)| at)
            .collect();
        let terms: Vec<_> = unknown
            .iter()
            .map(|&at| {
                leaf_terms(
                    &self.plan.leaves[range.start + at].stem,
                    states[at].half_images,
                )
            })
            .collect();
        for (&at, commitment) in unknown.iter().zip(self.committer.sums(&terms)) {
            states[at].commitment = commitment;
        }
        let unknown: Vec<usize> = records
            .iter()
            .filter(|(_, record)| record.images.is_none())
            .map(|&(at, _)| at)
            .collect();
        let points: Vec<_> = unknown.iter().map(|&at| states[at].commitment).collect();
        for (&at, image) in unknown.iter().zip(self.images(&points)) {
            states[at].image = image;
        }
        Ok(states)
    }

    /// Changes leaves by what their updates add.
    fn change(&self, range: std::ops::Range<usize>, states: &mut [LeafState]) {
        let mut halves: Vec<(usize, usize)> = Vec::new();
        let mut lists: Vec<Vec<Term>> = Vec::new();
        for at in range.clone() {
            let leaf = &self.plan.leaves[at];
            let (Some(update), Some(_)) = (leaf.update, leaf.new) else {
                continue;
            };
            let changes = &self.updates[update].changes;
            let middle = changes.partition_point(|change| change.suffix < 128);
            let (lower, upper) = changes.split_at(middle);
            for (half, changes) in [lower, upper].into_iter().enumerate() {
                if !changes.is_empty() {
                    halves.push((at - range.start, half));
                    lists.push(changes.iter().flat_map(half_terms).collect());
                }
            }
        }
        for (&(at, half), added) in halves.iter().zip(self.committer.sums(&lists)) {
            states[at].halves[half] += added;
        }
        let moved: Vec<_> = halves
            .iter()
            .map(|&(at, half)| states[at].halves[half])
            .collect();
        let mut changed: Vec<usize> = Vec::new();
        let mut lists: Vec<Vec<Term>> = Vec::new();
        for (&(at, half), image) in halves.iter().zip(self.images(&moved)) {
            let before = std::mem::replace(&mut states[at].half_images[half], image);
            if changed.last() != Some(&at) {
                changed.push(at);
                lists.push(Vec::new());
                if self.plan.leaves[range.start + at].old.is_none() {
                    let stem = &self.plan.leaves[range.start + at].stem;
                    let terms = leaf_terms(stem, [Fr::ZERO; 2]);
                    lists
                        .last_mut()
                        .expect("invariant: one was pushed")
                        .extend(&terms[..2]);
                }
            }
            let list = lists.last_mut().expect("invariant: one was pushed");
            list.push((2 + half, image - before));
        }
        for (&at, added) in changed.iter().zip(self.committer.sums(&lists)) {
            states[at].commitment += added;
        }
        let points: Vec<_> = changed.iter().map(|&at| states[at].commitment).collect();
        for (&at, image) in changed.iter().zip(self.images(&points)) {
            states[at].image = image;
        }
    }

    /// Computes and writes the internal nodes; the root's commitment.
    fn internal_nodes(&mut self) -> Point {
        // The images of all nodes as they were, in one batch.
        let unknown: Vec<usize> = (0..self.plan.internals.len())
            .filter(|&at| self.plan.internals[at].old.1.is_none())
            .collect();
        let points: Vec<_> = unknown
            .iter()
            .map(|&at| self.plan.internals[at].old.0)
            .collect();
        for (&at, image) in unknown.iter().zip(self.images(&points)) {
            self.internals[at][0] = image;
        }
        for (images, node) in self.internals.iter_mut().zip(&self.plan.internals) {
            if let Some(image) = node.old.1 {
                images[0] = image;
            }
        }
        let mut written = Vec::new();
        let mut root = self
            .plan
            .internals
            .first()
            .map_or(Point::IDENTITY, |root| root.old.0);
        for depth in (0..NodeKey::MAX_DEPTH).rev() {
            let level: Vec<usize> = self.plan.levels[depth]
                .iter()
                .copied()
                .filter(|&at| {
                    self.plan.internals[at].stays && !self.plan.internals[at].slots.is_empty()
                })
                .collect();
            let lists: Vec<Vec<Term>> = level.iter().map(|&at| self.terms(at)).collect();
            let mut points = self.committer.sums(&lists);
            for (point, &at) in points.iter_mut().zip(&level) {
                *point += self.plan.internals[at].old.0;
            }
            for ((&at, image), &commitment) in level.iter().zip(self.images(&points)).zip(&points) {
                self.internals[at][1] = image;
                let node = &self.plan.internals[at];
                if depth == 0 {
                    root = commitment;
                }
                if !(node.leaves.is_empty() && node.internals.is_empty()) {
                    written.push((
                        node.key,
                        Record::Internal(InternalRecord {
                            leaves: node.leaves,
                            internals: node.internals,
                            commitment,
                            image: Some(image),
                        }),
                    ));
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

    fn images(&self, points: &[Point]) -> Vec<Fr> {
        if self.settings.batched_images {
            Point::map_to_field_batch(points)
        } else {
            points.iter().map(Point::map_to_field).collect()
        }
    }

    fn write(&mut self, written: &[(NodeKey, Record)]) {
        let records = encode(self.settings.form, self.settings.batched_affine, written);
        let changes = written
            .iter()
            .zip(records)
            .map(|((key, _), record)| NodeChange {
                key: *key,
                record: Some(record.into()),
            });
        self.nodes.extend(changes);
    }
}
