//! Reading the way of updates, round by round, and what becomes of the records.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::arena::{Arena, Id, Kind, Node};
use crate::merge::merge;
use crate::record::{decode, encode};
use crate::settle::{Heights, find_dirty, hash};
use crate::{Hash, LeafUpdate, NodeChange, NodeHash, Packing, Path, Reader, TreeError, TreeStats};

/// A part of a tree in memory, and the records that it was read from.
pub(crate) struct Work<'r, R, H> {
    reader: &'r R,
    hash: H,
    pub(crate) packing: Packing,
    pub(crate) arena: Arena,
    pub(crate) top: Option<Id>,
    pub(crate) read: HashMap<Path, Arc<[u8]>, RandomState>,
    pub(crate) stats: TreeStats,
}

/// A branch to be read, and the updates that come to it.
struct Stop<'u, V> {
    id: Id,
    updates: &'u [LeafUpdate<V>],
}

impl<'r, R: Reader, H: NodeHash> Work<'r, R, H> {
    /// Reads the record of the root, which says how the tree is packed; one without leaves will be
    /// packed as the caller says.
    pub(crate) fn begin(reader: &'r R, hash: H, packing: Packing) -> Result<Self, TreeError> {
        let mut work = Self {
            reader,
            hash,
            packing,
            arena: Arena::recycled(),
            top: None,
            read: HashMap::default(),
            stats: TreeStats::default(),
        };
        if let Some(bytes) = work.reader.records(&[Path::ROOT])?.pop().flatten() {
            // A tree that is there stays packed as it is.
            work.packing = Packing::of_root(&bytes).unwrap_or(packing);
            work.top = Some(work.take(Path::ROOT, bytes)?);
        }
        Ok(work)
    }

    /// A tree that is in memory down to branches that have not been read; of those that were, these
    /// are the records.
    pub(crate) fn of(
        (reader, hash): (&'r R, H),
        packing: Packing,
        (arena, top): (Arena, Option<Id>),
        read: HashMap<Path, Arc<[u8]>, RandomState>,
    ) -> Self {
        let stats = TreeStats::default();
        Self {
            reader,
            hash,
            packing,
            arena,
            top,
            read,
            stats,
        }
    }

    fn take(&mut self, path: Path, bytes: Arc<[u8]>) -> Result<Id, TreeError> {
        self.stats.records_read += 1;
        self.stats.bytes_read += bytes.len() as u64;
        let top = decode::<H>(&mut self.arena, self.packing, &path, &bytes);
        let top = top.map_err(|error| TreeError::Record { path, error })?;
        self.read.insert(path, bytes);
        Ok(top)
    }

    /// Puts the branches of their records in the places of branches that have not been read.
    pub(crate) fn read_branches(&mut self, ids: &[Id]) -> Result<(), TreeError> {
        let paths = ids
            .iter()
            .map(|id| self.packing.record_of(&self.arena.get(*id).path));
        let paths: Vec<Path> = paths.collect();
        self.stats.rounds += 1;
        let records = self.reader.records(&paths)?;
        for ((id, path), bytes) in ids.iter().zip(paths).zip(records) {
            let bytes = bytes.ok_or(TreeError::MissingRecord(path))?;
            let top = self.take(path, bytes)?;
            let (found, known) = (self.arena.get(top), self.arena.get(*id));
            if found.path != known.path {
                let error = crate::RecordError::Place(found.path.len());
                return Err(TreeError::Record { path, error });
            }
            let branch = Node {
                start: known.start,
                is_dirty: false,
                hash: known.hash,
                ..found.clone()
            };
            *self.arena.get_mut(*id) = branch;
        }
        Ok(())
    }

    /// Reads all branches on the way of updates, those to which they come together.
    pub(crate) fn descend<V>(&mut self, updates: &[LeafUpdate<V>]) -> Result<(), TreeError> {
        let mut stops = Vec::new();
        if let Some(id) = self.top {
            self.follow(id, updates, &mut stops);
        }
        while !stops.is_empty() {
            let ids: Vec<Id> = stops.iter().map(|stop| stop.id).collect();
            self.read_branches(&ids)?;
            let mut next = Vec::new();
            for Stop { id, updates } in stops {
                self.follow(id, updates, &mut next);
            }
            stops = next;
        }
        Ok(())
    }

    /// Follows updates down to branches that have not been read.
    fn follow<'u, V>(&self, id: Id, updates: &'u [LeafUpdate<V>], stops: &mut Vec<Stop<'u, V>>) {
        if updates.is_empty() {
            return;
        }
        let node = self.arena.get(id);
        match node.kind {
            Kind::Leaf { .. } | Kind::Unknown => {}
            Kind::Unread => stops.push(Stop { id, updates }),
            Kind::Branch(children) => {
                // Those that come to this branch lie together.
                let len = node.path.len();
                let comes = |update: &LeafUpdate<V>| {
                    update.key.len() > len && node.path.is_prefix_of(&update.key)
                };
                let begin = updates.partition_point(|update| update.key.prefix(len) < node.path);
                let here = &updates[begin..];
                let here = &here[..here.partition_point(comes)];
                let (zeros, ones) = here.split_at(here.partition_point(|u| !u.key.bit(len)));
                self.follow(children[0], zeros, stops);
                self.follow(children[1], ones, stops);
            }
        }
    }

    /// Visits the nodes on the way of a key, from the top on: down to the leaf, or to the node that
    /// is not on the key's way any more.
    pub(crate) fn way(&self, key: &Path, mut visit: impl FnMut(Id)) {
        let mut next = self.top;
        while let Some(id) = next {
            visit(id);
            let node = self.arena.get(id);
            next = match node.kind {
                Kind::Branch(children)
                    if node.path.len() < key.len() && node.path.is_prefix_of(key) =>
                {
                    Some(children[usize::from(key.bit(node.path.len()))])
                }
                _ => None,
            };
        }
    }

    /// Merges updates whose way has been read.
    pub(crate) fn merge(&mut self, updates: &[LeafUpdate<H::Value>]) -> Result<(), TreeError> {
        self.top = merge(&mut self.arena, self.top, updates)?;
        Ok(())
    }

    /// Hashes what has changed, and returns the root.
    pub(crate) fn hash(&mut self) -> Result<Hash, TreeError> {
        let Some(top) = self.top else {
            return Ok([0; 32]);
        };
        loop {
            let (mut heights, mut unread) = (Heights::default(), Vec::new());
            find_dirty::<H>(&mut self.arena, top, 0, &mut heights, &mut unread);
            if unread.is_empty() {
                hash(&mut self.arena, self.hash, heights, &mut self.stats);
                return Ok(self.arena.get(top).hash);
            }
            let missing = unread.iter().map(|id| self.arena.get(*id));
            if let Some(node) = missing.into_iter().find(|node| node.kind == Kind::Unknown) {
                let (path, hash) = (node.path, node.hash);
                return Err(TreeError::MissingNode { path, hash });
            }
            // A removal has left them alone below a branch, which goes.
            self.read_branches(&unread)?;
        }
    }

    /// Returns the records that are other ones than those read, once all hashes are known.
    pub(crate) fn changes(&mut self) -> Vec<NodeChange> {
        let mut changes = Vec::new();
        let mut read = std::mem::take(&mut self.read);
        if let Some(top) = self.top {
            let (mut places, mut bytes) = (vec![(Path::ROOT, top)], Vec::new());
            while let Some((path, top)) = places.pop() {
                bytes.clear();
                encode(&self.arena, self.packing, &path, top, &mut bytes);
                if read.remove(&path).as_deref() != Some(&bytes) {
                    self.stats.records_written += 1;
                    self.stats.bytes_written += bytes.len() as u64;
                    let record = Some(bytes[..].into());
                    changes.push(NodeChange { path, record });
                }
                self.others(top, &path, &mut places);
            }
        }
        let gone = read.into_keys();
        changes.extend(gone.map(|path| NodeChange { path, record: None }));
        changes
    }

    /// Finds the tops of other records below a record's node.
    fn others(&self, id: Id, record: &Path, places: &mut Vec<(Path, Id)>) {
        let node = self.arena.get(id);
        if let Kind::Branch(children) = node.kind {
            let own = self.packing.record_of(&node.path);
            match own == *record {
                true => children
                    .into_iter()
                    .for_each(|child| self.others(child, record, places)),
                false => places.push((own, id)),
            }
        }
    }
}
