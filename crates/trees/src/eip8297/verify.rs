//! Checking a database: the tree rebuilt from the flat tables, in the order of its keys, and
//! compared record by record.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::failed;
use crate::named_records::{account_key, slot_name};
use alloy_primitives::{B256, KECCAK256_EMPTY, hex, keccak256};
use arbor_state_tree::{ACCOUNTS, Check, ReadError, SLOTS, StateError, corrupt};
use arbor_tree_eip8297::{Builder, LeafUpdate, Part, Path, join};
use arbor_verify::eip8297::{Code, delegation_code};
use rayon::prelude::*;

use super::ordered::{OrderedLeaves, code_leaves_in_order, first_bytes};
use super::reader::RECORDS;
use super::records::{self, AccountRecord, decode_slot};
use super::{CODE_USERS, Eip8297};
use crate::binary::Comparison;
use crate::stems::stored_code;

/// Bits that the keys of a zone share.
const ZONE_BITS: usize = 8;

/// Rebuilds the tree and compares it with what is stored; returns the Merkle-Patricia root of the
/// same flat tables, zero if they have none.
pub(super) fn check_state(
    check: &Check<'_>,
    tree: Eip8297,
    stored: B256,
) -> Result<B256, StateError> {
    // The records are compared as they are packed.
    let comparison = Comparison::new(check);
    let tree = Eip8297 {
        packing: comparison.packing()?.unwrap_or(tree.packing),
        ..tree
    };
    let rebuild = Rebuild {
        check,
        tree,
        comparison,
        stopped: Mutex::new(None),
    };
    let root = rebuild.root()?;
    if root != stored {
        rebuild.fault(format!(
            "root: the flat state gives {root}, the head has {stored}"
        ));
    }
    let all_readable = rebuild.every_record()?;
    rebuild.comparison.spare_nodes()?;
    if !all_readable {
        return Ok(B256::ZERO);
    }
    match RECORDS.header_root(&check.view) {
        // A slot of nobody.
        Err(error @ StateError::Corrupt { .. }) => {
            rebuild.fault(error.to_string());
            Ok(B256::ZERO)
        }
        root => root,
    }
}

struct Rebuild<'a> {
    check: &'a Check<'a>,
    tree: Eip8297,
    comparison: Comparison<'a>,
    /// Why the check cannot go on.
    stopped: Mutex<Option<StateError>>,
}

/// The records of a zone on their way to be compared.
struct Zone<'a> {
    rebuild: &'a Rebuild<'a>,
    builder: Builder,
    built: Vec<(Path, Arc<[u8]>)>,
}

impl Zone<'_> {
    fn add(&mut self, leaves: Vec<LeafUpdate>) -> Result<(), StateError> {
        for leaf in leaves {
            let built = &mut self.built;
            let mut sink = |path, record| built.push((path, record));
            self.builder
                .add(leaf.key, leaf.value, &mut sink)
                .map_err(failed)?;
            if self.built.len() >= Comparison::TOGETHER {
                self.rebuild.comparison.compare(&mut self.built)?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Part, StateError> {
        let built = &mut self.built;
        let mut sink = |path, record| built.push((path, record));
        let part = self.builder.finish_part(&mut sink).map_err(failed)?;
        self.rebuild.comparison.compare(&mut self.built)?;
        Ok(part)
    }
}

impl<'a> Rebuild<'a> {
    fn zone(&self) -> Zone<'_> {
        Zone {
            rebuild: self,
            builder: Builder::part(self.tree.hasher, self.tree.packing, ZONE_BITS),
            built: Vec::new(),
        }
    }

    fn root(&self) -> Result<B256, StateError> {
        let (view, embedding) = (self.check.view, self.tree.embedding());
        let (mut header, mut storage) = (self.zone(), self.zone());
        // What cannot be read is told of once, where every record is looked at.
        let pass = |_: StateError| Ok(());
        for firsts in first_bytes(view, self.tree.leaf_bytes)? {
            let leaves = OrderedLeaves::read(view, embedding, &firsts, &pass)?;
            for first in firsts {
                let both = rayon::join(
                    || header.add(leaves.take_header(first)),
                    || storage.add(leaves.take_storage(first)),
                );
                both.0.and(both.1)?;
                self.check.part_done();
            }
        }
        let mut code = self.zone();
        {
            let mut add = |leaf| code.add(vec![leaf]);
            code_leaves_in_order(view, embedding, &pass, &mut add)?;
        }
        let parts = [header.finish()?, code.finish()?, storage.finish()?];
        let mut built = Vec::new();
        let mut sink = |path, record| built.push((path, record));
        let root = join(self.tree.hasher, self.tree.packing, &parts, &mut sink).map_err(failed)?;
        self.comparison.compare(&mut built)?;
        let stopped = self
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        stopped.map_or(Ok(root.into()), Err)
    }

    /// Looks at every account, slot and code that has users. Returns whether all could be read.
    fn every_record(&self) -> Result<bool, StateError> {
        let check = self.check;
        let all_readable = AtomicBool::new(true);
        let unreadable = |error: StateError| {
            all_readable.store(false, Ordering::Relaxed);
            self.fault(error.to_string());
        };
        for (table, name) in [
            (ACCOUNTS, "accounts"),
            (SLOTS, "slots"),
            (CODE_USERS, "code users"),
        ] {
            if check.view.get(table, &[])?.is_some() {
                unreadable(corrupt(name, &[], "a key is empty"));
            }
        }
        let codes = self.codes(&unreadable)?;
        let users: Mutex<BTreeMap<B256, u64>> = Mutex::default();
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            let mut own: BTreeMap<B256, u64> = BTreeMap::new();
            for entry in check.scan(ACCOUNTS, &[first], &[])? {
                let (key, bytes) = entry?;
                check.count(&check.counts.accounts);
                let record = account_key(&key).and_then(|address| {
                    let record = AccountRecord::decode(&key, &bytes)?;
                    record.fields(address)?;
                    Ok(record)
                });
                match record {
                    Ok(record) => {
                        if let Some(code) = record.code_with_leaves() {
                            *own.entry(code).or_default() += 1;
                        }
                        self.account_code(&key, &record, &codes)?;
                    }
                    Err(error @ StateError::NoRoom { .. }) => self.fault(error.to_string()),
                    Err(error) => unreadable(error),
                }
            }
            for entry in check.scan(SLOTS, &[first], &[])? {
                let (key, bytes) = entry?;
                check.count(&check.counts.slots);
                let slot = slot_name(&key).and_then(|_| decode_slot(&key, &bytes));
                slot.map_or_else(unreadable, drop);
            }
            let mut users = users.lock().unwrap_or_else(PoisonError::into_inner);
            own.into_iter()
                .for_each(|(code, more)| *users.entry(code).or_default() += more);
            Ok::<(), StateError>(())
        })?;
        let users = users.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stored: BTreeMap<B256, u64> =
            codes.iter().map(|(hash, of)| (*hash, of.users)).collect();
        if users != stored {
            let differs = |hash: &&B256| users.get(*hash) != stored.get(*hash);
            let first = users.keys().chain(stored.keys()).find(differs);
            let first = first.copied().unwrap_or_default();
            let number = |of: &BTreeMap<B256, u64>| of.get(&first).copied().unwrap_or_default();
            self.fault(format!(
                "code {first}: {} accounts have it, and {} are counted",
                number(&users),
                number(&stored)
            ));
        }
        Ok(all_readable.into_inner())
    }

    /// The codes that have users, and what they are.
    fn codes(
        &self,
        unreadable: &dyn Fn(StateError),
    ) -> Result<BTreeMap<B256, StoredCode>, StateError> {
        let mut codes = BTreeMap::new();
        for entry in self.check.scan(CODE_USERS, &[], &[])? {
            let (key, bytes) = entry?;
            let found = records::code_key(&key)
                .and_then(|hash| Ok((hash, records::decode_users(&key, &bytes)?)));
            let (hash, users) = match found {
                Ok(found) => found,
                Err(error) => {
                    unreadable(error);
                    continue;
                }
            };
            let code = match stored_code(self.check.view, hash) {
                Ok(code) => Code::of(&code).ok(),
                Err(StateError::View(ReadError::MissingCode(_))) => None,
                Err(error) => return Err(error),
            };
            codes.insert(hash, StoredCode { users, code });
        }
        Ok(codes)
    }

    /// Compares what an account's record says of its code with the code.
    fn account_code(
        &self,
        key: &[u8],
        record: &AccountRecord,
        codes: &BTreeMap<B256, StoredCode>,
    ) -> Result<(), StateError> {
        let (hash, account) = (record.account.code_hash, hex::encode(key));
        if hash == KECCAK256_EMPTY {
            return Ok(());
        }
        if !self.check.has_code(hash)? {
            self.fault(format!("account {account}: code {hash} is missing"));
            return Ok(());
        }
        let agrees = match record.code {
            Code::Delegation(to) => keccak256(delegation_code(to)) == hash,
            code => codes.get(&hash).is_some_and(|of| of.code == Some(code)),
        };
        if !agrees {
            self.fault(format!(
                "account {account}: its record says of code {hash} what the code is not"
            ));
        }
        Ok(())
    }

    fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }
}

/// A code that has users.
struct StoredCode {
    users: u64,
    /// What it is; `None` if it is missing.
    code: Option<Code>,
}
