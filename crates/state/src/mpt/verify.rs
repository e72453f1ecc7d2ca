//! Checking the tries of a database: every node rebuilt from the flat state and compared, every retained version rebuilt from its undo.

use std::sync::atomic::Ordering;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use arbor_store::{Table, Write};
use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{Overlay, apply};
use arbor_versions::{Entries, Meta, VersionsError};
use rayon::prelude::*;

use super::AtHead;
use super::keys::{ACCOUNT_NODES, STORAGE_NODES, node_table};
use super::rebuild::{Watch, rebuild};
use super::records::AccountRecord;
use super::undo::{check_rebuilt, updates_back};
use crate::flat::Lookup;
use crate::verify::{Check, StepsBack};
use crate::{Head, StateError};

/// Rebuilds every trie and compares it with what is stored; returns the root.
pub(crate) fn check_state(check: &Check<'_>, head: Head<'_>) -> Result<B256, StateError> {
    let (built, root) = (rebuild(check)?, head.root());
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
            self.tell_fault(format!("account {address}: code {hash} is missing"));
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
        self.part_done();
    }
}

/// The tries while older and older versions are rebuilt over them.
struct Back<'a> {
    overlay: Overlay<AtHead<'a>>,
    root: Hash,
}

/// Begins at the head.
pub(crate) fn steps_back(head: Head<'_>) -> impl StepsBack {
    let head = AtHead(head.view());
    Back {
        root: head.root(),
        overlay: Overlay::new(head),
    }
}

impl StepsBack for Back<'_> {
    fn back(&mut self, to: &Meta, undo: &[Write], now: Lookup<'_>) -> Result<(), StateError> {
        let (updates, _) = updates_back(undo, now)?;
        let update = apply(&self.overlay, self.root, &updates)?;
        check_rebuilt(to, undo, &update)?;
        self.overlay.push(&update);
        self.root = update.root;
        Ok(())
    }
}

/// Counts stored nodes: another number than were rebuilt means nodes that nothing refers to, or that a
/// scan does not see.
fn spare_nodes(check: &Check<'_>) -> Result<(), StateError> {
    // A position begins with its depth, which few nodes tell apart, so the account trie's are shared by one byte more.
    let mut prefixes: Vec<(Table, Vec<u8>)> = (0..=u8::MAX)
        .map(|first| (STORAGE_NODES, vec![first]))
        .collect();
    let mut short: Vec<(Table, Vec<u8>)> = vec![(ACCOUNT_NODES, vec![])];
    let mut depth = Some(0);
    while let Some(from) = depth {
        let first = check.view.scan(ACCOUNT_NODES, &[], &[from])?.next();
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
        let mut entries = check.view.scan(table, &prefix, &[])?;
        entries.try_fold(0, |count, entry| Ok(entry.map(|_| count + 1)?))
    };
    let counts: Result<Vec<u64>, StateError> = prefixes.into_par_iter().map(count).collect();
    let mut stored = counts?.into_iter().sum::<u64>();
    for (table, key) in short {
        stored += u64::from(check.view.get(table, &key)?.is_some());
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
