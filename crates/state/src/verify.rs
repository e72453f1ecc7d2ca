//! Checking a whole database: every node rebuilt from the flat state and compared, every retained version
//! rebuilt from its undo, every other record held against its neighbours.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{B256, KECCAK256_EMPTY, hex, keccak256};
use arbor_store::{Table, Value, Write};
use arbor_tree::Position;
use arbor_tree_mpt::{Overlay, apply};
use arbor_versions::{Meta, RecordCounts, Version, View};
use rayon::prelude::*;

use crate::history::{check_rebuilt, corrupt, updates_back};
use crate::keys::{ACCOUNT_NODES, ACCOUNTS, CODE, SLOTS, STORAGE_NODES, TABLES, node_table};
use crate::rebuild::{RANGES, Watch, rebuild};
use crate::records::AccountRecord;
use crate::{Head, MptSnapshot, MptState, StateError};

/// The most faults that a report describes one by one.
const DESCRIBED: usize = 100;
/// Code hashes remembered as present, so that code that many accounts share is mostly looked for once.
const CODES_REMEMBERED: usize = 1 << 18;
/// Records between two calls of the caller's progress function.
const PROGRESS_EVERY: u64 = 1 << 14;

/// What [`MptSnapshot::verify`] found.
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
    /// Older versions rebuilt from their undo, down to their roots.
    pub versions: u64,
    /// Records of versions: metas, undo, indexes.
    pub records: RecordCounts,
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

/// Says what is wrong with the caller's own part of a version's record, which is the block's header.
pub type MetaCheck<'a> = &'a mut (dyn FnMut(&Meta) -> Result<(), String> + Send);

impl MptState {
    /// Checks the whole database, as [`MptSnapshot::verify`] does, without a look at the headers.
    pub fn verify(&mut self) -> Result<VerifyReport, StateError> {
        self.snapshot()?.verify(&|_| {}, &mut |_| Ok(()))
    }
}

impl MptSnapshot {
    /// Rebuilds every trie from the flat tables and compares every node, root and code with what is stored; rebuilds every
    /// retained version from its undo records and compares the root; and holds the records of versions against each other.
    ///
    /// Uses the threads of the caller's rayon pool. Keys are shared by ranges: accounts by their first byte, and the slots of an
    /// account that has very many; history is a task beside them. Memory grows with the threads, and with what changed in the
    /// retained versions, not with the state.
    ///
    /// `progress` is called now and then, from any of the threads; `meta` for the record of every version, ascending.
    ///
    /// # Errors
    /// Only what stops the check: a store that cannot be read. Everything wrong in what was read is
    /// in the report.
    pub fn verify(
        &self,
        progress: &(dyn Fn(VerifyProgress) + Sync),
        meta: MetaCheck<'_>,
    ) -> Result<VerifyReport, StateError> {
        let head = self.reader();
        let check = Check {
            view: head.view(),
            progress,
            counts: Counts::default(),
            report: Mutex::default(),
            present: Mutex::default(),
        };
        let (state, records) = rayon::join(
            || check.state(head),
            || {
                check.history(head);
                self.0
                    .verify_records(meta, &mut |fault| check.tell_fault(fault))
            },
        );
        state?;
        Ok(VerifyReport {
            records: records?,
            ..check.into_report()
        })
    }
}

#[derive(Default)]
struct Counts {
    accounts: AtomicU64,
    slots: AtomicU64,
    nodes: AtomicU64,
    codes: AtomicU64,
    versions: AtomicU64,
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
        key: &[u8],
        bytes: &[u8],
        account: Option<&AccountRecord>,
    ) -> Result<(), StateError> {
        let table = if account.is_some() { ACCOUNTS } else { SLOTS };
        self.looked_up(table, key, bytes)?;
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
        self.tell_fault(fault);
        Ok(())
    }

    fn range_done(&self) {
        self.counts.ranges.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }
}

impl Check<'_> {
    fn state(&self, head: Head<'_>) -> Result<(), StateError> {
        let (built, root) = (rebuild(self.view, self)?, head.root());
        if built != root {
            self.tell_fault(format!(
                "state root: the flat state gives {built}, the head has {root}"
            ));
        }
        self.codes()?;
        self.spare_nodes()
    }

    fn tell_fault(&self, fault: String) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.fault(fault);
    }

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

    /// Compares what a scan found with what a look-up by key finds: an engine's filters and indexes can hide
    /// from one what the other sees, and execution looks up.
    fn looked_up(&self, table: Table, key: &[u8], scanned: &[u8]) -> Result<(), StateError> {
        if self.view.get(table, key)?.as_deref() == Some(scanned) {
            return Ok(());
        }
        self.fault(format!(
            "record {} of {}: looking it up gives something else than a scan",
            hex::encode(key),
            table_name(table)
        ))
    }

    /// Walks back from the head, version by version, as far as versions are retained. What lies behind a version that does
    /// not hold cannot be judged.
    fn history(&self, head: Head<'_>) {
        if let Err(error) = self.versions_back(head) {
            self.tell_fault(format!("history: {error}"));
        }
    }

    fn versions_back(&self, head: Head<'_>) -> Result<(), StateError> {
        let (Some(newest), Some(oldest)) = (self.view.head(), self.view.oldest()) else {
            return Ok(());
        };
        let mut overlay = Overlay::new(head);
        let mut flat: HashMap<(Table, Box<[u8]>), Option<Value>> = HashMap::new();
        let mut root = newest.root;
        for version in (oldest.0..newest.version.0).rev() {
            let undo = self.view.undo_of(Version(version + 1))?;
            let now = |table, key: &[u8]| match flat.get(&(table, Box::from(key))) {
                Some(value) => Ok(value.clone()),
                None => Ok(self.view.get(table, key)?),
            };
            // An account's creation is undone with all its slots, so that the root does not tell whether they are listed.
            for Write { table, key, value } in &undo {
                if now(*table, key)? == *value {
                    return Err(corrupt(
                        table_name(*table),
                        key,
                        "undone to what it is, though only changes are",
                    ));
                }
            }
            let (updates, _) = updates_back(&undo, now)?;
            let update = apply(&overlay, root, &updates)?;
            let meta = self.view.meta(Version(version))?;
            let meta =
                meta.ok_or_else(|| StateError::Read(format!("no meta of version {version}")))?;
            check_rebuilt(&meta, &undo, &update)?;
            overlay.push(&update);
            let undone = undo.into_iter();
            flat.extend(undone.map(|write| ((write.table, write.key), write.value)));
            root = update.root;
            self.counts.versions.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Hashes every code, also those that no account has any more: older versions may.
    fn codes(&self) -> Result<(), StateError> {
        if self.view.get(CODE, &[])?.is_some() {
            self.fault("a code without a key".to_owned())?;
        }
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            for entry in self.view.scan(CODE, &[first], &[])? {
                let (key, code) = entry?;
                self.counts.codes.fetch_add(1, Ordering::Relaxed);
                self.looked_up(CODE, &key, &code)?;
                let hash = keccak256(&code);
                if *hash != *key {
                    let key = hex::encode_prefixed(&key);
                    self.fault(format!("code {key}: the stored bytes hash to {hash}"))?;
                }
            }
            Ok(())
        })
    }

    /// Counts stored nodes: another number than were rebuilt means nodes that nothing refers to, or that a
    /// scan does not see.
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
        } else if stored < rebuilt {
            let unseen = rebuilt - stored;
            self.fault(format!("{unseen} nodes are not found by a scan"))?;
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
            versions: self.counts.versions.into_inner(),
            ..report.unwrap_or_else(PoisonError::into_inner)
        }
    }
}

fn table_name(table: Table) -> &'static str {
    let spec = TABLES.iter().find(|spec| spec.table == table);
    spec.map_or("an unknown table", |spec| spec.name)
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
