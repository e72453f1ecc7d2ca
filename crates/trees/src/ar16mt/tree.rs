//! AR16MT as a choice: its row and what it supplies.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_store::Write;
use arbor_tree::Hash;
use arbor_versions::{Meta, Version, Versions, View};

use super::LeafWrite;
use super::compute::{compute_leaves, compute_new, compute_proven, name_write};
use super::multi::{prove_many, storage_logs};
use super::names::Named;
use super::nodes::{AtHead, Undone};
use super::parts::leaves_between;
use super::prove::prove_account;
use super::range::prove_range;
use super::reader::Records;
use super::settings::SETTINGS;
use super::{Ar16mt, TABLES, compute, history, inspect, load, verify};
use super::{Entry, NAMES};
use arbor_state_tree::Build;
use arbor_state_tree::conformance::ModelOf;
use arbor_state_tree::{
    AccountSlots, AccountSource, Computed, FlatRecords, Lookup, StateChanges, StateError, StateTree,
};
use arbor_state_tree::{BlockMemory, RootPlace, RootThreads, StoredAs, TreeKind, Zeros};
use arbor_state_tree::{Check, CheckedPart};
use arbor_state_tree::{KeyValue, Leaves, Nodes, Then, own_mut};
use arbor_state_tree::{LeafEntries, LeafLogs, LeafNames, LeafStats, ProvenLeaves};
use arbor_state_tree::{Seen, StoredRecord};
use arbor_verify::Proof;

/// Layout of flat records and node records.
const LAYOUT: u32 = 1;

/// The row of [`Ar16mt`].
pub static AR16MT: TreeKind = TreeKind {
    name: "ar16mt",
    stored_as: StoredAs {
        tree: "ar16mt",
        // How accounts and slots lie in the tree: the tree itself has one form.
        revision: "accounts-beside-storage-1",
    },
    summary: "zkSync's binary tree (amortized radix-16 Merkle tree, commit 3e29e4a), BLAKE2s",
    layout: LAYOUT,
    tables: &TABLES,
    roots: RootPlace::Apart,
    zeros: Zeros::Kept,
    hashes: &["blake2s256", "no_op256"],
    settings: &SETTINGS,
    verify: &arbor_verify::ar16mt::VERIFY,
    has_witnesses: false,
    threads: RootThreads::Own,
    block_memory: BlockMemory {
        first: 640,
        later: 2_300,
    },
    model: MODEL,
    make: |settings| {
        AR16MT.check(settings)?;
        Ok(Arc::new(Ar16mt::of(settings)))
    },
};

#[cfg(feature = "conformance")]
const MODEL: Option<ModelOf> = Some(|_| Box::new(super::model::Numbered::default()));
#[cfg(not(feature = "conformance"))]
const MODEL: Option<ModelOf> = None;

impl StateTree for Ar16mt {
    fn kind(&self) -> &'static TreeKind {
        &AR16MT
    }

    fn hash(&self) -> &'static str {
        self.hash.name()
    }

    fn empty_root(&self) -> B256 {
        Ar16mt::empty_root(*self)
    }

    fn records(&self) -> &dyn FlatRecords {
        &Records
    }

    fn sort_bytes(&self) -> usize {
        self.sort_bytes
    }

    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError> {
        arbor_state_tree::one_by_one(changes, |changes| compute::compute(*self, view, changes))
    }

    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        load::load(*self, versions, source, progress)
    }

    fn build(&self) -> Option<&dyn Build> {
        Some(self)
    }

    fn prove(&self, then: &dyn Then, account: &AccountSlots) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(prove_account(*self, then, account)?))
    }

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(prove_many(*self, then, accounts)?))
    }

    fn leaves(&self) -> Option<&dyn Leaves> {
        Some(self)
    }

    fn key_value(&self) -> Option<&dyn KeyValue> {
        Some(self)
    }

    fn nodes(&self, _: View<'_>) -> Nodes {
        Box::new(Undone::default())
    }

    fn step(
        &self,
        view: View<'_>,
        nodes: &mut Nodes,
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let ar16mt = *self;
        own_mut::<Undone>(nodes).step(AtHead { view, ar16mt }, to, then, now)
    }

    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError> {
        let (mut nodes, ar16mt) = (Undone::default(), *self);
        let now = |table, key: &[u8]| Ok(view.get(table, key)?);
        nodes.step(AtHead { view, ar16mt }, to, undo, &now)?;
        Ok(nodes.into_writes())
    }

    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
        verify::check_part(check, *self, firsts)
    }

    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError> {
        verify::check_join(check, *self, &parts)
    }

    fn check_history(
        &self,
        check: &Check<'_>,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        history::check_history(check, *self, (oldest, newest))
    }

    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        inspect::inspect(record, see)
    }
}

impl Leaves for Ar16mt {
    fn compute(
        &self,
        view: View<'_>,
        writes: &[LeafWrite],
    ) -> Result<(Computed, LeafStats), StateError> {
        compute_leaves(*self, view, writes)
    }

    fn compute_proven(
        &self,
        view: View<'_>,
        writes: &[LeafWrite],
        reads: &[Hash],
    ) -> Result<ProvenLeaves, StateError> {
        compute_proven(*self, view, writes, reads)
    }

    fn prove_range(
        &self,
        then: &dyn Then,
        range: (B256, B256),
    ) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(prove_range(*self, then, range)?))
    }

    fn compute_new(
        &self,
        view: View<'_>,
        leaves: &[LeafWrite],
    ) -> Result<Result<Computed, Hash>, StateError> {
        compute_new(*self, view, leaves)
    }

    fn entries<'a>(&self, then: &'a dyn Then) -> Result<LeafEntries<'a>, StateError> {
        let leaves = leaves_between(then, ([0; 32], [u8::MAX; 32]))?.map(|leaf| {
            let (key, Entry { index, value }) = leaf?;
            Ok(LeafWrite { key, index, value })
        });
        Ok(Box::new(leaves))
    }

    fn names<'a>(&self, view: View<'a>) -> Result<LeafNames<'a>, StateError> {
        let names = view
            .scan(NAMES, &[], &[])?
            .map(|entry| Ok(entry?.0.into_vec()));
        Ok(Box::new(names))
    }

    fn name_write(&self, name: &[u8]) -> Option<Write> {
        let named = Named::decode(name).ok()?;
        Some(name_write(named, &named.leaf().key()))
    }

    fn storage_logs(&self, before: &dyn Then, then: &dyn Then) -> Result<LeafLogs, StateError> {
        let logs = storage_logs(*self, (before, then))?;
        Ok(LeafLogs {
            bytes: logs.encode(),
            count: logs.logs.len(),
            next_index: logs.next_enumeration_index,
        })
    }
}
