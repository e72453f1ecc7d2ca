//! Merkle-Patricia as a choice: its row and what it supplies.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_store::Write;
use arbor_tree_mpt::EMPTY_ROOT;
use arbor_verify::Proof;
use arbor_verify::mpt::{ManyAccounts, PendingRoots, TouchedNames, witness_nodes};
use arbor_versions::{Meta, Versions, View};

use super::flat_records::Records;
use super::keys::{LAYOUT, TABLES};
use super::undo::Undone;
use super::{AtHead, AtVersion, compute, inspect, load, prove_account, undo, verify};
use arbor_state_tree::Build;
use arbor_state_tree::conformance::ModelOf;
use arbor_state_tree::{
    AccountSlots, AccountSource, Computed, FlatRecords, IntermediateRoots, Lookup, StateChanges,
    StateError, StateTree,
};
use arbor_state_tree::{BlockMemory, RootPlace, RootThreads, StoredAs, TreeKind, Zeros};
use arbor_state_tree::{Check, CheckedPart};
use arbor_state_tree::{
    InnerRoots, Nodes, Opened, StateWitness, Then, Touched, WitnessForm, Witnesses, own_mut,
};
use arbor_state_tree::{Seen, StoredRecord};

/// Merkle-Patricia tries, hashed with Keccak-256: what headers commit to (Yellow Paper, section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MerklePatricia;

/// The row of [`MerklePatricia`].
pub static MPT: TreeKind = TreeKind {
    name: "mpt",
    stored_as: StoredAs {
        tree: "merkle-patricia",
        revision: "yellow-paper",
    },
    summary: "Merkle-Patricia (yellow paper, in use since 2015), Keccak-256",
    layout: LAYOUT,
    tables: &TABLES,
    roots: RootPlace::InHeaders,
    zeros: Zeros::Forgotten,
    hashes: &["keccak256"],
    settings: &[],
    verify: &arbor_verify::mpt::VERIFY,
    has_witnesses: true,
    threads: RootThreads::Own,
    block_memory: BlockMemory {
        first: 950,
        later: 3_900,
    },
    model: MODEL,
    make: |settings| {
        MPT.check(settings)?;
        Ok(Arc::new(MerklePatricia))
    },
};

#[cfg(feature = "conformance")]
const MODEL: Option<ModelOf> = Some(|_| Box::new(super::model::Tries));
#[cfg(not(feature = "conformance"))]
const MODEL: Option<ModelOf> = None;

impl StateTree for MerklePatricia {
    fn kind(&self) -> &'static TreeKind {
        &MPT
    }

    fn hash(&self) -> &'static str {
        MPT.hashes[0]
    }

    fn empty_root(&self) -> B256 {
        EMPTY_ROOT.into()
    }

    fn records(&self) -> &dyn FlatRecords {
        &Records
    }

    fn sort_bytes(&self) -> usize {
        // The flat tables are in the order of the trie.
        0
    }

    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError> {
        arbor_state_tree::one_by_one(changes, |changes| compute::compute(AtHead(view), changes))
    }

    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        load::load(versions, source, progress)
    }

    fn build(&self) -> Option<&dyn Build> {
        Some(self)
    }

    fn prove(&self, then: &dyn Then, account: &AccountSlots) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(prove_account(&AtVersion(then), account)?))
    }

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        let state = AtVersion(then);
        let accounts = accounts
            .iter()
            .map(|account| prove_account(&state, account));
        Ok(Box::new(ManyAccounts {
            accounts: accounts.collect::<Result<_, _>>()?,
        }))
    }

    fn witnesses(&self) -> Option<&dyn Witnesses> {
        Some(self)
    }

    fn inner_roots(&self) -> Option<&dyn InnerRoots> {
        Some(self)
    }

    fn nodes(&self, view: View<'_>) -> Nodes {
        Box::new(Undone::new(view))
    }

    fn step(
        &self,
        view: View<'_>,
        nodes: &mut Nodes,
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        own_mut::<Undone>(nodes).step(view, to, then, now)
    }

    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError> {
        undo::writes_back(view, to, undo)
    }

    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
        verify::check_part(check, firsts)
    }

    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError> {
        verify::check_join(check, &parts, check.root(self))
    }

    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        inspect::inspect(record, see)
    }
}

impl Witnesses for MerklePatricia {
    fn form(&self) -> WitnessForm {
        WitnessForm::Nodes
    }

    fn of_block(&self, then: &dyn Then, touched: Touched<'_>) -> Result<StateWitness, StateError> {
        let names = TouchedNames {
            reads: touched.reads,
            changes: touched.changes,
            transactions: touched.transactions,
        };
        let nodes = witness_nodes(&AtVersion(then), names)?;
        let opened = Opened {
            nodes: Some(nodes.len() as u64),
            stems: None,
            leaves: touched_leaves(touched),
        };
        Ok(StateWitness::Nodes { nodes, opened })
    }
}

/// Counts the accounts and slots that a block reads or changes.
fn touched_leaves(touched: Touched<'_>) -> u64 {
    let mut names = touched.reads.clone();
    let changes = std::iter::once(touched.changes).chain(touched.transactions);
    for (address, change) in changes.flat_map(|changes| &changes.accounts) {
        let slots = names.entry(*address).or_default();
        slots.extend(change.slots.keys());
    }
    names.values().map(|slots| 1 + slots.len() as u64).sum()
}

impl InnerRoots for MerklePatricia {
    fn at_head<'a>(&self, view: View<'a>) -> Box<dyn IntermediateRoots + 'a> {
        Box::new(PendingRoots::new(AtHead(view)))
    }

    fn at_version<'a>(&self, then: &'a dyn Then) -> Box<dyn IntermediateRoots + 'a> {
        Box::new(PendingRoots::new(AtVersion(then)))
    }
}
