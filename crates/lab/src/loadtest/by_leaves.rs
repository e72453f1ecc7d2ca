//! The part of the load test that is AR16MT's alone: leaves are written by key, below any account, get the indices of
//! zkSync's test, and can be proven.

use alloy_primitives::{B256, U256};
use arbor_state::{LeafProofs, LeafWrite, State, StateError, StateLeaves};
use arbor_trees::ar16mt::LeafName;
use rayon::prelude::*;

use super::figures::{TreeFigures, figures};
use super::{CONTRACT, LoadTestError, Outcome, SlotWrite};

/// Slots whose keys a thread finds together.
const SLOTS_KEYED_TOGETHER: usize = 1 << 12;
/// Proofs of each block that are checked, about.
const CHECKED: usize = 8;

/// The rule by which the leaves of an AR16MT tree get their indices, on which the root depends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Numbering {
    /// Leaves have the indices 1, 2, 3, ... in the order in which they were first written, and keep them. With this rule, 75 blocks of 150,000 leaves have
    /// the root that zksync-era publishes in `core/lib/merkle_tree/README.md`.
    #[default]
    Published,
    /// Leaf `j` of block `v` has the index `(v + 1) W + j`, where `W` is the number of writes of a block, updates included. The load test of zksync-era
    /// uses this rule at 3e29e4a: each write stores the number that is its value as the index of the leaf, too.
    Upstream,
}

impl Numbering {
    /// The setting with which a tree is made, so that a check of the whole database allows these indices.
    pub fn setting(self) -> Option<&'static str> {
        match self {
            Self::Published => None,
            Self::Upstream => Some("any-index"),
        }
    }

    /// The index of a slot's leaf while the slot holds a value.
    fn index(self, slot: u64, value: u64) -> u64 {
        match self {
            Self::Published => slot + 1,
            Self::Upstream => value,
        }
    }
}

/// What a block writes, and the keys of what it reads if all is to be proven.
pub(super) struct ByLeaves {
    writes: Vec<LeafWrite>,
    proven_reads: Option<Vec<[u8; 32]>>,
}

impl ByLeaves {
    /// Forms the writes of a block. `proven_reads`: the slots that it reads, if all operations are proven.
    pub(super) fn new(
        numbering: Numbering,
        changes: &[SlotWrite],
        proven_reads: Option<&[u64]>,
    ) -> Self {
        Self {
            writes: leaf_writes(numbering, changes),
            proven_reads: proven_reads.map(keys_of),
        }
    }

    pub(super) fn compute(&self, state: &State) -> Result<Outcome, LoadTestError> {
        let (computed, stats, proofs) = match &self.proven_reads {
            None => {
                let (computed, stats) = leaves(state)?.compute(&self.writes)?;
                (computed, stats, None)
            }
            Some(reads) => {
                let proven = leaves(state)?.compute_proven(&self.writes, reads)?;
                (proven.computed, proven.stats, Some(proven.proofs))
            }
        };
        let tree: TreeFigures = figures(&stats);
        Ok(Outcome {
            computed,
            tree: Some(tree),
            proofs,
        })
    }
}

/// A block whose proofs are checked.
pub(super) struct Proven<'a> {
    pub(super) block: u64,
    pub(super) numbering: Numbering,
    /// The root before it.
    pub(super) before: B256,
    pub(super) changes: &'a [SlotWrite],
    /// The slots that it reads.
    pub(super) reads: &'a [u64],
}

impl Proven<'_> {
    /// Compares some of the proofs, the first and the last among them, with what was written and read; returns how many
    /// there are. `value` is what a slot held before the block.
    pub(super) fn check(
        &self,
        proofs: &dyn LeafProofs,
        value: impl Fn(u64) -> u64,
    ) -> Result<u64, LoadTestError> {
        let count = proofs.count();
        let last = count.checked_sub(1);
        for operation in (0..count).step_by(1 + count / CHECKED).chain(last) {
            let before = match operation.checked_sub(1) {
                Some(last) => proofs.root_after(last),
                None => self.before.0,
            };
            let change = self.changes.get(operation);
            let slot = match change {
                Some(change) => change.slot,
                None => self.reads[operation - self.changes.len()],
            };
            let key = LeafName::Slot(CONTRACT, U256::from(slot)).key();
            let leaf = |number: u64| LeafWrite {
                key,
                index: self.numbering.index(slot, number),
                value: U256::from(number).to_be_bytes(),
            };
            let new = change.map(|change| leaf(change.new));
            let held = self.changes.iter().find(|change| change.slot == slot);
            let held = held.map_or_else(|| value(slot), |change| change.new);
            let is_read = new.is_some() || proofs.found(operation, &key) == Some(leaf(held));
            if !is_read || !proofs.holds(operation, &before, &key, new.as_ref()) {
                let block = self.block;
                return Err(LoadTestError::Proof { block, operation });
            }
        }
        Ok(count as u64)
    }
}

fn leaves(state: &State) -> Result<StateLeaves<'_>, StateError> {
    let none = || StateError::Read("the tree has no leaves by key".into());
    state.leaves().ok_or_else(none)
}

fn keys_of(slots: &[u64]) -> Vec<[u8; 32]> {
    let keys = slots
        .par_chunks(SLOTS_KEYED_TOGETHER)
        .flat_map_iter(slot_keys);
    keys.collect()
}

fn leaf_writes(numbering: Numbering, changes: &[SlotWrite]) -> Vec<LeafWrite> {
    let unset = LeafWrite {
        key: [0; 32],
        index: 0,
        value: [0; 32],
    };
    let mut writes = vec![unset; changes.len()];
    let parts = changes.par_chunks(SLOTS_KEYED_TOGETHER);
    let parts = parts.zip(writes.par_chunks_mut(SLOTS_KEYED_TOGETHER));
    parts.for_each(|(changes, writes)| {
        let slots: Vec<u64> = changes.iter().map(|change| change.slot).collect();
        let of_keys = slot_keys(&slots).into_iter().zip(changes);
        for (write, (key, change)) in writes.iter_mut().zip(of_keys) {
            *write = LeafWrite {
                key,
                index: numbering.index(change.slot, change.new),
                value: U256::from(change.new).to_be_bytes(),
            };
        }
    });
    writes
}

fn slot_keys(slots: &[u64]) -> Vec<[u8; 32]> {
    let name = |slot: &u64| LeafName::Slot(CONTRACT, U256::from(*slot));
    LeafName::keys(&slots.iter().map(name).collect::<Vec<_>>())
}
