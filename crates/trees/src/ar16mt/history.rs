//! Checking older versions: the tree walked back through the undo records, a sixteenth of the keys at a time.
//!
//! So a sixteenth of what changed is in memory for each thread, and the threads share the work. No leaf ever goes but by undoing: walking back only
//! takes leaves away and gives values back to leaves that stay.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use arbor_store::{Table, Value};
use arbor_tree::{Hash, Path};
use arbor_tree_ar16mt::{Child, LeafUpdate, apply_below, root_above, subtrees};
use arbor_versions::Version;
use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::failed;
use super::nodes::{AtHead, Standing, Undone};
use super::records::{decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, COUNTER, LEAVES};
use arbor_state_tree::Check;
use arbor_state_tree::StateError;
use arbor_state_tree::corrupt;

const UNCHANGED: &str = "undone to what it is, though only changes are";

/// Rebuilds the versions from the one before `newest` down to `oldest`, and compares their roots. What lies behind one that does not hold is not looked at.
pub(crate) fn check_history(
    check: &Check<'_>,
    ar16mt: Ar16mt,
    (oldest, newest): (Version, Version),
) -> Result<(), StateError> {
    if oldest == newest {
        return Ok(());
    }
    let view = check.view;
    let tops = subtrees(&AtHead { view, ar16mt }).map_err(failed)?;
    let versions = oldest.0 + 1..=newest.0;
    let (walks, counter) = rayon::join(
        || {
            let walks = tops.into_par_iter().enumerate().map(|(nibble, top)| {
                let mut walk = Walk::new(check, ar16mt, nibble as u8, top);
                let mut back = versions.clone().rev();
                let stopped = back.try_for_each(|version| walk.back(Version(version)));
                (walk.hashes, stopped.err())
            });
            walks.collect::<Vec<_>>()
        },
        || counter_back(check, versions.clone().rev()),
    );
    let (walked, stopped): (Vec<_>, Vec<_>) = walks.into_iter().unzip();
    let first_stop = walked.iter().map(Vec::len).min().unwrap_or_default();
    for (step, version) in (oldest.0..newest.0).rev().take(first_stop).enumerate() {
        let mut hashes = [None; 16];
        let at_step = walked.iter().map(|walked| walked[step]);
        hashes
            .iter_mut()
            .zip(at_step)
            .for_each(|(hash, walked)| *hash = walked);
        let root = with_hasher!(ar16mt, hasher => root_above(hasher, &hashes));
        let meta = check.view.meta(Version(version))?;
        let meta = meta.ok_or_else(|| StateError::Read(format!("no meta of version {version}")))?;
        if root != meta.root {
            return Err(StateError::RebuiltRoot {
                version,
                expected: meta.root.into(),
                actual: root.into(),
            });
        }
        check.counts.versions.fetch_add(1, Ordering::Relaxed);
    }
    let mut stopped = walked.iter().zip(stopped);
    match stopped.find_map(|(walked, error)| error.filter(|_| walked.len() == first_stop)) {
        Some(error) => Err(error),
        None => counter,
    }
}

/// The part of the tree that begins with one nibble, on its way back.
struct Walk<'a> {
    check: &'a Check<'a>,
    ar16mt: Ar16mt,
    nibble: u8,
    top: Option<Child>,
    nodes: Undone,
    /// Leaves as they were, where they are not as the head has them.
    leaves: HashMap<Box<[u8]>, Option<Value>, RandomState>,
    /// Of the part, at each version that it came to.
    hashes: Vec<Option<Hash>>,
}

impl<'a> Walk<'a> {
    fn new(check: &'a Check<'a>, ar16mt: Ar16mt, nibble: u8, top: Option<Child>) -> Self {
        Self {
            check,
            ar16mt,
            nibble,
            top,
            nodes: Undone::default(),
            leaves: HashMap::default(),
            hashes: Vec::new(),
        }
    }

    /// Undoes a version.
    fn back(&mut self, version: Version) -> Result<(), StateError> {
        let first = self.nibble << 4..=self.nibble << 4 | 15;
        let undo = self.check.view.undo_of_part(version, LEAVES, first)?;
        let (view, leaves) = (self.check.view, &self.leaves);
        let now = |table: Table, key: &[u8]| match leaves.get(key) {
            Some(value) if table == LEAVES => Ok(value.clone()),
            _ => Ok(view.get(table, key)?),
        };
        let mut updates = Vec::with_capacity(undo.len());
        for write in &undo {
            let key = leaf_key(&write.key)?;
            // That a leaf to be taken away is there, the tree knows.
            let new = match &write.value {
                Some(bytes) if now(LEAVES, &key)?.as_ref() == Some(bytes) => {
                    return Err(corrupt("leaves", &key, UNCHANGED));
                }
                Some(bytes) => Some(decode_leaf(&key, bytes)?),
                None => None,
            };
            let existed = true;
            updates.push(LeafUpdate { key, existed, new });
        }
        if !updates.is_empty() {
            let place = (Path::from_nibbles(&[self.nibble]), self.top);
            let ar16mt = self.ar16mt;
            let standing = Standing {
                head: AtHead { view, ar16mt },
                undone: &self.nodes,
                now: &now,
            };
            let (top, nodes) = with_hasher!(self.ar16mt, hasher => apply_below(&standing, hasher, place, &updates)).map_err(failed)?;
            self.top = top;
            self.nodes.forget_gone(nodes);
            let undone = undo.into_iter().map(|write| (write.key, write.value));
            self.leaves.extend(undone);
        }
        self.hashes.push(self.top.map(|child| *child.hash()));
        Ok(())
    }
}

/// Looks at the records that undo the counter of leaves.
fn counter_back(
    check: &Check<'_>,
    mut versions: impl Iterator<Item = u64>,
) -> Result<(), StateError> {
    let mut now: HashMap<Box<[u8]>, Option<Value>> = HashMap::new();
    versions.try_for_each(|version| {
        let undo = check
            .view
            .undo_of_part(Version(version), COUNTER, 0..=u8::MAX)?;
        for write in undo {
            let before = match now.get(&write.key) {
                Some(value) => value.clone(),
                None => check.view.get(COUNTER, &write.key)?,
            };
            if before == write.value {
                return Err(corrupt("counter", &write.key, UNCHANGED));
            }
            now.insert(write.key, write.value);
        }
        Ok(())
    })
}
