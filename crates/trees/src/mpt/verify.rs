//! Checking the tries of a database: every node rebuilt from the flat state and compared, every retained version rebuilt from its undo.

use std::iter;
use std::sync::atomic::Ordering;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use arbor_store::Table;
use arbor_tree::Position;
use arbor_versions::{Entries, Entry, VersionsError};
use rayon::prelude::*;

use super::keys::{ACCOUNT_NODES, STORAGE_NODES, node_table};
use super::rebuild::{Node, StoredNodes, Watch, rebuild};
use super::records::AccountRecord;
use arbor_state_tree::Check;
use arbor_state_tree::StateError;

type StoredNode = Result<Entry, VersionsError>;

/// Rebuilds every trie and compares it with what is stored; returns the root.
pub(crate) fn check_state(check: &Check<'_>, root: B256) -> Result<B256, StateError> {
    let built = rebuild(check)?;
    if built != root {
        check.tell_fault(format!(
            "state root: the flat state gives {built}, the head has {root}"
        ));
    }
    spare_nodes(check)?;
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

/// Counts stored nodes, those of storage as they were passed: another number than were rebuilt means nodes that nothing refers to, or that a
/// scan does not see.
fn spare_nodes(check: &Check<'_>) -> Result<(), StateError> {
    // A position begins with its depth, which few nodes tell apart, so they are shared by one byte more.
    let (mut prefixes, mut short) = (Vec::new(), vec![vec![]]);
    let mut depth = Some(0);
    while let Some(from) = depth {
        let first = check.view.scan(ACCOUNT_NODES, &[], &[from])?.next();
        let Some((key, _)) = first.transpose()? else {
            break;
        };
        let present = key.first().copied().unwrap_or(0);
        prefixes.extend((0..=u8::MAX).map(|second| [present, second]));
        // The root's position is its depth alone.
        short.push(vec![present]);
        depth = present.checked_add(1);
    }
    let count = |prefix: [u8; 2]| -> Result<u64, StateError> {
        let mut entries = check.view.scan(ACCOUNT_NODES, &prefix, &[])?;
        entries.try_fold(0, |count, entry| Ok(entry.map(|_| count + 1)?))
    };
    let counts: Result<Vec<u64>, StateError> = prefixes.into_par_iter().map(count).collect();
    let mut stored = counts?.into_iter().sum::<u64>();
    stored += check.counts.stored_nodes.load(Ordering::Relaxed);
    for key in short {
        stored += u64::from(check.view.get(ACCOUNT_NODES, &key)?.is_some());
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
