//! All stems of a state in their order, by hashing every name that the flat tables have.

use alloy_primitives::U256;
use arbor_ipa::Committer;
use arbor_versions::View;
use rayon::prelude::*;

use super::places::{StemName, chunk_place, slot_place};
use super::records::{AccountRecord, account_key, slot_name};
use super::stems::{self, NamedStem};
use crate::StateError;
use crate::tables::{ACCOUNTS, SLOTS};

/// Stems that are held in memory with their names at once, twice some 90 bytes each. The names of a larger state are hashed several times.
const AT_ONCE: u64 = 1 << 22;
/// Names that are hashed together, by all threads.
const NAMES: usize = 1 << 16;

/// All first bytes of stems, in groups that few enough stems have.
pub(super) fn first_bytes(view: View<'_>) -> Result<Vec<Vec<u8>>, StateError> {
    let count = |table| -> Result<u64, StateError> {
        let counts = (0..=u8::MAX).into_par_iter().map(|first| {
            let mut entries = view.scan(table, &[first], &[])?;
            entries.try_fold(0, |count, entry| {
                Ok::<u64, StateError>(entry.map(|_| count + 1)?)
            })
        });
        counts.sum()
    };
    // Each account and each slot has one stem at most; further stems of code are few.
    let most = count(ACCOUNTS)? + count(SLOTS)?;
    Ok(groups(most))
}

/// All first bytes in groups of nearly the same size, so few bytes in each that no more than [`AT_ONCE`] stems have them, if they are spread evenly; with more than
/// 256 times as many, each byte is a group.
fn groups(stems: u64) -> Vec<Vec<u8>> {
    let largest = (256 * AT_ONCE / stems.max(1)).clamp(1, 256);
    let groups = 256u64.div_ceil(largest);
    let first = |group: u64| 256 * group / groups;
    let bytes = |group| (first(group)..first(group + 1)).map(|byte| byte as u8);
    (0..groups).map(|group| bytes(group).collect()).collect()
}

/// The stems with these first bytes and their names, ascending. Records that cannot be read are passed over.
pub(super) fn named_stems(
    view: View<'_>,
    committer: &Committer,
    firsts: &[u8],
) -> Result<Vec<NamedStem>, StateError> {
    let found = (0..=u8::MAX).into_par_iter().map(|first| {
        let mut found = Vec::new();
        let mut names = Vec::new();
        let mut hash = |names: &mut Vec<StemName>, least: usize| {
            if names.len() >= least {
                names.sort_unstable();
                names.dedup();
                let named = stems::hashed(committer, std::mem::take(names));
                found.extend(named.filter(|(stem, _)| firsts.contains(&stem[0])));
            }
        };
        of_accounts(view, first, |name| {
            names.extend(name);
            hash(&mut names, NAMES);
        })?;
        of_slots(view, first, |name| {
            if names.last() != Some(&name) {
                names.push(name);
                hash(&mut names, NAMES);
            }
        })?;
        hash(&mut names, 1);
        Ok(found)
    });
    let found: Result<Vec<Vec<NamedStem>>, StateError> = found.collect();
    let mut stems = found?.concat();
    stems.par_sort_unstable();
    stems.dedup();
    Ok(stems)
}

/// The names of the stems that the fields and the code of accounts have whose addresses begin with this byte.
fn of_accounts(
    view: View<'_>,
    first: u8,
    mut give: impl FnMut(Vec<StemName>),
) -> Result<(), StateError> {
    for entry in view.scan(ACCOUNTS, &[first], &[])? {
        let (key, bytes) = entry?;
        let record = AccountRecord::decode(&key, &bytes);
        let (Ok(address), Ok(record)) = (account_key(&key), record) else {
            continue;
        };
        // 128 chunks end with the header's stem, and every later one begins after a multiple of them.
        let code = (0..record.chunks).step_by(128);
        let indices = code.map(|chunk| chunk_place(chunk).0).chain([U256::ZERO]);
        give(indices.map(|index| StemName { address, index }).collect());
    }
    Ok(())
}

/// The names of the stems that their slots have, some more than once.
fn of_slots(view: View<'_>, first: u8, mut give: impl FnMut(StemName)) -> Result<(), StateError> {
    for entry in view.scan(SLOTS, &[first], &[])? {
        if let Ok((address, slot)) = slot_name(&entry?.0) {
            let index = slot_place(slot).0;
            give(StemName { address, index });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_every_byte_once_and_few_enough_stems() {
        for stems in [
            0,
            1,
            AT_ONCE,
            AT_ONCE + 1,
            100 << 22,
            129 << 22,
            1 << 30,
            u64::MAX,
        ] {
            let groups = groups(stems);
            assert_eq!(groups.concat(), (0..=255).collect::<Vec<u8>>());
            for group in &groups {
                let of_group = u128::from(stems) * group.len() as u128 / 256;
                assert!(
                    of_group <= u128::from(AT_ONCE) || group.len() == 1,
                    "{stems}"
                );
            }
        }
        assert_eq!(groups(AT_ONCE).len(), 1);
    }
}
