//! Checking a whole database: every node rebuilt from the flat state and compared.

use std::cell::RefCell;
use std::collections::HashSet;
use std::iter::Peekable;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, hex, keccak256};
use arbor_store::{Table, Value};
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::build;
use arbor_versions::{VersionsError, View};

use crate::history::split_slot_key;
use crate::keys::{
    ACCOUNT_NODES, ACCOUNTS, CODE, SLOTS, STORAGE_NODES, account_key, node_table, slot_key,
};
use crate::records::{AccountRecord, SlotRecord};
use crate::{Head, MptState, StateError};

/// The most faults that a report describes one by one.
const DESCRIBED: usize = 100;

/// What [`MptState::verify`] found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VerifyReport {
    /// Accounts checked.
    pub accounts: u64,
    /// Slots checked.
    pub slots: u64,
    /// Codes checked.
    pub codes: u64,
    /// Nodes rebuilt and compared.
    pub nodes: u64,
    /// Faults found.
    pub fault_count: u64,
    /// The first hundred faults, each naming what is wrong and where.
    pub faults: Vec<String>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.fault_count == 0
    }

    fn fault(&mut self, fault: String) {
        self.fault_count += 1;
        if self.faults.len() < DESCRIBED {
            self.faults.push(fault);
        }
    }
}

impl MptState {
    /// Checks the whole database, as [`Head::verify`] does.
    pub fn verify(&self) -> Result<VerifyReport, StateError> {
        self.reader().verify()
    }
}

impl Head<'_> {
    /// Rebuilds every trie from the flat tables and compares every node, root and code with what is
    /// stored. Memory does not grow with the state.
    ///
    /// # Errors
    /// Only what stops the check: a store that cannot be read. Everything wrong in what was read is
    /// in the report.
    pub fn verify(self) -> Result<VerifyReport, StateError> {
        let check = Check {
            view: self.view(),
            report: RefCell::default(),
            stop: RefCell::default(),
        };
        check.run(self.root())
    }
}

type Entry = Result<(Box<[u8]>, Value), VersionsError>;

struct Check<'a> {
    view: View<'a>,
    report: RefCell<VerifyReport>,
    /// The error that ended an iterator early; iterators handed to the tree cannot return one.
    stop: RefCell<Option<StateError>>,
}

impl Check<'_> {
    fn run(self, root: B256) -> Result<VerifyReport, StateError> {
        let mut slots = self.view.scan(SLOTS, &[], &[])?.peekable();
        let mut accounts = self.view.scan(ACCOUNTS, &[], &[])?;
        let mut codes = HashSet::new();
        let leaves = std::iter::from_fn(|| {
            let (key, bytes) = self.take(accounts.next()?)?;
            self.account(&key, &bytes, &mut slots, &mut codes)
        });
        let built = build(None, leaves, &mut |position, record| {
            self.compare(position, &record);
        })?;
        self.stopped()?;
        if B256::from(built) != root {
            self.fault(format!(
                "state root: the flat state gives {}, the head has {root}",
                B256::from(built)
            ));
        }
        self.orphans(&mut slots, None);
        self.spare_nodes()?;
        self.stopped()?;
        Ok(self.report.into_inner())
    }

    fn fault(&self, fault: String) {
        self.report.borrow_mut().fault(fault);
    }

    fn stopped(&self) -> Result<(), StateError> {
        self.stop.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// Unwraps an entry, or remembers why there is none.
    fn take<T, E: Into<StateError>>(&self, entry: Result<T, E>) -> Option<T> {
        entry
            .map_err(|error| *self.stop.borrow_mut() = Some(error.into()))
            .ok()
    }

    /// Checks an account with its storage and code; its leaf goes into the account trie.
    fn account(
        &self,
        key: &[u8],
        bytes: &[u8],
        slots: &mut Peekable<impl Iterator<Item = Entry>>,
        codes: &mut HashSet<B256>,
    ) -> Option<(Hash, Vec<u8>)> {
        self.report.borrow_mut().accounts += 1;
        let Ok(key) = Hash::try_from(key) else {
            self.fault(format!(
                "account record: its key {} is not a hash",
                hex::encode(key)
            ));
            return Some((Hash::default(), Vec::new()));
        };
        self.orphans(slots, Some(&key));
        let record = match AccountRecord::decode(&key, bytes) {
            Ok(record) => record,
            Err(error) => {
                self.fault(error.to_string());
                return Some((key, Vec::new()));
            }
        };
        if account_key(record.address) != key {
            self.fault(format!(
                "account {}: its key {} is not the hash of its address",
                record.address,
                B256::from(key)
            ));
        }
        let storage_root = self.storage(key, slots)?;
        if storage_root != record.storage_root {
            let (address, stored) = (record.address, record.storage_root);
            self.fault(format!("account {address}: its slots give storage root {storage_root}, its record has {stored}"));
        }
        if record.account.code_hash != KECCAK256_EMPTY && codes.insert(record.account.code_hash) {
            self.code(record.address, record.account.code_hash);
        }
        Some((key, record.filled_leaf()))
    }

    /// Rebuilds one storage trie.
    fn storage(
        &self,
        owner: Hash,
        slots: &mut Peekable<impl Iterator<Item = Entry>>,
    ) -> Option<B256> {
        let leaves = std::iter::from_fn(|| {
            let of_owner = |entry: &Entry| {
                entry
                    .as_ref()
                    .map_or(true, |(key, _)| key.starts_with(&owner))
            };
            let (key, bytes) = self.take(slots.next_if(of_owner)?)?;
            self.report.borrow_mut().slots += 1;
            let (_, tree_key) = self.take(split_slot_key(&key))?;
            match SlotRecord::decode(&key, &bytes) {
                Ok(record) if slot_key(record.slot) == tree_key => {
                    Some((tree_key, SlotRecord::leaf(record.value)))
                }
                Ok(record) => {
                    let (slot, key) = (record.slot, B256::from(tree_key));
                    self.fault(format!(
                        "slot {slot:#x}: its key {key} is not the hash of its number"
                    ));
                    Some((tree_key, SlotRecord::leaf(record.value)))
                }
                Err(error) => {
                    self.fault(error.to_string());
                    Some((tree_key, vec![0x80]))
                }
            }
        });
        let built = build(Some(owner), leaves, &mut |position, record| {
            self.compare(position, &record);
        });
        let root = self.take(built)?;
        self.stop.borrow().is_none().then_some(B256::from(root))
    }

    /// Slots before the account `next`: their account does not exist.
    fn orphans(&self, slots: &mut Peekable<impl Iterator<Item = Entry>>, next: Option<&Hash>) {
        let before = |entry: &Entry| match (entry, next) {
            (Ok((key, _)), Some(next)) => key[..] < next[..],
            _ => true,
        };
        while let Some(entry) = slots.next_if(before) {
            let Some((key, _)) = self.take(entry) else {
                return;
            };
            self.fault(format!(
                "slot record {}: its account does not exist",
                hex::encode(key)
            ));
        }
    }

    fn code(&self, address: Address, hash: B256) {
        self.report.borrow_mut().codes += 1;
        match self.take(self.view.get(CODE, hash.as_slice())) {
            None => {}
            Some(None) => self.fault(format!("account {address}: code {hash} is missing")),
            Some(Some(code)) if keccak256(&code) != hash => {
                self.fault(format!(
                    "code {hash}: the stored bytes hash to {}",
                    keccak256(&code)
                ));
            }
            Some(Some(_)) => {}
        }
    }

    /// Compares a rebuilt node with the stored one.
    fn compare(&self, position: Position, record: &[u8]) {
        self.report.borrow_mut().nodes += 1;
        let Some(stored) = self.take(self.view.get(node_table(&position), &position.encode()))
        else {
            return;
        };
        match stored {
            None => self.fault(format!("node {}: missing", name(&position))),
            Some(stored) if stored[..] != *record => {
                self.fault(format!(
                    "node {}: it differs from what the flat state gives",
                    name(&position)
                ));
            }
            Some(_) => {}
        }
    }

    /// Counts stored nodes: more than were rebuilt are nodes that nothing refers to.
    fn spare_nodes(&self) -> Result<(), StateError> {
        let count = |table: Table| -> Result<u64, StateError> {
            let mut count = 0;
            for entry in self.view.scan(table, &[], &[])? {
                entry?;
                count += 1;
            }
            Ok(count)
        };
        let stored = count(ACCOUNT_NODES)? + count(STORAGE_NODES)?;
        let rebuilt = self.report.borrow().nodes;
        if stored > rebuilt {
            self.fault(format!(
                "{} nodes are stored that belong to no trie",
                stored - rebuilt
            ));
        }
        Ok(())
    }
}

fn name(position: &Position) -> String {
    match position.trie {
        None => format!("/{} of the account trie", position.path),
        Some(owner) => format!(
            "/{} of the storage of account hash {}",
            position.path,
            B256::from(owner)
        ),
    }
}
