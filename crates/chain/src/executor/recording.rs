//! Records what execution reads, which is what a witness must hold.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_state::{Account, ReadError, StateView};

use super::{Ancestor, Ancestors};

/// Everything that was read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reads {
    /// Accounts asked for, existing or not, with the slots asked for, empty or not.
    pub accounts: BTreeMap<Address, BTreeSet<U256>>,
    /// Hashes of code asked for.
    pub codes: BTreeSet<B256>,
    /// Numbers of the blocks whose hash was asked for.
    pub ancestors: BTreeSet<u64>,
    /// Numbers of the blocks whose header was asked for, among which ommers are looked for.
    pub elders: BTreeSet<u64>,
}

/// Passes reads of state and of past blocks on, and records them.
///
/// An [`Executor`](super::Executor) keeps code across blocks and asks for each code once, so a block whose
/// reads are wanted takes a new one. It asks for an account or a slot once in a block.
pub struct RecordingView<'a, S: ?Sized> {
    view: &'a S,
    chain: &'a dyn Ancestors,
    reads: RefCell<Reads>,
}

impl<'a, S: StateView + ?Sized> RecordingView<'a, S> {
    /// Starts with nothing read.
    pub fn new(view: &'a S, chain: &'a dyn Ancestors) -> Self {
        Self {
            view,
            chain,
            reads: RefCell::default(),
        }
    }

    /// Returns what was read.
    pub fn into_reads(self) -> Reads {
        self.reads.into_inner()
    }
}

impl<S: StateView + ?Sized> StateView for RecordingView<'_, S> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        self.reads.borrow_mut().accounts.entry(address).or_default();
        self.view.account(address)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        self.reads
            .borrow_mut()
            .accounts
            .entry(address)
            .or_default()
            .insert(slot);
        self.view.storage(address, slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        self.reads.borrow_mut().accounts.entry(address).or_default();
        self.view.has_storage(address)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.reads.borrow_mut().codes.insert(code_hash);
        self.view.code(code_hash)
    }
}

impl<S: StateView + ?Sized> Ancestors for RecordingView<'_, S> {
    fn block_hash(&self, number: u64) -> Result<B256, ReadError> {
        self.reads.borrow_mut().ancestors.insert(number);
        self.chain.block_hash(number)
    }

    fn ancestor(&self, number: u64) -> Option<&Ancestor> {
        self.reads.borrow_mut().elders.insert(number);
        self.chain.ancestor(number)
    }
}
