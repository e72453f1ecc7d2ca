//! Verkle as a choice: its rows and what it supplies.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_store::{Table, Write};
use arbor_tree::Hash;
use arbor_verify::Proof;
use arbor_versions::{Meta, Version, Versions, View};

use super::nodes::Undone;
use super::prove::{block_leaves, prove_accounts};
use super::settings::SETTINGS;
use super::{HeaderLayout, LAYOUT, TABLES, Verkle, VerkleSettings, compute, inspect, load, verify};
use crate::stems;
use arbor_state_tree::Build;
use arbor_state_tree::Check;
use arbor_state_tree::{
    Account, AccountOrder, AccountSlots, AccountSource, BY_NAME, Computed, SettingError,
    StateChanges, StateError, StateTree, Tree,
};
use arbor_state_tree::{
    Accounts, InnerRoots, Leaves, Nodes, StateWitness, Then, Touched, WitnessForm, Witnesses,
    own_mut,
};
use arbor_state_tree::{Ahead, Flat, FlatKey, Lookup};
use arbor_state_tree::{BlockMemory, RootPlace, RootThreads, Settings, StoredAs, TreeKind, Zeros};
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
        #[cfg(feature = "conformance")]
        model: |tree| {
            let verkle: &Verkle = tree.downcast().expect("a tree of this row");
            Box::new(super::model::Kept {
                layout: verkle.settings().layout,
                leaves: Default::default(),
            })
        },
        make,
    }
}

fn make(row: &TreeKind, layout: HeaderLayout, settings: &Settings) -> Result<Tree, SettingError> {
    row.check(settings)?;
    let settings = VerkleSettings::of(settings);
    Ok(Arc::new(Verkle::new(VerkleSettings { layout, ..settings })))
}

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

    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
        stems::account(flat, address)
    }

    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        stems::accounts_named(flat, addresses)
    }

    fn flat_keys(
        &self,
        accounts: &[Address],
        slots: &[(Address, U256)],
    ) -> [(Table, Vec<FlatKey>); 2] {
        stems::flat_keys(accounts, slots)
    }

    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        stems::storage(flat, address, slot)
    }

    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
        stems::has_storage(flat, address)
    }

    fn order(&self) -> &'static AccountOrder {
        &BY_NAME
    }

    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        Ok(Box::new(stems::accounts(flat, first.as_slice())?))
    }

    fn flat_root(&self, flat: &Ahead<'_>) -> Result<B256, StateError> {
        stems::flat_root(flat)
    }

    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
        stems::account_from(view, from)
    }

    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        stems::slot_from(view, account, slot)
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

    fn prove(&self, then: &dyn Then, account: &AccountSlots) -> Result<Box<dyn Proof>, StateError> {
        self.prove_together(then, std::slice::from_ref(account))
    }

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(prove_accounts(self, then, accounts)?))
    }

    fn leaves(&self) -> Option<&dyn Leaves> {
        None
    }

    fn witnesses(&self) -> Option<&dyn Witnesses> {
        Some(self)
    }

    fn inner_roots(&self) -> Option<&dyn InnerRoots> {
        None
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

    fn check(&self, check: &Check<'_>) -> Result<B256, StateError> {
        verify::check_state(check, self, check.root(self))
    }

    fn check_history(
        &self,
        check: &Check<'_>,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        check.walk_back(self, oldest, newest)
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
        let leaves = block_leaves(self, then, touched)?;
        Ok(StateWitness::Leaves(Box::new(leaves)))
    }
}
