//! The hashes that a part of the tree goes through while operations change it one after the other.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arbor_hashing::blake2s::Chain;
use arbor_tree::{Path, nibble_of};

use super::operation::{Operation, Outcome};
use super::prove::shared_bits;
use crate::apply::Seen;
use crate::record::{STEM_NIBBLES, View};
use crate::work::{Hashed, Node as Changed, Place, Work};
use crate::{CHECKPOINT, Child, DEPTH, Entry, Hash, Hasher, Leaf, Reader, StoredLeaf, TreeError};

mod rise;

/// No event, or no node.
const NONE: u32 = u32::MAX;

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
    /// By place, counted from the first, what the operation found, if there are no parts below.
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
        if let Some(part) = self.part_below(place) {
            siblings.extend(part.siblings(place));
        }
        siblings
    }

    /// The states at the top: those of the root by operation, any other's by place.
    pub(crate) fn take_states(&mut self) -> Vec<Hash> {
        std::mem::take(&mut self.states)
    }

    /// What the operation at a place found.
    pub(crate) fn outcome(&self, place: usize) -> Outcome {
        match self.part_below(place) {
            Some(part) => part.outcome(place),
            None => self.outcomes[place - self.places.start],
        }
    }

    /// The part below that an operation's way goes through, if there are parts below.
    fn part_below(&self, place: usize) -> Option<&Self> {
        let below = self.below.partition_point(|part| part.places.end <= place);
        self.below.get(below)
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
    /// Its number among the part's.
    at: usize,
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
    before: &'w [(Hash, Entry)],
    /// By place, counted from the first, what the operation finds, if all operations end here.
    outcomes: Vec<Outcome>,
    nodes: Vec<Node<'w>>,
    /// By place, counted from the first, the hash where the operation is under way, after it, as far as it writes.
    states: Vec<Hash>,
    lone: Vec<Lone>,
    beside: Vec<(u32, Beside)>,
}

/// Goes through a part's operations one after the other, in effect. What the last of them makes of a node is the node's hash.
pub(crate) fn pass<R: Reader, H: Hasher>(
    reader: &R,
    hasher: H,
    ordered: Ordered<'_>,
    seen: Seen<'_, '_, R, H, Passed>,
) -> Result<(Passed, Hashed), TreeError> {
    let Seen {
        work,
        updates,
        old,
        mut below,
    } = seen;
    let place = |update: usize| ordered.starts[update] as usize;
    let places = place(updates.start)..place(updates.end);
    let mut sequence = Sequence {
        reader,
        hasher,
        ordered,
        before: work.found(),
        outcomes: Vec::new(),
        nodes: Vec::with_capacity(work.nodes().len()),
        states: Vec::with_capacity(places.len()),
        lone: Vec::new(),
        beside: Vec::new(),
        places: places.clone(),
    };
    let all_end_here = below.is_empty();
    if all_end_here {
        sequence.outcomes = sequence.outcomes();
        sequence.states.resize(places.len(), [0; 32]);
    } else {
        below
            .iter_mut()
            .for_each(|part| sequence.states.append(&mut part.states));
    }
    sequence.gather(work, old, all_end_here)?;
    sequence.fold_lone();
    let (levels, hashed) = sequence.rise();
    let passed = Passed {
        places,
        levels,
        outcomes: sequence.outcomes,
        states: sequence.states,
        beside: sequence.beside,
        below,
    };
    Ok((passed, hashed))
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
        let mut before = self.before.iter().peekable();
        let (mut key, mut holds) = (None, None);
        for operation in &self.ordered.operations[self.places.clone()] {
            if key != Some(&operation.key) {
                key = Some(&operation.key);
                while before.next_if(|(key, _)| *key < operation.key).is_some() {}
                let found = before.next_if(|(key, _)| *key == operation.key);
                holds = found.map(|(_, entry)| *entry);
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
        for (at, node) in work.nodes().iter().enumerate() {
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
                    let Node {
                        path, operations, ..
                    } = &self.nodes[parent];
                    (self.narrowed(path.len(), operations, nibble), old)
                }
            };
            let only = match &old {
                Old::Leaf(leaf) => Some(self.old_leaf(node, leaf)?),
                Old::Nothing | Old::Node => None,
            };
            if all_end_here {
                self.ends(node, &operations)?;
            }
            olds.push(old);
            self.nodes.push(Node {
                at,
                path: node.path,
                operations,
                old: node.old.as_ref(),
                only,
            });
        }
        match work.top_leaf() {
            Some(leaf) if all_end_here => self.end_at(&work.top_path(), self.places.clone(), leaf),
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

    /// The places of operations of a node at a depth that go on under a nibble.
    fn narrowed(&self, depth: usize, operations: &Range<usize>, nibble: u8) -> Range<usize> {
        let nibble_at = |operation: &Operation| nibble_of(&operation.key, depth);
        let all = &self.ordered.operations[operations.clone()];
        let first = all.partition_point(|operation| nibble_at(operation) < nibble);
        let count = all[first..].partition_point(|operation| nibble_at(operation) == nibble);
        let start = operations.start + first;
        start..start + count
    }

    /// The operations whose ways end at a leaf below a node.
    fn ends(&mut self, node: &Changed, operations: &Range<usize>) -> Result<(), TreeError> {
        let (depth, mut rest) = (node.path.len(), operations.clone());
        for (nibble, leaf) in node.leaves() {
            let places = self.narrowed(depth, &rest, nibble);
            rest.start = places.end;
            if !places.is_empty() {
                self.end_at(&node.path.child(nibble), places, leaf)?;
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
        let first = self.places.start;
        // The key that has the leaf: one that is written or was there; else it is no operation's.
        let has = |place: &usize| !matches!(self.outcomes[place - first], Outcome::ReadMissing);
        let owner = places.clone().find(has).map(|place| of(place).key);
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
}

fn view<'a>(path: &'a Path, record: &'a [u8]) -> Result<View<'a>, TreeError> {
    let path_of = *path;
    View::new(path, record).map_err(|error| TreeError::Record {
        path: path_of,
        error,
    })
}
