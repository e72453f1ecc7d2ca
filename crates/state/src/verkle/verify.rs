//! Checking a Verkle database: the tree rebuilt from the flat tables, in the order of stems, and compared node by node.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{B256, KECCAK256_EMPTY, hex};
use arbor_store::Write;
use arbor_tree_verkle::{
    BuildLeaf, Form, Half, LeafRecord, NodeKey, Part, Record, RecordError, Settings, build_part,
    join, whole_values,
};
use arbor_versions::Meta;
use rayon::prelude::*;

use super::ordered::{first_bytes, named_stems};
use super::records::AccountRecord;
use super::stems::NamedStem;
use super::values::{Leaves, StemLeaves};
use super::{NODES, Undone, Verkle, flat_root};
use crate::flat::Lookup;
use crate::tables::{ACCOUNTS, SLOTS};
use crate::verify::{Check, StepsBack};
use crate::{Head, StateError};

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
        unsettled: Mutex::default(),
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

/// A leaf as it was built and as it is stored.
type TwoLeaves = (NodeKey, [LeafRecord; 2]);

/// Leaves whose points are computed together.
const TOGETHER: usize = 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Rebuild<'a> {
    check: &'a Check<'a>,
    verkle: &'a Verkle,
    /// Records that were reached through stems.
    accounts: AtomicU64,
    slots: AtomicU64,
    /// Leaves that agree if their points do.
    unsettled: Mutex<Vec<TwoLeaves>>,
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
            values: true,
            whole: true,
        },
        batched_images: true,
        batched_affine: true,
    };

    fn root(&self) -> Result<B256, StateError> {
        let committer = self.verkle.stems().committer();
        let mut sink = |key, record: std::sync::Arc<[u8]>| self.node(&key, &record);
        let mut parts: Vec<Part> = Vec::with_capacity(256);
        for firsts in first_bytes(self.check.view)? {
            let stems = named_stems(self.check.view, committer, &firsts)?;
            let of_first = firsts.into_par_iter().map(|first| {
                let from = stems.partition_point(|(stem, _)| stem[0] < first);
                let to = stems.partition_point(|(stem, _)| stem[0] <= first);
                let leaves = self.leaves(&stems[from..to]);
                let mut sink = |key, record: std::sync::Arc<[u8]>| self.node(&key, &record);
                let part = build_part(committer, &Self::SETTINGS, leaves, &mut sink)?;
                self.check.part_done();
                Ok(part)
            });
            let of_first: Result<Vec<Part>, StateError> = of_first.collect();
            parts.extend(of_first?);
        }
        let root = join(committer, &Self::SETTINGS, parts, &mut sink)?;
        let unsettled = lock(&self.unsettled).split_off(0);
        self.settle(&unsettled);
        match lock(&self.stopped).take() {
            Some(error) => Err(error),
            None => Ok(root.to_bytes().into()),
        }
    }

    /// The leaves of named stems, in their order.
    fn leaves<'s>(&'s self, stems: &'s [NamedStem]) -> impl Iterator<Item = BuildLeaf> + 's {
        stems
            .iter()
            .map_while(|named| match self.leaf(named) {
                Ok(leaf) => Some(leaf),
                Err(error) => {
                    self.stop(error);
                    None
                }
            })
            .flatten()
    }

    /// The leaf of a stem; none if its records cannot be read.
    fn leaf(&self, (stem, name): &NamedStem) -> Result<Option<BuildLeaf>, StateError> {
        let view = self.check.view;
        let leaves = Leaves {
            flat: &view,
            view,
            layout: self.verkle.settings().layout,
        };
        match leaves.under(name) {
            Ok(StemLeaves {
                values,
                accounts,
                slots,
            }) => {
                self.accounts.fetch_add(accounts, Ordering::Relaxed);
                self.slots.fetch_add(slots, Ordering::Relaxed);
                Ok((!values.is_empty()).then_some((*stem, values)))
            }
            Err(error @ (StateError::Corrupt { .. } | StateError::MissingCode(_))) => {
                self.fault(format!("account {}: {error}", name.address));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at every account and slot, and whether each was reached through a stem.
    fn every_record_has_its_leaf(&self) -> Result<(), StateError> {
        let check = self.check;
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            for entry in check.scan(ACCOUNTS, &[first], &[])? {
                let (key, bytes) = entry?;
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
            for entry in check.scan(SLOTS, &[first], &[])? {
                entry?;
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
                    "{stored} {what} are stored, {reached} lie under a stem"
                ));
            }
        }
        Ok(())
    }

    fn node(&self, key: &NodeKey, built: &[u8]) {
        self.check.counts.nodes.fetch_add(1, Ordering::Relaxed);
        let stored = match self.check.view.get(NODES, key.encode()) {
            Ok(Some(stored)) => stored,
            Ok(None) => return self.fault(format!("the node at {key}: missing")),
            Err(error) => return self.stop(error.into()),
        };
        match self.agree(key, built, &stored) {
            Ok(true) => {}
            Ok(false) => self.differs(key),
            Err(error) => self.fault(format!("the node at {key}: {error}")),
        }
    }

    /// Whether a stored record says what the built one does, as far as its form says anything. Where one keeps values and the other one points, only
    /// whether the rest agrees; the points are looked at with those of other leaves.
    fn agree(
        &self,
        key: &NodeKey,
        built_bytes: &[u8],
        stored_bytes: &[u8],
    ) -> Result<bool, RecordError> {
        let built = Record::decode(key, built_bytes)?;
        let stored = Record::decode(key, stored_bytes)?;
        Ok(match (built, stored) {
            (Record::Internal(built), Record::Internal(stored)) => {
                built.leaves == stored.leaves
                    && built.internals == stored.internals
                    && built.commitment == stored.commitment
                    && stored.image.is_none_or(|image| built.image == Some(image))
            }
            (Record::Leaf(built), Record::Leaf(stored)) => {
                let commitment = stored.commitment;
                let values = whole_values(key, stored_bytes)?;
                built.stem == stored.stem
                    && built.suffixes == stored.suffixes
                    && commitment.is_none_or(|point| built.commitment == Some(point))
                    && stored.image.is_none_or(|image| built.image == Some(image))
                    && (values.is_none() || values == whole_values(key, built_bytes)?)
                    // Last, for it may wait with its answer.
                    && self.halves_agree(key, built, stored)
            }
            _ => false,
        })
    }

    /// Whether two leaves have the same halves, or may have: then they wait until there are enough to be computed together.
    fn halves_agree(&self, key: &NodeKey, built: LeafRecord, stored: LeafRecord) -> bool {
        let points = |halves: [Half; 2]| halves.iter().all(|half| !matches!(half, Half::Values(_)));
        if built.halves == stored.halves || points(built.halves) && points(stored.halves) {
            return built.halves == stored.halves;
        }
        let full = {
            let mut unsettled = lock(&self.unsettled);
            unsettled.push((*key, [built, stored]));
            (unsettled.len() >= TOGETHER).then(|| unsettled.split_off(0))
        };
        self.settle(&full.unwrap_or_default());
        true
    }

    /// Compares the points of leaves.
    fn settle(&self, leaves: &[TwoLeaves]) {
        let both: Vec<LeafRecord> = leaves.iter().flat_map(|(_, both)| *both).collect();
        let points = LeafRecord::commitments(self.verkle.stems().committer(), &both);
        for ((key, _), points) in leaves.iter().zip(points.as_chunks::<2>().0) {
            if points[0] != points[1] {
                self.differs(key);
            }
        }
    }

    fn differs(&self, key: &NodeKey) {
        self.fault(format!(
            "the node at {key}: it differs from what the flat state gives"
        ));
    }

    fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }

    fn stop(&self, error: StateError) {
        lock(&self.stopped).get_or_insert(error);
    }
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
