//! What every computation needs: the tables and the switches.

use crate::{
    Half, LeafRecord, NodeChange, NodeKey, Record, Settings, Stem,
    changes::of_halves,
    record::{LeafParts, encode, encode_leaves},
};
use arbor_cpu::threads::prelude::*;
use arbor_field::Limbs;
use arbor_ipa::{
    Committer, NumberTerm, Point, ValueChange, difference, half_numbers, leaf_numbers,
};
use std::sync::Arc;

/// Leaves that are computed together: enough to make inversions cheap, few enough to stay small beside the tree.
pub(crate) const BATCH: usize = 8192;

/// Up to here sums of which the image is enough are made together with those of which the point is needed, so that they share inversions.
const FEW: usize = 256;

/// Points that one thread maps or converts at a time: enough to make the inversion cheap.
const SHARE: usize = 1024;

#[derive(Clone, Copy)]
pub(crate) struct Tools<'a> {
    pub(crate) committer: &'a Committer,
    pub(crate) settings: &'a Settings,
    /// Whether other threads of the pool take part, and not only the one that asks.
    spread: bool,
}

/// A leaf's points and images, these as numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafState {
    /// The identity also where nothing but the image was computed.
    pub(crate) halves: [Point; 2],
    pub(crate) half_images: [Limbs; 2],
    /// None if it is not known: then it is computed from the images of the halves when something changes, if it is needed.
    pub(crate) commitment: Option<Point>,
    pub(crate) image: Limbs,
}

impl LeafState {
    /// A leaf without values, which stands for nothing.
    pub(crate) const NEW: Self = Self {
        halves: [Point::IDENTITY; 2],
        half_images: [[0; 4]; 2],
        commitment: None,
        image: [0; 4],
    };
}

/// What is to be done to a leaf.
#[derive(Clone, Copy)]
pub(crate) struct LeafWork<'a> {
    pub(crate) stem: &'a Stem,
    /// Ascending by suffix.
    pub(crate) changes: &'a [ValueChange],
    /// Of which half the point is needed, and not its image alone.
    pub(crate) points: [bool; 2],
    /// Whether its own commitment is needed.
    pub(crate) commitment: bool,
}

/// Halves that change: which, of which leaf, and how.
type HalfChange<'a> = (usize, usize, &'a [ValueChange]);

fn terms_of<'a>(&(_, _, changes): &HalfChange<'a>) -> impl Iterator<Item = NumberTerm> + use<'a> {
    changes.iter().flat_map(half_numbers)
}

impl<'a> Tools<'a> {
    /// With all threads of the current pool.
    pub(crate) fn new(committer: &'a Committer, settings: &'a Settings) -> Self {
        Self {
            committer,
            settings,
            spread: true,
        }
    }

    /// The same, for one of several threads that each have work of their own.
    pub(crate) fn alone(self) -> Self {
        Self {
            spread: false,
            ..self
        }
    }

    /// The images of points in the scalar field, as numbers.
    pub(crate) fn images(&self, points: &[Point]) -> Vec<Limbs> {
        if !self.settings.batched_images {
            let image = |point: &Point| point.map_to_field().to_limbs();
            return points.iter().map(image).collect();
        }
        if points.len() <= SHARE || !self.spread {
            return Point::map_to_numbers(points);
        }
        let shares = points.par_chunks(SHARE);
        shares.flat_map_iter(Point::map_to_numbers).collect()
    }

    /// The images of one sum of products for each list of terms.
    fn images_of_sums<L: IntoIterator<Item = NumberTerm>>(
        &self,
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Vec<Limbs> {
        if self.settings.batched_images {
            return self.committer.images_on_one_thread(lists);
        }
        let from = vec![Point::IDENTITY; lists.len()];
        self.moved(&from, lists).1
    }

    /// Points with a sum of products added to each, and their images.
    pub(crate) fn moved<L: IntoIterator<Item = NumberTerm>>(
        &self,
        points: &[Point],
        lists: impl ExactSizeIterator<Item = L>,
    ) -> (Vec<Point>, Vec<Limbs>) {
        let (points, images) = self.committer.moved_on_one_thread(points, lists);
        if self.settings.batched_images {
            return (points, images);
        }
        let images = self.images(&points);
        (points, images)
    }

    /// Records of nodes.
    pub(crate) fn records(&self, nodes: &[(NodeKey, Record)]) -> Vec<Arc<[u8]>> {
        let Settings {
            form,
            batched_affine,
            ..
        } = *self.settings;
        if nodes.len() <= SHARE || !self.spread {
            return encode(form, batched_affine, nodes);
        }
        let share = |nodes| encode(form, batched_affine, nodes);
        nodes.par_chunks(SHARE).flat_map_iter(share).collect()
    }

    /// Records of leaves.
    pub(crate) fn leaf_records(&self, leaves: &[LeafParts]) -> Vec<Arc<[u8]>> {
        let Settings {
            form,
            batched_affine,
            ..
        } = *self.settings;
        encode_leaves(form, batched_affine, leaves)
    }

    /// Nodes that are written.
    pub(crate) fn changes(&self, nodes: &[(NodeKey, Record)]) -> Vec<NodeChange> {
        let records = nodes.iter().zip(self.records(nodes));
        let change = |((key, _), record): (&(NodeKey, Record), _)| NodeChange {
            key: *key,
            record: Some(record),
        };
        records.map(change).collect()
    }

    /// Leaves as their records say they are, all images computed that are not kept.
    pub(crate) fn load(&self, records: &[LeafRecord]) -> Vec<LeafState> {
        let state = |record: &LeafRecord| LeafState {
            commitment: record.commitment,
            image: record.image.unwrap_or_default(),
            ..LeafState::NEW
        };
        let mut states: Vec<_> = records.iter().map(state).collect();
        let (mut kept, mut points) = (Vec::new(), Vec::new());
        let (mut summed, mut few) = (Vec::new(), Vec::new());
        for (at, record) in records.iter().enumerate() {
            for (half, of_half) in record.halves.iter().enumerate() {
                match of_half {
                    Half::Nothing => {}
                    Half::Point(point) => {
                        kept.push((at, half));
                        points.push(*point);
                    }
                    Half::Values(values) => {
                        summed.push((at, half));
                        few.push(values);
                    }
                }
            }
        }
        let images = self.images(&points);
        let from = vec![Point::IDENTITY; few.len()];
        let (sums, images_of_sums) = self.moved(&from, few.iter().map(|few| few.terms()));
        let places = kept.into_iter().chain(summed);
        let points = points.into_iter().chain(sums);
        let images = images.into_iter().chain(images_of_sums);
        for (((at, half), point), image) in places.zip(points).zip(images) {
            states[at].halves[half] = point;
            states[at].half_images[half] = image;
        }
        let unknown = (0..records.len()).filter(|&at| records[at].image.is_none());
        let (kept, unknown): (Vec<usize>, _) =
            unknown.partition(|&at| records[at].commitment.is_some());
        let points = kept.iter().filter_map(|&at| records[at].commitment);
        let images = self.images(&points.collect::<Vec<_>>());
        for (at, image) in kept.into_iter().zip(images) {
            states[at].image = image;
        }
        let unknown: Vec<usize> = unknown;
        self.complete(unknown.into_iter(), |at| &records[at].stem, &mut states);
        states
    }

    /// As [`load`](Self::load), with all commitments.
    pub(crate) fn load_whole(&self, records: &[LeafRecord]) -> Vec<LeafState> {
        let mut states = self.load(records);
        self.complete(0..records.len(), |at| &records[at].stem, &mut states);
        states
    }

    /// Computes the commitments of some leaves where they are not known, and the images of these.
    fn complete<'s>(
        &self,
        which: impl Iterator<Item = usize>,
        stem: impl Fn(usize) -> &'s Stem,
        states: &mut [LeafState],
    ) {
        let unknown = which.filter(|&at| states[at].commitment.is_none());
        let unknown: Vec<usize> = unknown.collect();
        let from = vec![Point::IDENTITY; unknown.len()];
        let terms = unknown.iter();
        let terms = terms.map(|&at| leaf_numbers(stem(at), states[at].half_images));
        let (commitments, images) = self.moved(&from, terms);
        for ((at, commitment), image) in unknown.into_iter().zip(commitments).zip(images) {
            states[at].commitment = Some(commitment);
            states[at].image = image;
        }
    }

    /// Changes leaves by what their changes add: halves, their images, commitments, images; each in one batch. All leaves have a
    /// commitment afterwards if records are to keep it.
    pub(crate) fn change(&self, work: &[LeafWork], states: &mut [LeafState]) {
        let before = self.change_halves(work, states);
        // A leaf whose commitment is known gets what its halves' images add; another one is computed anew.
        let changed = before.iter().map(|(at, _)| *at);
        let (known, unknown): (Vec<_>, Vec<_>) =
            changed.partition(|at| states[*at].commitment.is_some());
        let from = known.iter().filter_map(|&at| states[at].commitment);
        let from: Vec<_> = from.collect();
        let mut changed = before.iter();
        let lists = known.iter().map(|at| {
            let before = changed.find(|(of, _)| of == at).map(|(_, before)| before);
            let before = before.expect("invariant: a leaf that changed");
            let after = &states[*at].half_images;
            [0, 1].map(|half| (2 + half, difference(&after[half], &before[half])))
        });
        let (commitments, images) = self.moved(&from, lists);
        for ((at, commitment), image) in known.into_iter().zip(commitments).zip(images) {
            states[at].commitment = Some(commitment);
            states[at].image = image;
        }
        let stem = |at: usize| work[at].stem;
        let all = self.settings.form.leaf_commitments;
        let needed = (0..work.len()).filter(|&at| all || work[at].commitment);
        self.complete(needed, stem, states);
        let unknown = unknown.into_iter();
        let unknown = unknown.filter(|&at| states[at].commitment.is_none());
        let unknown: Vec<usize> = unknown.collect();
        let lists = unknown.iter();
        let lists = lists.map(|&at| leaf_numbers(stem(at), states[at].half_images));
        for (&at, image) in unknown.iter().zip(self.images_of_sums(lists)) {
            states[at].image = image;
        }
    }

    /// Changes the halves of leaves; which leaves have any that change, ascending, and the images of their halves before.
    fn change_halves(
        &self,
        work: &[LeafWork],
        states: &mut [LeafState],
    ) -> Vec<(usize, [Limbs; 2])> {
        let mut changed = Vec::with_capacity(work.len());
        let mut imaged: Vec<HalfChange> = Vec::with_capacity(work.len());
        let (mut moved, mut from): (Vec<HalfChange>, Vec<Point>) = (Vec::new(), Vec::new());
        let (mut again, mut known): (Vec<HalfChange>, Vec<Point>) = (Vec::new(), Vec::new());
        for (
            at,
            LeafWork {
                changes, points, ..
            },
        ) in work.iter().enumerate()
        {
            if !changes.is_empty() {
                changed.push((at, states[at].half_images));
            }
            for (half, changes) in of_halves(changes).into_iter().enumerate() {
                let (change, point) = ((at, half, changes), states[at].halves[half]);
                if changes.is_empty() {
                    continue;
                }
                if !points[half] && point.is_identity() {
                    imaged.push(change);
                } else if let Some(sum) = self.committer.remembered_half(changes) {
                    again.push(change);
                    known.push(point + sum);
                } else {
                    moved.push(change);
                    from.push(point);
                }
            }
        }
        // A few images are not worth rounds of their own.
        if !moved.is_empty() && imaged.len() < FEW {
            from.extend(imaged.iter().map(|_| Point::IDENTITY));
            moved.append(&mut imaged);
        }
        let images = self.images_of_sums(imaged.iter().map(terms_of));
        for ((at, half, _), image) in imaged.into_iter().zip(images) {
            states[at].half_images[half] = image;
        }
        let (sums, images) = self.moved(&from, moved.iter().map(terms_of));
        for ((&(_, _, changes), before), after) in moved.iter().zip(from).zip(&sums) {
            self.committer.remember_half(changes, || *after - before);
        }
        let images = images.into_iter().chain(self.images(&known));
        let points = sums.into_iter().chain(known);
        let halves = moved.into_iter().chain(again);
        for (((at, half, _), point), image) in halves.zip(points).zip(images) {
            states[at].halves[half] = point;
            states[at].half_images[half] = image;
        }
        changed
    }
}
