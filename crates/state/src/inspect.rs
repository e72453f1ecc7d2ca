//! Statistics of a database: what its records are, by table, trie, account and time.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ops::ControlFlow;

use alloy_primitives::{Address, B256};
use arbor_state_tree::{CODE, Seen, SeenNodes, StoredRecord};
use arbor_store::{Table, Value};
use arbor_versions::{
    Entries, OTHER_SPACE, OWN_TABLES, TableSpec, UNDO_TABLE, UndoEntry, has_space, undo_entries,
};
use serde::Serialize;

use crate::head::Head;
use crate::{StateError, StateSnapshot};

/// Records between two calls of the caller's progress function.
const PROGRESS_EVERY: u64 = 1 << 12;

/// What a database consists of.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The tree, by its name on the command line.
    pub tree: &'static str,
    /// The latest block.
    pub block: u64,
    /// The root after it.
    pub root: B256,
    /// Whether every record was read. If not, the figures are those of the records read so far.
    pub complete: bool,
    /// Why a record could not be read, if that ended the count; left out of JSON otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Records by table, in the order in which they were read. Of tables that were not reached there are none.
    pub tables: Vec<TableFigures>,
    /// Nodes by trie and kind.
    pub nodes: Vec<NodeFigures>,
    /// Leaves that hold several values, by how many they hold; empty if the tree has none.
    pub occupancy: Vec<Bucket>,
    /// Accounts that have a record.
    pub accounts: u64,
    /// Slots by account.
    pub storage: StorageFigures,
    /// Codes.
    pub codes: CodeFigures,
    /// Undo records by the table that they are of.
    pub history: Vec<HistoryFigures>,
}

/// The records of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TableFigures {
    /// The table's name; of a state that moves to another tree, `TABLE of TREE` for what the other tree has.
    pub table: Cow<'static, str>,
    /// Whether all of its records were read.
    pub complete: bool,
    /// How many there are.
    pub records: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
}

/// The nodes of one kind in a trie, or in all tries of one sort.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFigures {
    /// `accounts`, `storage`, or `state` of a tree that has one trie for all.
    pub trie: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// How many there are.
    pub count: u64,
    /// How many there are at each depth, from 0 on: nibbles or bytes of the path from the trie's root.
    pub by_depth: Vec<u64>,
}

/// Things whose size is within bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Bucket {
    /// The least size.
    pub from: u64,
    /// The greatest size.
    pub to: u64,
    /// How many there are.
    pub count: u64,
}

/// Slots by account.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageFigures {
    /// Slots that have a record.
    pub slots: u64,
    /// Accounts that have such slots.
    pub accounts: u64,
    /// Accounts by how many slots they have.
    pub slots_per_account: Vec<Bucket>,
    /// The accounts with the most slots, the largest first.
    pub largest: Vec<LargeStorage>,
}

/// An account with many slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct LargeStorage {
    /// Its address; `None` if no account leads to the slots.
    pub address: Option<Address>,
    /// Its slots.
    pub slots: u64,
}

/// Codes.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeFigures {
    /// How many different codes there are.
    pub codes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Codes by their bytes.
    pub by_bytes: Vec<Bucket>,
    /// The largest codes, the largest first.
    pub largest: Vec<LargeCode>,
}

/// A large code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LargeCode {
    /// Its hash.
    pub code_hash: B256,
    /// Its bytes.
    pub bytes: u64,
    /// Accounts that have it, as far as records of accounts have the hash.
    pub accounts: u64,
    /// The first of them.
    pub address: Option<Address>,
}

/// What undo records keep of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistoryFigures {
    /// The table's name; of a state that moves to another tree, `TABLE of TREE` for what the other tree has.
    pub table: Cow<'static, str>,
    /// Keys that versions changed, each once for a version.
    pub entries: u64,
    /// Entries whose key was absent before.
    pub absent_before: u64,
    /// Bytes of the keys, before they are shortened in the record.
    pub key_bytes: u64,
    /// Bytes of the values before.
    pub old_value_bytes: u64,
}

/// How far an inspection is.
#[derive(Clone, Copy, Debug)]
pub struct InspectProgress {
    /// The table that is read.
    pub table: &'static str,
    /// Records read, of all tables.
    pub records: u64,
    /// The part of the work that is done, 0 to 1: tables count alike, and within a table keys are taken to be spread evenly.
    pub done: f64,
}

impl StateSnapshot {
    /// Reads every record of the database and counts. Memory does not grow with the database: of the largest accounts
    /// and codes `most` are kept.
    ///
    /// `progress` is called now and then. If it breaks, what was counted until then is returned as incomplete. So it is
    /// if a record cannot be read or is not what its table promises; [`Inspection::fault`] then names it.
    ///
    /// # Errors
    /// A database without a version.
    pub fn inspect(
        &self,
        most: usize,
        progress: &mut dyn FnMut(InspectProgress) -> ControlFlow<()>,
    ) -> Result<Inspection, StateError> {
        let head = self.reader();
        let meta = head.meta();
        let meta = meta.ok_or_else(|| StateError::Read("the state has no version yet".into()))?;
        let mut counting = Counting::new(head, most);
        let (complete, fault) = match counting.all(progress) {
            Ok(complete) => (complete, None),
            Err(error) => (false, Some(with_causes(&error))),
        };
        Ok(Inspection {
            tree: head.tree().kind().name,
            block: meta.block_number,
            root: meta.root.into(),
            complete,
            fault,
            ..counting.into_inspection()?
        })
    }
}

/// An error with its causes, each once.
fn with_causes(error: &StateError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text += &format!(": {words}");
        }
        cause = error.source();
    }
    text
}

/// A table's name, with that of the tree if the state moves to that one.
fn name_of(head: Head<'_>, table: Table) -> Cow<'static, str> {
    let mut specs = head.tree().kind().tables.iter();
    let spec = specs.find(|spec| spec.table == table);
    let name = spec.map_or("unknown", |spec| spec.name);
    match head.tree().moves() {
        Some(moves) if has_space(table) && table.0 & OTHER_SPACE != 0 => {
            format!("{name} of {}", moves.target().kind().name).into()
        }
        _ => name.into(),
    }
}

/// Counts by size: 1, 2, 3 to 4, 5 to 8, and so on; 0 has a bucket of its own.
#[derive(Default)]
struct Histogram(BTreeMap<u32, u64>);

impl Histogram {
    fn add(&mut self, size: u64) {
        let bucket = match size {
            0 => 0,
            size => u64::BITS - (size - 1).leading_zeros() + 1,
        };
        *self.0.entry(bucket).or_default() += 1;
    }

    fn buckets(self) -> Vec<Bucket> {
        let buckets = self.0.into_iter().map(|(bucket, count)| {
            let (from, to) = match bucket {
                0 => (0, 0),
                1 => (1, 1),
                bucket => ((1 << (bucket - 2)) + 1, 1 << (bucket - 1)),
            };
            Bucket { from, to, count }
        });
        buckets.collect()
    }
}

/// The greatest of many sizes.
struct Greatest<T> {
    most: usize,
    heap: BinaryHeap<Reverse<(u64, T)>>,
}

impl<T: Ord> Greatest<T> {
    fn new(most: usize) -> Self {
        Self {
            most,
            heap: BinaryHeap::new(),
        }
    }

    fn add(&mut self, size: u64, what: impl FnOnce() -> T) {
        let full = self.heap.len() >= self.most;
        if full && self.heap.peek().is_none_or(|least| size <= least.0.0) {
            return;
        }
        self.heap.push(Reverse((size, what())));
        if full {
            self.heap.pop();
        }
    }

    fn descending(self) -> impl Iterator<Item = (u64, T)> {
        self.heap.into_sorted_vec().into_iter().map(|entry| entry.0)
    }
}

/// Codes that are among the largest: accounts that have them, and the first.
type Holders = HashMap<B256, (u64, Option<Address>)>;

struct Counting<'a> {
    head: Head<'a>,
    records: u64,
    tables: Vec<TableFigures>,
    nodes: BTreeMap<(&'static str, &'static str), Vec<u64>>,
    occupancy: Histogram,
    accounts: u64,
    slots: u64,
    owners: u64,
    slots_per_account: Histogram,
    largest: Greatest<Box<[u8]>>,
    /// The account whose slots are counted, and how many there are so far.
    owner: Option<(Box<[u8]>, u64)>,
    codes: Histogram,
    largest_codes: Greatest<B256>,
    holders: Holders,
    history: BTreeMap<Table, HistoryFigures>,
}

impl<'a> Counting<'a> {
    fn new(head: Head<'a>, most: usize) -> Self {
        Self {
            head,
            records: 0,
            tables: Vec::new(),
            nodes: BTreeMap::new(),
            occupancy: Histogram::default(),
            accounts: 0,
            slots: 0,
            owners: 0,
            slots_per_account: Histogram::default(),
            largest: Greatest::new(most),
            owner: None,
            codes: Histogram::default(),
            largest_codes: Greatest::new(most),
            holders: Holders::new(),
            history: BTreeMap::new(),
        }
    }

    /// Reads all tables; `false` if `progress` broke.
    fn all(
        &mut self,
        progress: &mut dyn FnMut(InspectProgress) -> ControlFlow<()>,
    ) -> Result<bool, StateError> {
        let view = self.head.view();
        let kind = self.head.tree().kind();
        // Codes first: accounts are then known to have one of the largest.
        let mut own: Vec<&TableSpec> = kind.tables.iter().collect();
        own.sort_by_key(|spec| spec.table != CODE);
        let own = own.into_iter().map(|spec| (spec.table, spec.name, true));
        let versions = OWN_TABLES.map(|(table, name)| (table, name, false));
        let tables: Vec<_> = own.chain(versions).collect();
        let all = tables.len() as f64;
        for (place, (table, name, is_state)) in tables.into_iter().enumerate() {
            let entries = match is_state {
                true => view.scan(table, &[], &[])?,
                false => view.scan_own(table)?,
            };
            let mut tell = |records, part: f64| {
                progress(InspectProgress {
                    table: name,
                    records,
                    done: (place as f64 + part) / all,
                })
            };
            if !self.table((table, name, is_state), entries, &mut tell)? {
                return Ok(false);
            }
            if table == CODE {
                let codes = self.largest_codes.heap.iter();
                self.holders = codes.map(|code| (code.0.1, (0, None))).collect();
            }
        }
        Ok(true)
    }

    fn table(
        &mut self,
        (table, name, is_state): (Table, &'static str, bool),
        entries: Entries<'_>,
        tell: &mut dyn FnMut(u64, f64) -> ControlFlow<()>,
    ) -> Result<bool, StateError> {
        let mut figures = TableFigures {
            table: match is_state {
                true => name_of(self.head, table),
                false => name.into(),
            },
            ..TableFigures::default()
        };
        let counted = self.entries((table, is_state), entries, &mut figures, tell);
        self.end_owner();
        figures.complete = matches!(counted, Ok(true));
        // What was read before an entry that cannot be read counts, too.
        self.tables.push(figures);
        counted
    }

    fn entries(
        &mut self,
        (table, is_state): (Table, bool),
        entries: Entries<'_>,
        figures: &mut TableFigures,
        tell: &mut dyn FnMut(u64, f64) -> ControlFlow<()>,
    ) -> Result<bool, StateError> {
        let mut goes_on = tell(self.records, 0.0).is_continue();
        for entry in entries {
            if !goes_on {
                break;
            }
            let (key, value) = entry?;
            figures.records += 1;
            figures.key_bytes += key.len() as u64;
            figures.value_bytes += value.len() as u64;
            self.records += 1;
            match is_state {
                true => self.record(table, &key, &value)?,
                false if table == UNDO_TABLE => self.undo(&key, &value)?,
                false => {}
            }
            if self.records.is_multiple_of(PROGRESS_EVERY) {
                goes_on = tell(self.records, part_of_keys(&key)).is_continue();
            }
        }
        Ok(goes_on)
    }

    fn record(&mut self, table: Table, key: &[u8], value: &Value) -> Result<(), StateError> {
        if table == CODE {
            let bytes = value.len() as u64;
            self.codes.add(bytes);
            if let Ok(hash) = B256::try_from(key) {
                self.largest_codes.add(bytes, || hash);
            }
            return Ok(());
        }
        let tree = self.head.tree();
        let record = StoredRecord { table, key, value };
        tree.inspect(record, &mut |seen| self.see(seen))
    }

    fn see(&mut self, seen: Seen<'_>) {
        match seen {
            Seen::Nodes(nodes) => self.see_nodes(nodes),
            Seen::Account { address, code_hash } => {
                self.accounts += 1;
                if let Some(holder) = code_hash.and_then(|hash| self.holders.get_mut(&hash)) {
                    holder.0 += 1;
                    holder.1.get_or_insert(address);
                }
            }
            Seen::Slot { owner } => {
                self.slots += 1;
                match &mut self.owner {
                    Some((same, slots)) if **same == *owner => *slots += 1,
                    _ => {
                        self.end_owner();
                        self.owner = Some((owner.into(), 1));
                    }
                }
            }
        }
    }

    fn see_nodes(&mut self, seen: SeenNodes) {
        let SeenNodes {
            trie,
            kind,
            depth,
            count,
            values,
        } = seen;
        let depths = self.nodes.entry((trie, kind)).or_default();
        if depths.len() <= depth {
            depths.resize(depth + 1, 0);
        }
        depths[depth] += count;
        if let Some(values) = values {
            self.occupancy.add(values.into());
        }
    }

    /// Counts the account whose slots have all come.
    fn end_owner(&mut self) {
        if let Some((owner, slots)) = self.owner.take() {
            self.owners += 1;
            self.slots_per_account.add(slots);
            self.largest.add(slots, || owner);
        }
    }

    fn undo(&mut self, key: &[u8], value: &Value) -> Result<(), StateError> {
        let history = &mut self.history;
        undo_entries(key, value, &mut |entry: UndoEntry| {
            let figures = history.entry(entry.table).or_default();
            figures.entries += 1;
            figures.key_bytes += entry.key_bytes as u64;
            match entry.old_bytes {
                Some(bytes) => figures.old_value_bytes += bytes as u64,
                None => figures.absent_before += 1,
            }
        })?;
        Ok(())
    }

    fn into_inspection(self) -> Result<Inspection, StateError> {
        let (head, tables) = (self.head, self.tables);
        let code_name = name_of(head, CODE);
        let code_table = tables.iter().find(|figures| figures.table == code_name);
        let (codes, bytes) = code_table.map_or((0, 0), |code| (code.records, code.value_bytes));
        let largest = self.largest.descending().map(|(slots, owner)| {
            let address = address_of(head, &owner)?;
            Ok(LargeStorage { address, slots })
        });
        let largest: Result<_, StateError> = largest.collect();
        let largest_codes = self.largest_codes.descending().map(|(bytes, code_hash)| {
            let holders = self.holders.get(&code_hash);
            let (accounts, address) = holders.copied().unwrap_or_default();
            LargeCode {
                code_hash,
                bytes,
                accounts,
                address,
            }
        });
        Ok(Inspection {
            nodes: self.nodes.into_iter().map(NodeFigures::new).collect(),
            occupancy: self.occupancy.buckets(),
            accounts: self.accounts,
            storage: StorageFigures {
                slots: self.slots,
                accounts: self.owners,
                slots_per_account: self.slots_per_account.buckets(),
                largest: largest?,
            },
            codes: CodeFigures {
                codes,
                bytes,
                largest: largest_codes.collect(),
                by_bytes: self.codes.buckets(),
            },
            history: {
                let history = self.history.into_iter();
                let named = history.map(|(table, figures)| HistoryFigures {
                    table: name_of(head, head.view().named(table)),
                    ..figures
                });
                named.collect()
            },
            tables,
            ..Inspection::default()
        })
    }
}

impl NodeFigures {
    fn new(((trie, kind), by_depth): ((&'static str, &'static str), Vec<u64>)) -> Self {
        Self {
            trie,
            kind,
            count: by_depth.iter().sum(),
            by_depth,
        }
    }
}

/// Returns the address of the account that slots are of.
fn address_of(head: Head<'_>, owner: &[u8]) -> Result<Option<Address>, StateError> {
    if let Ok(address) = <[u8; 20]>::try_from(owner) {
        return Ok(Some(address.into()));
    }
    match <[u8; 32]>::try_from(owner) {
        Ok(key) => head.tree().records().account_from(head.view(), &key),
        Err(_) => Ok(None),
    }
}

/// Returns the part of all keys that is below a key, 0 to 1.
fn part_of_keys(key: &[u8]) -> f64 {
    let first = key
        .first_chunk()
        .map_or(0, |first| u32::from_be_bytes(*first));
    f64::from(first) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_one_bucket() {
        let mut histogram = Histogram::default();
        for size in [0, 1, 2, 3, 4, 5, 8, 9, u64::MAX >> 1] {
            histogram.add(size);
        }
        let found = histogram.buckets();
        let bounds: Vec<_> = found.iter().map(|b| (b.from, b.to, b.count)).collect();
        assert_eq!(
            bounds[..6],
            [
                (0, 0, 1),
                (1, 1, 1),
                (2, 2, 1),
                (3, 4, 2),
                (5, 8, 2),
                (9, 16, 1)
            ]
        );
        assert_eq!(bounds[6], ((1 << 62) + 1, 1 << 63, 1));
    }

    #[test]
    fn the_greatest_are_kept() {
        let mut greatest = Greatest::new(2);
        for size in [3, 9, 1, 9, 4] {
            greatest.add(size, || size);
        }
        let kept: Vec<u64> = greatest.descending().map(|(size, _)| size).collect();
        assert_eq!(kept, [9, 9]);
        let mut none = Greatest::new(0);
        none.add(1, || 1);
        assert_eq!(none.descending().count(), 0);
    }
}
