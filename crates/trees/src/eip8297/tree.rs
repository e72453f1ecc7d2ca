//! EIP-8297 as a choice: its row and what it supplies.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_state_tree::conformance::ModelOf;
use arbor_state_tree::{
    AccountSlots, AccountSource, BlockMemory, Build, Check, CheckedPart, Computed, FlatRecords,
    KeyValue, Lookup, Nodes, RootPlace, RootThreads, Seen, StateChanges, StateError, StateTree,
    StateWitness, StoredAs, StoredRecord, Then, Touched, TreeKind, WitnessForm, Witnesses, Zeros,
    one_by_one, own_mut,
};
use arbor_store::Write;
use arbor_tree_eip8297::Hasher;
use arbor_verify::Proof;
use arbor_versions::{Meta, Versions, View};

use super::prove::{block_nodes, prove_account, prove_accounts};
use super::reader::RECORDS;
use super::settings::NAME;
use super::{Eip8297, TABLES, compute, inspect, load, verify};
use crate::binary::{SETTINGS, Undone};

/// Layout of flat records and node records; a change of either raises it.
const LAYOUT: u32 = 1;

/// The row of [`Eip8297`].
pub static EIP8297: TreeKind = TreeKind {
    name: NAME,
    stored_as: StoredAs {
        tree: NAME,
        revision: "2026-08-06",
    },
    summary: "Partitioned binary tree (EIP-8297, 6 August 2026)",
    layout: LAYOUT,
    tables: &TABLES,
    roots: RootPlace::Apart,
    zeros: Zeros::Forgotten,
    hashes: &Hasher::NAMES,
    settings: &SETTINGS,
    verify: &arbor_verify::eip8297::VERIFY,
    has_witnesses: true,
    threads: RootThreads::Own,
    block_memory: BlockMemory {
        first: 900,
        later: 2_300,
    },
    model: MODEL,
    make: |settings| {
        EIP8297.check(settings)?;
        Ok(Arc::new(Eip8297::of(settings)?))
    },
};

#[cfg(feature = "conformance")]
const MODEL: Option<ModelOf> = Some(|tree| {
    let tree: &Eip8297 = tree.downcast().expect("a tree of this row");
    Box::new(super::model::Partitioned(tree.hasher))
});
#[cfg(not(feature = "conformance"))]
const MODEL: Option<ModelOf> = None;

impl StateTree for Eip8297 {
    fn kind(&self) -> &'static TreeKind {
        &EIP8297
    }

    fn hash(&self) -> &'static str {
        self.hasher.name()
    }

    fn empty_root(&self) -> B256 {
        B256::ZERO
    }

    fn records(&self) -> &dyn FlatRecords {
        &RECORDS
    }

    fn sort_bytes(&self) -> usize {
        self.sort_bytes
    }

    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError> {
        one_by_one(changes, |changes| compute::compute(*self, view, changes))
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
        Ok(Box::new(prove_accounts(*self, then, accounts)?))
    }

    fn key_value(&self) -> Option<&dyn KeyValue> {
        Some(self)
    }

    fn witnesses(&self) -> Option<&dyn Witnesses> {
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
        own_mut::<Undone>(nodes).step((self, view), to, then, now)
    }

    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError> {
        let mut nodes = Undone::default();
        let now = |table, key: &[u8]| Ok(view.get(table, key)?);
        nodes.step((self, view), to, undo, &now)?;
        Ok(nodes.into_writes())
    }

    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
        verify::check_part(check, *self, firsts)
    }

    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError> {
        verify::check_join(check, *self, &parts)
    }

    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        inspect::inspect(*self, record, see)
    }
}

impl Witnesses for Eip8297 {
    fn form(&self) -> WitnessForm {
        WitnessForm::Nodes
    }

    fn of_block(&self, then: &dyn Then, touched: Touched<'_>) -> Result<StateWitness, StateError> {
        block_nodes(*self, then, touched)
    }
}
