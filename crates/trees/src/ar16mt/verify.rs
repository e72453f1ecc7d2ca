//! Checking an AR16MT database: the tree rebuilt from the leaves and compared node by node, leaves held against names and the counter.

use std::iter::Peekable;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::map::HashMap;
use alloy_primitives::{Address, B256, KECCAK256_EMPTY, hex};
use arbor_store::Value;
use arbor_tree::{Hash, Path, Position};
use arbor_tree_ar16mt::{Entry, Hasher, Part, build_part, join};
use arbor_versions::Entries;
use rayon::prelude::*;

use super::failed;
use super::names::{LeafName, Named};
use super::records::{decode_counter, decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, COUNTER, KEY_BYTES, LEAVES, NAMES, NEXT_INDEX, NODES, flat_root};
use arbor_state_tree::Check;
use arbor_state_tree::StateError;
use arbor_state_tree::corrupt;
use arbor_verify::ar16mt::Header;

/// Rebuilds the tree and compares it with what is stored; returns the Merkle-Patricia root of the same accounts, zero where they have none.
pub(crate) fn check_state(
    check: &Check<'_>,
    ar16mt: Ar16mt,
    stored: B256,
) -> Result<B256, StateError> {
    let (lengths, spare) = check.path_lengths(NODES, 2)?;
    let rebuild = Rebuild {
        check,
        leaves: AtomicU64::new(0),
        indices: Indices::default(),
        last: Mutex::default(),
        lengths,
        spare: spare.into(),
    };
    let root = with_hasher!(ar16mt, hasher => rebuild.root(hasher))?;
    if root != stored {
        check.tell_fault(format!(
            "root: the leaves give {root}, the head has {stored}"
        ));
    }
    rebuild.tell_spare_nodes();
    if !ar16mt.any_index {
        rebuild.no_index_is_left_out();
    }
    rebuild.counter()?;
    if !rebuild.names_lead_to_all_leaves()? {
        return Ok(B256::ZERO);
    }
    match flat_root(&check.view) {
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
    /// The leaf with the highest index, and that.
    last: Mutex<(u64, Hash)>,
    /// The lengths of paths that stored nodes have.
    lengths: Vec<u8>,
    /// Stored nodes that the leaves do not give.
    spare: AtomicU64,
}

/// Nodes with their paths.
type Nodes = Vec<(Path, Arc<[u8]>)>;
/// A key and its value.
type Stored = (Box<[u8]>, Value);
/// What is left of a scan.
type Rest<'a> = Peekable<Entries<'a>>;

/// The next entry of a scan, if it is within a part.
fn next_within(
    rest: &mut Rest<'_>,
    is_within: &impl Fn(&[u8]) -> bool,
) -> Result<Option<Stored>, StateError> {
    let within = rest.next_if(|entry| match entry {
        Ok((key, _)) => is_within(key),
        Err(_) => true,
    });
    Ok(within.transpose()?)
}

impl Rebuild<'_> {
    fn root<H: Hasher>(&self, hasher: H) -> Result<B256, StateError> {
        let parts = (0..=u8::MAX).into_par_iter().map(|first| {
            let part = self.part(hasher, first)?;
            self.check.part_done();
            Ok(part)
        });
        let parts: Result<Vec<Part>, StateError> = parts.collect();
        let (parts, mut nodes) = (parts?, Nodes::new());
        let mut sink = |path, record| nodes.push((path, record));
        let tops = (0..16).zip(parts.chunks(16));
        let tops =
            tops.map(|(nibble, parts)| join(hasher, Path::ROOT.child(nibble), parts, &mut sink));
        let tops: Vec<Part> = tops.collect::<Result<_, _>>().map_err(failed)?;
        let root = join(hasher, Path::ROOT, &tops, &mut sink).map_err(failed)?;
        self.compare(nodes, &mut [self.nodes(&[0])?, self.nodes(&[1])?], |_| true)?;
        Ok(root.hash(hasher).into())
    }

    /// The part of the leaves whose keys begin with one byte, made of sixteen that fit a core's caches.
    fn part<H: Hasher>(&self, hasher: H, first: u8) -> Result<Part, StateError> {
        let mut leaves = self.check.scan(LEAVES, &[first], &[])?.peekable();
        let below = self.lengths.iter().filter(|length| **length > 2);
        let below = below.map(|length| self.nodes(&[*length, first]));
        let mut below: Vec<Rest<'_>> = below.collect::<Result<_, _>>()?;
        let path = Path::prefix_of_key(&[first; 32], 2);
        let parts = (0..16).map(|nibble| {
            let end = first_byte_after(nibble);
            let leaves = self.leaves(&mut leaves, |key| {
                end.is_none_or(|end| key.get(1) < Some(&end))
            })?;
            let mut nodes = Nodes::new();
            let part = build_part(hasher, (path.child(nibble), leaves), &mut |path, record| {
                nodes.push((path, record));
            })
            .map_err(failed)?;
            let is_within = |key: &[u8]| end.is_none_or(|end| key.get(2) < Some(&end));
            self.compare(nodes, &mut below, is_within)?;
            Ok(part)
        });
        let parts: Result<Vec<Part>, StateError> = parts.collect();
        let mut nodes = Nodes::new();
        let part = join(hasher, path, &parts?, &mut |path, record| {
            nodes.push((path, record));
        })
        .map_err(failed)?;
        self.compare(nodes, &mut [self.nodes(&[2, first])?], |_| true)?;
        Ok(part)
    }

    /// The stored nodes whose keys begin so.
    fn nodes(&self, prefix: &[u8]) -> Result<Rest<'_>, StateError> {
        Ok(self.check.scan(NODES, prefix, &[])?.peekable())
    }

    /// Holds the nodes that leaves give to those stored: of each scan what comes first and is within their part. The scans ascend.
    fn compare(
        &self,
        nodes: Nodes,
        stored: &mut [Rest<'_>],
        is_within: impl Fn(&[u8]) -> bool,
    ) -> Result<(), StateError> {
        let count = nodes.len() as u64;
        self.check.counts.nodes.fetch_add(count, Ordering::Relaxed);
        let keyed = |(path, record)| (Position::outer(path).key(), path, record);
        let mut nodes: Vec<_> = nodes.into_iter().map(keyed).collect();
        nodes.sort_unstable_by(|(a, ..), (b, ..)| a[..].cmp(&b[..]));
        let mut nodes = nodes.into_iter().peekable();
        for rest in stored {
            while let Some((key, stored)) = next_within(rest, &is_within)? {
                while let Some((_, path, _)) = nodes.next_if(|node| *node.0 < *key) {
                    self.fault(format!("the node at {path}: missing"));
                }
                match nodes.next_if(|node| *node.0 == *key) {
                    Some((_, _, built)) if *built == *stored => {}
                    Some((_, path, _)) => self.fault(format!(
                        "the node at {path}: it differs from what the leaves give"
                    )),
                    None => drop(self.spare.fetch_add(1, Ordering::Relaxed)),
                }
            }
        }
        for (_, path, _) in nodes {
            self.fault(format!("the node at {path}: missing"));
        }
        Ok(())
    }

    fn tell_spare_nodes(&self) {
        let spare = self.spare.load(Ordering::Relaxed);
        if spare > 0 {
            self.fault(format!("{spare} nodes are stored that nothing leads to"));
        }
    }

    /// The first leaves of a scan that are within a part, ascending.
    fn leaves(
        &self,
        rest: &mut Rest<'_>,
        is_within: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<(Hash, Entry)>, StateError> {
        let mut leaves = Vec::new();
        while let Some((key, bytes)) = next_within(rest, &is_within)? {
            let leaf = leaf_key(&key).and_then(|key| Ok((key, decode_leaf(&key, &bytes)?)));
            match leaf {
                Ok((key, entry)) => {
                    self.check.count(&self.check.counts.slots);
                    leaves.push((key, entry));
                }
                Err(error) => self.fault(error.to_string()),
            }
        }
        for (key, entry) in self.indices.insert_all(&leaves) {
            let (key, index) = (hex::encode(key), entry.index);
            self.fault(format!("leaf {key}: another one has index {index} too"));
        }
        if let Some((key, entry)) = leaves.iter().max_by_key(|(_, entry)| entry.index) {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = (*last).max((entry.index, *key));
        }
        self.leaves
            .fetch_add(leaves.len() as u64, Ordering::Relaxed);
        Ok(leaves)
    }

    /// Leaves are numbered from 1 on as they come, in every embedding, and undoing takes the last away, with the counter that they were numbered by. So where no
    /// two share an index (which was looked at) none is above their number.
    fn no_index_is_left_out(&self) {
        let leaves = self.leaves.load(Ordering::Relaxed);
        let (index, key) = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if index > leaves {
            let key = hex::encode(key);
            self.fault(format!(
                "leaf {key}: index {index}, but there are {leaves} leaves, numbered from 1 on"
            ));
        }
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
        let header = header.map(|value| Header::decode(&value));
        let mut found = u64::from(header.is_some());
        found += u64::from(self.leaf(LeafName::Balance(address))?.is_some());
        let code_hash = self.leaf(LeafName::CodeHash(address))?.map(B256::from);
        found += u64::from(code_hash.is_some());
        match header.transpose() {
            Err(why) => self.fault(corrupt("leaves", &name.key(), why).to_string()),
            Ok(Some(Some(header))) => {
                self.check.count(&self.check.counts.accounts);
                let hash = code_hash.filter(|_| header.has_code);
                if let Some(hash) = hash.filter(|hash| *hash != KECCAK256_EMPTY)
                    && !self.check.has_code(hash)?
                {
                    self.fault(format!("account {address:#x}: code {hash} is missing"));
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

/// The first byte that does not begin with a nibble, nor with one below it.
fn first_byte_after(nibble: u8) -> Option<u8> {
    (nibble << 4).checked_add(16)
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

    /// Takes the indices of leaves; returns those whose index was there already.
    fn insert_all<'l>(&self, leaves: &'l [(Hash, Entry)]) -> Vec<&'l (Hash, Entry)> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut is_new = |index: u64| {
            let part = parts.entry(index / Self::PART);
            let part = part.or_insert_with(|| IndexPart::Few(Vec::new()));
            part.insert((index % Self::PART) as u16)
        };
        let twice = leaves.iter().filter(|(_, entry)| !is_new(entry.index));
        twice.collect()
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

    fn leaf(index: u64) -> (Hash, Entry) {
        let value = [0; 32];
        ([0; 32], Entry { index, value })
    }

    /// Dense and sparse ones, up to the last there can be, twice each.
    #[test]
    fn indices_are_told_apart() {
        let dense = 1..200u64;
        let sparse = (1..200).map(|i| i * 0x1234_5678_9abc);
        let all: Vec<u64> = dense.chain(sparse).chain([u64::MAX]).collect();
        let indices = Indices::default();
        let (mut highest, mut count) = (0, 0);
        for index in &all {
            count += 1 - indices.insert_all(&[leaf(*index)]).len();
            highest = highest.max(*index);
            assert_eq!(indices.highest(), highest);
        }
        assert_eq!(count, all.len());
        let again: Vec<(Hash, Entry)> = all.iter().map(|index| leaf(*index)).collect();
        assert_eq!(indices.insert_all(&again).len(), all.len());
    }
}
