//! The way up: what operations make of a part's nodes, level by level.

use arbor_cpu::threads::prelude::*;
use std::ops::Range;

use arbor_tree::nibble_of;

use super::{Level, NONE, Node, Sequence, Siblings};
use crate::record::View;
use crate::row::height;
use crate::work::{Hashed, leading};
use crate::{Hash, Hasher, Reader};

/// Operations, or nodes, that one thread takes at a time.
const CHUNK: usize = 256;
/// From so many chunks of a level on they are shared between all threads: parts, which have few, are shared already.
const SPREAD: usize = 12;
/// With more operations than this, those of one node are shared between all threads.
const MANY: usize = 1 << 12;
/// How many of these a thread takes at a time.
const PIECE: usize = 1 << 10;
/// Nibbles of a key that lie beside its operation.
const LEADING: usize = 16;

impl<R: Reader, H: Hasher> Sequence<'_, '_, R, H> {
    /// Goes up: the hashes beside each operation's way, from the top down, and those of nodes that are written. Leaves the states at the top.
    pub(super) fn rise(&mut self) -> (Vec<Level>, Hashed) {
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.sort_unstable_by_key(|node| (node.path.len(), node.operations.start));
        let same = |a: &Node<'_>, b: &Node<'_>| a.path.len() == b.path.len();
        let (mut levels, mut scratch) = (Vec::new(), Scratch::default());
        let (ways, mut at_node) = (self.ways(), vec![NONE; self.places.len()]);
        let mut hashed = Hashed::default();
        for nodes in nodes.chunk_by(same).rev() {
            let events = self.events(nodes, &ways, &mut at_node);
            let chunks = chunks(nodes, &events);
            let done: Vec<Chunk> = if chunks.len() < SPREAD {
                let chunks = chunks.into_iter();
                let done =
                    chunks.flat_map(|(nodes, events)| self.chunk(nodes, events, &mut scratch));
                done.collect()
            } else {
                let done = chunks.into_par_iter();
                let done = done.map_init(Scratch::default, |scratch, (nodes, events)| {
                    self.chunk(nodes, events, scratch)
                });
                done.flatten_iter().collect()
            };
            // All operations come to the root, and in their order.
            let is_root = nodes[0].path.is_empty();
            let mut at = vec![NONE; self.places.len()];
            let (mut siblings, mut before) = (Vec::with_capacity(done.len()), 0);
            for chunk in done {
                let own = (before..)
                    .zip(&events[before as usize..])
                    .zip(&chunk.states);
                for ((number, event), state) in own {
                    at[event.place as usize] = number;
                    let to = if is_root { number } else { event.place };
                    self.states[to as usize] = *state;
                }
                hashed.nodes.extend(chunk.tops);
                hashed.hashes += chunk.hashes;
                siblings.push((before, chunk.siblings));
                before += chunk.states.len() as u32;
            }
            levels.push(Level { at, siblings });
        }
        levels.reverse();
        (levels, hashed)
    }

    /// The part's operations, in their order.
    fn ways(&self) -> Vec<Way> {
        let operations = &self.ordered.operations[self.places.clone()];
        let numbers = &self.ordered.order[self.places.clone()];
        let ways = (0..).zip(operations).zip(numbers);
        let mut ways: Vec<Way> = ways
            .map(|((place, operation), number)| Way {
                number: *number,
                place,
                leading: leading(&operation.key),
                writes: operation.new.is_some(),
            })
            .collect();
        if ways.len() <= MANY {
            ways.sort_unstable_by_key(|way| way.number);
        } else {
            ways.par_sort_unstable_by_key(|way| way.number);
        }
        ways
    }

    /// The operations of a level's nodes, node by node, those of a node in their order. `at_node` is used again from level to level.
    fn events(&self, nodes: &[Node<'_>], ways: &[Way], at_node: &mut [u32]) -> Vec<Event> {
        let depth = nodes[0].path.len();
        let mut next = Vec::with_capacity(nodes.len());
        let mut count = 0;
        at_node.fill(NONE);
        for (node, Node { operations, .. }) in (0..).zip(nodes) {
            let first = operations.start - self.places.start;
            at_node[first..first + operations.len()].fill(node);
            next.push(count);
            count += operations.len();
        }
        let mut events = vec![Event::default(); count];
        for way in ways {
            let Some(next) = next.get_mut(at_node[way.place as usize] as usize) else {
                continue;
            };
            let nibble = match depth {
                0..LEADING => (way.leading >> (60 - 4 * depth)) as u8 & 15,
                _ => nibble_of(
                    &self.ordered.at(self.places.start + way.place as usize).key,
                    depth,
                ),
            };
            events[*next] = Event {
                place: way.place,
                nibble,
                writes: way.writes,
            };
            *next += 1;
        }
        events
    }

    /// What operations make of nodes of one level, from what they make of their children.
    fn chunk(&self, nodes: &[Node<'_>], events: &[Event], scratch: &mut Scratch) -> Vec<Chunk> {
        let mut within = Vec::with_capacity(nodes.len());
        make_room(&mut scratch.rows, nodes.len(), [[0; 32]; 30]);
        let mut start = 0;
        for (node, rows) in nodes.iter().zip(&mut scratch.rows) {
            let own = start..start + node.operations.len();
            start = own.end;
            let needed = needed_rows(&events[own.clone()]);
            within.push(Within {
                node: node.at,
                present: self.children(node, needed[0], rows),
                events: own,
                needed,
            });
        }
        let from = height(nodes[0].path.len() + 1);
        match &within[..] {
            [one] if events.len() > MANY => self.pieces(from, events, one, &scratch.rows[0]),
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
            make_room(&mut scratch.rows, 1, [[0; 32]; 30]);
            scratch.rows[0] = rows;
            let within = [Within {
                node: node.node,
                present,
                events: 0..piece.len(),
                needed: needed_rows(piece),
            }];
            self.steps(from, piece, &within, scratch)
        });
        done.collect()
    }

    /// What operations make of nodes whose children are at a height.
    fn steps(
        &self,
        from: usize,
        events: &[Event],
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
        make_room(pairs, events.len(), [[0; 32]; 2]);
        let states = events.iter().map(|e| self.states[e.place as usize]);
        let mut states: Vec<Hash> = states.collect();
        let mut siblings = [(); 4].map(|()| Vec::with_capacity(events.len()));
        for step in 0..4 {
            let (beside, mut made) = (&mut siblings[3 - step], 0);
            for (rows, Within { events: own, .. }) in rows.iter_mut().zip(within) {
                let row = &mut rows[row(step)];
                let own = events[own.clone()].iter().zip(&states[own.clone()]);
                beside.extend(own.map(|(event, state)| {
                    let child = usize::from(event.nibble >> step);
                    if event.writes {
                        row[child] = *state;
                        pairs[made] = [row[child & !1], row[child | 1]];
                        made += 1;
                    }
                    row[child ^ 1]
                }));
            }
            self.hasher.pairs_into(&pairs[..made], hashes);
            count += made as u64;
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
        make_room(pairs, 8 * within.len(), [[0; 32]; 2]);
        let empty = &self.hasher.empty()[from..];
        let mut present: Vec<u16> = within.iter().map(|within| within.present).collect();
        for step in 0..3 {
            places.clear();
            let nodes = rows.iter_mut().zip(within).zip(&mut present);
            for (at, ((rows, Within { needed, .. }), present)) in nodes.enumerate() {
                *present = above(*present);
                for i in ones(needed[step + 1]) {
                    let (pair, to) = (row(step).start + 2 * i, row(step + 1).start + i);
                    if *present >> i & 1 == 0 {
                        rows[to] = empty[step + 1];
                    } else {
                        pairs[places.len()] = [rows[pair], rows[pair + 1]];
                        places.push((at, to));
                    }
                }
            }
            self.hasher.pairs_into(&pairs[..places.len()], hashes);
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

/// Makes a list one of so many, or more, which are yet to be set.
fn make_room<T: Clone>(list: &mut Vec<T>, count: usize, unset: T) {
    if list.len() < count {
        list.resize(count, unset);
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

/// Where an operation goes.
struct Way {
    number: u32,
    /// Counted from the part's first.
    place: u32,
    /// The first [`LEADING`] nibbles of its key.
    leading: u64,
    writes: bool,
}

/// An operation within a node.
#[derive(Clone, Copy, Default)]
struct Event {
    /// Counted from the part's first.
    place: u32,
    nibble: u8,
    writes: bool,
}

/// What became of some nodes of a level, by operation: their operations one after the other, those of a node in their order.
struct Chunk {
    siblings: Siblings,
    states: Vec<Hash>,
    /// The nodes that are written, with their hashes after the last operation.
    tops: Vec<(usize, Hash)>,
    /// How many hashes were computed.
    hashes: u64,
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

/// Nodes with some operations together, and these.
fn chunks<'n, 'w, 'e>(
    nodes: &'n [Node<'w>],
    mut events: &'e [Event],
) -> Vec<(&'n [Node<'w>], &'e [Event])> {
    let (mut chunks, mut start, mut count) = (Vec::new(), 0, 0);
    for (at, node) in nodes.iter().enumerate() {
        count += node.operations.len();
        if count >= CHUNK || at + 1 == nodes.len() {
            let (own, others) = events.split_at(count);
            chunks.push((&nodes[start..=at], own));
            (events, start, count) = (others, at + 1, 0);
        }
    }
    chunks
}
