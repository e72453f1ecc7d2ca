//! A part of the tree while it is changed: the nodes on the way to what changes, in one list, parents first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arbor_hashing::blake2s::Chain;
use arbor_tree::{Path, nibble_of, shared_nibbles};

use crate::record::{STEM, STEM_NIBBLES, padded};
use crate::{
    CHECKPOINT, Child, DEPTH, Entry, Hash, Hasher, Leaf, LeafUpdate, NodeChange, Reader, Record,
    TreeError, TreeStats,
};

/// Height of the checkpoint.
const FOLD_HEIGHT: usize = DEPTH - CHECKPOINT;
/// Nodes that are hashed together at most: their children fill a cache, and lanes are full long before.
const TOGETHER: usize = 256;

/// A child while the tree is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// As it was, or finished.
    Child(Child),
    /// A node of the list, not hashed yet.
    Node,
    /// A leaf of the list of pending ones, whose hash is not known yet.
    Pending(usize),
}

/// Where a child hangs: below a node of the list, or at the top of the part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Top,
    Below(usize, u8),
}

struct Node {
    path: Path,
    place: Place,
    /// Its record before, if it was there.
    old: Option<Arc<[u8]>>,
    /// Ascending by nibble.
    children: Vec<(u8, Slot)>,
    gone: bool,
}

/// What a pending leaf's chain starts with.
#[derive(Clone, Copy)]
enum Start {
    /// The bottom.
    Entry(Entry),
    /// A hash at a height.
    At(Hash, usize),
}

struct Pending {
    /// Its key, or the bits of it that its chain takes.
    key: Hash,
    start: Start,
}

/// A leaf that finds its place.
struct Placed {
    key: Hash,
    start: Start,
    /// Whether it was not there before.
    is_new: bool,
}

/// A child on the way, with the updates below it.
pub(crate) struct Visit {
    pub(crate) place: Place,
    pub(crate) path: Path,
    pub(crate) child: Option<Child>,
    pub(crate) updates: Range<usize>,
}

/// A part of the tree.
pub(crate) struct Work<'a, R, H> {
    reader: &'a R,
    hasher: H,
    updates: &'a [LeafUpdate],
    nodes: Vec<Node>,
    pending: Vec<Pending>,
    top: Option<Slot>,
    top_path: Path,
    /// Whether nobody has looked which of the updates' keys are there.
    unread: bool,
    found: Vec<(Hash, Entry)>,
    stats: TreeStats,
}

/// What became of a part.
pub(crate) struct Done {
    pub(crate) top: Option<Child>,
    pub(crate) nodes: Vec<NodeChange>,
    pub(crate) found: Vec<(Hash, Entry)>,
    pub(crate) stats: TreeStats,
}

impl<'a, R: Reader, H: Hasher> Work<'a, R, H> {
    pub(crate) fn new(
        reader: &'a R,
        hasher: H,
        updates: &'a [LeafUpdate],
        top: Option<Slot>,
        top_path: Path,
    ) -> Self {
        Self {
            reader,
            hasher,
            updates,
            nodes: Vec::new(),
            pending: Vec::new(),
            top,
            top_path,
            unread: false,
            found: Vec::new(),
            stats: TreeStats::default(),
        }
    }

    /// Adds a node that was not there, with no children yet.
    pub(crate) fn add_node(&mut self, place: Place, path: Path) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            path,
            place,
            old: None,
            children: Vec::new(),
            gone: false,
        });
        self.set(place, Some(Slot::Node));
        node
    }

    /// Goes from a child down to everything that the updates change, but not below paths of `stop` nibbles, and, if there is a stop, not to where there are no
    /// nodes: what is to be done there is returned.
    pub(crate) fn descend(
        reader: &'a R,
        hasher: H,
        updates: &'a [LeafUpdate],
        top: Visit,
        stop: Option<usize>,
        unread: bool,
    ) -> Result<(Self, Vec<Visit>), TreeError> {
        let child = top.child.map(Slot::Child);
        let mut work = Self::new(reader, hasher, updates, child, top.path);
        work.unread = unread;
        let (mut visits, mut left) = (vec![top], Vec::new());
        while !visits.is_empty() {
            visits = work.level(visits, stop, &mut left)?;
        }
        Ok((work, left))
    }

    /// Goes one level down.
    fn level(
        &mut self,
        visits: Vec<Visit>,
        stop: Option<usize>,
        left: &mut Vec<Visit>,
    ) -> Result<Vec<Visit>, TreeError> {
        let started = Instant::now();
        let goes_on = |visit: &Visit| stop.is_none_or(|stop| visit.path.len() < stop);
        let is_read =
            |visit: &&Visit| matches!(visit.child, Some(Child::Internal(_))) && goes_on(visit);
        let paths: Vec<Path> = visits.iter().filter(is_read).map(|v| v.path).collect();
        let records = match paths.is_empty() {
            true => Vec::new(),
            false => self.reader.nodes(&paths)?,
        };
        let mut records = records.into_iter();
        self.stats.nodes_read += paths.len() as u64;
        let read = Instant::now();
        self.stats.load += read - started;
        let mut next = Vec::with_capacity(visits.len());
        for visit in visits {
            let (old, children) = match visit.child {
                _ if !goes_on(&visit) => {
                    left.push(visit);
                    continue;
                }
                Some(Child::Internal(_)) => {
                    let record = records.next().flatten();
                    let record = record.ok_or(TreeError::MissingNode(visit.path))?;
                    let decoded = decode(&visit.path, &record)?;
                    (Some(record), decoded.children)
                }
                // The root is a node, whatever is below it.
                None if visit.path.is_empty() => (None, Vec::new()),
                _ if stop.is_some() => {
                    left.push(visit);
                    continue;
                }
                None => {
                    let slot = self.place(&visit, None)?;
                    self.set(visit.place, slot);
                    continue;
                }
                Some(Child::Leaf(leaf)) => {
                    let slot = self.place(&visit, Some(leaf))?;
                    self.set(visit.place, slot);
                    continue;
                }
            };
            let node = self.nodes.len();
            for (nibble, updates) in groups(self.updates, visit.updates, visit.path.len()) {
                let found = children.binary_search_by_key(&nibble, |(nibble, _)| *nibble);
                next.push(Visit {
                    place: Place::Below(node, nibble),
                    path: visit.path.child(nibble),
                    child: found.ok().map(|at| children[at].1),
                    updates,
                });
            }
            let children = children.into_iter();
            self.nodes.push(Node {
                path: visit.path,
                place: visit.place,
                old,
                children: children.map(|(n, child)| (n, Slot::Child(child))).collect(),
                gone: false,
            });
            self.set(visit.place, Some(Slot::Node));
        }
        self.stats.place += read.elapsed();
        Ok(next)
    }

    /// Places the updates below a place where there is a leaf or nothing.
    fn place(&mut self, visit: &Visit, leaf: Option<Leaf>) -> Result<Option<Slot>, TreeError> {
        let updates = &self.updates[visit.updates.clone()];
        let mut placed = Vec::with_capacity(updates.len() + 1);
        let mut there = leaf;
        for update in updates {
            let existed = match &there {
                Some(leaf) if self.unread => self.finds(update, leaf)?,
                _ => update.existed && !self.unread,
            };
            if existed {
                let leaf = there.take();
                let same = leaf.filter(|leaf| update.key.starts_with(&leaf.stem));
                same.ok_or(TreeError::Missing(update.key))?;
            }
            match (existed, update.new) {
                (true, None) => self.stats.removed_leaves += 1,
                (true, Some(_)) => self.stats.updated_leaves += 1,
                (false, _) => {}
            }
            placed.extend(update.new.map(|entry| Placed {
                key: update.key,
                start: Start::Entry(entry),
                is_new: !existed,
            }));
        }
        match there {
            Some(leaf) if placed.is_empty() => return Ok(Some(Slot::Child(Child::Leaf(leaf)))),
            Some(leaf) => self.make_room(visit, &leaf, &mut placed)?,
            None => {}
        }
        self.arrive(visit.path.len(), &placed);
        Ok(self.subtree(visit.place, visit.path, &placed))
    }

    /// Whether an update's leaf is the one that is there.
    fn finds(&mut self, update: &LeafUpdate, leaf: &Leaf) -> Result<bool, TreeError> {
        if !update.key.starts_with(&leaf.stem) {
            return Ok(false);
        }
        let entry = self.reader.leaf(&update.key)?;
        self.found.extend(entry.map(|entry| (update.key, entry)));
        Ok(entry.is_some())
    }

    /// Puts the leaf that was there among those that come.
    fn make_room(
        &mut self,
        visit: &Visit,
        leaf: &Leaf,
        placed: &mut Vec<Placed>,
    ) -> Result<(), TreeError> {
        let shares = |placed: &Placed| placed.key.starts_with(&leaf.stem);
        let goes_below = visit.path.len() >= STEM_NIBBLES || placed.iter().any(shares);
        let (key, start) = if goes_below {
            let stored = self.reader.leaves_below(&[visit.path])?.pop().flatten();
            let stored = stored.ok_or(TreeError::MissingLeaf(visit.path))?;
            (stored.key, Start::Entry(stored.entry))
        } else {
            (key_of(leaf), Start::At(leaf.fold, FOLD_HEIGHT))
        };
        let at = placed.partition_point(|placed| placed.key < key);
        if placed.get(at).is_some_and(|placed| placed.key == key) {
            return Err(TreeError::Present(key));
        }
        let is_new = false;
        placed.insert(at, Placed { key, start, is_new });
        Ok(())
    }

    /// Counts the new leaves below a path of so many nibbles, one coming after the other by their indices, and what they do to those that are there.
    fn arrive(&mut self, top: usize, placed: &[Placed]) {
        let (mut came, mut there): (Vec<(u64, Hash)>, BTreeMap<Hash, usize>) = Default::default();
        for leaf in placed {
            match leaf.start {
                Start::Entry(entry) if leaf.is_new => came.push((entry.index, leaf.key)),
                _ => drop(there.insert(leaf.key, top)),
            }
        }
        came.sort_unstable();
        for (_, key) in came {
            let before = there.range(..key).next_back();
            let after = there.range(key..).next();
            let near = before.into_iter().chain(after);
            let nearest = near
                .map(|(other, level)| (shared_nibbles(&key, other), *other, *level))
                .max();
            let level = match nearest {
                None => top,
                Some((shared, other, level)) => {
                    if shared >= level {
                        there.insert(other, shared + 1);
                        self.stats.moved_leaves += 1;
                        self.reached(shared + 1);
                    }
                    shared + 1
                }
            };
            there.insert(key, level);
            self.stats.new_leaves += 1;
            self.reached(level);
        }
    }

    fn reached(&mut self, nibbles: usize) {
        let level = 4 * nibbles as u64;
        self.stats.level_sum += level;
        self.stats.level_max = self.stats.level_max.max(level);
    }

    /// The subtree of leaves at a path where nothing else is.
    fn subtree(&mut self, place: Place, path: Path, leaves: &[Placed]) -> Option<Slot> {
        match leaves {
            [] => return None,
            [one] => {
                let (key, start) = (one.key, one.start);
                self.pending.push(Pending { key, start });
                return Some(Slot::Pending(self.pending.len() - 1));
            }
            _ => {}
        }
        self.stats.new_internals += 1;
        let node = self.add_node(place, path);
        let of = |leaf: &Placed| nibble_of(&leaf.key, path.len());
        let mut children = Vec::new();
        for group in leaves.chunk_by(|a, b| of(a) == of(b)) {
            let nibble = of(&group[0]);
            let slot = self.subtree(Place::Below(node, nibble), path.child(nibble), group);
            children.extend(slot.map(|slot| (nibble, slot)));
        }
        self.nodes[node].children = children;
        Some(Slot::Node)
    }

    /// Sets what hangs at a place.
    fn set(&mut self, place: Place, slot: Option<Slot>) {
        let Place::Below(node, nibble) = place else {
            self.top = slot;
            return;
        };
        let children = &mut self.nodes[node].children;
        match (
            children.binary_search_by_key(&nibble, |child| child.0),
            slot,
        ) {
            (Ok(at), Some(slot)) => children[at].1 = slot,
            (Ok(at), None) => drop(children.remove(at)),
            (Err(at), Some(slot)) => children.insert(at, (nibble, slot)),
            (Err(_), None) => {}
        }
    }

    /// Sets what has become of a child that was left to another part.
    pub(crate) fn put(&mut self, place: Place, child: Option<Child>) {
        self.set(place, child.map(Slot::Child));
    }

    /// Counts what another part did.
    pub(crate) fn count(&mut self, stats: &TreeStats) {
        self.stats.add(stats);
    }

    /// Computes all hashes, and what is to be written.
    pub(crate) fn finish(mut self) -> Done {
        let started = Instant::now();
        self.collapse();
        self.fold_leaves();
        self.hash_nodes();
        let hashed = Instant::now();
        let top = self.top.map(|slot| match slot {
            Slot::Child(child) => child,
            Slot::Node | Slot::Pending(_) => unreachable!("all have been hashed"),
        });
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for node in self.nodes {
            let Node { path, old, .. } = node;
            let record = (!node.gone).then(|| encode(&path, &node.children));
            // What comes and goes within one update leaves nothing, and what stays as it is needs no writing.
            if old.as_deref() != record.as_deref() {
                let record = record.map(Arc::from);
                nodes.push(NodeChange { path, record });
            }
        }
        self.stats.nodes_written +=
            nodes.iter().filter(|node| node.record.is_some()).count() as u64;
        self.stats.hash += hashed - started;
        self.stats.place += hashed.elapsed();
        Done {
            top,
            nodes,
            found: self.found,
            stats: self.stats,
        }
    }

    /// Takes out nodes that have no child left, or one leaf alone; the root stays if it has any.
    fn collapse(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let (place, is_root) = (node.place, node.path.is_empty());
            let slot = match node.children[..] {
                [] => None,
                [(nibble, Slot::Child(Child::Leaf(leaf)))] if !is_root => {
                    let path = node.path.child(nibble);
                    Some(self.lifted(&path, &leaf))
                }
                [(_, slot @ Slot::Pending(_))] if !is_root => Some(slot),
                _ => continue,
            };
            self.nodes[at].gone = true;
            self.set(place, slot);
        }
    }

    /// A leaf that goes up from where it was.
    fn lifted(&mut self, path: &Path, leaf: &Leaf) -> Slot {
        let (key, start) = if path.len() <= STEM_NIBBLES {
            (key_of(leaf), Start::At(leaf.fold, FOLD_HEIGHT))
        } else {
            (padded(path), Start::At(leaf.hash, height(path.len())))
        };
        self.pending.push(Pending { key, start });
        Slot::Pending(self.pending.len() - 1)
    }

    /// Finishes all leaves that are pending and still have a place.
    fn fold_leaves(&mut self) {
        // Pending leaves and the nibbles of their paths.
        let mut at: Vec<(usize, usize)> = Vec::with_capacity(self.pending.len());
        if let Some(Slot::Pending(pending)) = self.top {
            at.push((pending, self.top_path.len()));
        }
        for node in self.nodes.iter().filter(|node| !node.gone) {
            let nibbles = node.path.len() + 1;
            at.extend(node.children.iter().filter_map(|(_, slot)| match slot {
                Slot::Pending(pending) => Some((*pending, nibbles)),
                Slot::Child(_) | Slot::Node => None,
            }));
        }
        // Chains that go up together are to be of one length.
        at.sort_unstable_by_key(|(_, nibbles)| *nibbles);
        let leaves = self.folded(&at);
        let mut finished: Vec<Option<Leaf>> = vec![None; self.pending.len()];
        for ((pending, _), leaf) in at.iter().zip(leaves) {
            finished[*pending] = Some(leaf);
        }
        let finish = |slot: &mut Slot| {
            if let Slot::Pending(pending) = *slot
                && let Some(leaf) = finished[pending]
            {
                *slot = Slot::Child(Child::Leaf(leaf));
            }
        };
        self.top.iter_mut().for_each(finish);
        let nodes = self.nodes.iter_mut().filter(|node| !node.gone);
        nodes
            .flat_map(|node| &mut node.children)
            .for_each(|(_, slot)| finish(slot));
    }

    /// The leaves that pending ones come to at paths of so many nibbles.
    fn folded(&mut self, at: &[(usize, usize)]) -> Vec<Leaf> {
        let chain = |(pending, nibbles): &(usize, usize)| {
            let (to, key) = (
                height(*nibbles).min(FOLD_HEIGHT),
                self.pending[*pending].key,
            );
            let hash = [0; 32];
            Chain { key, hash, to }
        };
        let mut chains: Vec<Chain> = at.iter().map(chain).collect();
        // From the bottom to the checkpoint.
        let entries = at.iter().enumerate();
        let entries = entries.filter_map(|(i, (pending, _))| match self.pending[*pending].start {
            Start::Entry(entry) => Some((i, entry)),
            Start::At(..) => None,
        });
        let (places, entries): (Vec<usize>, Vec<Entry>) = entries.unzip();
        let hashes = self.hasher.leaves(&entries);
        let from_entries = places.iter().zip(hashes);
        let mut low: Vec<Chain> = from_entries
            .map(|(i, hash)| Chain { hash, ..chains[*i] })
            .collect();
        self.hasher.fold(0, &mut low);
        self.stats.fold_hashes += low.iter().map(|chain| 1 + chain.to as u64).sum::<u64>();
        for (i, chain) in places.into_iter().zip(low) {
            chains[i] = chain;
        }
        for (chain, (pending, _)) in chains.iter_mut().zip(at) {
            if let Start::At(hash, from) = self.pending[*pending].start {
                chain.hash = hash;
                if from < chain.to {
                    self.hasher.fold(from, std::slice::from_mut(chain));
                    self.stats.fold_hashes += (chain.to - from) as u64;
                }
            }
        }
        // From the checkpoint to the place.
        let folds: Vec<Hash> = chains.iter().map(|chain| chain.hash).collect();
        for (chain, (_, nibbles)) in chains.iter_mut().zip(at) {
            chain.to = height(*nibbles);
            self.stats.rise_hashes += chain.to.saturating_sub(FOLD_HEIGHT) as u64;
        }
        let first = chains.partition_point(|chain| chain.to > FOLD_HEIGHT);
        self.hasher.fold(FOLD_HEIGHT, &mut chains[..first]);
        let leaves = chains.iter().zip(folds).zip(at);
        leaves
            .map(|((chain, fold), (_, nibbles))| {
                let mut stem = [0; STEM];
                stem.copy_from_slice(&chain.key[..STEM]);
                Leaf {
                    hash: chain.hash,
                    fold: if *nibbles <= STEM_NIBBLES {
                        fold
                    } else {
                        [0; 32]
                    },
                    stem,
                }
            })
            .collect()
    }

    /// Hashes the nodes, the deepest first.
    fn hash_nodes(&mut self) {
        let live = (0..self.nodes.len()).filter(|at| !self.nodes[*at].gone);
        let mut order: Vec<usize> = live.collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.nodes[*at].path.len()));
        let lengths = |a: &usize, b: &usize| self.nodes[*a].path.len() == self.nodes[*b].path.len();
        let levels: Vec<Vec<usize>> = order.chunk_by(lengths).map(<[usize]>::to_vec).collect();
        for level in levels {
            for some in level.chunks(TOGETHER) {
                let nodes = some.iter().map(|at| {
                    let node = &self.nodes[*at];
                    let mut row = Row::default();
                    for (nibble, slot) in &node.children {
                        if let Slot::Child(child) = slot {
                            row.set(*nibble, *child.hash());
                        }
                    }
                    row
                });
                let mut rows: Vec<Row> = nodes.collect();
                let nibbles = self.nodes[some[0]].path.len() + 1;
                self.stats.node_hashes += up(self.hasher, height(nibbles), &mut rows);
                for (at, row) in some.iter().zip(rows) {
                    let place = self.nodes[*at].place;
                    self.set(place, Some(Slot::Child(Child::Internal(row.hashes[0]))));
                }
            }
        }
    }
}

/// Up to 16 hashes side by side.
#[derive(Clone, Default)]
pub(crate) struct Row {
    pub(crate) hashes: [Hash; 16],
    /// Which of them are not those of empty subtrees.
    pub(crate) present: u16,
}

impl Row {
    pub(crate) fn set(&mut self, place: u8, hash: Hash) {
        self.hashes[usize::from(place)] = hash;
        self.present |= 1 << place;
    }
}

/// Takes rows of 16 hashes at a height up by four levels, to one hash each; returns the number of hashes that this took.
pub(crate) fn up<H: Hasher>(hasher: H, from: usize, rows: &mut [Row]) -> u64 {
    (0..4).map(|level| up_one(hasher, from, level, rows)).sum()
}

/// Takes rows that have come up by so many levels from a height by one more.
pub(crate) fn up_one<H: Hasher>(hasher: H, from: usize, level: usize, rows: &mut [Row]) -> u64 {
    let (mut pairs, mut places) = (Vec::new(), Vec::new());
    let empty = hasher.empty()[from + level];
    for (at, row) in rows.iter_mut().enumerate() {
        let mut present = 0;
        for pair in 0..8usize >> level {
            let both = row.present >> (2 * pair) & 3;
            if both == 0 {
                continue;
            }
            let side = |side: usize| match both >> side & 1 {
                1 => row.hashes[2 * pair + side],
                _ => empty,
            };
            pairs.push([side(0), side(1)]);
            places.push((at, pair));
            present |= 1 << pair;
        }
        row.present = present;
    }
    let hashes = hasher.pairs(&pairs);
    for ((at, pair), hash) in places.iter().zip(&hashes) {
        rows[*at].hashes[*pair] = *hash;
    }
    hashes.len() as u64
}

/// The height of a child whose path has so many nibbles.
pub(crate) fn height(nibbles: usize) -> usize {
    DEPTH - 4 * nibbles
}

/// The bits of a leaf's key that are known, zeros behind them.
fn key_of(leaf: &Leaf) -> Hash {
    let mut key = [0; 32];
    key[..STEM].copy_from_slice(&leaf.stem);
    key
}

/// Updates by the nibble of their keys at a place.
fn groups(
    updates: &[LeafUpdate],
    range: Range<usize>,
    at: usize,
) -> impl Iterator<Item = (u8, Range<usize>)> {
    let mut rest = range;
    std::iter::from_fn(move || {
        let first = updates[rest.clone()].first()?;
        let nibble = nibble_of(&first.key, at);
        let length = updates[rest.clone()].partition_point(|u| nibble_of(&u.key, at) == nibble);
        let group = rest.start..rest.start + length;
        rest.start = group.end;
        Some((nibble, group))
    })
}

pub(crate) fn decode(path: &Path, record: &[u8]) -> Result<Record, TreeError> {
    let path = *path;
    Record::decode(&path, record).map_err(|error| TreeError::Record { path, error })
}

fn encode(path: &Path, children: &[(u8, Slot)]) -> Vec<u8> {
    let children = children.iter().filter_map(|(nibble, slot)| match slot {
        Slot::Child(child) => Some((*nibble, *child)),
        Slot::Node | Slot::Pending(_) => None,
    });
    let children = children.collect();
    Record { children }.encode(path)
}
