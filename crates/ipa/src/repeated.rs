//! Sums that come again: the halves of leaves that hold code, of which many contracts have the same.

use std::sync::{Mutex, PoisonError};

use crate::recent::Recent;
use crate::{Point, ValueChange};

/// Values from which on looking a half up is much cheaper than its sum.
const MANY: usize = 16;
/// Halves remembered, 4 kB each at most: 4 MB together.
const HALVES: usize = 1024;

/// The values of a half by suffix within it. All of them are compared, so that no two halves are taken for one.
type Values = Box<[(u8, [u8; 32])]>;

/// Halves by their values.
pub(crate) struct Repeated(Mutex<Recent<Values, Point>>);

impl Default for Repeated {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(HALVES)))
    }
}

/// The values that changes put into one half of a leaf; none if they are few, or change anything that was there.
fn values(changes: &[ValueChange]) -> Option<Values> {
    if changes.len() < MANY {
        return None;
    }
    let value = |change: &ValueChange| match (change.old, change.new) {
        (None, Some(new)) => Some((change.suffix % 128, new)),
        _ => None,
    };
    changes.iter().map(value).collect()
}

impl Repeated {
    /// The sum for changes of one half, if they are of those that are remembered.
    pub(crate) fn get(&self, changes: &[ValueChange]) -> Option<Point> {
        let values = values(changes)?;
        let known = self.0.lock();
        known.unwrap_or_else(PoisonError::into_inner).get(&values)
    }

    /// Remembers the sum for changes of one half, if they may come again.
    pub(crate) fn put(&self, changes: &[ValueChange], sum: impl FnOnce() -> Point) {
        if let Some(values) = values(changes) {
            let sum = sum();
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.put(values, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Committer, Fr, half_numbers};

    fn half(count: u8, first: u8) -> Vec<ValueChange> {
        let change = |suffix| ValueChange {
            suffix,
            old: None,
            new: Some([suffix ^ first; 32]),
        };
        (first..first + count).map(change).collect()
    }

    #[test]
    fn halves_are_remembered_by_all_their_values() {
        let committer = Committer::within(2_000_000);
        let sum = |changes: &[ValueChange]| {
            let terms = changes.iter().flat_map(half_numbers);
            committer.sum(
                &terms
                    .map(|(at, n)| (at, Fr::reduced(n)))
                    .collect::<Vec<_>>(),
            )
        };
        let first = half(20, 0);
        assert_eq!(committer.remembered_half(&first), None);
        committer.remember_half(&first, || sum(&first));
        assert_eq!(committer.remembered_half(&first), Some(sum(&first)));
        // Another value, one less, one that was there: other halves.
        let mut other = first.clone();
        other[7].new = Some([99; 32]);
        assert_eq!(committer.remembered_half(&other), None);
        assert_eq!(committer.remembered_half(&first[1..]), None);
        other = first.clone();
        other[7].old = Some([1; 32]);
        committer.remember_half(&other, || sum(&other));
        assert_eq!(committer.remembered_half(&other), None);
        // The upper half has the same points.
        let mut upper = first.clone();
        upper.iter_mut().for_each(|change| change.suffix += 128);
        assert_eq!(committer.remembered_half(&upper), Some(sum(&upper)));
        // Few are summed.
        let few = half(3, 0);
        committer.remember_half(&few, || sum(&few));
        assert_eq!(committer.remembered_half(&few), None);
    }

    #[test]
    fn what_is_not_used_is_forgotten() {
        let committer = Committer::within(2_000_000);
        let numbered = |number: usize| {
            let mut half = half(16, 1);
            half[0].new = Some([number as u8; 32]);
            half[1].new = Some([(number >> 8) as u8; 32]);
            half
        };
        for number in 0..2 * HALVES {
            committer.remember_half(&numbered(number), || Point::IDENTITY);
            assert!(
                committer.remembered_half(&numbered(0)).is_some(),
                "used often"
            );
        }
        assert_eq!(committer.remembered_half(&numbered(1)), None);
    }
}
