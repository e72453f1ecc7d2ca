//! Checking the tries of a database: every node rebuilt from the flat state and compared, every retained version rebuilt from its undo.

use std::iter;
use std::sync::atomic::Ordering;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use arbor_store::Table;
use arbor_tree::Position;
use arbor_versions::{Entries, Entry, VersionsError};
use rayon::prelude::*;

use super::keys::{ACCOUNT_NODES, STORAGE_NODES, node_table};
use super::rebuild::{Node, StoredNodes, Watch, rebuild, rebuild_top};
use super::records::AccountRecord;
use crate::header_root::subtree;
use arbor_state_tree::{Check, CheckedPart, StateError};

type StoredNode = Result<Entry, VersionsError>;

/// The number of stored nodes.
const STORED: &str = "storedNodes";

/// Rebuilds the subtrees of some first bytes with their storage tries, and compares them with what is stored.
pub(crate) fn check_part(check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
    let subtrees = rebuild(check, firsts)?;
    let mut stored = check.counts.stored_nodes.load(Ordering::Relaxed);
    stored += stored_nodes(check, firsts)?;
    let subtrees = subtrees.iter().map(|part| part.encode().into());
    Ok(CheckedPart {
        subtrees: subtrees.collect(),
        sums: [(STORED.to_owned(), stored)].into(),
        ..CheckedPart::default()
    })
}

/// Builds the nodes above all subtrees and compares them with what is stored; returns the root.
pub(crate) fn check_join(
    check: &Check<'_>,
    parts: &[CheckedPart],
    root: B256,
) -> Result<B256, StateError> {
    let subtrees = CheckedPart::all_subtrees(parts).map(subtree);
    let built = rebuild_top(check, subtrees.collect::<Result<_, _>>()?)?;
    if built != root {
        check.tell_fault(format!(
            "state root: the flat state gives {built}, the head has {root}"
        ));
    }
    spare_nodes(check, CheckedPart::sum(parts, STORED))?;
    Ok(built)
}

impl Watch for Check<'_> {
    fn scan(&self, table: Table, prefix: &[u8], from: &[u8]) -> Result<Entries<'_>, VersionsError> {
        Check::scan(self, table, prefix, from)
    }

    fn record(&self, account: Option<&AccountRecord>) -> Result<(), StateError> {
        let Some(record) = account else {
            self.count(&self.counts.slots);
            return Ok(());
        };
        self.count(&self.counts.accounts);
        let (address, hash) = (record.address, record.account.code_hash);
        if hash != KECCAK256_EMPTY && !self.has_code(hash)? {
            self.tell_fault(format!("account {address:#x}: code {hash} is missing"));
        }
        Ok(())
    }

    fn node(&self, position: &Position, record: &[u8]) -> Result<(), StateError> {
        self.counts.nodes.fetch_add(1, Ordering::Relaxed);
        let stored = self.view.get(node_table(position), &position.encode())?;
        hold(self, position, record, stored.as_deref());
        Ok(())
    }

    fn storage_nodes(&self, first: u8) -> Result<StoredNodes<'_>, VersionsError> {
        Ok(Check::scan(self, STORAGE_NODES, &[first], &[])?.peekable())
    }

    fn compare(&self, built: &[Node], stored: &mut StoredNodes<'_>) -> Result<(), StateError> {
        self.counts
            .nodes
            .fetch_add(built.len() as u64, Ordering::Relaxed);
        for (position, record) in built {
            let key = position.key();
            // What lies between is of no trie, or of one that is looked up.
            let is_before =
                |entry: &StoredNode| entry.as_ref().is_ok_and(|(other, _)| other[..] < key[..]);
            let before = iter::from_fn(|| stored.next_if(is_before)).count();
            let found = stored.next_if(|entry| {
                entry
                    .as_ref()
                    .map_or(true, |(other, _)| other[..] == key[..])
            });
            match found.transpose()? {
                None if self.view.get(STORAGE_NODES, &key)?.is_some() => {
                    self.tell_fault(format!("node {}: a scan does not find it", name(position)));
                }
                found => hold(
                    self,
                    position,
                    record,
                    found.as_ref().map(|(_, stored)| &**stored),
                ),
            }
            // With this one, which was found, or of which is told that it was not.
            self.counts
                .stored_nodes
                .fetch_add(before as u64 + 1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn left(&self, mut stored: StoredNodes<'_>) -> Result<(), StateError> {
        let count = stored.try_fold(0, |count, entry| entry.map(|_| count + 1))?;
        self.counts.stored_nodes.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    fn fault(&self, fault: String) -> Result<(), StateError> {
        self.tell_fault(fault);
        Ok(())
    }

    fn range_done(&self) {
        self.part_done();
    }
}

/// Holds a node as the flat tables make it to the one that is stored.
fn hold(check: &Check<'_>, position: &Position, record: &[u8], stored: Option<&[u8]>) {
    match stored {
        None => check.tell_fault(format!("node {}: missing", name(position))),
        Some(stored) if *stored != *record => check.tell_fault(format!(
            "node {}: it differs from what the flat state gives",
            name(position)
        )),
        Some(_) => {}
    }
}

/// The depths that stored nodes of the account trie have.
fn depths(check: &Check<'_>) -> Result<Vec<u8>, StateError> {
    let (mut depths, mut from) = (Vec::new(), Some(0));
    while let Some(depth) = from {
        let first = check.view.scan(ACCOUNT_NODES, &[], &[depth])?.next();
        let Some((key, _)) = first.transpose()? else {
            break;
        };
        let present = key.first().copied().unwrap_or(0);
        depths.push(present);
        from = present.checked_add(1);
    }
    Ok(depths)
}

/// Counts the stored nodes of the account trie whose paths begin with some bytes.
fn stored_nodes(check: &Check<'_>, firsts: &[u8]) -> Result<u64, StateError> {
    // A position begins with its depth.
    let depths = depths(check)?.into_iter();
    let prefixes = depths.flat_map(|depth| firsts.iter().map(move |first| [depth, *first]));
    let prefixes: Vec<[u8; 2]> = prefixes.collect();
    let counts = prefixes.into_par_iter().map(|prefix| {
        let mut entries = check.view.scan(ACCOUNT_NODES, &prefix, &[])?;
        entries.try_fold(0, |count, entry| Ok(entry.map(|_| count + 1)?))
    });
    let counts: Result<Vec<u64>, StateError> = counts.collect();
    Ok(counts?.into_iter().sum())
}

/// Compares the number of stored nodes with that of rebuilt ones: another number means nodes that nothing refers to, or
/// that a scan does not see. Nodes without a path are not among `stored` yet.
fn spare_nodes(check: &Check<'_>, mut stored: u64) -> Result<(), StateError> {
    stored += u64::from(check.view.get(ACCOUNT_NODES, &[])?.is_some());
    for depth in depths(check)? {
        // The root's position is its depth alone.
        stored += u64::from(check.view.get(ACCOUNT_NODES, &[depth])?.is_some());
    }
    let rebuilt = check.counts.nodes.load(Ordering::Relaxed);
    if stored > rebuilt {
        let spare = stored - rebuilt;
        check.tell_fault(format!("{spare} nodes are stored that belong to no trie"));
    } else if stored < rebuilt {
        let unseen = rebuilt - stored;
        check.tell_fault(format!("{unseen} nodes are not found by a scan"));
    }
    Ok(())
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
