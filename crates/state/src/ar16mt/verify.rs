//! Checking an AR16MT database: the tree rebuilt from the leaves and compared node by node, leaves held against names and the counter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, hex};
use arbor_tree::{Hash, Path, Position};
use arbor_tree_ar16mt::{Entry, Hasher, Part, build_part, join};
use rayon::prelude::*;

use super::names::{LeafName, Named};
use super::reader::Header;
use super::records::{decode_counter, decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, COUNTER, KEY_BYTES, LEAVES, NAMES, NEXT_INDEX, NODES, flat_root};
use crate::verify::Check;
use crate::{Head, StateError};

/// Rebuilds the tree and compares it with what is stored; returns the Merkle-Patricia root of the same accounts, zero where they have none.
pub(crate) fn check_state(
    check: &Check<'_>,
    ar16mt: Ar16mt,
    head: Head<'_>,
) -> Result<B256, StateError> {
    let rebuild = Rebuild {
        check,
        leaves: AtomicU64::new(0),
        indices: Indices::default(),
        stopped: Mutex::new(None),
    };
    let root = with_hasher!(ar16mt, hasher => rebuild.root(hasher))?;
    if root != head.root() {
        let stored = head.root();
        check.tell_fault(format!(
            "root: the leaves give {root}, the head has {stored}"
        ));
    }
    rebuild.spare_nodes()?;
    rebuild.counter()?;
    if !rebuild.names_lead_to_all_leaves()? {
        return Ok(B256::ZERO);
    }
    match flat_root(check.view) {
        Err(error @ StateError::Corrupt { .. }) => {
            check.tell_fault(error.to_string());
            Ok(B256::ZERO)
        }
        root => root,
    }
}

struct Rebuild<'a> {
    check: &'a Check<'a>,
    leaves: AtomicU64,
    indices: Indices,
    /// Why the check cannot go on.
    stopped: Mutex<Option<StateError>>,
}

impl Rebuild<'_> {
    fn root<H: Hasher>(&self, hasher: H) -> Result<B256, StateError> {
        let sink = |path: Path, record: Arc<[u8]>| self.node(path, &record);
        let parts = (0..=u8::MAX).into_par_iter().map(|first| {
            let leaves = self.leaves(first)?;
            let part = build_part(hasher, leaves, &mut |path, record| sink(path, record))?;
            self.check.part_done();
            Ok(part)
        });
        let parts: Result<Vec<Part>, StateError> = parts.collect();
        let root = join(hasher, parts?, &mut |path, record| sink(path, record))?;
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        match stopped.take() {
            Some(error) => Err(error),
            None => Ok(root.into()),
        }
    }

    /// The leaves whose keys have this first byte, ascending.
    fn leaves(&self, first: u8) -> Result<Vec<(Hash, Entry)>, StateError> {
        let mut leaves = Vec::new();
        for entry in self.check.view.scan(LEAVES, &[first], &[])? {
            let (key, bytes) = entry?;
            self.check.looked_up(LEAVES, &key, &bytes)?;
            let leaf = leaf_key(&key).and_then(|key| Ok((key, decode_leaf(&key, &bytes)?)));
            match leaf {
                Ok((key, entry)) => {
                    self.check.count(&self.check.counts.slots);
                    if !self.indices.insert(entry.index) {
                        let (key, index) = (hex::encode(key), entry.index);
                        self.fault(format!("leaf {key}: another one has index {index} too"));
                    }
                    leaves.push((key, entry));
                }
                Err(error) => self.fault(error.to_string()),
            }
        }
        self.leaves
            .fetch_add(leaves.len() as u64, Ordering::Relaxed);
        Ok(leaves)
    }

    fn node(&self, path: Path, built: &[u8]) {
        self.check.counts.nodes.fetch_add(1, Ordering::Relaxed);
        let key = Position::outer(path).key();
        match self.check.view.get(NODES, &key) {
            Ok(Some(stored)) if *stored == *built => {}
            Ok(Some(_)) => self.fault(format!(
                "the node at {path}: it differs from what the leaves give"
            )),
            Ok(None) => self.fault(format!("the node at {path}: missing")),
            Err(error) => {
                let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
                stopped.get_or_insert(error.into());
            }
        }
    }

    /// Counts stored nodes: another number than were built means nodes that nothing leads to, or that a scan does not see.
    fn spare_nodes(&self) -> Result<(), StateError> {
        let count = |prefix: &[u8]| -> Result<u64, StateError> {
            let mut entries = self.check.view.scan(NODES, prefix, prefix)?;
            entries.try_fold(0, |count, entry| Ok(entry.map(|_| count + 1)?))
        };
        let lengths = (0..=u8::MAX).into_par_iter().map(|length| count(&[length]));
        let lengths: Result<Vec<u64>, StateError> = lengths.collect();
        let without_key = u64::from(self.check.view.get(NODES, &[])?.is_some());
        let stored = lengths?.into_iter().sum::<u64>() + without_key;
        let built = self.check.counts.nodes.load(Ordering::Relaxed);
        if stored > built {
            let spare = stored - built;
            self.fault(format!("{spare} nodes are stored that nothing leads to"));
        } else if stored < built {
            let unseen = built - stored;
            self.fault(format!("{unseen} nodes are not found by a scan"));
        }
        Ok(())
    }

    fn counter(&self) -> Result<(), StateError> {
        let mut next = None;
        for entry in self.check.view.scan(COUNTER, &[], &[])? {
            let (key, bytes) = entry?;
            self.check.looked_up(COUNTER, &key, &bytes)?;
            match decode_counter(&bytes) {
                Ok(number) if *key == *NEXT_INDEX => next = Some(number),
                Ok(_) => self.fault(format!("counter {}: unknown", hex::encode(&key))),
                Err(error) => self.fault(error.to_string()),
            }
        }
        let highest = self.indices.highest();
        let expected = (highest > 0).then_some(highest.saturating_add(1));
        if next.unwrap_or(1) != expected.unwrap_or(1) {
            self.fault(format!(
                "the counter of leaves: {}, but the highest index is {highest}",
                next.map_or_else(|| "missing".to_owned(), |next| next.to_string())
            ));
        }
        Ok(())
    }

    /// Looks at every name, and whether every leaf is reached through one, unless there are none at all. Returns whether leaves are those of accounts.
    fn names_lead_to_all_leaves(&self) -> Result<bool, StateError> {
        let reached = AtomicU64::new(0);
        let names = (0..=u8::MAX).into_par_iter().map(|first| {
            let mut names = 0;
            for entry in self.check.view.scan(NAMES, &[first], &[])? {
                let (key, bytes) = entry?;
                self.check.looked_up(NAMES, &key, &bytes)?;
                names += 1;
                let named = match Named::decode(&key) {
                    Ok(named) => named,
                    Err(error) => {
                        self.fault(error.to_string());
                        continue;
                    }
                };
                if *bytes != named.leaf().key()[..KEY_BYTES] {
                    let key = hex::encode(&key);
                    self.fault(format!("name {key}: its leaf has another key"));
                }
                let found = match named {
                    Named::Account(address) => self.account(address)?,
                    Named::Slot(..) => u64::from(self.leaf(named.leaf())?.is_some()),
                };
                reached.fetch_add(found, Ordering::Relaxed);
            }
            Ok(names)
        });
        let names: Result<Vec<u64>, StateError> = names.collect();
        let without_key = self.check.view.get(NAMES, &[])?.is_some();
        let (leaves, reached) = (
            self.leaves.load(Ordering::Relaxed),
            reached.load(Ordering::Relaxed),
        );
        if without_key {
            self.fault("a name without a key".to_owned());
        }
        let named = without_key || names?.iter().any(|names| *names > 0);
        if named && leaves != reached {
            self.fault(format!(
                "{leaves} leaves are stored, {reached} are reached through names"
            ));
        }
        Ok(named || leaves == 0)
    }

    /// The leaves of an account's own fields.
    fn account(&self, address: Address) -> Result<u64, StateError> {
        let name = LeafName::Nonce(address);
        let header = self.leaf(name)?;
        let header = header.map(|value| Header::decode(&name.key(), &value));
        let mut found = u64::from(header.is_some());
        found += u64::from(self.leaf(LeafName::Balance(address))?.is_some());
        let code_hash = self.leaf(LeafName::CodeHash(address))?.map(B256::from);
        found += u64::from(code_hash.is_some());
        match header.transpose() {
            Err(error) => self.fault(error.to_string()),
            Ok(Some(Some(header))) => {
                self.check.count(&self.check.counts.accounts);
                let hash = code_hash.filter(|_| header.has_code);
                if let Some(hash) = hash.filter(|hash| *hash != KECCAK256_EMPTY)
                    && !self.check.has_code(hash)?
                {
                    self.fault(format!("account {address}: code {hash} is missing"));
                }
            }
            Ok(_) => {}
        }
        Ok(found)
    }

    /// A leaf's value; a record that cannot be read has been told of.
    fn leaf(&self, name: LeafName) -> Result<Option<Hash>, StateError> {
        let key = name.key();
        let bytes = self.check.view.get(LEAVES, &key)?;
        let record = bytes.and_then(|bytes| decode_leaf(&key, &bytes).ok());
        Ok(record.map(|entry| entry.value))
    }

    fn fault(&self, fault: String) {
        self.check.tell_fault(fault);
    }
}

/// The indices that leaves have, in parts that come into being when they are needed.
#[derive(Default)]
struct Indices(Mutex<HashMap<u64, IndexPart>>);

/// Some of a run of 32,768 indices.
enum IndexPart {
    /// Few: one by one.
    Few(Vec<u16>),
    /// A bit for each.
    Many(Box<[u64; IndexPart::WORDS]>),
}

impl Indices {
    const PART: u64 = 64 * IndexPart::WORDS as u64;

    /// Whether it was not there yet.
    fn insert(&self, index: u64) -> bool {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = parts.entry(index / Self::PART);
        let part = part.or_insert_with(|| IndexPart::Few(Vec::new()));
        part.insert((index % Self::PART) as u16)
    }

    /// The highest of them; zero if there is none.
    fn highest(&self) -> u64 {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = parts.iter().max_by_key(|(part, _)| **part);
        last.map_or(0, |(part, indices)| {
            part * Self::PART + u64::from(indices.highest())
        })
    }
}

impl IndexPart {
    const WORDS: usize = 512;
    /// More are held as bits.
    const FEW: usize = 64;

    fn insert(&mut self, index: u16) -> bool {
        match self {
            Self::Few(few) if few.contains(&index) => false,
            Self::Few(few) if few.len() < Self::FEW => {
                few.push(index);
                true
            }
            Self::Few(few) => {
                let mut many = Box::new([0; Self::WORDS]);
                for index in few.iter().chain([&index]) {
                    many[usize::from(index / 64)] |= 1 << (index % 64);
                }
                *self = Self::Many(many);
                true
            }
            Self::Many(many) => {
                let (word, bit) = (&mut many[usize::from(index / 64)], 1 << (index % 64));
                let new = *word & bit == 0;
                *word |= bit;
                new
            }
        }
    }

    fn highest(&self) -> u16 {
        match self {
            Self::Few(few) => few.iter().copied().max().unwrap_or_default(),
            Self::Many(many) => {
                let last = many.iter().enumerate().rfind(|(_, word)| **word != 0);
                last.map_or(0, |(at, word)| 64 * at as u16 + word.ilog2() as u16)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dense and sparse ones, up to the last there can be, twice each.
    #[test]
    fn indices_are_told_apart() {
        let dense = 1..200u64;
        let sparse = (1..200).map(|i| i * 0x1234_5678_9abc);
        let all: Vec<u64> = dense.chain(sparse).chain([u64::MAX]).collect();
        let indices = Indices::default();
        let (mut highest, mut count) = (0, 0);
        for index in &all {
            count += usize::from(indices.insert(*index));
            highest = highest.max(*index);
            assert_eq!(indices.highest(), highest);
        }
        assert_eq!(count, all.len());
        assert!(!all.iter().any(|index| indices.insert(*index)));
    }
}
