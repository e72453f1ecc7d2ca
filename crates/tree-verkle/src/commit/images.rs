//! What images become, step by step, and what that adds to the nodes above.

use arbor_field::Limbs;
use arbor_ipa::{NumberTerm, difference};
use std::ops::Range;

/// What images of leaves or internal nodes become, by their indices in the plan.
#[derive(Default)]
pub(super) struct Courses {
    pub(super) courses: Vec<Course>,
    /// Images after steps, those of one course one after the other and ascending.
    pub(super) events: Vec<(u32, Limbs)>,
}

/// What one image becomes.
#[derive(Clone, Default)]
pub(super) struct Course {
    /// Zero where there is nothing.
    pub(super) before: Limbs,
    /// Its events.
    pub(super) events: Range<usize>,
}

impl Courses {
    /// Adds a course with room for what it is after some steps.
    pub(super) fn push(&mut self, before: Limbs, steps: impl Iterator<Item = u32>) {
        let start = self.events.len();
        self.events.extend(steps.map(|step| (step, [0; 4])));
        let events = start..self.events.len();
        self.courses.push(Course { before, events });
    }

    /// Sets the image after the n-th of a course's steps.
    pub(super) fn set(&mut self, at: usize, n: usize, image: Limbs) {
        let start = self.courses[at].events.start;
        self.events[start + n].1 = image;
    }

    /// The image before, and those after the steps that change it.
    pub(super) fn of(&self, at: usize) -> (Limbs, &[(u32, Limbs)]) {
        let Course { before, events } = &self.courses[at];
        (*before, &self.events[events.clone()])
    }

    /// The events of others behind these; where their own indices begin among them.
    pub(super) fn append(&mut self, others: &mut Vec<(u32, Limbs)>) -> usize {
        let start = self.events.len();
        self.events.append(others);
        start
    }
}

impl Course {
    /// With its events behind others.
    pub(super) fn behind(self, start: usize) -> Self {
        Self {
            events: start + self.events.start..start + self.events.end,
            ..self
        }
    }
}

/// What is added to nodes, step by step.
#[derive(Default)]
pub(super) struct Moves {
    /// Of all nodes that are done, by node and step; then those of the one that is under way, with their steps beside.
    terms: Vec<NumberTerm>,
    open: Vec<(u32, NumberTerm)>,
    /// The steps of the nodes that are done, and their terms.
    pub(super) sums: Vec<(u32, Range<usize>)>,
}

impl Moves {
    /// Adds the changes of one child's image to the node that is under way.
    pub(super) fn add(&mut self, byte: u8, before: Limbs, events: &[(u32, Limbs)]) {
        let mut before = before;
        for (step, image) in events {
            if *image != before {
                let term = (usize::from(byte), difference(image, &before));
                self.open.push((*step, term));
            }
            before = *image;
        }
    }

    /// Ends the node that is under way.
    pub(super) fn end(&mut self) {
        self.open.sort_by_key(|(step, _)| *step);
        for terms in self.open.chunk_by(|(a, _), (b, _)| a == b) {
            let start = self.terms.len();
            self.terms.extend(terms.iter().map(|(_, term)| *term));
            self.sums.push((terms[0].0, start..self.terms.len()));
        }
        self.open.clear();
    }

    pub(super) fn terms(&self, range: &Range<usize>) -> impl Iterator<Item = NumberTerm> {
        self.terms[range.clone()].iter().copied()
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = u32> {
        self.sums.iter().map(|(step, _)| *step)
    }
}
