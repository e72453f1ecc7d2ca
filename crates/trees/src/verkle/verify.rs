//! Checking a Verkle database: the tree rebuilt from the flat tables, in the order of stems, and compared node by node.

use std::iter::Peekable;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::failed;
use alloy_primitives::{B256, Bytes};
use arbor_store::Value;
use arbor_tree_verkle::{
    BuildLeaf, Form, Half, LeafRecord, NodeKey, Part, Record, RecordError, Settings, build_part,
    join, whole_values,
};
use arbor_versions::{Entries, Entry};
use rayon::prelude::*;

use super::{NODES, Verkle};
use crate::stems::{OrderedLeaves, RecordCheck, UnderStem, check_records, first_bytes};
use arbor_state_tree::{Check, CheckedPart, StateError, corrupt};

/// The number of stored nodes that the flat state does not give.
const SPARE: &str = "spareNodes";

/// Rebuilds the subtrees of some first bytes and compares them with what is stored; reads the records of accounts and slots.
pub(crate) fn check_part(
    check: &Check<'_>,
    verkle: &Verkle,
    firsts: &[u8],
) -> Result<CheckedPart, StateError> {
    let (depths, spare) = check.path_lengths(NODES, 1)?;
    let mut rebuild = Rebuild::new(check, verkle);
    rebuild.depths = depths;
    if firsts.contains(&0) {
        *rebuild.spare.get_mut() = spare;
    }
    let subtrees = rebuild.subtrees(firsts)?;
    let spare = rebuild.finish()?;
    let mut part = rebuild
        .records
        .finish(subtrees, (firsts, verkle.settings().sort_bytes))?;
    part.sums.insert(SPARE.to_owned(), spare);
    Ok(part)
}

/// Whether two records of a node say the same, as far as each says anything: points that are kept in place of a few values, or the other way round,
/// depend on what the leaf had before.
pub(crate) fn is_same_node(
    verkle: &Verkle,
    key: &[u8],
    records: [&[u8]; 2],
) -> Result<bool, StateError> {
    fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
        one.is_none() || other.is_none() || one == other
    }
    let unread = |_| corrupt("nodes", key, "not a node's record");
    let at = NodeKey::decode(key).map_err(|_| corrupt("nodes", key, "not a node's place"))?;
    let [one, other] = records.map(|record| Record::decode(&at, record).map_err(unread));
    Ok(match (one?, other?) {
        (Record::Internal(one), Record::Internal(other)) => {
            one.leaves == other.leaves
                && one.internals == other.internals
                && one.commitment == other.commitment
                && agree(&one.image, &other.image)
        }
        (Record::Leaf(one), Record::Leaf(other)) => {
            let [values, others] = records.map(|record| whole_values(&at, record).map_err(unread));
            let points = || {
                let both = [one, other];
                let points = LeafRecord::commitments(verkle.stems().committer(), &both);
                points[0] == points[1]
            };
            one.stem == other.stem
                && one.suffixes == other.suffixes
                && agree(&one.commitment, &other.commitment)
                && agree(&one.image, &other.image)
                && agree(&values?, &others?)
                && (one.halves == other.halves || points())
        }
        _ => false,
    })
}

/// Rebuilds the root and compares it with what is stored; returns the Merkle-Patricia root of the flat tables, zero if they
/// have none.
pub(crate) fn check_join(
    check: &Check<'_>,
    verkle: &Verkle,
    parts: &[CheckedPart],
) -> Result<B256, StateError> {
    let stored = check.root(verkle);
    let rebuild = Rebuild::new(check, verkle);
    let root = rebuild.root(parts)?;
    if root != stored {
        check.tell_fault(format!(
            "root: the flat state gives {root}, the head has {stored}"
        ));
    }
    let spare = rebuild.finish()? + CheckedPart::sum(parts, SPARE);
    if spare > 0 {
        check.tell_fault(format!("{spare} nodes are stored that nothing leads to"));
    }
    check_records(check, parts)
}

/// A leaf as it was built and as it is stored.
type TwoLeaves = (NodeKey, [LeafRecord; 2]);

/// Leaves whose points are computed together.
const POINTS_COMPUTED_TOGETHER: usize = 1024;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Rebuild<'a> {
    check: &'a Check<'a>,
    verkle: &'a Verkle,
    /// The depths that stored nodes have.
    depths: Vec<u8>,
    /// Stored nodes that the flat state does not give.
    spare: AtomicU64,
    records: RecordCheck<'a>,
    /// Leaves that agree if their points do.
    unsettled: Mutex<Vec<TwoLeaves>>,
    /// Why the check cannot go on.
    stopped: Mutex<Option<StateError>>,
}

/// The stored nodes of one depth whose paths begin alike, as far as they have not been compared.
struct Depth<'a> {
    depth: u8,
    rest: Peekable<Entries<'a>>,
}

impl<'a> Rebuild<'a> {
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

    fn new(check: &'a Check<'a>, verkle: &'a Verkle) -> Self {
        Self {
            check,
            verkle,
            depths: Vec::new(),
            spare: AtomicU64::new(0),
            records: RecordCheck::new(check, verkle.settings().layout),
            unsettled: Mutex::default(),
            stopped: Mutex::new(None),
        }
    }

    fn subtrees(&self, firsts: &[u8]) -> Result<Vec<Bytes>, StateError> {
        let committer = self.verkle.stems().committer();
        let mut subtrees: Vec<Bytes> = Vec::with_capacity(firsts.len());
        let leaf_bytes = self.verkle.settings().leaf_bytes;
        for firsts in first_bytes(self.check.view, firsts, leaf_bytes)? {
            // A record that cannot be read is reported once, when every record is read.
            let leaves =
                OrderedLeaves::read(self.check.view, self.verkle.stems(), &firsts, &|_| Ok(()))?;
            let of_first = firsts.into_par_iter().map(|first| {
                let mut stored: Vec<Depth<'_>> = self.depths_below(first)?;
                let leaves = leaves.take(first);
                let leaves = leaves.stems().map_while(|under| self.leaf(&under));
                let mut sink = |key, record: Arc<[u8]>| self.node(&key, &record, &mut stored);
                let part = build_part(committer, &Self::SETTINGS, leaves.flatten(), &mut sink)
                    .map_err(failed)?;
                self.count_rest(stored);
                self.check.part_done();
                Ok(part.encode().into())
            });
            let of_first: Result<Vec<Bytes>, StateError> = of_first.collect();
            subtrees.extend(of_first?);
        }
        Ok(subtrees)
    }

    fn root(&self, parts: &[CheckedPart]) -> Result<B256, StateError> {
        let committer = self.verkle.stems().committer();
        let subtrees = CheckedPart::all_subtrees(parts).map(|bytes| {
            Part::decode(bytes).ok_or_else(|| corrupt("parts", bytes, "not a part of the tree"))
        });
        let subtrees: Vec<Part> = subtrees.collect::<Result<_, _>>()?;
        let mut stored = vec![self.stored(0, &[0])?];
        let mut sink = |key, record: Arc<[u8]>| self.node(&key, &record, &mut stored);
        let root = join(committer, &Self::SETTINGS, subtrees, &mut sink).map_err(failed)?;
        self.count_rest(stored);
        Ok(root.to_bytes().into())
    }

    /// Compares the leaves that wait. Returns the number of stored nodes that the flat state does not give.
    fn finish(&self) -> Result<u64, StateError> {
        let unsettled = lock(&self.unsettled).split_off(0);
        self.settle(&unsettled);
        match lock(&self.stopped).take() {
            Some(error) => Err(error),
            None => Ok(self.spare.load(Ordering::Relaxed)),
        }
    }

    /// The stored nodes whose paths begin with a byte.
    fn depths_below(&self, first: u8) -> Result<Vec<Depth<'_>>, StateError> {
        let depths = self.depths.iter().filter(|depth| **depth > 0);
        depths
            .map(|depth| self.stored(*depth, &[*depth, first]))
            .collect()
    }

    fn stored(&self, depth: u8, prefix: &[u8]) -> Result<Depth<'_>, StateError> {
        let rest = self.check.scan(NODES, prefix, &[])?.peekable();
        Ok(Depth { depth, rest })
    }

    /// The leaf of a stem, nothing if it cannot be known; `None` where the check cannot go on.
    fn leaf(&self, under: &UnderStem<'_>) -> Option<Option<BuildLeaf>> {
        match self.records.values(under) {
            Ok(values) => Some((!values.is_empty()).then_some((under.stem, values))),
            Err(error) => {
                self.stop(error);
                None
            }
        }
    }

    /// Holds a node to the one that is stored. Of all nodes at one depth each comes after those before it.
    fn node(&self, key: &NodeKey, built: &[u8], stored: &mut [Depth<'_>]) {
        self.check.counts.nodes.fetch_add(1, Ordering::Relaxed);
        let found = match self.find(key.encode(), stored) {
            Ok(found) => found,
            Err(error) => return self.stop(error),
        };
        let Some(found) = found else {
            return match self.check.view.get(NODES, key.encode()) {
                Ok(None) => self.fault(format!("the node at {key}: missing")),
                Ok(Some(_)) => self.fault(format!("the node at {key}: a scan does not find it")),
                Err(error) => self.stop(error.into()),
            };
        };
        match self.agree(key, built, &found) {
            Ok(true) => {}
            Ok(false) => self.differs(key),
            Err(error) => self.fault(format!("the node at {key}: {error}")),
        }
    }

    /// The next node of a depth, if it has this key; those before it are spare.
    fn find(&self, key: &[u8], stored: &mut [Depth<'_>]) -> Result<Option<Value>, StateError> {
        let Some(Depth { rest, .. }) = stored.iter_mut().find(|at| at.depth == key[0]) else {
            return Ok(None);
        };
        let is_before =
            |entry: &Result<Entry, _>| entry.as_ref().is_ok_and(|(other, _)| **other < *key);
        while rest.next_if(is_before).is_some() {
            self.spare.fetch_add(1, Ordering::Relaxed);
        }
        let is_it =
            |entry: &Result<Entry, _>| entry.as_ref().map_or(true, |(other, _)| **other == *key);
        let found = rest.next_if(is_it).transpose()?;
        Ok(found.map(|(_, record)| record))
    }

    /// Counts nodes that were not asked for.
    fn count_rest(&self, stored: Vec<Depth<'_>>) {
        for entry in stored.into_iter().flat_map(|at| at.rest) {
            match entry {
                Ok(_) => drop(self.spare.fetch_add(1, Ordering::Relaxed)),
                Err(error) => return self.stop(error.into()),
            }
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
            (unsettled.len() >= POINTS_COMPUTED_TOGETHER).then(|| unsettled.split_off(0))
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
