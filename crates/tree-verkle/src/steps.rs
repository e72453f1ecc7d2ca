//! Updates that follow each other, put together: what they come to under each stem, and in which steps.

use crate::{StemUpdate, TreeError};
use arbor_ipa::ValueChange;
use std::borrow::Cow;
use std::ops::Range;

/// What one of the updates does to the values under a stem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// Which of the updates, counted from 0.
    pub(crate) number: u32,
    /// Ascending by suffix; each changes something.
    pub(crate) changes: &'a [ValueChange],
}

/// All updates together.
pub(crate) struct Steps<'a> {
    /// What they come to, ascending by stem. A value may be what it was before, where a later one took a change back.
    merged: Cow<'a, [StemUpdate]>,
    /// The steps, stem by stem and ascending.
    steps: Vec<Step<'a>>,
    /// Where each stem's steps begin, and where the last one's end.
    starts: Vec<usize>,
}

/// Some stems of them.
#[derive(Clone, Copy)]
pub(crate) struct StemSteps<'s, 'a> {
    pub(crate) merged: &'s [StemUpdate],
    steps: &'s [Step<'a>],
    starts: &'s [usize],
}

impl<'a> Steps<'a> {
    /// Puts updates together that follow each other. Stems and suffixes ascend, and each changes something.
    ///
    /// # Errors
    /// Of several updates: an old value that is not what the one before left, and values removed.
    pub(crate) fn new(updates: &[&'a [StemUpdate]]) -> Result<Self, TreeError> {
        if let [update] = updates {
            let step = |update: &'a StemUpdate| Step {
                number: 0,
                changes: &update.changes,
            };
            return Ok(Self {
                merged: Cow::Borrowed(update),
                steps: update.iter().map(step).collect(),
                starts: (0..=update.len()).collect(),
            });
        }
        let numbered = (0..).zip(updates);
        let all = numbered.flat_map(|(number, update)| update.iter().map(move |of| (number, of)));
        let mut all: Vec<(u32, &'a StemUpdate)> = all.collect();
        all.sort_by_key(|(_, update)| update.stem);
        let mut together = Self {
            merged: Cow::Owned(Vec::with_capacity(all.len())),
            steps: Vec::with_capacity(all.len()),
            starts: vec![0],
        };
        for of_stem in all.chunk_by(|(_, a), (_, b)| a.stem == b.stem) {
            let merged = merged(of_stem)?;
            together.merged.to_mut().push(merged);
            let steps = of_stem.iter().map(|(number, update)| Step {
                number: *number,
                changes: &update.changes,
            });
            together.steps.extend(steps);
            together.starts.push(together.steps.len());
        }
        Ok(together)
    }

    /// How many values are changed, each as often as it is.
    pub(crate) fn values(&self) -> usize {
        self.steps.iter().map(|step| step.changes.len()).sum()
    }

    /// How many stems change.
    pub(crate) fn len(&self) -> usize {
        self.merged.len()
    }

    /// The first byte of a stem.
    pub(crate) fn first_byte(&self, at: usize) -> u8 {
        self.merged[at].stem[0]
    }

    /// Where the stems from `from` on begin whose first byte is above this one.
    pub(crate) fn above(&self, from: usize, byte: u8) -> usize {
        from + self.merged[from..].partition_point(|update| update.stem[0] <= byte)
    }

    /// Some of the stems.
    pub(crate) fn range(&self, range: Range<usize>) -> StemSteps<'_, 'a> {
        StemSteps {
            merged: &self.merged[range.clone()],
            steps: &self.steps,
            starts: &self.starts[range.start..=range.end],
        }
    }
}

impl<'s, 'a> StemSteps<'s, 'a> {
    /// The steps of a stem, ascending.
    pub(crate) fn of(&self, at: usize) -> &'s [Step<'a>] {
        &self.steps[self.starts[at]..self.starts[at + 1]]
    }
}

/// What changes under one stem come to that follow each other.
fn merged(steps: &[(u32, &StemUpdate)]) -> Result<StemUpdate, TreeError> {
    if let [(_, update)] = steps {
        only_writes(update)?;
        return Ok((*update).clone());
    }
    let mut changes: Vec<ValueChange> = Vec::new();
    for (_, update) in steps {
        only_writes(update)?;
        for change in &update.changes {
            match changes.binary_search_by_key(&change.suffix, |earlier| earlier.suffix) {
                Err(place) => changes.insert(place, *change),
                Ok(place) if changes[place].new == change.old => changes[place].new = change.new,
                Ok(_) => {
                    return Err(TreeError::Old {
                        stem: update.stem,
                        suffix: change.suffix,
                        said: change.old.is_some(),
                    });
                }
            }
        }
    }
    Ok(StemUpdate {
        stem: steps[0].1.stem,
        changes,
    })
}

/// Values may be removed by an update alone.
fn only_writes(update: &StemUpdate) -> Result<(), TreeError> {
    match update.changes.iter().find(|change| change.new.is_none()) {
        Some(change) => Err(TreeError::Removed {
            stem: update.stem,
            suffix: change.suffix,
        }),
        None => Ok(()),
    }
}

/// Checks that stems ascend, and the suffixes under each.
pub(crate) fn check_order(updates: &[StemUpdate]) -> Result<(), TreeError> {
    let stems = updates.windows(2).find(|pair| pair[0].stem >= pair[1].stem);
    if let Some(pair) = stems {
        return Err(TreeError::Order(pair[1].stem));
    }
    let suffixes = |update: &&StemUpdate| !update.changes.is_sorted_by(|a, b| a.suffix < b.suffix);
    match updates.iter().find(suffixes) {
        Some(update) => Err(TreeError::Order(update.stem)),
        None => Ok(()),
    }
}

/// An update without what changes nothing, and without stems of which that leaves nothing.
pub(crate) fn effective(updates: &[StemUpdate]) -> Cow<'_, [StemUpdate]> {
    let changes = |change: &&ValueChange| change.old != change.new;
    let changes_all = |update: &StemUpdate| {
        !update.changes.is_empty() && update.changes.iter().all(|change| changes(&change))
    };
    if updates.iter().all(changes_all) {
        return Cow::Borrowed(updates);
    }
    let only = updates.iter().map(|update| StemUpdate {
        stem: update.stem,
        changes: update.changes.iter().filter(changes).copied().collect(),
    });
    Cow::Owned(only.filter(|update| !update.changes.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stem, Value};

    const fn value(byte: u8) -> Option<Value> {
        Some([byte; 32])
    }

    fn update(stem: u8, changes: &[(u8, Option<Value>, Option<Value>)]) -> StemUpdate {
        let change = |&(suffix, old, new): &(u8, _, _)| ValueChange { suffix, old, new };
        let stem: Stem = [stem; 31];
        StemUpdate {
            stem,
            changes: changes.iter().map(change).collect(),
        }
    }

    #[test]
    fn changes_follow_each_other() {
        let first = [update(1, &[(5, None, value(1)), (9, None, value(2))])];
        let second = [
            update(0, &[(1, value(3), value(4))]),
            update(1, &[(5, value(1), value(7)), (6, None, value(8))]),
        ];
        let third = [update(0, &[(1, value(4), value(3))])];
        let updates = [&first[..], &second, &third];
        let steps = Steps::new(&updates).expect("follows");
        let all = steps.range(0..steps.len());
        let expected = [
            update(0, &[(1, value(3), value(3))]),
            update(
                1,
                &[
                    (5, None, value(7)),
                    (6, None, value(8)),
                    (9, None, value(2)),
                ],
            ),
        ];
        assert_eq!(all.merged, expected);
        let numbers = |at| all.of(at).iter().map(|step| step.number);
        assert!(numbers(0).eq([1, 2]));
        assert!(numbers(1).eq([0, 1]));
        assert!(steps.range(1..2).of(0)[1].changes == second[1].changes);
    }

    #[test]
    fn changes_that_do_not_follow() {
        let first = [update(1, &[(5, None, value(1))])];
        let second = [update(1, &[(5, value(2), value(3))])];
        let error = Steps::new(&[&first, &second]).err().expect("an error");
        assert!(matches!(
            error,
            TreeError::Old {
                suffix: 5,
                said: true,
                ..
            }
        ));
        let removed = [update(1, &[(5, value(1), None)])];
        let error = Steps::new(&[&first, &removed]).err().expect("an error");
        assert!(matches!(error, TreeError::Removed { suffix: 5, .. }));
        assert!(Steps::new(&[&removed]).is_ok());
    }
}
