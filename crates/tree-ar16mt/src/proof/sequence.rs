//! The hashes that a part of the tree goes through while operations change it one after the other.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arbor_hashing::blake2s::Chain;
use arbor_tree::{Path, nibble_of};
use rayon::prelude::*;

use super::operations::{Operation, Outcome};
use super::prove::shared_bits;
use crate::apply::Seen;
use crate::record::{STEM_NIBBLES, View};
use crate::row::height;
use crate::work::{Node as Changed, Place, Work};
use crate::{CHECKPOINT, Child, DEPTH, Entry, Hash, Hasher, Leaf, Reader, StoredLeaf, TreeError};

/// No event, or no node.
const NONE: u32 = u32::MAX;

/// Operations, or nodes, that one thread takes at a time.
const CHUNK: usize = 256;
/// From so many chunks of a level on they are shared between all threads: parts, which have few, are shared already.
const SPREAD: usize = 12;
/// With more operations than this, those of one node are shared between all threads.
const MANY: usize = 1 << 12;
/// How many of these a thread takes at a time.
const PIECE: usize = 1 << 10;

/// Operations by key, those of one key in their order. Where one is among them is its *place*.
#[derive(Clone, Copy)]
pub(crate) struct Ordered<'a> {
    /// Beside each other, as they are gone through: in the batch they lie at random.
    pub(crate) operations: &'a [Operation],
    /// Their numbers in the batch.
    pub(crate) order: &'a [u32],
    /// Where the operations of each key begin, and at last the end.
    pub(crate) starts: &'a [u32],
}

impl<'a> Ordered<'a> {
    fn at(&self, place: usize) -> &'a Operation {
        &self.operations[place]
    }
}

/// What operations did to a part of the tree.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Whose: places.
    places: Range<usize>,
    /// From its top down.
    levels: Vec<Level>,
    /// By place what the operation found.
    outcomes: Vec<Outcome>,
    /// By place the hash of the part after an operation, as far as it writes.
    states: Vec<Hash>,
    beside: Vec<(u32, Beside)>,
    /// The parts below, ascending.
    below: Vec<Passed>,
}

impl Passed {
    /// The hashes beside an operation's way, from the top down, four at a time.
    pub(crate) fn siblings(&self, place: usize) -> Vec<[Hash; 4]> {
        let levels = self.levels.iter();
        let own = levels.map_while(|level| level.siblings(place - self.places.start));
        let mut siblings: Vec<[Hash; 4]> = own.collect();
        let below = self.below.partition_point(|part| part.places.end <= place);
        if let Some(part) = self.below.get(below) {
            siblings.extend(part.siblings(place));
        }
        siblings
    }

    /// The states at the top, by place.
    pub(crate) fn take_states(&mut self) -> Vec<Hash> {
        std::mem::take(&mut self.states)
    }

    /// Appends what operations found, by place.
    pub(crate) fn take_outcomes(&mut self, outcomes: &mut Vec<Outcome>) {
        let below = self.below.iter_mut();
        below.for_each(|part| part.take_outcomes(outcomes));
        outcomes.append(&mut self.outcomes);
    }

    /// The leaves beside the ways of missing keys, by operation.
    pub(crate) fn take_beside(&mut self) -> HashMap<u32, Beside> {
        let own = std::mem::take(&mut self.beside).into_iter();
        own.chain(self.below.iter_mut().flat_map(Self::take_beside))
            .collect()
    }
}

/// The hashes beside the ways of some operations within nodes of one level: the topmost first, and of each by operation.
type Siblings = [Vec<Hash>; 4];

/// The hashes beside the ways of a part's operations within the nodes of one level.
#[derive(Debug)]
struct Level {
    /// By place, counted from the part's first, where its hashes are; [`NONE`] if its way has ended above, or begins below.
    at: Vec<u32>,
    /// In the chunks in which they were computed, with the number of those before each.
    siblings: Vec<(u32, Siblings)>,
}

impl Level {
    fn siblings(&self, place: usize) -> Option<[Hash; 4]> {
        let at = self.at[place];
        if at == NONE {
            return None;
        }
        let chunk = self.siblings.partition_point(|(before, _)| *before <= at);
        let (before, siblings) = &self.siblings[chunk - 1];
        let at = (at - before) as usize;
        Some(siblings.each_ref().map(|hashes| hashes[at]))
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
struct Node<'w> {
    path: Path,
    /// Places.
    operations: Range<usize>,
    /// Its record before the batch, if it was there.
    old: Option<&'w Arc<[u8]>>,
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

#[derive(Clone, Copy)]
enum GoesTo {
    /// The state after the operation at a place.
    State(usize),
    /// The only child of a node before the batch.
    Before(usize),
    /// An operation's.
    Beside(u32),
}

/// The nodes on the way of a part's operations, and the states of what is below them.
struct Sequence<'a, 'w, R, H> {
    reader: &'a R,
    hasher: H,
    ordered: Ordered<'a>,
    places: Range<usize>,
    /// What the part's keys held before, ascending.
    before: Vec<(Hash, Entry)>,
    nodes: Vec<Node<'w>>,
    /// By place, counted from the first, the hash where the operation is under way, after it, as far as it writes.
    states: Vec<Hash>,
    lone: Vec<Lone>,
    beside: Vec<(u32, Beside)>,
}

/// Goes through a part's operations one after the other, in effect.
pub(crate) fn pass<R: Reader, H: Hasher>(
    reader: &R,
    hasher: H,
    ordered: Ordered<'_>,
    seen: Seen<'_, '_, R, H, Passed>,
) -> Result<Passed, TreeError> {
    let Seen {
        work,
        updates,
        old,
        mut below,
    } = seen;
    let place = |update: usize| ordered.starts[update] as usize;
    let places = place(updates.start)..place(updates.end);
    let mut before = work.found().to_vec();
    before.sort_unstable_by_key(|(key, _)| *key);
    let mut sequence = Sequence {
        reader,
        hasher,
        ordered,
        before,
        nodes: Vec::with_capacity(work.nodes().len()),
        states: Vec::with_capacity(places.len()),
        lone: Vec::new(),
        beside: Vec::new(),
        places: places.clone(),
    };
    let (mut outcomes, all_end_here) = (Vec::new(), below.is_empty());
    if all_end_here {
        outcomes = sequence.outcomes();
        sequence.states.resize(places.len(), [0; 32]);
    } else {
        below
            .iter_mut()
            .for_each(|part| sequence.states.append(&mut part.states));
    }
    sequence.gather(work, old, all_end_here)?;
    sequence.fold_lone();
    let levels = sequence.rise();
    Ok(Passed {
        places,
        levels,
        outcomes,
        states: sequence.states,
        beside: sequence.beside,
        below,
    })
}

impl<'a, 'w, R: Reader, H: Hasher> Sequence<'a, 'w, R, H> {
    /// What a key held before.
    fn before(&self, key: &Hash) -> Option<Entry> {
        let at = self.before.binary_search_by_key(key, |(key, _)| *key);
        Some(self.before[at.ok()?].1)
    }

    /// What the operations find, by place.
    fn outcomes(&self) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(self.places.len());
        let (mut key, mut holds) = (None, None);
        for place in self.places.clone() {
            let operation = self.ordered.at(place);
            if key != Some(&operation.key) {
                key = Some(&operation.key);
                holds = self.before(&operation.key);
            }
            outcomes.push(match (holds, operation.new) {
                (None, None) => Outcome::ReadMissing,
                (None, Some(_)) => Outcome::Inserted,
                (Some(entry), None) => Outcome::Read(entry),
                (Some(entry), Some(_)) => Outcome::Updated(entry),
            });
            holds = operation.new.or(holds);
        }
        outcomes
    }

    /// Takes in the part's nodes, and, if all operations end here, where they do.
    fn gather(
        &mut self,
        work: &'w Work<'_, R, H>,
        old: Option<Child>,
        all_end_here: bool,
    ) -> Result<(), TreeError> {
        let mut olds: Vec<Old> = Vec::with_capacity(work.nodes().len());
        for node in work.nodes() {
            let (operations, old) = match node.place {
                Place::Top => {
                    let old = match old {
                        None => Old::Nothing,
                        Some(Child::Leaf(leaf)) => Old::Leaf(leaf),
                        Some(Child::Internal(_)) => Old::Node,
                    };
                    (self.places.clone(), old)
                }
                Place::Below(parent, nibble) => {
                    let old = match node.old {
                        Some(_) => Old::Node,
                        None => self.old_below(parent, olds[parent], nibble)?,
                    };
                    let parent = &self.nodes[parent];
                    (self.narrowed(parent, nibble), old)
                }
            };
            let only = match &old {
                Old::Leaf(leaf) => Some(self.old_leaf(node, leaf)?),
                Old::Nothing | Old::Node => None,
            };
            if all_end_here {
                self.ends(node, operations.clone())?;
            }
            olds.push(old);
            self.nodes.push(Node {
                path: node.path,
                operations,
                old: node.old.as_ref(),
                only,
            });
        }
        match work.top() {
            Some(Child::Leaf(leaf)) if all_end_here => {
                self.end_at(&work.top_path(), self.places.clone(), &leaf)
            }
            _ => Ok(()),
        }
    }

    /// What was below a node that was not there itself, or of which that is not known.
    fn old_below(&self, parent: usize, old: Old, nibble: u8) -> Result<Old, TreeError> {
        let parent = &self.nodes[parent];
        Ok(match (old, parent.old) {
            (Old::Leaf(leaf), _) if parent.only.is_some_and(|only| only.0 == nibble) => {
                Old::Leaf(leaf)
            }
            (Old::Node, Some(record)) => {
                let child = view(&parent.path, record)?.child(nibble);
                let child = child.map_err(|error| TreeError::Record {
                    path: parent.path,
                    error,
                })?;
                match child {
                    Some(Child::Leaf(leaf)) => Old::Leaf(leaf),
                    _ => Old::Nothing,
                }
            }
            _ => Old::Nothing,
        })
    }

    /// The places of a node's operations that go on under a nibble.
    fn narrowed(&self, node: &Node<'_>, nibble: u8) -> Range<usize> {
        let depth = node.path.len();
        let nibble_at = |operation: &Operation| nibble_of(&operation.key, depth);
        let all = &self.ordered.operations[node.operations.clone()];
        let first = all.partition_point(|operation| nibble_at(operation) < nibble);
        let count = all[first..].partition_point(|operation| nibble_at(operation) == nibble);
        let start = node.operations.start + first;
        start..start + count
    }

    /// The operations whose ways end at a leaf below a node.
    fn ends(&mut self, node: &Changed, operations: Range<usize>) -> Result<(), TreeError> {
        let depth = node.path.len();
        let mut rest = operations;
        while !rest.is_empty() {
            let first = rest.start;
            let nibble = nibble_of(&self.ordered.at(first).key, depth);
            let same = |place: &usize| nibble_of(&self.ordered.at(*place).key, depth) == nibble;
            rest.start += rest.clone().take_while(same).count();
            if let Some(Child::Leaf(leaf)) = node.child(nibble) {
                self.end_at(&node.path.child(nibble), first..rest.start, leaf)?;
            }
        }
        Ok(())
    }

    /// The child that the only leaf before is within a node that was not there: its nibble and hash, which may come later.
    fn old_leaf(&mut self, node: &Changed, leaf: &Leaf) -> Result<(u8, Hash), TreeError> {
        let depth = node.path.len();
        let (key, from) = if depth < STEM_NIBBLES {
            (leaf.known_key(), From::Fold(leaf.fold))
        } else {
            let stored = self.stored(&leaf.way(&node.path))?;
            (stored.key, From::Leaf(stored.entry))
        };
        let nibble = nibble_of(&key, depth);
        // Unless it was written, it may hang here now.
        let same = |child: &Leaf| child.stem == leaf.stem && child.fold == leaf.fold;
        if depth < STEM_NIBBLES
            && let Some(Child::Leaf(child)) = node.child(nibble)
            && same(child)
        {
            return Ok((nibble, child.hash));
        }
        let goes_to = GoesTo::Before(self.nodes.len());
        let level = 4 * (depth + 1);
        self.lone.push(Lone {
            key,
            from,
            level,
            goes_to,
        });
        Ok((nibble, [0; 32]))
    }

    fn stored(&self, way: &Path) -> Result<StoredLeaf, TreeError> {
        let stored = self.reader.leaves_below(&[*way])?.pop().flatten();
        stored.ok_or(TreeError::MissingLeaf(*way))
    }

    /// Operations whose ways end at a leaf of the tree after the batch, which may not have been there at first.
    fn end_at(&mut self, path: &Path, places: Range<usize>, leaf: &Leaf) -> Result<(), TreeError> {
        let level = 4 * path.len();
        let ordered = self.ordered;
        let of = |place: usize| ordered.at(place);
        // The key that has the leaf: one that is written or was there; else it is no operation's.
        let has =
            |place: &usize| of(*place).new.is_some() || self.before(&of(*place).key).is_some();
        let owner = places.clone().find(has).map(|place| of(place).key);
        let first = self.places.start;
        // Mostly one operation comes here, and the leaf is its own.
        if places.len() == 1 && owner.is_some() {
            if of(places.start).new.is_some() {
                self.states[places.start - first] = leaf.hash;
            }
            return Ok(());
        }
        // Operations on one key are in their order.
        let own = |place: &usize| Some(of(*place).key) == owner;
        let own: Vec<usize> = places.clone().filter(own).collect();
        let writes = |place: &&usize| of(**place).new.is_some();
        let last = own.iter().rev().find(writes);
        for place in &own {
            let Some(entry) = of(*place).new else {
                continue;
            };
            if Some(place) == last {
                self.states[place - first] = leaf.hash;
                continue;
            }
            self.lone.push(Lone {
                key: of(*place).key,
                from: From::Leaf(entry),
                level,
                goes_to: GoesTo::State(place - first),
            });
        }
        for place in places.filter(|place| Some(of(*place).key) != owner) {
            let (key, at) = (&of(place).key, ordered.order[place]);
            let goes_to = GoesTo::Beside(at);
            if let Some(owner) = owner {
                // What the leaf's key held at the time.
                let before = own.iter().rev();
                let mut before = before.filter(|own| ordered.order[**own] < at);
                let written = before.find_map(|own| of(*own).new);
                let entry = written.or_else(|| self.before(&owner));
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
                let stored = self.stored(&leaf.way(path))?;
                (stored.key, From::Leaf(stored.entry))
            } else {
                (leaf.known_key(), From::Fold(leaf.fold))
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
            hasher.fold(from, &mut chains);
            for (lone, chain) in some.iter().zip(chains) {
                let (level, hash) = (lone.level, chain.hash);
                match lone.goes_to {
                    GoesTo::State(place) => self.states[place] = hash,
                    GoesTo::Before(node) => {
                        if let Some(only) = &mut self.nodes[node].only {
                            only.1 = hash;
                        }
                    }
                    GoesTo::Beside(at) => self.beside.push((at, Beside { level, hash })),
                }
            }
        }
    }

    /// Goes up: the hashes beside each operation's way, from the top down. Leaves the states at the top.
    fn rise(&mut self) -> Vec<Level> {
        self.nodes.sort_by_key(|node| node.path.len());
        let same = |a: &Node<'_>, b: &Node<'_>| a.path.len() == b.path.len();
        let nodes = std::mem::take(&mut self.nodes);
        let (mut levels, mut rows) = (Vec::new(), Vec::new());
        for nodes in nodes.chunk_by(same).rev() {
            let chunks = chunks(nodes);
            let done: Vec<Chunk> = if chunks.len() < SPREAD {
                let done = chunks.iter().flat_map(|nodes| self.chunk(nodes, &mut rows));
                done.collect()
            } else {
                let done = chunks.par_iter();
                let done = done.map_init(Vec::new, |rows, nodes| self.chunk(nodes, rows));
                done.flatten_iter().collect()
            };
            let mut at = vec![NONE; self.places.len()];
            let (mut siblings, mut before) = (Vec::with_capacity(done.len()), 0);
            for chunk in done {
                for ((event, number), state) in chunk.events.iter().zip(before..).zip(&chunk.states)
                {
                    let place = event.place as usize;
                    at[place] = number;
                    self.states[place] = *state;
                }
                siblings.push((before, chunk.siblings));
                before += chunk.events.len() as u32;
            }
            levels.push(Level { at, siblings });
        }
        levels.reverse();
        levels
    }

    /// What operations make of nodes of one level, from what they make of their children.
    fn chunk(&self, nodes: &[Node<'_>], rows: &mut Vec<Rows>) -> Vec<Chunk> {
        let depth = nodes[0].path.len();
        let count = nodes.iter().map(|node| node.operations.len()).sum();
        let mut events: Vec<Event> = Vec::with_capacity(count);
        let mut within = Vec::with_capacity(nodes.len());
        make_room(rows, nodes.len());
        for (node, rows) in nodes.iter().zip(&mut *rows) {
            let start = events.len();
            let places = node.operations.clone();
            events.extend(places.map(|place| {
                let operation = self.ordered.at(place);
                Event {
                    number: self.ordered.order[place],
                    place: (place - self.places.start) as u32,
                    nibble: nibble_of(&operation.key, depth),
                    writes: operation.new.is_some(),
                }
            }));
            in_their_order(&mut events[start..]);
            within.push(Within {
                present: self.children(node, rows),
                events: start..events.len(),
            });
        }
        let from = height(depth + 1);
        match &within[..] {
            [one] if count > MANY => self.pieces(from, &events, one.present, &rows[0]),
            _ => vec![self.steps(from, events, &within, rows)],
        }
    }

    /// What very many operations make of one node: cut into pieces, each of which begins with what the last writes before it left of the children.
    fn pieces(&self, from: usize, events: &[Event], present: u16, rows: &Rows) -> Vec<Chunk> {
        let last = events.par_chunks(PIECE).map(|events| {
            let mut last = [None; 16];
            let writes = events.iter().filter(|event| event.writes);
            writes.for_each(|event| last[usize::from(event.nibble)] = Some(event.place));
            last
        });
        let last: Vec<[Option<u32>; 16]> = last.collect();
        let mut next = (present, *rows);
        let starts = last.into_iter().map(|last| {
            let start = next;
            for (child, place) in last.into_iter().enumerate() {
                if let Some(place) = place {
                    next.0 |= 1 << child;
                    next.1[child] = self.states[place as usize];
                }
            }
            start
        });
        let starts: Vec<(u16, Rows)> = starts.collect();
        let pieces = events.par_chunks(PIECE).zip(starts);
        let done = pieces.map(|(piece, (present, rows))| {
            let events = 0..piece.len();
            let within = [Within { present, events }];
            self.steps(from, piece.to_vec(), &within, &mut [rows])
        });
        done.collect()
    }

    /// What operations make of nodes whose children are at a height.
    fn steps(
        &self,
        from: usize,
        events: Vec<Event>,
        within: &[Within],
        rows: &mut [Rows],
    ) -> Chunk {
        self.fill(from, within, &events, rows);
        let states = events.iter().map(|e| self.states[e.place as usize]);
        let mut states: Vec<Hash> = states.collect();
        let mut siblings = [(); 4].map(|()| Vec::with_capacity(events.len()));
        let mut pairs = Vec::with_capacity(events.len());
        for step in 0..4 {
            pairs.clear();
            let beside = &mut siblings[3 - step];
            for (rows, Within { events: own, .. }) in rows.iter_mut().zip(within) {
                let row = &mut rows[row(step)];
                let own = events[own.clone()].iter().zip(&states[own.clone()]);
                for (event, state) in own {
                    let child = usize::from(event.nibble >> step);
                    beside.push(row[child ^ 1]);
                    if event.writes {
                        row[child] = *state;
                        pairs.push([row[child & !1], row[child | 1]]);
                    }
                }
            }
            let hashes = self.hasher.pairs(&pairs);
            let writes = events.iter().zip(&mut states);
            let writes = writes.filter(|(event, _)| event.writes);
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

    /// Sets the hashes of a node's children before the batch; returns which of them are there.
    fn children(&self, node: &Node<'_>, rows: &mut Rows) -> u16 {
        let mut present = 0;
        // It was looked at on the way down.
        let view = node
            .old
            .and_then(|record| View::new(&node.path, record).ok());
        let only = node.only.as_ref().map(|(nibble, hash)| (*nibble, hash));
        for (nibble, hash) in view.iter().flat_map(View::hashes).chain(only) {
            rows[usize::from(nibble)] = *hash;
            present |= 1 << nibble;
        }
        let empty = &self.hasher.empty()[height(node.path.len() + 1)];
        for (child, hash) in rows[row(0)].iter_mut().enumerate() {
            if present >> child & 1 == 0 {
                *hash = *empty;
            }
        }
        present
    }

    /// Sets the hashes within nodes at first above the children, as far as they lie beside the ways of operations, or below such.
    fn fill(&self, from: usize, within: &[Within], events: &[Event], rows: &mut [Rows]) {
        let empty = &self.hasher.empty()[from..];
        let of = |within: &Within| {
            let touched = events[within.events.clone()].iter();
            let touched = touched.fold(0, |set, event| set | 1 << event.nibble);
            (needed_rows(touched), within.present)
        };
        let mut needed: Vec<([u16; 4], u16)> = within.iter().map(of).collect();
        let (mut pairs, mut places) = (Vec::new(), Vec::new());
        for step in 0..3 {
            pairs.clear();
            places.clear();
            for (at, (rows, (needed, present))) in rows.iter_mut().zip(&mut needed).enumerate() {
                let below = *present;
                *present = above(below);
                let mut left = needed[step + 1];
                while left != 0 {
                    let i = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let (pair, to) = (row(step).start + 2 * i, row(step + 1).start + i);
                    if *present >> i & 1 == 0 {
                        rows[to] = empty[step + 1];
                    } else {
                        pairs.push([rows[pair], rows[pair + 1]]);
                        places.push((at, to));
                    }
                }
            }
            let hashes = self.hasher.pairs(&pairs);
            for ((at, to), hash) in places.iter().zip(hashes) {
                rows[*at][*to] = hash;
            }
        }
    }
}

/// The hashes of a node: those of its 16 children, then of the 8, 4 and 2 above them; where they are not [needed](needed_rows), anything.
type Rows = [Hash; 30];

/// Makes a list of so many, or more, whose hashes are yet to be set.
fn make_room(rows: &mut Vec<Rows>, count: usize) {
    if rows.len() < count {
        rows.resize(count, [[0; 32]; 30]);
    }
}

/// A node's operations among a list, and which of its children are there.
struct Within {
    present: u16,
    events: Range<usize>,
}

/// An operation within a node.
#[derive(Clone, Copy)]
struct Event {
    number: u32,
    /// Counted from the part's first.
    place: u32,
    nibble: u8,
    writes: bool,
}

/// What became of some nodes of a level, by operation: their operations one after the other, those of a node in their order.
struct Chunk {
    events: Vec<Event>,
    siblings: Siblings,
    states: Vec<Hash>,
}

/// Sorts the operations of a node, on all threads if they are many.
fn in_their_order(events: &mut [Event]) {
    if events.len() <= MANY {
        events.sort_unstable_by_key(|event| event.number);
    } else {
        events.par_sort_unstable_by_key(|event| event.number);
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
        all[step] = above(all[step - 1]);
    }
    let mut needed = [0; 4];
    for step in (0..4).rev() {
        let beside = (all[step] & 0x5555) << 1 | (all[step] >> 1) & 0x5555;
        let above = needed.get(step + 1).copied().unwrap_or(0);
        needed[step] = beside | below(above);
    }
    needed
}

/// The places of a row above these: bit `i` is set where bit `2i` or `2i + 1` is.
fn above(places: u16) -> u16 {
    let pairs = (places | places >> 1) & 0x5555;
    let fours = (pairs | pairs >> 1) & 0x3333;
    let eights = (fours | fours >> 2) & 0x0f0f;
    (eights | eights >> 4) & 0x00ff
}

/// The places of a row below these, of which there are eight.
fn below(places: u16) -> u16 {
    let eights = (places | places << 4) & 0x0f0f;
    let fours = (eights | eights << 2) & 0x3333;
    3 * ((fours | fours << 1) & 0x5555)
}

/// Nodes with some operations together.
fn chunks<'n, 'w>(nodes: &'n [Node<'w>]) -> Vec<&'n [Node<'w>]> {
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
