//! What is to be done to the leaves of an update, step by step.

use crate::{
    FewValues, Form, Half, LeafRecord, Value,
    changes::{after, of_halves},
};
use arbor_ipa::ValueChange;
use std::borrow::Cow;

/// What is to be done to a leaf.
pub(super) struct Todo<'a> {
    pub(super) changes: Cow<'a, [ValueChange]>,
    /// The values of each half afterwards, where all are known and few.
    pub(super) values: [Option<FewValues>; 2],
}

impl<'a> Todo<'a> {
    /// Changes of a leaf of which only points are known.
    pub(super) fn on_points(changes: &'a [ValueChange]) -> Self {
        Self {
            changes: changes.into(),
            values: [None; 2],
        }
    }

    /// Of which half a record keeps the point.
    pub(super) fn points(&self, form: Form) -> [bool; 2] {
        let values = |few: FewValues| few.stand_for_point(form);
        self.values.map(|few| !few.is_some_and(values))
    }

    pub(super) fn on_new(changes: &'a [ValueChange]) -> Self {
        Self {
            values: of_halves(changes).map(|changes| FewValues::new(&after(&[], changes))),
            ..Self::on_points(changes)
        }
    }

    /// Changes of a stored leaf. A half that has its values is not computed to be changed, but computed anew with what it has afterwards.
    pub(super) fn on_stored(record: &mut LeafRecord, changes: &'a [ValueChange]) -> Self {
        let mut todo = Self::on_points(changes);
        let mut anew = Vec::new();
        for (half, changes) in of_halves(changes).into_iter().enumerate() {
            let before = match &record.halves[half] {
                Half::Values(few) => *few,
                Half::Nothing => {
                    todo.values[half] = FewValues::new(&after(&[], changes));
                    anew.extend(changes);
                    continue;
                }
                Half::Point(_) => {
                    anew.extend(changes);
                    continue;
                }
            };
            let values = after(before.as_slice(), changes);
            todo.values[half] = FewValues::new(&values);
            // Without its image the leaf must be computed as it was.
            if changes.is_empty() || values.is_empty() || record.image.is_none() {
                anew.extend(changes);
                continue;
            }
            anew.extend(values.into_iter().map(set));
            record.halves[half] = Half::Nothing;
            record.commitment = None;
        }
        todo.changes = anew.into();
        todo
    }

    /// What is to be done next to a leaf to which this was done, and which halves of it, some of which may be empty until then, are computed anew: those of which all values are
    /// known.
    pub(super) fn followed_by(
        &self,
        changes: &[ValueChange],
        empty: [bool; 2],
    ) -> (Self, [bool; 2]) {
        let mut next = Todo {
            changes: Cow::Borrowed(&[]),
            values: self.values,
        };
        let (mut all, mut anew) = (Vec::new(), [false; 2]);
        for (half, changes) in of_halves(changes).into_iter().enumerate() {
            let few = &self.values[half];
            anew[half] = !changes.is_empty() && (few.is_some() || empty[half]);
            if anew[half] {
                let before = few.as_ref().map_or(&[][..], FewValues::as_slice);
                let values = after(before, changes);
                next.values[half] = FewValues::new(&values);
                all.extend(values.into_iter().map(set));
            } else {
                all.extend(changes);
            }
        }
        next.changes = all.into();
        (next, anew)
    }
}

/// One of the later steps of a leaf.
pub(super) struct Turn {
    /// The leaf.
    pub(super) at: usize,
    /// Which of its steps.
    pub(super) step: usize,
    /// Which halves are computed anew, and not changed.
    pub(super) anew: [bool; 2],
    /// Their values, or the changes of those that are changed.
    pub(super) changes: Vec<ValueChange>,
}

/// A value where none was.
fn set((suffix, value): (u8, Value)) -> ValueChange {
    ValueChange {
        suffix,
        old: None,
        new: Some(value),
    }
}
