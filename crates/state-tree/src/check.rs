//! Checking a whole database: every node rebuilt from the flat state and compared, every retained version
//! rebuilt from its undo, every other record held against its neighbours.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{B256, hex, keccak256};
use arbor_store::Table;
use arbor_versions::{Entries, Meta, RecordCounts, TableSpec, VersionsError, View};
use rayon::prelude::*;

use crate::tables::CODE;
use crate::{Rewind, StateError};

/// The most faults that a report describes one by one.
const DESCRIBED: usize = 100;
/// Code hashes remembered as present, so that code that many accounts share is mostly looked for once.
const CODES_REMEMBERED: usize = 1 << 18;
/// Records between two calls of the caller's progress function.
const PROGRESS_EVERY: u64 = 1 << 14;
/// Of so many bytes of records that a scan gives one record is looked up by its key, too: about one of each data block of a store's files, so that most ways that an index knows are gone (where files overlap, fewer of the small
/// ones'). A filter, whose checksum is compared whenever it is read, has thousands of blocks.
const LOOKED_UP: usize = 4 << 10;
/// By how many of these bytes a version's choice lies behind the one before it: some records, and no divisor.
const STEP: u64 = 997;

/// What a check of a database, or of a part of it, found.
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
    /// The Merkle-Patricia root of the flat tables, which the header of the head's block must have.
    pub flat_root: B256,
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

/// What a check under way has counted.
#[derive(Default)]
pub struct Counted {
    /// Accounts checked.
    pub accounts: AtomicU64,
    /// Slots checked.
    pub slots: AtomicU64,
    /// Nodes rebuilt and compared.
    pub nodes: AtomicU64,
    /// Nodes that scans gave, where they are counted as they pass, and those of which is told that they did not.
    pub stored_nodes: AtomicU64,
    codes: AtomicU64,
    /// Versions rebuilt.
    pub versions: AtomicU64,
    /// Parts of the key space that are done.
    pub ranges: AtomicU64,
}

/// A check under way.
pub struct Check<'a> {
    /// The latest version and those before it.
    pub view: View<'a>,
    /// How more history is checked than fits into memory, if there is a way.
    pub(crate) rewind: Option<&'a dyn Rewind>,
    tables: &'static [TableSpec],
    /// First bytes that are checked.
    ranges: u64,
    progress: &'a (dyn Fn(VerifyProgress) + Sync),
    /// What was counted so far.
    pub counts: Counted,
    /// Nodes among them that another check has counted.
    nodes_before: u64,
    report: Mutex<VerifyReport>,
    /// Code hashes that are in the code table.
    present: Mutex<HashSet<B256>>,
}

impl<'a> Check<'a> {
    /// Begins a check of a number of first bytes of a database with these tables. `progress` is called from time to time,
    /// from any thread.
    pub fn new(
        view: View<'a>,
        tables: &'static [TableSpec],
        ranges: usize,
        progress: &'a (dyn Fn(VerifyProgress) + Sync),
    ) -> Self {
        Self {
            view,
            rewind: None,
            tables,
            ranges: ranges as u64,
            progress,
            counts: Counted::default(),
            nodes_before: 0,
            report: Mutex::default(),
            present: Mutex::default(),
        }
    }

    /// Checks history that is more than fits into memory over copies that are taken back.
    #[must_use]
    pub fn with_rewind(self, rewind: Option<&'a dyn Rewind>) -> Self {
        Self { rewind, ..self }
    }

    /// A check of one of two trees of the database, by its own view; what it finds is [entered](Self::enter) here. So many of the tree's nodes were compared before, in parts.
    pub fn of_tree<'b>(
        &'b self,
        view: View<'b>,
        tables: &'static [TableSpec],
        nodes: u64,
    ) -> Check<'b> {
        let ranges = usize::try_from(self.ranges).unwrap_or(usize::MAX);
        let check = Check::new(view, tables, ranges, self.progress);
        check.counts.nodes.store(nodes, Ordering::Relaxed);
        Check {
            nodes_before: nodes,
            ..check
        }
    }

    /// Enters the nodes and faults that a check of one of two trees has found, and its accounts and slots if they are the ones that are read.
    pub fn enter(&self, of_tree: Check<'_>, are_read: bool) {
        let before = of_tree.nodes_before;
        let mut found = of_tree.into_report();
        found.nodes -= before;
        if !are_read {
            (found.accounts, found.slots) = (0, 0);
        }
        self.add(&found, 0);
    }

    /// Enters something that is wrong.
    pub fn tell_fault(&self, fault: String) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.fault(fault);
    }

    /// Adds what a check of some first bytes has counted and found.
    pub fn add(&self, found: &VerifyReport, ranges: usize) {
        let add = |counter: &AtomicU64, more| counter.fetch_add(more, Ordering::Relaxed);
        add(&self.counts.accounts, found.accounts);
        add(&self.counts.slots, found.slots);
        add(&self.counts.codes, found.codes);
        add(&self.counts.nodes, found.nodes);
        add(&self.counts.ranges, ranges as u64);
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let described = found.faults.iter().cloned();
        described.for_each(|fault| report.fault(fault));
        let undescribed = found.fault_count.saturating_sub(found.faults.len() as u64);
        report.fault_count += undescribed;
    }

    /// Counts one more, and tells the progress now and then.
    pub fn count(&self, counter: &AtomicU64) {
        if (counter.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(PROGRESS_EVERY) {
            self.tell();
        }
    }

    /// One of the first bytes is done.
    pub fn part_done(&self) {
        self.counts.ranges.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }

    fn tell(&self) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (self.progress)(VerifyProgress {
            accounts: load(&self.counts.accounts),
            slots: load(&self.counts.slots),
            nodes: load(&self.counts.nodes),
            done: load(&self.counts.ranges) as f64 / self.ranges as f64,
        });
    }

    /// Whether the code with this hash is stored.
    ///
    /// # Errors
    /// The store's.
    pub fn has_code(&self, hash: B256) -> Result<bool, StateError> {
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

    /// Returns a scan's entries, of which about one in 4 KiB is [looked up](Self::looked_up) as it comes by: the first, and then others at another version.
    pub fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Entries<'_>, VersionsError> {
        let version = self.view.head().map_or(0, |head| head.version.0);
        let mut passed = LOOKED_UP + (version.wrapping_mul(STEP) % LOOKED_UP as u64) as usize;
        let entries = self.view.scan(table, prefix, from)?;
        Ok(Box::new(entries.map(move |entry| {
            let (key, value) = entry?;
            passed += key.len() + value.len();
            if passed >= LOOKED_UP {
                passed -= LOOKED_UP;
                self.looked_up(table, &key, &value)?;
            }
            Ok((key, value))
        })))
    }

    /// The lengths of paths that the keys of a table of nodes begin with. Also counted are keys that are no node's and that no scan of nodes gives: none at all, and a
    /// length alone, of `apart` or more: shorter paths are scanned by their length alone, and it comes with them.
    pub fn path_lengths(&self, nodes: Table, apart: u8) -> Result<(Vec<u8>, u64), StateError> {
        let mut spare = u64::from(self.view.get(nodes, &[])?.is_some());
        let (mut lengths, mut from) = (Vec::new(), Some(0));
        while let Some(length) = from {
            let first = self.view.scan(nodes, &[], &[length])?.next();
            let Some((key, _)) = first.transpose()? else {
                break;
            };
            spare += u64::from(key.len() == 1 && key[0] >= apart);
            lengths.push(key[0]);
            from = key[0].checked_add(1);
        }
        Ok((lengths, spare))
    }

    /// Compares what a scan found with what a look-up by key finds: an engine's filters and indexes can hide
    /// from one what the other sees, and execution looks up.
    pub fn looked_up(&self, table: Table, key: &[u8], scanned: &[u8]) -> Result<(), VersionsError> {
        if self.view.get(table, key)?.as_deref() == Some(scanned) {
            return Ok(());
        }
        self.tell_fault(format!(
            "record {} of {}: looking it up gives something else than a scan",
            hex::encode(key),
            self.table_name(table)
        ));
        Ok(())
    }

    pub(crate) fn table_name(&self, table: Table) -> &'static str {
        let spec = self.tables.iter().find(|spec| spec.table == table);
        spec.map_or("an unknown table", |spec| spec.name)
    }

    /// Hashes every code whose hash begins with one of some bytes. Codes that no account has any more are hashed too:
    /// older versions may have them. A record with an empty key belongs to the byte 0.
    pub fn codes(&self, firsts: &[u8]) -> Result<(), StateError> {
        if firsts.contains(&0) && self.view.get(CODE, &[])?.is_some() {
            self.tell_fault("a code without a key".to_owned());
        }
        firsts.par_iter().try_for_each(|first| {
            for entry in self.view.scan(CODE, &[*first], &[])? {
                let (key, code) = entry?;
                self.counts.codes.fetch_add(1, Ordering::Relaxed);
                self.looked_up(CODE, &key, &code)?;
                let hash = keccak256(&code);
                if *hash != *key {
                    let key = hex::encode_prefixed(&key);
                    self.tell_fault(format!("code {key}: the stored bytes hash to {hash}"));
                }
            }
            Ok(())
        })
    }

    /// What was found. The flat root and the counts of records are left open.
    pub fn into_report(self) -> VerifyReport {
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
