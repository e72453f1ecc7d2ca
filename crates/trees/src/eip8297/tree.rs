//! EIP-8297 as a choice: its row and what it supplies.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::Build;
use arbor_state_tree::{
    Account, AccountOrder, AccountSlots, AccountSource, Accounts, Ahead, BY_NAME, BlockMemory,
    Check, Computed, Flat, FlatKey, InnerRoots, Leaves, Lookup, Nodes, RootPlace, RootThreads,
    Seen, StateChanges, StateError, StateTree, StateWitness, StoredAs, StoredRecord, Then, Touched,
    TreeKind, WitnessForm, Witnesses, Zeros, one_by_one, own_mut,
};
use arbor_store::{Table, Write};
use arbor_tree::Hash;
use arbor_tree_eip8297::Hasher;
use arbor_verify::Proof;
use arbor_versions::{Meta, Version, Versions, View};

use super::nodes::Undone;
use super::prove::{block_nodes, prove_account, prove_accounts};
use super::settings::{NAME, SETTINGS};
use super::{Eip8297, TABLES, compute, inspect, load, nearest, reader, verify};
use crate::stems;

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
    #[cfg(feature = "conformance")]
    model: |tree| {
        let tree: &Eip8297 = tree.downcast().expect("a tree of this row");
        Box::new(super::model::Partitioned(tree.hasher))
    },
    make: |settings| {
        EIP8297.check(settings)?;
        Ok(Arc::new(Eip8297::of(settings)?))
    },
};

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

    fn computes_together(&self) -> bool {
        false
    }

    fn writes_through(&self) -> bool {
        false
    }

    fn prepare(&self, placed: Box<dyn FnOnce() + '_>) {
        placed();
    }

    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
        reader::account(flat, address)
    }

    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        reader::accounts_named(flat, addresses)
    }

    fn flat_keys(
        &self,
        accounts: &[Address],
        slots: &[(Address, U256)],
    ) -> [(Table, Vec<FlatKey>); 2] {
        stems::flat_keys(accounts, slots)
    }

    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        reader::storage(flat, address, slot)
    }

    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
        reader::has_storage(flat, address)
    }

    fn order(&self) -> &'static AccountOrder {
        &BY_NAME
    }

    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        Ok(Box::new(reader::accounts(flat, first.as_slice())?))
    }

    fn flat_root(&self, flat: &Ahead<'_>) -> Result<B256, StateError> {
        reader::flat_root(flat)
    }

    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
        nearest::account_from(view, from)
    }

    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        nearest::slot_from(view, account, slot)
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
        None
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
        own_mut::<Undone>(nodes).step((*self, view), to, then, now)
    }

    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError> {
        let mut nodes = Undone::default();
        let now = |table, key: &[u8]| Ok(view.get(table, key)?);
        nodes.step((*self, view), to, undo, &now)?;
        Ok(nodes.into_writes())
    }

    fn check(&self, check: &Check<'_>) -> Result<B256, StateError> {
        verify::check_state(check, *self, check.root(self))
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
        inspect::inspect(*self, record, see)
    }
}

impl Witnesses for Eip8297 {
    fn form(&self) -> WitnessForm {
        WitnessForm::Nodes
    }

    fn of_block(&self, then: &dyn Then, touched: Touched<'_>) -> Result<StateWitness, StateError> {
        Ok(StateWitness::Nodes(block_nodes(*self, then, touched)?))
    }
}
