//! Checking a whole database: every node rebuilt from the flat state and compared.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{B256, KECCAK256_EMPTY, hex, keccak256};
use arbor_store::Table;
use arbor_tree::Position;
use arbor_versions::View;
use rayon::prelude::*;

use crate::keys::{ACCOUNT_NODES, CODE, STORAGE_NODES, node_table};
use crate::rebuild::{RANGES, Watch, rebuild};
use crate::records::AccountRecord;
use crate::{Head, MptState, StateError};

/// The most faults that a report describes one by one.
const DESCRIBED: usize = 100;
/// Code hashes remembered as present, so that code that many accounts share is mostly looked for once.
const CODES_REMEMBERED: usize = 1 << 18;
/// Records between two calls of the caller's progress function.
const PROGRESS_EVERY: u64 = 1 << 14;

/// What [`Head::verify`] found.
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

/// How far a verification is.
#[derive(Clone, Copy, Debug)]
pub struct VerifyProgress {
    /// Accounts checked.
    pub accounts: u64,
    /// Slots checked.
    pub slots: u64,
    /// Nodes rebuilt and compared.
    pub nodes: u64,
    /// The part of the accounts' key space that is done, 0 to 1; keys are hashes, so about that part of the accounts.
    pub done: f64,
}

impl MptState {
    /// Checks the whole database, as [`Head::verify`] does.
    pub fn verify(&self) -> Result<VerifyReport, StateError> {
        self.reader().verify(&|_| {})
    }
}

impl Head<'_> {
    /// Rebuilds every trie from the flat tables and compares every node, root and code with what is stored, on the
    /// threads of the caller's rayon pool. Memory grows with their number, not with the state.
    ///
    /// Keys are shared by ranges: accounts by their first byte, and the slots of an account that has very many.
    /// `progress` is called now and then, from any of the threads.
    ///
    /// # Errors
    /// Only what stops the check: a store that cannot be read. Everything wrong in what was read is
    /// in the report.
    pub fn verify(
        self,
        progress: &(dyn Fn(VerifyProgress) + Sync),
    ) -> Result<VerifyReport, StateError> {
        let check = Check {
            view: self.view(),
            progress,
            counts: Counts::default(),
            report: Mutex::default(),
            present: Mutex::default(),
        };
        let built = rebuild(self.view(), &check)?;
        let root = self.root();
        if built != root {
            check.fault(format!(
                "state root: the flat state gives {built}, the head has {root}"
            ))?;
        }
        check.codes()?;
        check.spare_nodes()?;
        Ok(check.into_report())
    }
}

#[derive(Default)]
struct Counts {
    accounts: AtomicU64,
    slots: AtomicU64,
    nodes: AtomicU64,
    codes: AtomicU64,
    ranges: AtomicU64,
}

struct Check<'a> {
    view: View<'a>,
    progress: &'a (dyn Fn(VerifyProgress) + Sync),
    counts: Counts,
    report: Mutex<VerifyReport>,
    /// Code hashes that are in the code table.
    present: Mutex<HashSet<B256>>,
}

impl Watch for Check<'_> {
    fn record(
        &self,
        _: &[u8],
        _: &[u8],
        account: Option<&AccountRecord>,
    ) -> Result<(), StateError> {
        let Some(record) = account else {
            self.count(&self.counts.slots);
            return Ok(());
        };
        self.count(&self.counts.accounts);
        let (address, hash) = (record.address, record.account.code_hash);
        if hash != KECCAK256_EMPTY && !self.has_code(hash)? {
            self.fault(format!("account {address}: code {hash} is missing"))?;
        }
        Ok(())
    }

    fn node(&self, position: &Position, record: &[u8]) -> Result<(), StateError> {
        self.counts.nodes.fetch_add(1, Ordering::Relaxed);
        match self.view.get(node_table(position), &position.encode())? {
            None => self.fault(format!("node {}: missing", name(position))),
            Some(stored) if stored[..] != *record => self.fault(format!(
                "node {}: it differs from what the flat state gives",
                name(position)
            )),
            Some(_) => Ok(()),
        }
    }

    fn fault(&self, fault: String) -> Result<(), StateError> {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.fault(fault);
        Ok(())
    }

    fn range_done(&self) {
        self.counts.ranges.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }
}

impl Check<'_> {
    fn count(&self, counter: &AtomicU64) {
        if (counter.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(PROGRESS_EVERY) {
            self.tell();
        }
    }

    fn tell(&self) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (self.progress)(VerifyProgress {
            accounts: load(&self.counts.accounts),
            slots: load(&self.counts.slots),
            nodes: load(&self.counts.nodes),
            done: load(&self.counts.ranges) as f64 / RANGES as f64,
        });
    }

    fn has_code(&self, hash: B256) -> Result<bool, StateError> {
        let present = || self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if present().contains(&hash) {
            return Ok(true);
        }
        let found = self.view.get(CODE, hash.as_slice())?.is_some();
        if found {
            let mut present = present();
            if present.len() == CODES_REMEMBERED {
                present.clear();
            }
            present.insert(hash);
        }
        Ok(found)
    }

    /// Hashes every code, also those that no account has any more: older versions may.
    fn codes(&self) -> Result<(), StateError> {
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            for entry in self.view.scan(CODE, &[first], &[])? {
                let (key, code) = entry?;
                self.counts.codes.fetch_add(1, Ordering::Relaxed);
                let hash = keccak256(&code);
                if *hash != *key {
                    let key = hex::encode_prefixed(&key);
                    self.fault(format!("code {key}: the stored bytes hash to {hash}"))?;
                }
            }
            Ok(())
        })
    }

    /// Counts stored nodes: more than were rebuilt are nodes that nothing refers to.
    fn spare_nodes(&self) -> Result<(), StateError> {
        // A position begins with its depth, which few nodes tell apart, so the account trie's are shared by one byte more.
        let mut prefixes: Vec<(Table, Vec<u8>)> = (0..=u8::MAX)
            .map(|first| (STORAGE_NODES, vec![first]))
            .collect();
        let mut short: Vec<(Table, Vec<u8>)> =
            vec![(ACCOUNT_NODES, vec![]), (STORAGE_NODES, vec![])];
        let mut depth = Some(0);
        while let Some(from) = depth {
            let first = self.view.scan(ACCOUNT_NODES, &[], &[from])?.next();
            let Some((key, _)) = first.transpose()? else {
                break;
            };
            let present = key.first().copied().unwrap_or(0);
            prefixes.extend((0..=u8::MAX).map(|second| (ACCOUNT_NODES, vec![present, second])));
            // The root's position is its depth alone.
            short.push((ACCOUNT_NODES, vec![present]));
            depth = present.checked_add(1);
        }
        let count = |(table, prefix): (Table, Vec<u8>)| -> Result<u64, StateError> {
            let mut entries = self.view.scan(table, &prefix, &[])?;
            entries.try_fold(0, |count, entry| Ok(entry.map(|_| count + 1)?))
        };
        let counts: Result<Vec<u64>, StateError> = prefixes.into_par_iter().map(count).collect();
        let mut stored = counts?.into_iter().sum::<u64>();
        for (table, key) in short {
            stored += u64::from(self.view.get(table, &key)?.is_some());
        }
        let rebuilt = self.counts.nodes.load(Ordering::Relaxed);
        if stored > rebuilt {
            let spare = stored - rebuilt;
            self.fault(format!("{spare} nodes are stored that belong to no trie"))?;
        }
        Ok(())
    }

    fn into_report(self) -> VerifyReport {
        let report = self.report.into_inner();
        VerifyReport {
            accounts: self.counts.accounts.into_inner(),
            slots: self.counts.slots.into_inner(),
            codes: self.counts.codes.into_inner(),
            nodes: self.counts.nodes.into_inner(),
            ..report.unwrap_or_else(PoisonError::into_inner)
        }
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
