//! Comparing rebuilt records of nodes with the stored ones.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::B256;
use arbor_state_tree::{Check, CheckedPart, StateError};
use arbor_tree_binary::{Packing, Path, PathKey};
use foldhash::fast::FixedState;
use rayon::prelude::*;

use super::NODES;

/// A comparison under way.
pub(crate) struct Comparison<'a> {
    pub(crate) check: &'a Check<'a>,
    /// Stored records that the flat state gives.
    matched: Keys,
}

impl<'a> Comparison<'a> {
    /// Records that are looked up together.
    pub(crate) const TOGETHER: usize = 1 << 12;

    pub(crate) fn new(check: &'a Check<'a>) -> Self {
        Self {
            check,
            matched: Keys::default(),
        }
    }

    /// How the stored nodes are packed; `None` if there are none.
    pub(crate) fn packing(&self) -> Result<Option<Packing>, StateError> {
        let root = self.check.view.get(NODES, &Path::ROOT.database_key())?;
        Ok(root.as_deref().and_then(Packing::of_root))
    }

    /// Compares records with the stored ones, and forgets them.
    pub(crate) fn compare(&self, built: &mut Vec<(Path, Arc<[u8]>)>) -> Result<(), StateError> {
        built.sort_unstable_by_key(|(path, _)| *path);
        let keys: Vec<PathKey> = built.iter().map(|(path, _)| path.database_key()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        let stored = self.check.view.multi_get(NODES, &keys)?;
        for (((path, built), stored), key) in built.drain(..).zip(stored).zip(keys) {
            self.check.count(&self.check.counts.nodes);
            match stored {
                None => self.fault(format!("the nodes at path {path}: missing")),
                Some(stored) => {
                    self.matched.add(key);
                    if stored != built {
                        self.fault(format!(
                            "the nodes at path {path}: they differ from what the flat state gives"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Scans the stored records whose keys begin with some bytes. Returns how many keys were scanned and how many were
    /// looked up with success so far, each with a sum of the keys.
    pub(crate) fn keys(
        &self,
        firsts: &[u8],
    ) -> Result<impl Iterator<Item = (String, u64)> + use<>, StateError> {
        let stored = Keys::default();
        if firsts.contains(&0) && self.check.view.get(NODES, &[])?.is_some() {
            stored.add(&[]);
        }
        firsts.par_iter().try_for_each(|first| {
            for entry in self.check.scan(NODES, &[*first], &[])? {
                stored.add(&entry?.0);
            }
            Ok::<(), StateError>(())
        })?;
        let sums = [stored.read(), self.matched.read()].into_iter().flatten();
        Ok(SUMS.into_iter().map(str::to_owned).zip(sums))
    }

    /// Compares the rebuilt root with that of the head.
    pub(crate) fn check_root(&self, built: B256, stored: B256) {
        if built != stored {
            self.fault(format!(
                "root: the flat state gives {built}, the head has {stored}"
            ));
        }
    }

    pub(crate) fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }
}

/// The numbers and sums of [`Comparison::keys`].
const SUMS: [&str; 4] = [
    "storedRecords",
    "storedRecordKeys",
    "matchedRecords",
    "matchedRecordKeys",
];

/// Compares the records of nodes that scans of all parts gave with those that were looked up, by the parts and by the join.
pub(crate) fn check_keys(join: &Comparison<'_>, parts: &[CheckedPart]) {
    let [stored, stored_sum, matched, matched_sum] = SUMS.map(|name| CheckedPart::sum(parts, name));
    let [of_join, sum_of_join] = join.matched.read();
    let (matched, matched_sum) = (matched + of_join, matched_sum.wrapping_add(sum_of_join));
    if stored > matched {
        let spare = stored - matched;
        join.fault(format!(
            "{spare} records of nodes are stored that nothing leads to"
        ));
    } else if stored < matched || stored_sum != matched_sum {
        let hidden = (matched - stored).max(1);
        join.fault(format!(
            "{hidden} records of nodes are found by their keys, and a scan does not find them"
        ));
    }
}

/// How many keys there are, and a sum in which no two sets of keys agree by chance.
#[derive(Default)]
struct Keys {
    count: AtomicU64,
    sum: AtomicU64,
}

impl Keys {
    fn add(&self, key: &[u8]) {
        let hash = FixedState::default().hash_one(key);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(hash, Ordering::Relaxed);
    }

    fn read(&self) -> [u64; 2] {
        [&self.count, &self.sum].map(|number| number.load(Ordering::Relaxed))
    }
}
