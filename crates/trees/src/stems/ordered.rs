//! All leaves of a state in the order of their stems, by hashing every name that the flat tables have.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::named_records::{account_key, slot_name};
use alloy_primitives::{Address, U256};
use arbor_versions::View;
use rayon::prelude::*;

use super::records::{AccountRecord, decode_slot};
use super::values::account_leaves;
use arbor_state_tree::StateError;
use arbor_state_tree::{ACCOUNTS, SLOTS};
use arbor_verify::stems::{
    HeaderLayout, LeafValue, Stem, StemHash, StemName, chunk_place, slot_place,
};

/// For how many slots a stem of an account counts, of which record and address are held.
const SLOTS_OF_ACCOUNT: u64 = 3;
/// From so many leaves of slots, or names of stems of accounts, on that a thread has read it hashes their names, on all threads.
const NAMES: usize = 1 << 16;

/// Names that are hashed together.
const NAMES_HASHED_TOGETHER: usize = 1024;

/// The stems of names, computed in batches by the threads of the current pool and not remembered.
pub(super) fn hashed(stems: &dyn StemHash, names: &[StemName]) -> Vec<Stem> {
    let batches = names.par_chunks(NAMES_HASHED_TOGETHER);
    batches
        .flat_map_iter(|names| stems.of_once(names))
        .collect()
}

/// Returns first bytes of stems in groups whose leaves take up to so many bytes.
pub(crate) fn first_bytes(
    view: View<'_>,
    firsts: &[u8],
    bytes: usize,
) -> Result<Vec<Vec<u8>>, StateError> {
    let count = |table| -> Result<u64, StateError> {
        let counts = (0..=u8::MAX).into_par_iter().map(|first| {
            let mut entries = view.scan(table, &[first], &[])?;
            entries.try_fold(0, |count, entry| {
                Ok::<u64, StateError>(entry.map(|_| count + 1)?)
            })
        });
        counts.sum()
    };
    // Further stems of code are few.
    let slots = SLOTS_OF_ACCOUNT * count(ACCOUNTS)? + count(SLOTS)?;
    Ok(groups(firsts, slots, bytes / size_of::<SlotLeaf>()))
}

/// Returns first bytes in groups of nearly the same size. If all slots of a state are spread evenly over all bytes, the bytes of a group have at most
/// `at_once` of them, or the group is one byte.
pub(crate) fn groups(firsts: &[u8], slots: u64, at_once: usize) -> Vec<Vec<u8>> {
    let largest = (256u64.saturating_mul(at_once as u64) / slots.max(1)).clamp(1, 256);
    let count = firsts.len() as u64;
    let groups = count.div_ceil(largest);
    let begin = |group: u64| (count * group / groups) as usize;
    let bytes = |group| firsts[begin(group)..begin(group + 1)].to_vec();
    (0..groups).map(bytes).collect()
}

/// Leaves of a state by the first bytes of their stems.
pub(crate) struct OrderedLeaves {
    by_first: Vec<Mutex<SomeLeaves>>,
}

/// Those of one byte, ascending once they are [taken](OrderedLeaves::take).
#[derive(Default)]
pub(crate) struct SomeLeaves {
    slots: Vec<SlotLeaf>,
    accounts: Vec<AccountStem>,
}

/// A slot's leaf.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SlotLeaf {
    stem: Stem,
    suffix: u8,
    value: LeafValue,
}

/// A stem that has fields or code of an account.
#[derive(Clone, Copy)]
struct AccountStem {
    stem: Stem,
    address: Address,
    record: AccountRecord,
    /// Number of the first chunk of code that lies here; 0 for the stem that begins with the fields.
    first_chunk: u32,
}

/// All that lies under one stem.
pub(crate) struct UnderStem<'a> {
    pub(crate) stem: Stem,
    account: Option<&'a AccountStem>,
    slots: &'a [SlotLeaf],
}

/// What to do about a record that cannot be read: to go on without it, or not at all.
pub(crate) type Unreadable<'a> = &'a (dyn Fn(StateError) -> Result<(), StateError> + Sync);

impl OrderedLeaves {
    /// The leaves whose stems have these first bytes.
    pub(crate) fn read(
        view: View<'_>,
        stems: &dyn StemHash,
        firsts: &[u8],
        unreadable: Unreadable<'_>,
    ) -> Result<Self, StateError> {
        let leaves = Self {
            by_first: std::iter::repeat_with(Mutex::default).take(256).collect(),
        };
        let mut wanted = [false; 256];
        firsts
            .iter()
            .for_each(|first| wanted[usize::from(*first)] = true);
        let reading = Reading {
            view,
            stems,
            wanted: &wanted,
            unreadable,
            leaves: &leaves,
        };
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            reading.accounts(first)?;
            reading.slots(first)
        })?;
        Ok(leaves)
    }

    fn of(&self, first: u8) -> MutexGuard<'_, SomeLeaves> {
        let leaves = self.by_first[usize::from(first)].lock();
        leaves.unwrap_or_else(PoisonError::into_inner)
    }

    /// What lies under stems with this first byte; it is here no more.
    pub(crate) fn take(&self, first: u8) -> SomeLeaves {
        let mut leaves = std::mem::take(&mut *self.of(first));
        leaves.slots.sort_unstable();
        leaves.accounts.sort_unstable_by_key(|account| account.stem);
        leaves
    }
}

impl SomeLeaves {
    /// Stem by stem what lies there.
    pub(crate) fn stems(&self) -> impl Iterator<Item = UnderStem<'_>> {
        let (mut slots, mut accounts) = (&self.slots[..], &self.accounts[..]);
        std::iter::from_fn(move || {
            let next = [
                slots.first().map(|slot| slot.stem),
                accounts.first().map(|account| account.stem),
            ];
            let stem = next.into_iter().flatten().min()?;
            let here = slots.iter().take_while(|slot| slot.stem == stem).count();
            let account = accounts.first().filter(|account| account.stem == stem);
            accounts = &accounts[usize::from(account.is_some())..];
            Some(UnderStem {
                stem,
                account,
                slots: slots.split_off(..here).unwrap_or_default(),
            })
        })
    }
}

impl UnderStem<'_> {
    /// The leaves, ascending by suffix. Code is read from the view.
    pub(crate) fn values(
        &self,
        view: View<'_>,
        layout: HeaderLayout,
    ) -> Result<Vec<(u8, LeafValue)>, StateError> {
        let mut values = match self.account {
            Some(AccountStem {
                address,
                record,
                first_chunk,
                ..
            }) => account_leaves(view, layout, (*address, record), *first_chunk)?,
            None => Vec::with_capacity(self.slots.len()),
        };
        values.extend(self.slots.iter().map(|slot| (slot.suffix, slot.value)));
        values.sort_unstable_by_key(|(suffix, _)| *suffix);
        Ok(values)
    }

    /// How many accounts have their fields here: one or none.
    pub(crate) fn accounts(&self) -> u64 {
        let has_fields = |account: &&AccountStem| account.first_chunk == 0;
        self.account.filter(has_fields).map_or(0, |_| 1)
    }

    /// How many slots lie here.
    pub(crate) fn slots(&self) -> u64 {
        self.slots.len() as u64
    }
}

/// A pass over the flat tables.
struct Reading<'a> {
    view: View<'a>,
    stems: &'a dyn StemHash,
    /// Which first bytes of stems are wanted.
    wanted: &'a [bool; 256],
    unreadable: Unreadable<'a>,
    leaves: &'a OrderedLeaves,
}

impl Reading<'_> {
    /// The stems of the fields and the code of accounts whose addresses begin with this byte.
    fn accounts(&self, first: u8) -> Result<(), StateError> {
        let (mut names, mut waiting) = (Vec::new(), Vec::new());
        for entry in self.view.scan(ACCOUNTS, &[first], &[])? {
            let (key, bytes) = entry?;
            let account = account_key(&key)
                .and_then(|address| Ok((address, AccountRecord::decode(&key, &bytes)?)));
            let (address, record) = match account {
                Ok(account) => account,
                Err(error) => {
                    (self.unreadable)(error)?;
                    continue;
                }
            };
            // The stem of the fields ends with chunk 127, each later one has 256.
            for first_chunk in std::iter::once(0).chain((128..record.chunks).step_by(256)) {
                let index = match first_chunk {
                    0 => U256::ZERO,
                    chunk => chunk_place(chunk).0,
                };
                names.push(StemName { address, index });
                waiting.push((address, record, first_chunk));
            }
            if names.len() >= NAMES {
                self.put_accounts(&mut names, &mut waiting);
            }
        }
        self.put_accounts(&mut names, &mut waiting);
        Ok(())
    }

    fn put_accounts(
        &self,
        names: &mut Vec<StemName>,
        waiting: &mut Vec<(Address, AccountRecord, u32)>,
    ) {
        let stems = hashed(self.stems, names);
        for ((address, record, first_chunk), stem) in waiting.drain(..).zip(stems) {
            if self.wanted[usize::from(stem[0])] {
                self.leaves.of(stem[0]).accounts.push(AccountStem {
                    stem,
                    address,
                    record,
                    first_chunk,
                });
            }
        }
        names.clear();
    }

    /// The leaves of slots of the accounts whose addresses begin with this byte.
    fn slots(&self, first: u8) -> Result<(), StateError> {
        // Neighbours share their stems.
        let (mut names, mut waiting) = (Vec::new(), Vec::new());
        for entry in self.view.scan(SLOTS, &[first], &[])? {
            let (key, bytes) = entry?;
            let slot = slot_name(&key).and_then(|name| Ok((name, decode_slot(&key, &bytes)?)));
            let ((address, slot), value) = match slot {
                Ok(slot) => slot,
                Err(error) => {
                    (self.unreadable)(error)?;
                    continue;
                }
            };
            let (index, suffix) = slot_place(slot);
            let name = StemName { address, index };
            if names.last() != Some(&name) {
                if waiting.len() >= NAMES {
                    self.put_slots(&mut names, &mut waiting);
                }
                names.push(name);
            }
            waiting.push((names.len() - 1, suffix, value.to_be_bytes()));
        }
        self.put_slots(&mut names, &mut waiting);
        Ok(())
    }

    fn put_slots(&self, names: &mut Vec<StemName>, waiting: &mut Vec<(usize, u8, LeafValue)>) {
        let stems = hashed(self.stems, names);
        for (name, suffix, value) in waiting.drain(..) {
            let stem = stems[name];
            if self.wanted[usize::from(stem[0])] {
                self.leaves.of(stem[0]).slots.push(SlotLeaf {
                    stem,
                    suffix,
                    value,
                });
            }
        }
        names.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_every_byte_once_and_few_enough_slots() {
        const AT_ONCE: usize = 1 << 22;
        for slots in [
            0,
            1,
            AT_ONCE as u64,
            AT_ONCE as u64 + 1,
            100 << 22,
            129 << 22,
            1 << 30,
            u64::MAX,
        ] {
            for firsts in [
                &(0..=255).collect::<Vec<u8>>()[..],
                &[7],
                &[100, 101, 102],
                &[],
            ] {
                let groups = groups(firsts, slots, AT_ONCE);
                assert_eq!(groups.concat(), firsts);
                for group in &groups {
                    let of_group = u128::from(slots) * group.len() as u128 / 256;
                    assert!(of_group <= AT_ONCE as u128 || group.len() == 1, "{slots}");
                }
            }
        }
        assert_eq!(groups(&[0, 1, 2], AT_ONCE as u64, AT_ONCE).len(), 1);
    }
}
