//! What every computation needs: the tables and the switches.

use crate::{
    Half, LeafRecord, NodeKey, Record, Settings, Stem, commit::of_halves, few, record::encode,
};
use arbor_ipa::{Committer, Fr, Point, Term, ValueChange, leaf_terms};
use rayon::prelude::*;
use std::sync::Arc;

/// Leaves that are computed together: enough to make inversions cheap, few enough to stay small beside the tree.
pub(crate) const BATCH: usize = 8192;

/// Points that one thread maps or converts at a time: enough to make the inversion cheap.
const SHARE: usize = 1024;

#[derive(Clone, Copy)]
pub(crate) struct Tools<'a> {
    pub(crate) committer: &'a Committer,
    pub(crate) settings: &'a Settings,
    /// Whether other threads of the pool take part, and not only the one that asks.
    spread: bool,
}

/// A leaf's points and images.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafState {
    pub(crate) halves: [Point; 2],
    pub(crate) half_images: [Fr; 2],
    /// None if it is not known: then it is computed from the images of the halves when something changes.
    pub(crate) commitment: Option<Point>,
    pub(crate) image: Fr,
}

impl LeafState {
    /// A leaf without values, which stands for nothing.
    pub(crate) const NEW: Self = Self {
        halves: [Point::IDENTITY; 2],
        half_images: [Fr::ZERO; 2],
        commitment: None,
        image: Fr::ZERO,
    };
}

/// What is to be done to a leaf.
#[derive(Clone, Copy)]
pub(crate) struct LeafWork<'a> {
    pub(crate) stem: &'a Stem,
    /// Ascending by suffix.
    pub(crate) changes: &'a [ValueChange],
}

/// Lists of terms in one piece of memory, for sums.
#[derive(Default)]
pub(crate) struct TermLists {
    terms: Vec<Term>,
    /// Where each list begins.
    starts: Vec<usize>,
}

impl TermLists {
    /// Adds a list.
    pub(crate) fn push(&mut self, terms: impl IntoIterator<Item = Term>) {
        self.starts.push(self.terms.len());
        self.terms.extend(terms);
    }

    /// Adds to the last list.
    fn extend(&mut self, terms: impl IntoIterator<Item = Term>) {
        self.terms.extend(terms);
    }

    pub(crate) fn all(&self) -> Vec<&[Term]> {
        let ends = self.starts.iter().skip(1).copied();
        let ranges = self.starts.iter().zip(ends.chain([self.terms.len()]));
        ranges.map(|(&from, to)| &self.terms[from..to]).collect()
    }
}

/// Adds points to those at some places.
fn add_at(points: &mut [Point], added: Vec<(usize, Point)>) {
    let (places, added): (Vec<usize>, Vec<Point>) = added.into_iter().unzip();
    let mut sums: Vec<_> = places.iter().map(|&at| points[at]).collect();
    Point::add_all(&mut sums, &added);
    for (at, sum) in places.into_iter().zip(sums) {
        points[at] = sum;
    }
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

    /// One sum of products for each list of terms.
    pub(crate) fn sums<T: AsRef<[Term]> + Sync>(&self, lists: &[T]) -> Vec<Point> {
        if self.spread {
            self.committer.sums(lists)
        } else {
            self.committer.sums_on_one_thread(lists)
        }
    }

    /// The images of points in the scalar field.
    pub(crate) fn images(&self, points: &[Point]) -> Vec<Fr> {
        if !self.settings.batched_images {
            return points.iter().map(Point::map_to_field).collect();
        }
        if points.len() <= SHARE || !self.spread {
            return Point::map_to_field_batch(points);
        }
        let shares = points.par_chunks(SHARE);
        shares.flat_map_iter(Point::map_to_field_batch).collect()
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

    /// Leaves as their records say they are, all images computed that are not kept.
    pub(crate) fn load(&self, records: &[LeafRecord]) -> Vec<LeafState> {
        let state = |record: &LeafRecord| LeafState {
            commitment: record.commitment,
            image: record.image.unwrap_or(Fr::ZERO),
            ..LeafState::NEW
        };
        let mut states: Vec<_> = records.iter().map(state).collect();
        let mut present: Vec<(usize, usize)> = Vec::with_capacity(records.len());
        let (mut summed, mut no_code, mut lists) = (Vec::new(), Vec::new(), TermLists::default());
        for (at, record) in records.iter().enumerate() {
            for (half, kept) in record.halves.iter().enumerate() {
                match kept {
                    Half::Nothing => continue,
                    Half::Point(point) => states[at].halves[half] = *point,
                    Half::Values(values) => {
                        let sets = values.sets();
                        lists.push(few::terms(&sets));
                        let known = few::no_code(self.committer, &sets);
                        no_code.extend(known.map(|known| (summed.len(), known)));
                        summed.push((at, half));
                    }
                }
                present.push((at, half));
            }
        }
        let mut sums = self.sums(&lists.all());
        add_at(&mut sums, no_code);
        for ((at, half), sum) in summed.into_iter().zip(sums) {
            states[at].halves[half] = sum;
        }
        let points: Vec<_> = present
            .iter()
            .map(|&(at, half)| states[at].halves[half])
            .collect();
        for (&(at, half), image) in present.iter().zip(self.images(&points)) {
            states[at].half_images[half] = image;
        }
        let unknown: Vec<usize> = (0..records.len())
            .filter(|&at| records[at].image.is_none())
            .collect();
        let stem = |at: usize| &records[at].stem;
        self.complete(&unknown, stem, &mut states);
        let points: Vec<_> = unknown
            .iter()
            .filter_map(|&at| states[at].commitment)
            .collect();
        for (&at, image) in unknown.iter().zip(self.images(&points)) {
            states[at].image = image;
        }
        states
    }

    /// As [`load`](Self::load), with all commitments.
    pub(crate) fn load_whole(&self, records: &[LeafRecord]) -> Vec<LeafState> {
        let mut states = self.load(records);
        let all: Vec<usize> = (0..records.len()).collect();
        self.complete(&all, |at| &records[at].stem, &mut states);
        states
    }

    /// Computes the commitments of some leaves where they are not known.
    fn complete<'s>(
        &self,
        which: &[usize],
        stem: impl Fn(usize) -> &'s Stem,
        states: &mut [LeafState],
    ) {
        let unknown = which
            .iter()
            .copied()
            .filter(|&at| states[at].commitment.is_none());
        let unknown: Vec<usize> = unknown.collect();
        let terms: Vec<_> = unknown
            .iter()
            .map(|&at| leaf_terms(stem(at), states[at].half_images))
            .collect();
        for (&at, commitment) in unknown.iter().zip(self.sums(&terms)) {
            states[at].commitment = Some(commitment);
        }
    }

    /// Changes leaves by what their changes add: halves, their images, commitments, images; each in one batch. All leaves have a
    /// commitment afterwards if records are to keep it, else those that changed.
    pub(crate) fn change(&self, work: &[LeafWork], states: &mut [LeafState]) {
        let mut halves: Vec<(usize, usize)> = Vec::with_capacity(work.len());
        let mut moved: Vec<Point> = Vec::with_capacity(work.len());
        let mut unknown: Vec<(usize, &[ValueChange])> = Vec::with_capacity(work.len());
        let mut lists = TermLists::default();
        for (at, LeafWork { changes, .. }) in work.iter().enumerate() {
            for (half, changes) in of_halves(changes).into_iter().enumerate() {
                if changes.is_empty() {
                    continue;
                }
                let known = self.committer.remembered_half(changes);
                if known.is_none() {
                    unknown.push((halves.len(), changes));
                    lists.push(few::terms(changes));
                }
                halves.push((at, half));
                moved.push(known.unwrap_or_default());
            }
        }
        for (&(to, _), sum) in unknown.iter().zip(self.sums(&lists.all())) {
            moved[to] = sum;
        }
        let no_code = unknown
            .iter()
            .filter_map(|&(to, changes)| Some((to, few::no_code(self.committer, changes)?)));
        add_at(&mut moved, no_code.collect());
        for (to, changes) in unknown {
            self.committer.remember_half(changes, moved[to]);
        }
        let before = halves.iter().map(|&(at, half)| states[at].halves[half]);
        Point::add_all(&mut moved, &before.collect::<Vec<_>>());
        let images = self.images(&moved);

        // A leaf whose commitment is known gets what its halves' images add; another one is computed anew.
        let mut changed: Vec<usize> = Vec::with_capacity(halves.len());
        let (mut known, mut lists) = (Vec::new(), TermLists::default());
        for ((&(at, half), point), image) in halves.iter().zip(moved).zip(images) {
            let state = &mut states[at];
            state.halves[half] = point;
            let before = std::mem::replace(&mut state.half_images[half], image);
            if changed.last() != Some(&at) {
                changed.push(at);
            }
            if state.commitment.is_some() {
                // Of the same leaf as before, or of another one.
                if known.last() == Some(&at) {
                    lists.extend([(2 + half, image - before)]);
                } else {
                    known.push(at);
                    lists.push([(2 + half, image - before)]);
                }
            }
        }
        for (at, added) in known.into_iter().zip(self.sums(&lists.all())) {
            if let Some(commitment) = &mut states[at].commitment {
                *commitment += added;
            }
        }
        let stem = |at: usize| work[at].stem;
        if self.settings.form.leaf_commitments {
            self.complete(&(0..work.len()).collect::<Vec<_>>(), stem, states);
        } else {
            self.complete(&changed, stem, states);
        }
        let points: Vec<_> = changed
            .iter()
            .filter_map(|&at| states[at].commitment)
            .collect();
        for (&at, image) in changed.iter().zip(self.images(&points)) {
            states[at].image = image;
        }
    }
}
