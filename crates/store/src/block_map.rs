//! An ordered map of many keys, for writes that come sorted and many at a time.

use std::iter::Peekable;
use std::sync::Arc;

use arbor_cpu::prefetch;

use crate::{ShortKey, Value};

/// Most keys are a hash, or a hash and a little more.
pub(crate) type Key = ShortKey<39>;

/// Entries of a block above which it is cut, where its writes end or leave a half behind.
const MOST: usize = 64;
/// Blocks that come or go with a call from which on all are listed anew.
const FEW: usize = 8;
/// By how many entries a block's memory grows: blocks are many, so that what they do not use counts.
const GROWTH: usize = 8;
/// Blocks ahead of the one at hand whose place in memory is asked for, and whose entries are.
const AHEAD: [usize; 2] = [8, 4];

/// Ascending by key; at most [`MOST`] and a half.
type Block = Vec<(Key, Value)>;

/// An ordered map in blocks of some tens of entries.
///
/// Where a `BTreeMap` of millions of keys waits for memory on each of its lowest levels, and for every key anew, sorted writes here go from block to block,
/// of which the next ones are known and fetched meanwhile. A clone shares all blocks; a write then copies
/// those that it changes.
#[derive(Clone, Default, Debug)]
pub(crate) struct BlockMap {
    /// The leading bytes of each block's first key: few enough to stay in a cache.
    firsts: Vec<u64>,
    /// Not empty, ascending, and so are they.
    blocks: Vec<Arc<Block>>,
}

/// A place in a map: a block, and an entry of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    block: usize,
    entry: usize,
}

impl BlockMap {
    pub(crate) fn get(&self, key: &Key) -> Option<&Value> {
        let block = self.blocks.get(self.block_of(key, 0))?;
        let at = block.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
        Some(&block[at].1)
    }

    /// The place of the first key that is not below `key`.
    pub(crate) fn lower_bound(&self, key: &Key) -> Place {
        let block = self.block_of(key, 0);
        let entries = self.blocks.get(block).map_or(&[][..], |block| &block[..]);
        let entry = entries.partition_point(|(other, _)| other < key);
        Place { block, entry }
    }

    /// The entry at a place, or the next one where its block has no more; and the place behind it.
    pub(crate) fn entry_at(&self, place: Place) -> Option<(&(Key, Value), Place)> {
        let Place { block, entry } = place;
        let found = match self.blocks.get(block)?.get(entry) {
            Some(found) => (found, block, entry),
            None => (self.blocks.get(block + 1)?.first()?, block + 1, 0),
        };
        let (found, block, entry) = found;
        let entry = entry + 1;
        Some((found, Place { block, entry }))
    }

    /// Sets keys to values, or removes them, where there is none. The keys ascend strictly.
    pub(crate) fn put_all(&mut self, writes: impl Iterator<Item = (Key, Option<Value>)>) {
        let mut writes = writes.peekable();
        // Blocks that come before the one with this number.
        let mut cut: Vec<(usize, Arc<Block>)> = Vec::new();
        let mut emptied = Vec::new();
        let mut at = 0;
        while let Some((key, _)) = writes.peek() {
            if self.blocks.is_empty() {
                self.firsts.push(key.leading());
                self.blocks.push(Arc::default());
            }
            at = self.block_of(key, at);
            self.fetch_ahead(at);
            let (here, behind) = self.blocks[at..].split_at_mut(1);
            let end = behind.first().and_then(|block| block.first());
            let block = Arc::make_mut(&mut here[0]);
            put_into(block, &mut writes, end.map(|(key, _)| key), &mut |full| {
                cut.push((at, Arc::new(full)));
            });
            match block.first() {
                Some((key, _)) => self.firsts[at] = key.leading(),
                None => emptied.push(at),
            }
        }
        if cut.len() + emptied.len() < FEW {
            self.take_in_few(cut, &emptied);
        } else {
            self.take_in(cut);
        }
    }

    /// The number of the block that has a key or would have it, if it is none of those before `from`; zero if there are none at all.
    fn block_of(&self, key: &Key, from: usize) -> usize {
        let leading = key.leading();
        let (low, same) = run_of(&self.firsts[from..], leading);
        let (low, ties) = (from + low, &self.blocks[from + low..from + low + same]);
        // Of a block that was emptied nothing is known but that it does not come later.
        let is_before = |block: &Arc<Block>| block.first().is_none_or(|(first, _)| first <= key);
        let behind = low + ties.partition_point(is_before);
        behind.saturating_sub(1).max(from)
    }

    /// Asks for what is needed some blocks later, if writes are dense: otherwise it is not needed, and costs little.
    fn fetch_ahead(&self, at: usize) {
        let [places, entries] = AHEAD.map(|ahead| self.blocks.get(at + ahead));
        if let Some(block) = places {
            prefetch(&**block);
        }
        for (key, _) in entries.iter().flat_map(|block| block.iter().step_by(8)) {
            prefetch(key);
        }
    }

    /// Takes in blocks that were cut off, each before the one with its number, and leaves out those that are empty.
    fn take_in_few(&mut self, cut: Vec<(usize, Arc<Block>)>, emptied: &[usize]) {
        let mut emptied = emptied.iter().rev().copied().peekable();
        for (at, block) in cut.into_iter().rev() {
            while let Some(empty) = emptied.next_if(|empty| *empty >= at) {
                self.remove(empty);
            }
            self.firsts.insert(at, leading_of(&block));
            self.blocks.insert(at, block);
        }
        emptied.for_each(|empty| self.remove(empty));
    }

    fn remove(&mut self, at: usize) {
        self.firsts.remove(at);
        self.blocks.remove(at);
    }

    /// The same, for many at once: all blocks are listed anew.
    fn take_in(&mut self, cut: Vec<(usize, Arc<Block>)>) {
        let count = self.blocks.len() + cut.len();
        let (mut firsts, mut blocks) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut cut = cut.into_iter().peekable();
        let old = self.firsts.drain(..).zip(self.blocks.drain(..));
        for (at, (first, block)) in old.enumerate() {
            while let Some((_, before)) = cut.next_if(|(place, _)| *place == at) {
                firsts.push(leading_of(&before));
                blocks.push(before);
            }
            if !block.is_empty() {
                firsts.push(first);
                blocks.push(block);
            }
        }
        (self.firsts, self.blocks) = (firsts, blocks);
    }
}

/// The leading bytes of a block's first key.
fn leading_of(block: &Block) -> u64 {
    block.first().map_or(0, |(key, _)| key.leading())
}

/// Puts those writes into a block whose keys are below `end`. Where it grows too long, what is finished is cut off and given to `full`, lowest keys first.
fn put_into(
    block: &mut Block,
    writes: &mut Peekable<impl Iterator<Item = (Key, Option<Value>)>>,
    end: Option<&Key>,
    full: &mut dyn FnMut(Block),
) {
    let is_here = |write: &(Key, Option<Value>)| end.is_none_or(|end| write.0 < *end);
    let mut from = 0;
    while let Some((key, value)) = writes.next_if(is_here) {
        let place = block[from..].binary_search_by(|(other, _)| other.cmp(&key));
        match (place, value) {
            (Ok(at), Some(value)) => block[from + at].1 = value,
            (Ok(at), None) => drop(block.remove(from + at)),
            (Err(at), Some(value)) => {
                if block.len() == block.capacity() {
                    block.reserve_exact(GROWTH);
                }
                block.insert(from + at, (key, value));
            }
            (Err(_), None) => {}
        }
        from += place.unwrap_or_else(|at| at);
        // After the last write halves are better, which leave room for others on both sides.
        if block.len() > MOST && from >= MOST / 2 && writes.peek().is_some_and(is_here) {
            let rest = block.split_off(from);
            full(std::mem::replace(block, rest));
            from = 0;
        }
    }
    if block.len() > MOST {
        let rest = block.split_off(block.len() / 2);
        full(std::mem::replace(block, rest));
    }
}

/// Where in ascending numbers those begin that are not below `wanted`, and how many of them are equal to it. Near the beginning it is found soonest.
fn run_of(numbers: &[u64], wanted: u64) -> (usize, usize) {
    let behind = |is_before: &dyn Fn(&u64) -> bool| {
        let mut length = 1;
        while numbers.get(length - 1).is_some_and(is_before) {
            length *= 2;
        }
        let reached = length / 2;
        let end = length.min(numbers.len());
        reached + numbers[reached..end].partition_point(is_before)
    };
    let low = behind(&|number| *number < wanted);
    match numbers.get(low) {
        Some(number) if *number == wanted => (low, behind(&|number| *number <= wanted) - low),
        _ => (low, 0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    type Model = BTreeMap<Vec<u8>, Value>;

    /// Keys of which many begin alike, so that blocks' leading bytes are the same.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        (0..3usize, 0..400u16, 0..4usize).prop_map(|(zeros, number, tail)| {
            let mut key = vec![0; 8 * zeros];
            key.extend(number.to_be_bytes());
            key.extend(vec![1; 15 * tail]);
            key
        })
    }

    fn all(map: &BlockMap, from: &[u8]) -> Vec<(Vec<u8>, Value)> {
        let mut place = map.lower_bound(&Key::new(from));
        std::iter::from_fn(|| {
            let ((key, value), next) = map.entry_at(place)?;
            place = next;
            Some((key.to_bytes().into(), value.clone()))
        })
        .collect()
    }

    fn holds(map: &BlockMap, model: &Model, probes: &[Vec<u8>]) -> Result<(), TestCaseError> {
        let expected: Vec<_> = model.clone().into_iter().collect();
        prop_assert_eq!(all(map, b""), expected);
        for probe in probes {
            prop_assert_eq!(map.get(&Key::new(probe)), model.get(probe));
            let expected = model.range(probe.clone()..);
            let expected: Vec<_> = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
            prop_assert_eq!(all(map, probe), expected);
        }
        prop_assert!(map.blocks.iter().all(|block| !block.is_empty()));
        prop_assert!(
            map.blocks
                .iter()
                .all(|block| block.len() <= MOST + MOST / 2)
        );
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn it_is_an_ordered_map(
            rounds in vec(vec((key(), proptest::option::weighted(0.7, 0..9u8)), 0..300), 1..12),
            probes in vec(key(), 1..8),
        ) {
            let (mut map, mut model) = (BlockMap::default(), Model::new());
            for round in rounds {
                let (shared, before) = (map.clone(), model.clone());
                let sorted: BTreeMap<Vec<u8>, Option<u8>> = round.into_iter().collect();
                let value = |value: Option<u8>| value.map(|value| Value::from([value]));
                map.put_all(sorted.iter().map(|(key, of)| (Key::new(key), value(*of))));
                for (key, of) in sorted {
                    match value(of) {
                        Some(value) => model.insert(key, value),
                        None => model.remove(&key),
                    };
                }
                holds(&map, &model, &probes)?;
                holds(&shared, &before, &probes)?;
            }
        }
    }

    /// Key by key, in whatever order they come, blocks are filled as by many at once. Of keys behind a full block, each below the one before, each was once given a block of its own.
    #[test]
    fn single_writes_leave_few_blocks() {
        let number = |number: u64| Key::new(&number.to_be_bytes());
        let value = || Some(Value::from([7]));
        let orders: [&dyn Fn(u64) -> u64; 3] = [&|i| i, &|i| u64::MAX - i, &|i| i.reverse_bits()];
        for order in orders {
            let mut map = BlockMap::default();
            map.put_all((0..64).map(|i| (number(i), value())));
            for i in 64..5_000 {
                map.put_all(std::iter::once((number(order(i)), value())));
            }
            let (blocks, keys) = (map.blocks.len(), all(&map, b"").len());
            assert!(blocks <= keys / 16 + 2, "{blocks} blocks of {keys} keys");
        }
    }

    #[test]
    fn runs_are_found_wherever_they_are() {
        let numbers = [1, 3, 3, 3, 5, 5, 9, 9, 9, 9, 9, 12];
        for length in 0..=numbers.len() {
            let numbers = &numbers[..length];
            for wanted in 0..14 {
                let low = numbers.iter().filter(|number| **number < wanted).count();
                let same = numbers.iter().filter(|number| **number == wanted).count();
                assert_eq!(
                    run_of(numbers, wanted),
                    (low, same),
                    "{wanted} in {numbers:?}"
                );
            }
        }
    }
}
