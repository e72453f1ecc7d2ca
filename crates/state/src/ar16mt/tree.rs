//! AR16MT as a choice: its row and what it supplies.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_store::{Table, Write};
use arbor_tree::Hash;
use arbor_versions::{Meta, Version, Versions, View};

use super::nodes::{AtHead, Undone};
use super::settings::SETTINGS;
use super::{Ar16mt, TABLES, compute, history, load, nearest, reader, verify};
use crate::flat::{Ahead, Flat, FlatKey, Lookup};
use crate::kind::{BlockMemory, RootPlace, RootThreads, StoredAs, TreeKind, Zeros};
use crate::state_tree::{Accounts, Nodes, own_mut};
use crate::verify::Check;
use crate::{Account, Computed, Head, LoadSource, StateChanges, StateError, StateTree};

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
    summary: "zkSync's binary tree (amortized radix-16 Merkle tree), BLAKE2s",
    layout: LAYOUT,
    tables: &TABLES,
    roots: RootPlace::Apart,
    zeros: Zeros::Kept,
    hashes: &["blake2s256", "no_op256"],
    settings: &SETTINGS,
    has_witnesses: false,
    threads: RootThreads::Own,
    block_memory: BlockMemory {
        first: 640,
        later: 2_300,
    },
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

    fn listing<'a>(&'a self, flat: &'a dyn Flat) -> Result<Accounts<'a>, StateError> {
        reader::listing(flat)
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
        crate::state_tree::one_by_one(changes, |changes| compute::compute(*self, view, changes))
    }

    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn LoadSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        load::load(*self, versions, source, progress)
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

    fn check(&self, check: &Check<'_>, head: Head<'_>) -> Result<B256, StateError> {
        verify::check_state(check, *self, head)
    }

    fn check_history(
        &self,
        check: &Check<'_>,
        oldest: Version,
        newest: Version,
    ) -> Result<(), StateError> {
        history::check_history(check, *self, (oldest, newest))
    }
}
