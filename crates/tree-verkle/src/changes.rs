//! Changes of one leaf's values.

use crate::Value;
use arbor_ipa::ValueChange;

/// The changes of suffixes below 128 and of those from there on.
pub(crate) fn of_halves(changes: &[ValueChange]) -> [&[ValueChange]; 2] {
    let (lower, upper) = changes.split_at(changes.partition_point(|change| change.suffix < 128));
    [lower, upper]
}

/// Values after changes, ascending by suffix.
pub(crate) fn after(before: &[(u8, Value)], changes: &[ValueChange]) -> Vec<(u8, Value)> {
    let changed = |suffix: u8| changes.iter().any(|change| change.suffix == suffix);
    let kept = before.iter().filter(|(suffix, _)| !changed(*suffix));
    let new = changes
        .iter()
        .filter_map(|change| Some((change.suffix, change.new?)));
    let mut values: Vec<_> = kept.copied().chain(new).collect();
    values.sort_unstable_by_key(|(suffix, _)| *suffix);
    values
}
