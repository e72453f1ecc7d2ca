//! The way down: nodes are read, and leaves that come find their places.

use std::ops::Range;
use std::time::Instant;

use arbor_tree::{Path, ReadError, nibble_of};

use super::{
    Batch, FOLD_HEIGHT, Node, Pending, Place, Placed, Slot, Start, Visit, Work, malformed,
};
use crate::record::{self, RecordError, STEM_NIBBLES, View};
use crate::{Child, Entry, Hash, Hasher, Leaf, LeafUpdate, Reader, TreeError};

/// What leaves hold, by key.
type Held = std::iter::Peekable<std::vec::IntoIter<(Hash, Option<Entry>)>>;

impl<'a, R: Reader, H: Hasher> Work<'a, R, H> {
    /// Goes from a child down to everything that the updates change, but not below paths of `stop` nibbles, and, if there is a stop, not to where there are no
    /// nodes: what is to be done there is returned.
    pub(crate) fn descend(
        reader: &'a R,
        hasher: H,
        batch: Batch<'a>,
        top: Visit,
        stop: Option<usize>,
    ) -> Result<(Self, Vec<Visit>), TreeError> {
        let child = top.child.map(Slot::Child);
        let room = if stop.is_none() { top.updates.len() } else { 0 };
        let mut work = Self::new(reader, hasher, batch, (child, top.path), room);
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
        let (started, batch) = (Instant::now(), self.batch);
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
        // With a stop leaves are left to whoever goes on below it.
        let placed = visits.iter().filter(|_| stop.is_none());
        let mut held = self.held(placed)?;
        let read = Instant::now();
        self.stats.load += read - started;
        let mut next = Vec::with_capacity(visits.len());
        for visit in visits {
            let only_read = batch.only_reads(&visit);
            let (old, children) = match visit.child {
                _ if !goes_on(&visit) => {
                    left.push(visit);
                    continue;
                }
                Some(Child::Internal(_)) => {
                    let record = records.next().flatten();
                    let record = record.ok_or(TreeError::MissingNode(visit.path))?;
                    let children = match only_read {
                        true => on_ways(&visit, &record, batch.updates),
                        false => record::decode(&visit.path, &record, Slot::Child),
                    };
                    let children = children.map_err(|error| malformed(&visit.path, error))?;
                    (Some(record), children)
                }
                // The root is a node, whatever is below it.
                None if visit.path.is_empty() => (None, Vec::new()),
                _ if stop.is_some() => {
                    left.push(visit);
                    continue;
                }
                None => {
                    let slot = self.place(&visit, None, &mut held)?;
                    self.set(visit.place, slot);
                    continue;
                }
                Some(Child::Leaf(leaf)) => {
                    let slot = self.place(&visit, Some(leaf), &mut held)?;
                    self.set(visit.place, slot);
                    continue;
                }
            };
            let node = self.nodes.len();
            for (nibble, updates) in groups(batch.updates, visit.updates, visit.path.len()) {
                let found = children.binary_search_by_key(&nibble, |(nibble, _)| *nibble);
                next.push(Visit {
                    place: Place::Below(node, nibble),
                    path: visit.path.child(nibble),
                    child: found.ok().and_then(|at| children[at].1.child().copied()),
                    updates,
                });
            }
            self.nodes.push(Node {
                path: visit.path,
                place: visit.place,
                old,
                children,
                gone: false,
                only_read,
            });
            if !only_read {
                self.set(visit.place, Some(Slot::Node));
            }
        }
        self.stats.place += read.elapsed();
        Ok(next)
    }

    /// What the leaves hold that these visits may find, ascending by key: whatever is read or written, and, as far as their nodes know their keys, is there.
    fn held<'v>(&self, visits: impl Iterator<Item = &'v Visit>) -> Result<Held, TreeError> {
        let batch = self.batch;
        let mut keys = Vec::new();
        for visit in visits {
            let Some(Child::Leaf(leaf)) = &visit.child else {
                continue;
            };
            let asks = |at: &usize| batch.unread || batch.is_read(*at);
            let asking = visit.updates.clone().filter(asks);
            let asking = asking.map(|at| batch.updates[at].key);
            keys.extend(asking.filter(|key| key.starts_with(&leaf.stem)));
        }
        let entries = match keys.is_empty() {
            true => Vec::new(),
            false => self.reader.leaves(&keys)?,
        };
        if entries.len() != keys.len() {
            let what = format!("{} leaves", keys.len());
            let cause = format!("{} came back", entries.len()).into();
            return Err(ReadError { what, cause }.into());
        }
        let held: Vec<_> = keys.into_iter().zip(entries).collect();
        Ok(held.into_iter().peekable())
    }

    /// Places the updates below a place where there is a leaf or nothing.
    fn place(
        &mut self,
        visit: &Visit,
        leaf: Option<Leaf>,
        held: &mut Held,
    ) -> Result<Option<Slot>, TreeError> {
        let batch = self.batch;
        let mut placed = Vec::with_capacity(visit.updates.len() + 1);
        let mut there = leaf;
        for at in visit.updates.clone() {
            let update = &batch.updates[at];
            if batch.is_read(at) {
                if let Some(leaf) = &leaf {
                    self.finds(visit, update, leaf, held)?;
                }
                continue;
            }
            let existed = match &there {
                Some(leaf) if batch.unread => self.finds(visit, update, leaf, held)?,
                _ => update.existed && !batch.unread,
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
        if batch.counted {
            self.arrive(visit.path.len(), &placed);
        }
        Ok(self.subtree(visit.place, visit.path, &placed))
    }

    /// Whether an update's leaf is the one that is there.
    fn finds(
        &mut self,
        visit: &Visit,
        update: &LeafUpdate,
        leaf: &Leaf,
        held: &mut Held,
    ) -> Result<bool, TreeError> {
        if !update.key.starts_with(&leaf.stem) {
            return Ok(false);
        }
        while held.next_if(|(key, _)| *key < update.key).is_some() {}
        let asked = held.next_if(|(key, _)| *key == update.key);
        let (_, entry) = asked.ok_or(TreeError::MissingLeaf(visit.path))?;
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
            let way = [leaf.way(&visit.path)];
            let stored = self.reader.leaves_below(&way)?.pop().flatten();
            let stored = stored.ok_or(TreeError::MissingLeaf(visit.path))?;
            (stored.key, Start::Entry(stored.entry))
        } else {
            (leaf.known_key(), Start::At(leaf.fold, FOLD_HEIGHT))
        };
        let at = placed.partition_point(|placed| placed.key < key);
        if placed.get(at).is_some_and(|placed| placed.key == key) {
            return Err(TreeError::Present(key));
        }
        let is_new = false;
        placed.insert(at, Placed { key, start, is_new });
        Ok(())
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
}

/// The children of a node through which the ways of updates lead.
fn on_ways(
    visit: &Visit,
    record: &[u8],
    updates: &[LeafUpdate],
) -> Result<Vec<(u8, Slot)>, RecordError> {
    let view = View::new(&visit.path, record)?;
    let mut children = Vec::new();
    for (nibble, _) in groups(updates, visit.updates.clone(), visit.path.len()) {
        if let Some(child) = view.child(nibble)? {
            children.push((nibble, Slot::Child(child)));
        }
    }
    Ok(children)
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
