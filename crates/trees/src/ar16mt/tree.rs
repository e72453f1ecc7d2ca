//! AR16MT as a choice: its row and what it supplies.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_store::{Table, Write};
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
use super::settings::SETTINGS;
use super::{Ar16mt, TABLES, compute, history, inspect, load, nearest, reader, verify};
use super::{Entry, NAMES};
use super::{OperationProofs, StorageLogs, TreeStats};
use arbor_state_tree::Build;
use arbor_state_tree::Check;
use arbor_state_tree::{
    Account, AccountOrder, AccountSlots, AccountSource, BY_NAME, Computed, StateChanges,
    StateError, StateTree,
};
use arbor_state_tree::{Accounts, InnerRoots, Leaves, Nodes, Then, Witnesses, own_mut};
use arbor_state_tree::{Ahead, Flat, FlatKey, Lookup};
use arbor_state_tree::{BlockMemory, RootPlace, RootThreads, StoredAs, TreeKind, Zeros};
use arbor_state_tree::{LeafEntries, LeafNames};
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
    #[cfg(feature = "conformance")]
    model: |_| Box::new(super::model::Numbered::default()),
    make: |settings| {
        AR16MT.check(settings)?;
        Ok(Arc::new(Ar16mt::of(settings)))
    },
};

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
        reader::flat_keys(accounts, slots)
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
        reader::listing(flat, first.as_slice())
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

    fn witnesses(&self) -> Option<&dyn Witnesses> {
        None
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

    fn check(&self, check: &Check<'_>) -> Result<B256, StateError> {
        verify::check_state(check, *self, check.root(self))
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
    ) -> Result<(Computed, TreeStats), StateError> {
        compute_leaves(*self, view, writes)
    }

    fn compute_proven(
        &self,
        view: View<'_>,
        writes: &[LeafWrite],
        reads: &[Hash],
    ) -> Result<(Computed, TreeStats, OperationProofs), StateError> {
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

    fn storage_logs(&self, before: &dyn Then, then: &dyn Then) -> Result<StorageLogs, StateError> {
        storage_logs(*self, (before, then))
    }
}
