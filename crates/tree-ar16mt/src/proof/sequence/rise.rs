//! The way up: what operations make of a part's nodes, level by level.

use std::ops::Range;

use arbor_tree::nibble_of;
use rayon::prelude::*;

use super::{Level, NONE, Node, Sequence, Siblings};
use crate::record::View;
use crate::row::height;
use crate::work::Hashed;
use crate::{Hash, Hasher, Reader};

/// Operations, or nodes, that one thread takes at a time.
const CHUNK: usize = 256;
/// From so many chunks of a level on they are shared between all threads: parts, which have few, are shared already.
const SPREAD: usize = 12;
/// With more operations than this, those of one node are shared between all threads.
const MANY: usize = 1 << 12;
/// How many of these a thread takes at a time.
const PIECE: usize = 1 << 10;

impl<R: Reader, H: Hasher> Sequence<'_, '_, R, H> {
    /// Goes up: the hashes beside each operation's way, from the top down, and those of nodes that are written. Leaves the states at the top.
    pub(super) fn rise(&mut self) -> (Vec<Level>, Hashed) {
        self.nodes.sort_by_key(|node| node.path.len());
        let same = |a: &Node<'_>, b: &Node<'_>| a.path.len() == b.path.len();
        let nodes = std::mem::take(&mut self.nodes);
        let (mut levels, mut scratch) = (Vec::new(), Scratch::default());
        let mut hashed = Hashed::default();
        for nodes in nodes.chunk_by(same).rev() {
            let chunks = chunks(nodes);
            let done: Vec<Chunk> = if chunks.len() < SPREAD {
                let done = chunks
                    .iter()
                    .flat_map(|nodes| self.chunk(nodes, &mut scratch));
                done.collect()
            } else {
                let done = chunks.par_iter();
                let done = done.map_init(Scratch::default, |scratch, nodes| {
                    self.chunk(nodes, scratch)
                });
                done.flatten_iter().collect()
            };
            // All operations come to the root, and in their order.
            let is_root = nodes[0].path.is_empty();
            let mut at = vec![NONE; self.places.len()];
            let (mut siblings, mut before) = (Vec::with_capacity(done.len()), 0);
            for chunk in done {
                for ((event, number), state) in chunk.events.iter().zip(before..).zip(&chunk.states)
                {
                    let place = event.place as usize;
                    at[place] = number;
                    let to = if is_root { event.number } else { event.place };
                    self.states[to as usize] = *state;
                }
                hashed.nodes.extend(chunk.tops);
                hashed.hashes += chunk.hashes;
                siblings.push((before, chunk.siblings));
                before += chunk.events.len() as u32;
            }
            levels.push(Level { at, siblings });
        }
        levels.reverse();
        (levels, hashed)
    }

    /// What operations make of nodes of one level, from what they make of their children.
    fn chunk(&self, nodes: &[Node<'_>], scratch: &mut Scratch) -> Vec<Chunk> {
        let depth = nodes[0].path.len();
        let count = nodes.iter().map(|node| node.operations.len()).sum();
        let mut events: Vec<Event> = Vec::with_capacity(count);
        let mut within = Vec::with_capacity(nodes.len());
        make_room(&mut scratch.rows, nodes.len());
        for (node, rows) in nodes.iter().zip(&mut scratch.rows) {
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
            let needed = needed_rows(&events[start..]);
            within.push(Within {
                node: node.at,
                present: self.children(node, needed[0], rows),
                events: start..events.len(),
                needed,
            });
        }
        let from = height(depth + 1);
        match &within[..] {
            [one] if count > MANY => self.pieces(from, &events, one, &scratch.rows[0]),
            _ => vec![self.steps(from, events, &within, scratch)],
        }
    }

    /// What very many operations make of one node: cut into pieces, each of which begins with what the last writes before it left of the children.
    fn pieces(&self, from: usize, events: &[Event], node: &Within, rows: &Rows) -> Vec<Chunk> {
        let last = events.par_chunks(PIECE).map(|events| {
            let mut last = [None; 16];
            let writes = events.iter().filter(|event| event.writes);
            writes.for_each(|event| last[usize::from(event.nibble)] = Some(event.place));
            last
        });
        let last: Vec<[Option<u32>; 16]> = last.collect();
        let mut next = (node.present, *rows);
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
        let done = pieces.map_init(Scratch::default, |scratch, (piece, (present, rows))| {
            make_room(&mut scratch.rows, 1);
            scratch.rows[0] = rows;
            let within = [Within {
                node: node.node,
                present,
                events: 0..piece.len(),
                needed: needed_rows(piece),
            }];
            self.steps(from, piece.to_vec(), &within, scratch)
        });
        done.collect()
    }

    /// What operations make of nodes whose children are at a height.
    fn steps(
        &self,
        from: usize,
        events: Vec<Event>,
        within: &[Within],
        scratch: &mut Scratch,
    ) -> Chunk {
        let mut count = self.fill(from, within, scratch);
        let Scratch {
            rows,
            pairs,
            hashes,
            ..
        } = scratch;
        let states = events.iter().map(|e| self.states[e.place as usize]);
        let mut states: Vec<Hash> = states.collect();
        let mut siblings = [(); 4].map(|()| Vec::with_capacity(events.len()));
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
            self.hasher.pairs_into(pairs, hashes);
            count += hashes.len() as u64;
            let writes = events.iter().zip(&mut states);
            let writes = writes.filter(|(event, _)| event.writes);
            for ((_, state), hash) in writes.zip(&*hashes) {
                *state = *hash;
            }
        }
        let top = |within: &Within| {
            let own = within.events.clone();
            let last = own.rev().find(|event| events[*event].writes)?;
            Some((within.node, states[last]))
        };
        Chunk {
            tops: within.iter().filter_map(top).collect(),
            hashes: count,
            events,
            siblings,
            states,
        }
    }

    /// Sets the hashes of a node's children before the batch, those of empty ones as far as they are needed; returns which of them are there.
    fn children(&self, node: &Node<'_>, needed: u16, rows: &mut Rows) -> u16 {
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
        // In a node of many operations every piece needs others.
        let needed = match node.operations.len() {
            0..=MANY => needed,
            _ => u16::MAX,
        };
        for child in ones(needed & !present) {
            rows[child] = *empty;
        }
        present
    }

    /// Sets the hashes within nodes at first above the children, as far as they lie beside the ways of operations, or below such; returns how many were computed.
    fn fill(&self, from: usize, within: &[Within], scratch: &mut Scratch) -> u64 {
        let mut count = 0;
        let Scratch {
            rows,
            pairs,
            hashes,
            places,
        } = scratch;
        let empty = &self.hasher.empty()[from..];
        let mut present: Vec<u16> = within.iter().map(|within| within.present).collect();
        for step in 0..3 {
            pairs.clear();
            places.clear();
            let nodes = rows.iter_mut().zip(within).zip(&mut present);
            for (at, ((rows, Within { needed, .. }), present)) in nodes.enumerate() {
                *present = above(*present);
                for i in ones(needed[step + 1]) {
                    let (pair, to) = (row(step).start + 2 * i, row(step + 1).start + i);
                    if *present >> i & 1 == 0 {
                        rows[to] = empty[step + 1];
                    } else {
                        pairs.push([rows[pair], rows[pair + 1]]);
                        places.push((at, to));
                    }
                }
            }
            self.hasher.pairs_into(pairs, hashes);
            count += hashes.len() as u64;
            for ((at, to), hash) in places.iter().zip(&*hashes) {
                rows[*at][*to] = *hash;
            }
        }
        count
    }
}

/// The hashes of a node: those of its 16 children, then of the 8, 4 and 2 above them; where they are not [needed](needed_rows), anything.
type Rows = [Hash; 30];

/// What is used again from chunk to chunk.
#[derive(Default)]
struct Scratch {
    rows: Vec<Rows>,
    pairs: Vec<[Hash; 2]>,
    hashes: Vec<Hash>,
    /// Whose hashes are computed: which node's, and where among its rows.
    places: Vec<(usize, usize)>,
}

/// Makes a list of so many, or more, whose hashes are yet to be set.
fn make_room(rows: &mut Vec<Rows>, count: usize) {
    if rows.len() < count {
        rows.resize(count, [[0; 32]; 30]);
    }
}

/// A node's operations among a list, which of its children are there, and which hashes [are needed](needed_rows).
struct Within {
    /// Its number among the part's.
    node: usize,
    present: u16,
    events: Range<usize>,
    needed: [u16; 4],
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
    /// The nodes that are written, with their hashes after the last operation.
    tops: Vec<(usize, Hash)>,
    /// How many hashes were computed.
    hashes: u64,
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

/// By row what is beside a place that operations touch, or below what is needed.
fn needed_rows(events: &[Event]) -> [u16; 4] {
    let touched = events.iter().fold(0, |set, event| set | 1 << event.nibble);
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

/// The places of the bits that are set.
fn ones(mut places: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (places != 0).then_some(places.trailing_zeros() as usize);
        places &= places.wrapping_sub(1);
        place
    })
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
