//! Verkle as a choice: its rows and what it supplies.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_store::Write;
use arbor_verify::Proof;
use arbor_versions::{Meta, Versions, View};

use super::nodes::Undone;
use super::prove::{block_leaves, prove_accounts};
use super::settings::SETTINGS;
use super::{HeaderLayout, LAYOUT, TABLES, Verkle, VerkleSettings, compute, inspect, load, verify};
use crate::stems;
use arbor_state_tree::Build;
use arbor_state_tree::conformance::ModelOf;
use arbor_state_tree::{
    AccountSlots, AccountSource, Computed, FlatRecords, Lookup, SettingError, StateChanges,
    StateError, StateTree, Tree,
};
use arbor_state_tree::{BlockMemory, RootPlace, RootThreads, Settings, StoredAs, TreeKind, Zeros};
use arbor_state_tree::{Check, CheckedPart};
use arbor_state_tree::{Nodes, StateWitness, Then, Touched, WitnessForm, Witnesses, own_mut};
use arbor_state_tree::{Seen, StoredRecord};

/// The row of EIP-6800 since July 2024.
pub static VERKLE: TreeKind = row(
    "verkle",
    "Verkle (EIP-6800, text of July 2024), Pedersen commitments",
    HeaderLayout::BasicData,
    |settings| make(&VERKLE, HeaderLayout::BasicData, settings),
);

/// The row of EIP-6800 as the testnets before July 2024 have it.
pub static VERKLE_2023: TreeKind = row(
    "verkle-2023",
    "Verkle (EIP-6800, text of 2023) with a leaf for each field of an account",
    HeaderLayout::FiveLeaves,
    |settings| make(&VERKLE_2023, HeaderLayout::FiveLeaves, settings),
);

const fn row(
    name: &'static str,
    summary: &'static str,
    layout: HeaderLayout,
    make: fn(&Settings) -> Result<Tree, SettingError>,
) -> TreeKind {
    TreeKind {
        name,
        stored_as: StoredAs {
            tree: "verkle",
            revision: match layout {
                HeaderLayout::BasicData => "eip-6800-2024-07",
                HeaderLayout::FiveLeaves => "eip-6800-2023",
            },
        },
        summary,
        layout: LAYOUT,
        tables: &TABLES,
        roots: RootPlace::Apart,
        zeros: Zeros::Kept,
        hashes: &["pedersen"],
        settings: &SETTINGS,
        verify: match layout {
            HeaderLayout::BasicData => &arbor_verify::verkle::VERIFY,
            HeaderLayout::FiveLeaves => &arbor_verify::verkle::VERIFY_2023,
        },
        has_witnesses: true,
        // A Verkle root is spread over the threads that made its tables, and have nothing else to do.
        threads: RootThreads::Shared,
        block_memory: BlockMemory {
            first: 850,
            later: 2_200,
        },
        model: MODEL,
        make,
    }
}

fn make(row: &TreeKind, layout: HeaderLayout, settings: &Settings) -> Result<Tree, SettingError> {
    row.check(settings)?;
    let settings = VerkleSettings::of(settings);
    Ok(Arc::new(Verkle::new(VerkleSettings { layout, ..settings })))
}

#[cfg(feature = "conformance")]
const MODEL: Option<ModelOf> = Some(|tree| {
    let verkle: &Verkle = tree.downcast().expect("a tree of this row");
    Box::new(super::model::Kept {
        layout: verkle.settings().layout,
        leaves: Default::default(),
    })
});
#[cfg(not(feature = "conformance"))]
const MODEL: Option<ModelOf> = None;

impl StateTree for Verkle {
    fn kind(&self) -> &'static TreeKind {
        match self.settings().layout {
            HeaderLayout::BasicData => &VERKLE,
            HeaderLayout::FiveLeaves => &VERKLE_2023,
        }
    }

    fn hash(&self) -> &'static str {
        VERKLE.hashes[0]
    }

    fn empty_root(&self) -> B256 {
        B256::ZERO
    }

    /// A node's commitment changes by a sum that needs no other node's as long as its images are
    /// known, so that all blocks' sums of a level are one batch.
    fn computes_together(&self) -> bool {
        self.settings().together
    }

    fn writes_through(&self) -> bool {
        self.settings().write_through
    }

    fn prepare(&self, placed: Box<dyn FnOnce() + '_>) {
        self.stems_telling(placed);
    }

    fn records(&self) -> &dyn FlatRecords {
        &stems::RECORDS
    }

    fn sort_bytes(&self) -> usize {
        self.settings().sort_bytes
    }

    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError> {
        compute::compute(self, view, changes)
    }

    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        load::load(self, versions, source, progress)
    }

    fn build(&self) -> Option<&dyn Build> {
        Some(self)
    }

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(prove_accounts(self, then, accounts)?))
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

    fn is_same_node(&self, key: &[u8], records: [&[u8]; 2]) -> Result<bool, StateError> {
        verify::is_same_node(self, key, records)
    }

    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
        verify::check_part(check, self, firsts)
    }

    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError> {
        verify::check_join(check, self, &parts)
    }

    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        inspect::inspect(record, see)
    }
}

impl Witnesses for Verkle {
    fn form(&self) -> WitnessForm {
        WitnessForm::Leaves
    }

    fn of_block(&self, then: &dyn Then, touched: Touched<'_>) -> Result<StateWitness, StateError> {
        Ok(StateWitness::Leaves(block_leaves(self, then, touched)?))
    }
}
