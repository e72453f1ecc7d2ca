//! EIP-7864 as a choice: its rows and what it supplies.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_state_tree::conformance::ModelOf;
use arbor_state_tree::{
    AccountSlots, AccountSource, BlockMemory, Build, Check, CheckedPart, Computed, FlatRecords,
    Lookup, Nodes, RootPlace, RootThreads, Seen, SettingError, Settings, StateChanges, StateError,
    StateTree, StateWitness, StoredAs, StoredRecord, Then, Touched, Tree, TreeKind, WitnessForm,
    Witnesses, Zeros, one_by_one, own_mut,
};
use arbor_store::Write;
use arbor_tree_eip7864::HashFunction;
use arbor_verify::Proof;
use arbor_verify::eip7864::Revision;
use arbor_versions::{Meta, Versions, View};

use super::prove::{block_proof, prove_accounts};
use super::{Eip7864, TABLES, compute, inspect, load, verify};
use crate::binary::{SETTINGS, Undone};
use crate::stems;

/// Layout of flat records and node records; a change of either raises it.
const LAYOUT: u32 = 1;

/// The row of the revision of 9 March 2026. With SHA-256 it is go-ethereum's tree.
pub static EIP7864: TreeKind = row(
    "eip7864",
    "Unified binary tree (EIP-7864, 9 March 2026)",
    Revision::B,
    |settings| make(&EIP7864, Revision::B, settings),
);

/// The row of the revision of January 2025.
pub static EIP7864_A: TreeKind = row(
    "eip7864-a",
    "Unified binary tree (EIP-7864, January 2025), little-endian indices",
    Revision::A,
    |settings| make(&EIP7864_A, Revision::A, settings),
);

const fn row(
    name: &'static str,
    summary: &'static str,
    revision: Revision,
    make: fn(&Settings) -> Result<Tree, SettingError>,
) -> TreeKind {
    TreeKind {
        name,
        stored_as: StoredAs {
            tree: "eip7864",
            revision: match revision {
                Revision::A => "2025-01",
                Revision::B => "2026-03-09",
            },
        },
        summary,
        layout: LAYOUT,
        tables: &TABLES,
        roots: RootPlace::Apart,
        zeros: Zeros::Kept,
        hashes: &HashFunction::NAMES,
        settings: &SETTINGS,
        verify: match revision {
            Revision::A => &arbor_verify::eip7864::VERIFY_A,
            Revision::B => &arbor_verify::eip7864::VERIFY,
        },
        has_witnesses: true,
        threads: RootThreads::Own,
        block_memory: BlockMemory {
            first: 900,
            later: 2_300,
        },
        model: MODEL,
        make,
    }
}

fn make(
    row: &'static TreeKind,
    revision: Revision,
    settings: &Settings,
) -> Result<Tree, SettingError> {
    row.check(settings)?;
    Ok(Arc::new(Eip7864::of(row.name, revision, settings)?))
}

#[cfg(feature = "conformance")]
const MODEL: Option<ModelOf> = Some(|tree| {
    let tree: &Eip7864 = tree.downcast().expect("a tree of this row");
    Box::new(super::model::Unified {
        revision: tree.revision,
        function: tree.hasher.0,
        leaves: Default::default(),
    })
});
#[cfg(not(feature = "conformance"))]
const MODEL: Option<ModelOf> = None;

impl StateTree for Eip7864 {
    fn kind(&self) -> &'static TreeKind {
        match self.revision {
            Revision::A => &EIP7864_A,
            Revision::B => &EIP7864,
        }
    }

    fn hash(&self) -> &'static str {
        self.hasher.name()
    }

    fn empty_root(&self) -> B256 {
        B256::ZERO
    }

    fn records(&self) -> &dyn FlatRecords {
        &stems::RECORDS
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

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(prove_accounts(*self, then, accounts)?))
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

impl Witnesses for Eip7864 {
    fn form(&self) -> WitnessForm {
        WitnessForm::Nodes
    }

    fn of_block(&self, then: &dyn Then, touched: Touched<'_>) -> Result<StateWitness, StateError> {
        block_proof(*self, then, touched)
    }
}
