//! Checking an AR16MT database: the tree rebuilt from the leaves and compared node by node, leaves held against names and the counter.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::map::{Entry as MapEntry, HashMap};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, hex};
use arbor_state_tree::{Check, CheckedPart, StateError, corrupt};
use arbor_store::Value;
use arbor_tree::{Hash, Path, Position};
use arbor_tree_ar16mt::{Entry, Hasher, Part, build_part, join};
use arbor_verify::ar16mt::Header;
use arbor_versions::Entries;
use rayon::prelude::*;

use super::failed;
use super::names::{LeafName, Named};
use super::reader::list;
use super::records::{decode_counter, decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, COUNTER, KEY_BYTES, LEAVES, NAMES, NEXT_INDEX, NODES};
use crate::header_root::{Select, Visit, checked_root, checked_trie};

/// Numbers that are added up over all parts: leaves, stored nodes that the leaves do not give, names, leaves reached through
/// names.
const SUMS: [&str; 4] = ["leaves", "spareNodes", "names", "leavesReached"];

/// Rebuilds the subtrees of some first bytes from their leaves and compares them with what is stored; reads the names of
/// accounts and slots.
pub(crate) fn check_part(
    check: &Check<'_>,
    ar16mt: Ar16mt,
    firsts: &[u8],
) -> Result<CheckedPart, StateError> {
    let rebuild = Rebuild::new(check, firsts)?;
    if firsts.contains(&0) && check.view.get(LEAVES, &[])?.is_some() {
        rebuild.fault("a leaf without a key".to_owned());
    }
    let subtrees = with_hasher!(ar16mt, hasher => rebuild.subtrees(hasher, firsts))?;
    let (names, reached) = rebuild.names(firsts)?;
    let has_none =
        |table| Ok::<bool, StateError>(check.view.scan(table, &[], &[])?.next().is_none());
    // Without any name the leaves are no accounts'.
    let are_named = !has_none(NAMES)? || has_none(LEAVES)?;
    let within = (firsts, ar16mt.sort_bytes);
    let list =
        |first, select: Select<'_>, visit: Visit<'_>| list(&check.view, first, select, visit);
    let account_trie = checked_trie(are_named, &list, within)?;
    let numbers = [
        rebuild.leaves.into_inner(),
        rebuild.spare.into_inner(),
        names,
        reached,
    ];
    let (index, key) = rebuild
        .last
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let mut rest = [&index.to_be_bytes()[..], &key].concat();
    rebuild.indices.encode(&mut rest);
    Ok(CheckedPart {
        subtrees,
        sums: SUMS.map(str::to_owned).into_iter().zip(numbers).collect(),
        rest: rest.into(),
        account_trie,
    })
}

/// Rebuilds the nodes above all subtrees and compares them with what is stored; compares indices, the counter and names of
/// all leaves. Returns the Merkle-Patricia root of the accounts, zero if there are none.
pub(crate) fn check_join(
    check: &Check<'_>,
    ar16mt: Ar16mt,
    parts: &[CheckedPart],
) -> Result<B256, StateError> {
    let rebuild = Rebuild::new(check, &[])?;
    let stored = check.root(&ar16mt);
    let root = with_hasher!(ar16mt, hasher => rebuild.root(hasher, parts))?;
    if root != stored {
        check.tell_fault(format!(
            "root: the leaves give {root}, the head has {stored}"
        ));
    }
    let [leaves, spare, names, reached] = SUMS.map(|name| CheckedPart::sum(parts, name));
    let spare = spare + rebuild.spare.load(Ordering::Relaxed);
    if spare > 0 {
        rebuild.fault(format!("{spare} nodes are stored that nothing leads to"));
    }
    let last = rebuild.join_indices(parts)?;
    if !ar16mt.any_index {
        rebuild.no_index_is_left_out(last, leaves);
    }
    rebuild.counter()?;
    let are_named = names > 0 || check.view.get(NAMES, &[])?.is_some();
    if are_named && leaves != reached {
        rebuild.fault(format!(
            "{leaves} leaves are stored, {reached} are reached through names"
        ));
    }
    checked_root(check, parts)
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

impl<'a> Rebuild<'a> {
    fn new(check: &'a Check<'a>, firsts: &[u8]) -> Result<Self, StateError> {
        let (lengths, spare) = check.path_lengths(NODES, 2)?;
        let spare = if firsts.contains(&0) { spare } else { 0 };
        Ok(Rebuild {
            check,
            leaves: AtomicU64::new(0),
            indices: Indices::default(),
            last: Mutex::default(),
            lengths,
            spare: spare.into(),
        })
    }

    fn subtrees<H: Hasher>(&self, hasher: H, firsts: &[u8]) -> Result<Vec<Bytes>, StateError> {
        let parts = firsts.par_iter().map(|first| {
            let part = self.part(hasher, *first)?;
            self.check.part_done();
            Ok(part.encode().into())
        });
        parts.collect()
    }

    fn root<H: Hasher>(&self, hasher: H, parts: &[CheckedPart]) -> Result<B256, StateError> {
        let parts = CheckedPart::all_subtrees(parts).map(|bytes| {
            Part::decode(bytes).ok_or_else(|| corrupt("parts", bytes, "not a part of the tree"))
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
    fn no_index_is_left_out(&self, (index, key): (u64, Hash), leaves: u64) {
        if index > leaves {
            let key = hex::encode(key);
            self.fault(format!(
                "leaf {key}: index {index}, but there are {leaves} leaves, numbered from 1 on"
            ));
        }
    }

    /// Puts the indices of all parts together, and reports leaves of different parts that share one. Returns the leaf with
    /// the highest index, and that.
    fn join_indices(&self, parts: &[CheckedPart]) -> Result<(u64, Hash), StateError> {
        let (mut last, mut twice) = ((0, Hash::default()), BTreeSet::new());
        for CheckedPart { rest, .. } in parts {
            let read = || {
                let (index, bytes) = rest.split_first_chunk()?;
                let (key, bytes) = bytes.split_first_chunk::<32>()?;
                let indices = Indices::decode(bytes)?;
                Some(((u64::from_be_bytes(*index), *key), indices))
            };
            let malformed = || corrupt("parts", rest, "not the indices of leaves");
            let (of_part, indices) = read().ok_or_else(malformed)?;
            last = last.max(of_part);
            twice.extend(self.indices.join(indices));
        }
        if !twice.is_empty() {
            self.leaves_that_share(&twice)?;
        }
        Ok(last)
    }

    /// Reports leaves of an index each, all but the first.
    fn leaves_that_share(&self, indices: &BTreeSet<u64>) -> Result<(), StateError> {
        let mut seen = BTreeSet::new();
        for entry in self.check.view.scan(LEAVES, &[], &[])? {
            let (key, bytes) = entry?;
            // A record that cannot be read is reported by its part.
            let Ok(Entry { index, .. }) = decode_leaf(&key, &bytes) else {
                continue;
            };
            if indices.contains(&index) && !seen.insert(index) {
                let key = hex::encode(key);
                self.fault(format!("leaf {key}: another one has index {index} too"));
            }
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

    /// Reads the names that begin with some bytes, and the leaves that these lead to. Returns the number of both.
    fn names(&self, firsts: &[u8]) -> Result<(u64, u64), StateError> {
        if firsts.contains(&0) && self.check.view.get(NAMES, &[])?.is_some() {
            self.fault("a name without a key".to_owned());
        }
        let counts = firsts.par_iter().map(|first| {
            let (mut names, mut reached) = (0, 0);
            for entry in self.check.view.scan(NAMES, &[*first], &[])? {
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
                reached += match named {
                    Named::Account(address) => self.account(address)?,
                    Named::Slot(..) => u64::from(self.leaf(named.leaf())?.is_some()),
                };
            }
            Ok((names, reached))
        });
        let none = || Ok::<_, StateError>((0, 0));
        counts
            .try_reduce_with(|a, b| Ok((a.0 + b.0, a.1 + b.1)))
            .unwrap_or_else(none)
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

    /// Writes the indices: for each part its number (8 bytes), how many of its indices follow (2) and these (2 each), or, for
    /// a part with a bit for each index, `ffff` and the bits in words of 8 bytes. Integers are big-endian.
    fn encode(&self, out: &mut Vec<u8>) {
        let parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts: Vec<(&u64, &IndexPart)> = parts.iter().collect();
        parts.sort_unstable_by_key(|(number, _)| **number);
        for (number, part) in parts {
            out.extend(number.to_be_bytes());
            match part {
                IndexPart::Few(few) => {
                    out.extend((few.len() as u16).to_be_bytes());
                    out.extend(few.iter().flat_map(|index| index.to_be_bytes()));
                }
                IndexPart::Many(many) => {
                    out.extend(u16::MAX.to_be_bytes());
                    out.extend(many.iter().flat_map(|word| word.to_be_bytes()));
                }
            }
        }
    }

    /// Reads indices; `None` if the bytes are none.
    fn decode(mut bytes: &[u8]) -> Option<HashMap<u64, IndexPart>> {
        let mut parts = HashMap::default();
        while !bytes.is_empty() {
            let (number, rest) = bytes.split_first_chunk()?;
            let (count, rest) = rest.split_first_chunk()?;
            let (part, rest) = match u16::from_be_bytes(*count) {
                u16::MAX => {
                    let (words, rest) = rest.split_at_checked(8 * IndexPart::WORDS)?;
                    let mut many = Box::new([0; IndexPart::WORDS]);
                    for (word, bytes) in many.iter_mut().zip(words.as_chunks().0) {
                        *word = u64::from_be_bytes(*bytes);
                    }
                    (IndexPart::Many(many), rest)
                }
                count => {
                    let (few, rest) = rest.split_at_checked(2 * usize::from(count))?;
                    let few = few.as_chunks().0.iter();
                    let few = few.map(|bytes| u16::from_be_bytes(*bytes));
                    (IndexPart::Few(few.collect()), rest)
                }
            };
            parts.insert(u64::from_be_bytes(*number), part);
            bytes = rest;
        }
        Some(parts)
    }

    /// Takes the indices of other leaves; returns those that were there already.
    fn join(&self, others: HashMap<u64, IndexPart>) -> Vec<u64> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut twice = Vec::new();
        for (number, other) in others {
            match parts.entry(number) {
                MapEntry::Vacant(vacant) => drop(vacant.insert(other)),
                MapEntry::Occupied(mut part) => {
                    let known = other.indices().into_iter();
                    let known = known.filter(|index| !part.get_mut().insert(*index));
                    twice.extend(known.map(|index| number * Self::PART + u64::from(index)));
                }
            }
        }
        twice
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

    fn indices(&self) -> Vec<u16> {
        match self {
            Self::Few(few) => few.clone(),
            Self::Many(many) => {
                let has = |index: &u16| many[usize::from(index / 64)] >> (index % 64) & 1 == 1;
                (0..64 * Self::WORDS as u16).filter(has).collect()
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
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
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

        // Written, read, and put together with themselves and with others.
        let mut written = Vec::new();
        indices.encode(&mut written);
        let read = || Indices::decode(&written).unwrap();
        let joined = Indices::default();
        assert_eq!(joined.join(read()), Vec::<u64>::new());
        let mut twice = joined.join(read());
        twice.sort_unstable();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert_eq!(twice, sorted);
        let others = Indices::default();
        assert!(
            others
                .insert_all(&[leaf(7), leaf(1_000_000_007)])
                .is_empty()
        );
        written.clear();
        others.encode(&mut written);
        assert_eq!(joined.join(Indices::decode(&written).unwrap()), [7]);
        assert_eq!(joined.highest(), u64::MAX);
        for length in 1..written.len() {
            let cut = Indices::decode(&written[..length]);
            assert!(cut.is_none_or(|cut| cut.len() < 2), "{length}");
        }
    }
}
