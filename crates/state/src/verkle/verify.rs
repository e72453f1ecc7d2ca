//! Checking a Verkle database: the tree rebuilt from the flat tables, in the order of stems, and compared node by node.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::{B256, KECCAK256_EMPTY, hex};
use arbor_store::{Value, Write};
use arbor_tree_verkle::{
    BuildLeaf, Form, NodeKey, Part, Record, RecordError, Settings, Stem, build_part, join,
};
use arbor_versions::Meta;
use rayon::prelude::*;

use super::merkle_patricia::flat_root;
use super::places::StemName;
use super::records::AccountRecord;
use super::values::{Leaves, StemLeaves};
use super::{NODES, STEMS, Undone, Verkle};
use crate::flat::Lookup;
use crate::tables::{ACCOUNTS, SLOTS};
use crate::verify::{Check, StepsBack};
use crate::{Head, StateError};

/// Stems whose names are hashed together.
const TOGETHER: usize = 1024;

/// Rebuilds the tree and compares it with what is stored; returns the Merkle-Patricia root of the same flat tables, zero where they have none.
pub(crate) fn check_state(
    check: &Check<'_>,
    verkle: &Verkle,
    head: Head<'_>,
) -> Result<B256, StateError> {
    let rebuild = Rebuild {
        check,
        verkle,
        accounts: AtomicU64::new(0),
        slots: AtomicU64::new(0),
        stopped: Mutex::new(None),
    };
    let root = rebuild.root()?;
    if root != head.root() {
        let stored = head.root();
        check.tell_fault(format!(
            "root: the flat state gives {root}, the head has {stored}"
        ));
    }
    rebuild.every_record_has_its_leaf()?;
    spare_nodes(check)?;
    match flat_root(check.view) {
        Err(error @ StateError::Corrupt { .. }) => {
            check.tell_fault(error.to_string());
            Ok(B256::ZERO)
        }
        root => root,
    }
}

struct Rebuild<'a> {
    check: &'a Check<'a>,
    verkle: &'a Verkle,
    /// Records that were reached through the names of stems.
    accounts: AtomicU64,
    slots: AtomicU64,
    /// Why the check cannot go on.
    stopped: Mutex<Option<StateError>>,
}

impl Rebuild<'_> {
    /// Everything is computed, so that everything stored can be compared.
    const SETTINGS: Settings = Settings {
        form: Form {
            compressed: false,
            images: true,
            leaf_commitments: true,
        },
        batched_images: true,
        batched_affine: true,
    };

    fn root(&self) -> Result<B256, StateError> {
        let committer = self.verkle.stems().committer();
        let mut sink = |key, record: std::sync::Arc<[u8]>| self.node(&key, &record);
        let parts = (0..=u8::MAX).into_par_iter().map(|first| {
            let leaves = self.leaves(first)?;
            let mut sink = |key, record: std::sync::Arc<[u8]>| self.node(&key, &record);
            let part = build_part(committer, &Self::SETTINGS, leaves, &mut sink)?;
            self.check.part_done();
            Ok(part)
        });
        let parts: Result<Vec<Part>, StateError> = parts.collect();
        let root = join(committer, &Self::SETTINGS, parts?, &mut sink)?;
        match self
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(error) => Err(error),
            None => Ok(root.to_bytes().into()),
        }
    }

    /// The leaves whose stems have this first byte, ascending.
    fn leaves(&self, first: u8) -> Result<impl Iterator<Item = BuildLeaf>, StateError> {
        let mut names = self.check.view.scan(STEMS, &[first], &[])?;
        let mut ready = Vec::new().into_iter();
        Ok(std::iter::from_fn(move || {
            loop {
                if let Some(leaf) = ready.next() {
                    return Some(leaf);
                }
                let together = names.by_ref().take(TOGETHER);
                let made = together
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(StateError::from);
                match made.and_then(|entries| self.leaves_of(&entries)) {
                    Ok(None) => return None,
                    Ok(Some(leaves)) => ready = leaves.into_iter(),
                    Err(error) => {
                        self.stop(error);
                        return None;
                    }
                }
            }
        }))
    }

    /// The leaves of named stems; `None` if there are no stems.
    fn leaves_of(
        &self,
        entries: &[(Box<[u8]>, Value)],
    ) -> Result<Option<Vec<BuildLeaf>>, StateError> {
        if entries.is_empty() {
            return Ok(None);
        }
        let (mut stems, mut names) = (Vec::new(), Vec::new());
        for (key, bytes) in entries {
            match (Stem::try_from(&key[..]), StemName::decode(key, bytes)) {
                (Ok(stem), Ok(name)) => {
                    stems.push(stem);
                    names.push(name);
                    self.check.looked_up(STEMS, key, bytes)?;
                }
                (Err(_), _) => self.fault(format!("a stem of {} bytes", key.len())),
                (_, Err(error)) => self.fault(error.to_string()),
            }
        }
        let view = self.check.view;
        let leaves = Leaves {
            flat: &view,
            view,
            layout: self.verkle.settings().layout,
        };
        let mut made = Vec::with_capacity(stems.len());
        let computed = self.verkle.stems().of(&names);
        for ((stem, name), computed) in stems.into_iter().zip(names).zip(computed) {
            if stem != computed {
                self.fault(format!(
                    "stem {}: its name is {name:?}, whose stem is {}",
                    hex::encode(stem),
                    hex::encode(computed)
                ));
                continue;
            }
            let StemLeaves {
                values,
                accounts,
                slots,
            } = match leaves.under(&name) {
                Ok(leaves) => leaves,
                Err(error @ (StateError::Corrupt { .. } | StateError::MissingCode(_))) => {
                    self.fault(format!("account {}: {error}", name.address));
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.accounts.fetch_add(accounts, Ordering::Relaxed);
            self.slots.fetch_add(slots, Ordering::Relaxed);
            // A stem that a rollback has emptied keeps its name.
            if !values.is_empty() {
                made.push((stem, values));
            }
        }
        Ok(Some(made))
    }

    /// Looks at every account and slot, and whether each was reached through the name of a stem.
    fn every_record_has_its_leaf(&self) -> Result<(), StateError> {
        let check = self.check;
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            for entry in check.view.scan(ACCOUNTS, &[first], &[])? {
                let (key, bytes) = entry?;
                check.looked_up(ACCOUNTS, &key, &bytes)?;
                check.count(&check.counts.accounts);
                let code_hash =
                    AccountRecord::decode(&key, &bytes).map(|record| record.code_hash());
                match code_hash {
                    Ok(KECCAK256_EMPTY) => {}
                    Ok(hash) if check.has_code(hash)? => {}
                    Ok(hash) => self.fault(format!(
                        "account {}: code {hash} is missing",
                        hex::encode(&key)
                    )),
                    Err(error) => self.fault(error.to_string()),
                }
            }
            for entry in check.view.scan(SLOTS, &[first], &[])? {
                let (key, bytes) = entry?;
                check.looked_up(SLOTS, &key, &bytes)?;
                check.count(&check.counts.slots);
            }
            Ok::<(), StateError>(())
        })?;
        let pairs = [
            ("accounts", &check.counts.accounts, &self.accounts),
            ("slots", &check.counts.slots, &self.slots),
        ];
        for (what, stored, reached) in pairs {
            let (stored, reached) = (
                stored.load(Ordering::Relaxed),
                reached.load(Ordering::Relaxed),
            );
            if stored != reached {
                self.fault(format!(
                    "{stored} {what} are stored, {reached} lie under a stem whose name is known"
                ));
            }
        }
        Ok(())
    }

    fn node(&self, key: &NodeKey, built: &[u8]) {
        self.check.counts.nodes.fetch_add(1, Ordering::Relaxed);
        let stored = match self.check.view.get(NODES, &key.encode()) {
            Ok(Some(stored)) => stored,
            Ok(None) => return self.fault(format!("the node at {key}: missing")),
            Err(error) => return self.stop(error.into()),
        };
        match agree(key, built, &stored) {
            Ok(true) => {}
            Ok(false) => self.fault(format!(
                "the node at {key}: it differs from what the flat state gives"
            )),
            Err(error) => self.fault(format!("the node at {key}: {error}")),
        }
    }

    fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }

    fn stop(&self, error: StateError) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        stopped.get_or_insert(error);
    }
}

/// Whether a stored record says what the built one does, as far as its form says anything.
fn agree(key: &NodeKey, built: &[u8], stored: &[u8]) -> Result<bool, RecordError> {
    Ok(
        match (Record::decode(key, built)?, Record::decode(key, stored)?) {
            (Record::Internal(built), Record::Internal(stored)) => {
                built.leaves == stored.leaves
                    && built.internals == stored.internals
                    && built.commitment == stored.commitment
                    && stored.image.is_none_or(|image| built.image == Some(image))
            }
            (Record::Leaf(built), Record::Leaf(stored)) => {
                let commitment = stored.commitment;
                built.stem == stored.stem
                    && built.suffixes == stored.suffixes
                    && built.halves == stored.halves
                    && commitment.is_none_or(|point| built.commitment == Some(point))
                    && stored.image.is_none_or(|image| built.image == Some(image))
            }
            _ => false,
        },
    )
}

/// Counts stored nodes: another number than were built means nodes that nothing leads to, or that a scan does not see.
fn spare_nodes(check: &Check<'_>) -> Result<(), StateError> {
    let count = |prefix: &[u8]| -> Result<u64, StateError> {
        let mut entries = check.view.scan(NODES, prefix, prefix)?;
        entries.try_fold(0, |count, entry| Ok(entry.map(|_| count + 1)?))
    };
    let depths = (0..=u8::MAX).into_par_iter().map(|depth| count(&[depth]));
    let depths: Result<Vec<u64>, StateError> = depths.collect();
    let without_key = u64::from(check.view.get(NODES, &[])?.is_some());
    let stored = depths?.into_iter().sum::<u64>() + without_key;
    let built = check.counts.nodes.load(Ordering::Relaxed);
    if stored > built {
        let spare = stored - built;
        check.tell_fault(format!("{spare} nodes are stored that nothing leads to"));
    } else if stored < built {
        let unseen = built - stored;
        check.tell_fault(format!("{unseen} nodes are not found by a scan"));
    }
    Ok(())
}

impl StepsBack for Undone<'_> {
    fn back(&mut self, to: &Meta, undo: &[Write], now: Lookup<'_>) -> Result<(), StateError> {
        Undone::back(self, to, undo, now)
    }
}
