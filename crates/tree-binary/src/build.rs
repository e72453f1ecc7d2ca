//! Building a tree from all its leaves, which come in their order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::apply::apply;
use crate::arena::{Arena, Id, Kind};
use crate::reader::MemoryRecords;
use crate::work::Work;
use crate::{Hash, LeafUpdate, NodeChange, NodeHash, Packing, Path, TreeError, TreeStats, Value};

/// Leaves that are merged and hashed together.
const LEAVES_MERGED_TOGETHER: usize = 1 << 16;

/// A tree that grows by leaves ascending by key. Only the records on the way to the last leaf are
/// in memory: no later leaf lies below any other.
#[derive(Debug)]
pub struct Builder<H: NodeHash> {
    hash: H,
    packing: Packing,
    waiting: Vec<LeafUpdate<H::Value>>,
    last: Option<Path>,
    /// The records on the way to the last leaf.
    spine: MemoryRecords,
    root: Hash,
    stats: TreeStats,
    /// Records of shorter paths are not given out: they may be shared with other parts.
    held: usize,
}

/// A part of a tree, whose keys share some first bits: see [`join`].
#[derive(Debug)]
pub struct Part {
    /// The records on the way to its last leaf, those of shorter paths than `held` among them,
    /// which nobody else has.
    spine: MemoryRecords,
    held: usize,
}

/// Takes the path of a record and the record. Each path comes once.
pub type Sink<'a> = &'a mut dyn FnMut(Path, Arc<[u8]>);

impl<H: NodeHash> Builder<H> {
    /// A tree without leaves.
    #[must_use]
    pub fn new(hash: H, packing: Packing) -> Self {
        Self {
            hash,
            packing,
            waiting: Vec::new(),
            last: None,
            spine: MemoryRecords::default(),
            root: [0; 32],
            stats: TreeStats::default(),
            held: 0,
        }
    }

    /// A part of a tree that will be [joined](join) with others: all its keys share this many first
    /// bits, which other parts do not have.
    #[must_use]
    pub fn part(hash: H, packing: Packing, bits: usize) -> Self {
        Self {
            held: bits,
            ..Self::new(hash, packing)
        }
    }

    /// Adds a leaf behind all others. The value of a removal is no leaf.
    ///
    /// # Errors
    /// Keys that do not ascend or are not free of prefixes.
    pub fn add(&mut self, key: Path, value: H::Value, sink: Sink<'_>) -> Result<(), TreeError> {
        if value.stored().is_none() {
            return Ok(());
        }
        if self.last.is_some_and(|last| last >= key) {
            return Err(TreeError::Order(key));
        }
        self.last = Some(key);
        self.waiting.push(LeafUpdate { key, value });
        match self.waiting.len() == LEAVES_MERGED_TOGETHER {
            true => self.grow(sink),
            false => Ok(()),
        }
    }

    /// Gives out the records that are left, and returns the root.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn finish(mut self, sink: Sink<'_>) -> Result<Hash, TreeError> {
        self.grow(sink)?;
        for (path, record) in self.spine.take_unless(|_| false) {
            sink(path, record);
        }
        Ok(self.root)
    }

    /// Gives out the records that are left, but for those that other parts may share.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn finish_part(mut self, sink: Sink<'_>) -> Result<Part, TreeError> {
        self.grow(sink)?;
        for (path, record) in self.spine.records() {
            if path.len() >= self.held {
                sink(*path, record.clone());
            }
        }
        Ok(Part {
            spine: self.spine,
            held: self.held,
        })
    }

    /// What has been done so far.
    #[must_use]
    pub fn stats(&self) -> TreeStats {
        self.stats
    }

    fn grow(&mut self, sink: Sink<'_>) -> Result<(), TreeError> {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(last) = self.last.filter(|_| !waiting.is_empty()) else {
            return Ok(());
        };
        let update = apply(&self.spine, self.hash, self.packing, &waiting)?;
        self.root = update.root;
        self.stats.leaf_hashes += update.stats.leaf_hashes;
        self.stats.branch_hashes += update.stats.branch_hashes;
        self.stats.calls += update.stats.calls;
        for change in update.nodes {
            match change.record {
                Some(record) if !change.path.is_prefix_of(&last) => {
                    self.spine.forget(&change.path);
                    sink(change.path, record);
                }
                record => self.spine.change([NodeChange { record, ..change }]),
            }
        }
        for (path, record) in self.spine.take_unless(|path| path.is_prefix_of(&last)) {
            sink(path, record);
        }
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }
}

impl Part {
    /// Writes the part: the number of first bits that its keys share (2 bytes), then for each record
    /// the lengths of its key and of its bytes (1 and 4), its database key and its bytes. Records
    /// ascend by key; integers are big-endian.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = (self.held as u16).to_be_bytes().to_vec();
        let mut records: Vec<_> = self.spine.records().iter().collect();
        records.sort_unstable_by_key(|(path, _)| **path);
        for (path, record) in records {
            let key = path.database_key();
            out.push(key.len() as u8);
            out.extend((record.len() as u32).to_be_bytes());
            out.extend_from_slice(&key);
            out.extend_from_slice(record);
        }
        out
    }

    /// Reads the bytes of a part; `None` if they are none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (held, mut rest) = bytes.split_first_chunk()?;
        let mut spine = MemoryRecords::default();
        let mut last = None;
        while !rest.is_empty() {
            let (length, after) = rest.split_first()?;
            let (size, after) = after.split_first_chunk()?;
            let (key, after) = after.split_at_checked(usize::from(*length))?;
            let (record, after) = after.split_at_checked(u32::from_be_bytes(*size) as usize)?;
            let path = Path::of_database_key(key).ok()?;
            if last.is_some_and(|last| last >= path) {
                return None;
            }
            last = Some(path);
            let record = Some(record.into());
            spine.change([NodeChange { path, record }]);
            rest = after;
        }
        Some(Self {
            spine,
            held: usize::from(u16::from_be_bytes(*held)),
        })
    }
}

/// Joins the parts of a tree, ascending by key, and returns the root. The records that they share
/// go to the sink.
///
/// # Errors
/// Parts that do not ascend, or whose keys share the bits that should be theirs alone.
pub fn join<H: NodeHash>(
    hash: H,
    packing: Packing,
    parts: &[Part],
    sink: Sink<'_>,
) -> Result<Hash, TreeError> {
    let (mut arena, mut tops) = (Arena::default(), Vec::new());
    let mut read = HashMap::default();
    for Part { spine, held } in parts {
        let mut work = Work::begin(spine, hash, packing)?;
        let Some(top) = work.top else {
            continue;
        };
        loop {
            let unread = work.arena.find(|id, node| {
                let is_held = packing.record_of(&node.path).len() < *held;
                node.kind == Kind::Unread && (is_held || id == top)
            });
            if unread.is_empty() {
                break;
            }
            work.read_branches(&unread)?;
        }
        let path = work.arena.get(top).path;
        let before = tops.last().map(|top| arena.get(*top).path);
        if before.is_some_and(|before: Path| before >= path || before.shared(&path) >= *held) {
            return Err(TreeError::Order(path));
        }
        let records = work.read.into_iter();
        read.extend(records.filter(|(path, _)| path.len() >= *held));
        tops.push(top + arena.append(work.arena));
    }
    let top = above(&mut arena, &tops);
    let nothing = MemoryRecords::default();
    let mut work = Work::of((&nothing, hash), packing, (arena, top), read);
    let root = work.hash()?;
    for NodeChange { path, record } in work.changes() {
        if let Some(record) = record {
            sink(path, record);
        }
    }
    Ok(root)
}

/// Builds the branches above the tops of parts, which ascend.
fn above(arena: &mut Arena, tops: &[Id]) -> Option<Id> {
    let (first, last) = (tops.first()?, tops.last()?);
    if tops.len() == 1 {
        return Some(*first);
    }
    let path = arena.get(*first).path;
    let shared = path.shared(&arena.get(*last).path);
    let right = tops.partition_point(|top| !arena.get(*top).path.bit(shared));
    let left = above(arena, &tops[..right])?;
    let right = above(arena, &tops[right..])?;
    Some(arena.add_branch(path.prefix(shared), [left, right]))
}
