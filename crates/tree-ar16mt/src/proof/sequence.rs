//! The hashes that a tree goes through while operations change it one after the other.

use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;

use arbor_hashing::blake2s::Chain;
use arbor_tree::{Path, nibble_of};
use rayon::prelude::*;

use super::operations::Operation;
use super::prove::shared_bits;
use crate::record::{STEM, STEM_NIBBLES, View};
use crate::work::height;
use crate::{CHECKPOINT, Child, DEPTH, Entry, Hash, Hasher, Leaf, NodeChange, Reader, TreeError};

/// No event, or no node.
const NONE: u32 = u32::MAX;

/// Operations, or nodes, that one thread takes at a time.
const CHUNK: usize = 512;

/// The hashes beside the ways of all operations within the nodes of one level.
#[derive(Debug)]
pub(crate) struct Level {
    /// By operation where its hashes are; [`NONE`] if its way has ended above.
    place: Vec<u32>,
    /// The topmost first; in the parts in which they were computed, with the number of those before each.
    siblings: Vec<(u32, Vec<[Hash; 4]>)>,
}

impl Level {
    pub(crate) fn siblings(&self, operation: usize) -> Option<&[Hash; 4]> {
        let place = self.place[operation];
        if place == NONE {
            return None;
        }
        let part = self
            .siblings
            .partition_point(|(before, _)| *before <= place);
        let (before, siblings) = &self.siblings[part - 1];
        siblings.get((place - before) as usize)
    }
}

/// The leaf beside the way of a missing key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    /// Bits of its key above the subtree that has it and not the missing key.
    pub(crate) level: usize,
    pub(crate) hash: Hash,
}

/// What was below a place before the batch.
#[derive(Clone, Copy)]
enum Old {
    Nothing,
    Leaf(Leaf),
    Node,
}

/// A node on the way of operations.
struct Node {
    path: Path,
    /// Places in the order of keys.
    operations: Range<usize>,
    /// Its record before the batch, if it was there.
    old: Option<Arc<[u8]>>,
    /// If it was not, the child that the only leaf below it would have been.
    only: Option<(u8, Hash)>,
}

/// A leaf that is to be hashed at a level, for whoever waits for it.
struct Lone {
    key: Hash,
    from: From,
    level: usize,
    goes_to: GoesTo,
}

#[derive(Clone, Copy)]
enum From {
    Leaf(Entry),
    Fold(Hash),
}

enum GoesTo {
    /// The state after an operation.
    State(u32),
    /// The only child of a node before the batch: level, node.
    Before(usize, usize),
    Beside(u32),
}

/// The nodes on the way of operations, from the root down, and the states of leaves.
pub(crate) struct Sequence<'a, H> {
    hasher: H,
    operations: &'a [Operation],
    /// Operations by key.
    order: &'a [u32],
    levels: Vec<Vec<Node>>,
    /// By operation the hash at its place after it, as far as it writes.
    states: Vec<Hash>,
    lone: Vec<Lone>,
    beside: HashMap<u32, Beside>,
}

/// Nodes that have changed, by length of path, then by path.
type Changed<'n> = Peekable<std::vec::IntoIter<&'n NodeChange>>;

struct Item {
    path: Path,
    operations: Range<usize>,
    old: Old,
}

impl<'a, H: Hasher> Sequence<'a, H> {
    /// Goes down to where all operations end, in the tree that they lead to: nodes that have changed are given, all others are as they were.
    pub(crate) fn descend(
        reader: &impl Reader,
        hasher: H,
        operations: &'a [Operation],
        order: &'a [u32],
        changed: Vec<&NodeChange>,
    ) -> Result<Self, TreeError> {
        let mut changed = changed.into_iter().peekable();
        let mut sequence = Self {
            hasher,
            operations,
            order,
            levels: Vec::new(),
            states: vec![[0; 32]; operations.len()],
            lone: Vec::new(),
            beside: HashMap::new(),
        };
        let mut items = vec![Item {
            path: Path::ROOT,
            operations: 0..order.len(),
            old: Old::Node,
        }];
        while !items.is_empty() {
            items = sequence.level(reader, items, &mut changed)?;
        }
        Ok(sequence)
    }

    fn key(&self, place: usize) -> &'a Hash {
        &self.operations[self.order[place] as usize].key
    }

    fn level(
        &mut self,
        reader: &impl Reader,
        items: Vec<Item>,
        changed: &mut Changed,
    ) -> Result<Vec<Item>, TreeError> {
        let stored = items.iter().filter(|item| matches!(item.old, Old::Node));
        let paths: Vec<Path> = stored.map(|item| item.path).collect();
        let mut records = reader.nodes(&paths)?.into_iter();
        let (mut next, mut nodes) = (Vec::new(), Vec::new());
        for item in items {
            let depth = item.path.len();
            let old = match item.old {
                Old::Node => records.next().flatten(),
                _ => None,
            };
            let place = |node: &NodeChange| (node.path.len(), node.path);
            while changed
                .next_if(|node| place(node) < (depth, item.path))
                .is_some()
            {}
            let new = changed.next_if(|node| node.path == item.path);
            let new = new.and_then(|node| node.record.as_ref()).or(old.as_ref());
            let new = new.map(|record| view(&item.path, record)).transpose()?;
            if new.is_none() && depth > 0 {
                return Err(TreeError::MissingNode(item.path));
            }
            let before = old
                .as_ref()
                .map(|record| view(&item.path, record))
                .transpose()?;
            let find = |view: &Option<View>, nibble: u8| match view {
                None => Ok(None),
                Some(view) => view.child(nibble).map_err(|error| TreeError::Record {
                    path: item.path,
                    error,
                }),
            };
            let only = match &item.old {
                Old::Leaf(leaf) => {
                    let now = |nibble: u8| find(&new, nibble);
                    Some(self.old_leaf(reader, &item.path, leaf, nodes.len(), now)?)
                }
                _ => None,
            };
            let mut rest = item.operations.clone();
            while let Some(first) = rest.clone().next() {
                let nibble = nibble_of(self.key(first), depth);
                let same = |place: &usize| nibble_of(self.key(*place), depth) == nibble;
                let end = first + rest.clone().take_while(same).count();
                rest.start = end;
                let path = item.path.child(nibble);
                match find(&new, nibble)? {
                    Some(Child::Internal(_)) => {
                        let old = match (find(&before, nibble)?, item.old) {
                            (Some(Child::Internal(_)), _) => Old::Node,
                            (Some(Child::Leaf(leaf)), _) => Old::Leaf(leaf),
                            (None, Old::Leaf(leaf))
                                if only.is_some_and(|only| only.0 == nibble) =>
                            {
                                Old::Leaf(leaf)
                            }
                            (None, _) => Old::Nothing,
                        };
                        let operations = first..end;
                        next.push(Item {
                            path,
                            operations,
                            old,
                        });
                    }
                    Some(Child::Leaf(leaf)) => self.end_at(reader, &path, first..end, &leaf)?,
                    None => {}
                }
            }
            nodes.push(Node {
                path: item.path,
                operations: item.operations,
                old,
                only,
            });
        }
        self.levels.push(nodes);
        Ok(next)
    }

    /// The child that the only leaf before is within a node that was not there: its nibble and hash, which may come later.
    fn old_leaf(
        &mut self,
        reader: &impl Reader,
        path: &Path,
        leaf: &Leaf,
        node: usize,
        now: impl Fn(u8) -> Result<Option<Child>, TreeError>,
    ) -> Result<(u8, Hash), TreeError> {
        let depth = path.len();
        let (key, from) = if depth < STEM_NIBBLES {
            (leaf.key(), From::Fold(leaf.fold))
        } else {
            let stored = reader.leaves_below(&[*path])?.pop().flatten();
            let stored = stored.ok_or(TreeError::MissingLeaf(*path))?;
            (stored.key, From::Leaf(stored.entry))
        };
        let nibble = nibble_of(&key, depth);
        // Unless it was written, it may hang here now.
        let same = |child: &Leaf| child.stem == leaf.stem && child.fold == leaf.fold;
        if depth < STEM_NIBBLES
            && let Some(Child::Leaf(child)) = now(nibble)?
            && same(&child)
        {
            return Ok((nibble, child.hash));
        }
        let goes_to = GoesTo::Before(self.levels.len(), node);
        let level = 4 * (depth + 1);
        self.lone.push(Lone {
            key,
            from,
            level,
            goes_to,
        });
        Ok((nibble, [0; 32]))
    }

    /// Operations whose ways end at a leaf of the tree after the batch, which may not have been there at first.
    fn end_at(
        &mut self,
        reader: &impl Reader,
        path: &Path,
        places: Range<usize>,
        leaf: &Leaf,
    ) -> Result<(), TreeError> {
        let level = 4 * path.len();
        let order = self.order;
        let operations = self.operations;
        let of = |place: usize| &operations[order[place] as usize];
        // The key that has the leaf: one that is written or was there; else it is no operation's.
        let owner = places
            .clone()
            .find(|place| of(*place).new.is_some() || of(*place).old.is_some());
        let owner = owner.map(|place| of(place).key);
        let mut own: Vec<u32> = Vec::new();
        if let Some(owner) = owner {
            let owned = places.clone().filter(|place| of(*place).key == owner);
            own.extend(owned.map(|place| order[place]));
        }
        let last = own
            .iter()
            .rev()
            .find(|at| operations[**at as usize].new.is_some());
        for at in &own {
            let Some(entry) = operations[*at as usize].new else {
                continue;
            };
            if Some(at) == last {
                self.states[*at as usize] = leaf.hash;
                continue;
            }
            let key = operations[*at as usize].key;
            let goes_to = GoesTo::State(*at);
            self.lone.push(Lone {
                key,
                from: From::Leaf(entry),
                level,
                goes_to,
            });
        }
        let foreign = places
            .filter(|place| Some(of(*place).key) != owner)
            .map(|place| order[place]);
        for at in foreign {
            let key = &operations[at as usize].key;
            let goes_to = GoesTo::Beside(at);
            if let Some(owner) = owner {
                // What the leaf's key held at the time.
                let before = own.iter().rev().filter(|own| **own < at);
                let written = before
                    .filter_map(|own| operations[*own as usize].new)
                    .next();
                let entry = written.or(operations[own[0] as usize].old);
                if let Some(entry) = entry {
                    let level = shared_bits(key, &owner) + 1;
                    self.lone.push(Lone {
                        key: owner,
                        from: From::Leaf(entry),
                        level,
                        goes_to,
                    });
                }
                continue;
            }
            let (other, from) = if key.starts_with(&leaf.stem) {
                let stored = reader.leaves_below(&[*path])?.pop().flatten();
                let stored = stored.ok_or(TreeError::MissingLeaf(*path))?;
                (stored.key, From::Leaf(stored.entry))
            } else {
                (leaf.key(), From::Fold(leaf.fold))
            };
            let level = shared_bits(key, &other) + 1;
            self.lone.push(Lone {
                key: other,
                from,
                level,
                goes_to,
            });
        }
        Ok(())
    }

    /// Hashes leaves that are waited for.
    fn fold_lone(&mut self) {
        let mut lone = std::mem::take(&mut self.lone);
        for from_bottom in [true, false] {
            let starts = |lone: &Lone| matches!(lone.from, From::Leaf(_)) == from_bottom;
            lone.sort_by_key(|lone| (!starts(lone), lone.level));
            let some = &lone[..lone.partition_point(starts)];
            let from = if from_bottom { 0 } else { DEPTH - CHECKPOINT };
            let entries = some.iter().filter_map(|lone| match lone.from {
                From::Leaf(entry) => Some(entry),
                From::Fold(_) => None,
            });
            let entries: Vec<Entry> = entries.collect();
            let bottoms = self.hasher.leaves(&entries);
            let chain = |(i, lone): (usize, &Lone)| Chain {
                key: lone.key,
                hash: match lone.from {
                    From::Fold(fold) => fold,
                    From::Leaf(_) => bottoms[i],
                },
                to: DEPTH - lone.level,
            };
            let mut chains: Vec<Chain> = some.iter().enumerate().map(chain).collect();
            let hasher = self.hasher;
            chains
                .par_chunks_mut(CHUNK)
                .for_each(|chains| hasher.fold(from, chains));
            for (lone, chain) in some.iter().zip(chains) {
                let (level, hash) = (lone.level, chain.hash);
                match lone.goes_to {
                    GoesTo::State(at) => self.states[at as usize] = hash,
                    GoesTo::Before(depth, node) => {
                        if let Some(only) = &mut self.levels[depth][node].only {
                            only.1 = hash;
                        }
                    }
                    GoesTo::Beside(at) => drop(self.beside.insert(at, Beside { level, hash })),
                }
            }
        }
    }

    /// Goes up again: the hashes beside each operation's way, and the root after each that writes.
    pub(crate) fn rise(mut self) -> (Vec<Level>, HashMap<u32, Beside>, Vec<Hash>) {
        self.fold_lone();
        let mut levels = Vec::with_capacity(self.levels.len());
        while let Some(nodes) = self.levels.pop() {
            let chunks = chunks(&nodes).into_par_iter();
            let done: Vec<Chunk> = chunks.map(|nodes| self.chunk(nodes)).collect();
            let mut place = vec![NONE; self.operations.len()];
            let (mut siblings, mut before) = (Vec::with_capacity(done.len()), 0);
            for chunk in done {
                for ((event, at), state) in chunk.events.iter().zip(before..).zip(&chunk.states) {
                    place[*event as usize] = at;
                    self.states[*event as usize] = *state;
                }
                siblings.push((before, chunk.siblings));
                before += chunk.events.len() as u32;
            }
            levels.push(Level { place, siblings });
        }
        levels.reverse();
        (levels, self.beside, self.states)
    }

    /// What operations make of nodes of one level, from what they make of their children.
    fn chunk(&self, nodes: &[Node]) -> Chunk {
        let depth = nodes[0].path.len();
        let count = nodes.iter().map(|node| node.operations.len()).sum();
        let mut events: Vec<u32> = Vec::with_capacity(count);
        let mut ranges = Vec::with_capacity(nodes.len());
        for node in nodes {
            let start = events.len();
            events.extend(&self.order[node.operations.clone()]);
            events[start..].sort_unstable();
            ranges.push(start..events.len());
        }
        let operation = |event: &u32| &self.operations[*event as usize];
        let nibbles: Vec<u8> = events
            .iter()
            .map(|event| nibble_of(&operation(event).key, depth))
            .collect();
        let mut rows = self.rows(nodes, &ranges, &nibbles);
        let mut states: Vec<Hash> = events.iter().map(|e| self.states[*e as usize]).collect();
        let mut siblings = vec![[[0; 32]; 4]; events.len()];
        let mut pairs = Vec::with_capacity(events.len());
        for step in 0..4 {
            pairs.clear();
            for (rows, range) in rows.iter_mut().zip(&ranges) {
                let row = &mut rows[row(step)];
                for at in range.clone() {
                    let child = usize::from(nibbles[at] >> step);
                    siblings[at][3 - step] = row[child ^ 1];
                    if operation(&events[at]).new.is_some() {
                        row[child] = states[at];
                        pairs.push([row[child & !1], row[child | 1]]);
                    }
                }
            }
            let hashes = hash_pairs(self.hasher, &pairs);
            let writes = events.iter().zip(&mut states);
            let writes = writes.filter(|(event, _)| operation(event).new.is_some());
            for ((_, state), hash) in writes.zip(hashes) {
                *state = hash;
            }
        }
        Chunk {
            events,
            siblings,
            states,
        }
    }

    /// The hashes within nodes before the batch: of children, and of those above them that lie beside the ways of operations, or below such.
    fn rows(&self, nodes: &[Node], ranges: &[Range<usize>], nibbles: &[u8]) -> Vec<[Hash; 30]> {
        let from = height(nodes[0].path.len() + 1);
        let empty = &self.hasher.empty()[from..];
        let mut present: Vec<u16> = Vec::with_capacity(nodes.len());
        let mut needed: Vec<[u16; 4]> = Vec::with_capacity(nodes.len());
        let mut rows = vec![[[0; 32]; 30]; nodes.len()];
        for ((node, range), rows) in nodes.iter().zip(ranges).zip(&mut rows) {
            rows[row(0)].fill(empty[0]);
            let mut there = 0;
            let mut put = |nibble: u8, hash: &Hash| {
                rows[usize::from(nibble)] = *hash;
                there |= 1 << nibble;
            };
            if let Some((nibble, hash)) = &node.only {
                put(*nibble, hash);
            }
            // It was looked at on the way down.
            let old = node.old.as_ref();
            let view = old.and_then(|record| View::new(&node.path, record).ok());
            for (nibble, hash) in view.iter().flat_map(View::hashes) {
                put(nibble, hash);
            }
            present.push(there);
            let touched = nibbles[range.clone()].iter().fold(0, |set, n| set | 1 << n);
            needed.push(needed_rows(touched));
        }
        let (mut pairs, mut places) = (Vec::new(), Vec::new());
        for step in 0..3 {
            pairs.clear();
            places.clear();
            let all = rows.iter_mut().zip(&mut present).zip(&needed).enumerate();
            for (at, ((rows, present), needed)) in all {
                let below = std::mem::take(present);
                for i in 0..8usize >> step {
                    let is_empty = below >> (2 * i) & 3 == 0;
                    *present |= u16::from(!is_empty) << i;
                    let to = row(step + 1).start + i;
                    if is_empty {
                        rows[to] = empty[step + 1];
                    } else if needed[step + 1] >> i & 1 == 1 {
                        let from = row(step).start + 2 * i;
                        pairs.push([rows[from], rows[from + 1]]);
                        places.push((at, to));
                    }
                }
            }
            let hashes = self.hasher.pairs(&pairs);
            for ((at, to), hash) in places.iter().zip(hashes) {
                rows[*at][*to] = hash;
            }
        }
        rows
    }
}

/// What became of some nodes of a level, by operation: their operations one after the other, those of a node in their order.
struct Chunk {
    events: Vec<u32>,
    siblings: Vec<[Hash; 4]>,
    states: Vec<Hash>,
}

impl Leaf {
    /// The bits of its key that are known, zeros behind them.
    fn key(&self) -> Hash {
        let mut key = [0; 32];
        key[..STEM].copy_from_slice(&self.stem);
        key
    }
}

/// Where a row lies among the hashes of a node: 16 children, 8 pairs of them, 4 and 2.
fn row(step: usize) -> Range<usize> {
    32 - (32 >> step)..32 - (16 >> step)
}

/// By row what is beside a touched place, or below what is needed.
fn needed_rows(touched: u16) -> [u16; 4] {
    let mut all = [touched; 4];
    for step in 1..4 {
        all[step] = (0..8 >> step << 1).fold(0, |set, i| {
            set | u16::from(all[step - 1] >> (2 * i) & 3 != 0) << i
        });
    }
    let mut needed = [0; 4];
    for step in (0..4).rev() {
        let beside = (all[step] & 0x5555) << 1 | (all[step] >> 1) & 0x5555;
        let above = needed.get(step + 1).copied().unwrap_or(0);
        let below = (0..8).fold(0, |set, i| set | ((above >> i & 1) * 3) << (2 * i));
        needed[step] = beside | below;
    }
    needed
}

/// Hashes pairs, on all threads if they are many.
fn hash_pairs<H: Hasher>(hasher: H, pairs: &[[Hash; 2]]) -> Vec<Hash> {
    if pairs.len() <= 2 * CHUNK {
        return hasher.pairs(pairs);
    }
    let parts: Vec<Vec<Hash>> = pairs
        .par_chunks(CHUNK)
        .map(|pairs| hasher.pairs(pairs))
        .collect();
    parts.concat()
}

/// Nodes with some operations together.
fn chunks(nodes: &[Node]) -> Vec<&[Node]> {
    let (mut chunks, mut start, mut count) = (Vec::new(), 0, 0);
    for (at, node) in nodes.iter().enumerate() {
        count += node.operations.len();
        if count >= CHUNK || at + 1 == nodes.len() {
            chunks.push(&nodes[start..=at]);
            (start, count) = (at + 1, 0);
        }
    }
    chunks
}

fn view<'a>(path: &'a Path, record: &'a [u8]) -> Result<View<'a>, TreeError> {
    let path_of = *path;
    View::new(path, record).map_err(|error| TreeError::Record {
        path: path_of,
        error,
    })
}
