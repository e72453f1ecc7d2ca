//! A hash map whose entries lie in blocks that never move, and of which many are found at once.
//!
//! The table that finds an entry holds eight bytes for each, not the entry: tables grow by doubling, are up to half empty, and are twice there while they grow, which for
//! entries of a hundred bytes is most of what a map takes. Those eight bytes are half of the key's hash and the entry's place, so that the table grows without a look at the entries.
//!
//! What is looked up lies anywhere in memory: the table, the entry and its value are waited for one after the other. [`Hashed::warm`] has the processor fetch those of many keys
//! side by side.
//!
//! A hash table of a crate (`hashbrown`) stood here before, and does neither. Its entries for two blocks of 150,000 leaves took 45 MB, and both sizes at once while it grew. Finding
//! many keys at once took the replay of 1,000 blocks from 15.9 to 14.2 s of the processor (docs/measurements/replay.md, "Unflushed maps").

use std::hash::BuildHasher;
use std::hint::black_box;

use arbor_store::{ShortKey, Value};
use foldhash::fast::RandomState;

use crate::changes::New;
use crate::slot::{Base, Change, Slot};

/// Entries of a block.
const BLOCK: usize = 1 << 9;
/// Keys that are best [warmed](Hashed::warm) at once: more than fetches that a core has under way, few enough for its first cache.
pub(crate) const KEYS_WARMED_TOGETHER: usize = 24;
/// The least length of a table that is not empty.
const LEAST: usize = 64;
/// A word of the table for what was removed. No entry has its place.
const REMOVED: u64 = u32::MAX as u64;
/// Bytes that are fetched at once.
const LINE: usize = 64;

type Blocks<const N: usize> = Vec<Vec<(ShortKey<N>, Slot)>>;

/// Keys and what they hold, in no order. Of most keys no more than `N` bytes are to be expected.
#[derive(Clone, Default, Debug)]
pub(crate) struct Hashed<const N: usize> {
    /// Open addressing with linear probing from the upper bits of the hash: the upper half of the hash, then the place plus one; 0 if nothing was ever here.
    /// Empty or of a power of two.
    table: Vec<u64>,
    /// Words of the table that are not 0.
    used: usize,
    len: usize,
    /// All blocks but the last are full. What was removed is absent and without a value until its place is taken again.
    blocks: Blocks<N>,
    /// Places of what was removed.
    vacant: Vec<u32>,
    hasher: RandomState,
}

fn entry_at<const N: usize>(blocks: &Blocks<N>, word: u64) -> &(ShortKey<N>, Slot) {
    let place = place(word);
    &blocks[place / BLOCK][place % BLOCK]
}

fn place(word: u64) -> usize {
    word as u32 as usize - 1
}

/// The bits of a hash that a word keeps.
fn tag(hash: u64) -> u64 {
    hash & !u64::from(u32::MAX)
}

/// Brings entries, at most [`KEYS_WARMED_TOGETHER`], and the beginnings of what they hold into the processor's caches, each step's reads side by side.
pub(crate) fn fetch<'e, const N: usize>(
    entries: impl Iterator<Item = (&'e ShortKey<N>, &'e Slot)> + Clone,
) {
    // An entry lies in two lines.
    let lines = entries
        .clone()
        .map(|(key, slot)| key.leading().wrapping_add(slot.base as u64));
    black_box(lines.fold(0, u64::wrapping_add));
    let values = entries.filter_map(|(_, slot)| slot.value.as_ref()?.first());
    black_box(values.fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
}

fn is_removed(slot: &Slot) -> bool {
    slot.value.is_none() && slot.base == Base::Absent
}

/// Puts a value into an old one's place, and into its memory if that is nobody else's: what is overwritten was read lately, where memory
/// allocated in its stead would be what has not been used for longest.
fn replace(old: &mut Option<Value>, new: Option<New<'_>>) {
    if let (Some(old), Some(new)) = (old.as_mut(), &new)
        && old.len() == new.bytes().len()
        && let Some(bytes) = Value::get_mut(old)
    {
        bytes.copy_from_slice(new.bytes());
    } else {
        *old = new.map(New::into_value);
    }
}

impl<const N: usize> Hashed<N> {
    /// Makes an empty one whose table need not grow for so many entries.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let mut map = Self::default();
        if entries > 0 {
            map.table = vec![0; (entries * 8 / 5 + 1).next_power_of_two().max(LEAST)];
        }
        map
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Where the search for a hash begins; the table is not empty.
    fn start(&self, hash: u64) -> usize {
        (hash >> 32 >> (32 - self.table.len().trailing_zeros())) as usize
    }

    /// Returns where in the table the first word with this hash's tag is, from a place on.
    fn next_like(&self, hash: u64, mut at: usize) -> Option<usize> {
        let tag = tag(hash);
        loop {
            let word = self.table[at];
            if word == 0 {
                return None;
            }
            if word & !u64::from(u32::MAX) == tag && word != REMOVED {
                return Some(at);
            }
            at = (at + 1) & (self.table.len() - 1);
        }
    }

    /// Returns where in the table a key's word is.
    fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        if self.table.is_empty() {
            return None;
        }
        let mut from = self.start(hash);
        while let Some(at) = self.next_like(hash, from) {
            if entry_at(&self.blocks, self.table[at]).0.is(key) {
                return Some(at);
            }
            from = (at + 1) & (self.table.len() - 1);
        }
        None
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Slot> {
        let at = self.find(self.hash(key), key)?;
        Some(&entry_at(&self.blocks, self.table[at]).1)
    }

    /// Brings what is needed to find these keys, at most [`KEYS_WARMED_TOGETHER`], and what they hold into the processor's caches.
    ///
    /// Each step's reads do not depend on each other, so that they are under way together.
    pub(crate) fn warm<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        if self.table.is_empty() {
            return;
        }
        let (mut hashes, mut count) = ([0; KEYS_WARMED_TOGETHER], 0);
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hash(key);
            count += 1;
        }
        let hashes = &hashes[..count];
        let words = hashes.iter().map(|hash| self.table[self.start(*hash)]);
        black_box(words.fold(0, u64::wrapping_add));
        let (mut found, mut count) = ([0; KEYS_WARMED_TOGETHER], 0);
        for hash in hashes {
            if let Some(at) = self.next_like(*hash, self.start(*hash)) {
                found[count] = self.table[at];
                count += 1;
            }
        }
        let found = &found[..count];
        // An entry lies in two lines.
        let entries = found.iter().map(|word| {
            let (key, slot) = entry_at(&self.blocks, *word);
            key.leading().wrapping_add(slot.base as u64)
        });
        black_box(entries.fold(0, u64::wrapping_add));
        let mut sum = 0u8;
        for word in found {
            if let Some(value) = &entry_at(&self.blocks, *word).1.value {
                let lines = value.iter().step_by(LINE);
                sum = lines.fold(sum, |sum, byte| sum.wrapping_add(*byte));
            }
        }
        black_box(sum);
    }

    /// The slot at a place that an insertion returned, unless it was removed since: another may have its place.
    pub(crate) fn at(&self, place: u32) -> &Slot {
        &entry_at(&self.blocks, u64::from(place + 1)).1
    }

    /// Sets a key's newest value. `base` counts only at the first touch of the key: one that was absent below and is deleted again
    /// leaves no trace.
    pub(crate) fn put(&mut self, key: &[u8], new: Option<New<'_>>, base: Base) -> Change {
        let hash = self.hash(key);
        let Some(at) = self.find(hash, key) else {
            let value = new.map(New::into_value);
            let slot = Slot { value, base };
            return match is_removed(&slot) {
                true => Change::None,
                false => Change::Added(self.add(hash, ShortKey::new(key), slot)),
            };
        };
        let place = place(self.table[at]);
        let (stored, slot) = &mut self.blocks[place / BLOCK][place % BLOCK];
        let old = slot.value.as_ref().map_or(0, |old| old.len());
        replace(&mut slot.value, new);
        if is_removed(slot) {
            *stored = ShortKey::new(&[]);
            self.table[at] = REMOVED;
            self.vacant.push(place as u32);
            self.len -= 1;
            return Change::Removed(old);
        }
        Change::Replaced(old)
    }

    fn add(&mut self, hash: u64, key: ShortKey<N>, slot: Slot) -> u32 {
        self.reserve();
        let place = match self.vacant.pop() {
            Some(place) => {
                self.blocks[place as usize / BLOCK][place as usize % BLOCK] = (key, slot);
                place
            }
            None => self.append((key, slot)),
        };
        self.insert_word(tag(hash) | u64::from(place + 1));
        self.used += 1;
        self.len += 1;
        place
    }

    /// Returns the place of an entry behind all others.
    fn append(&mut self, entry: (ShortKey<N>, Slot)) -> u32 {
        let full = self.blocks.last().is_none_or(|last| last.len() == BLOCK);
        if full {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let block = self.blocks.len() - 1;
        let place = BLOCK * block + self.blocks[block].len();
        self.blocks[block].push(entry);
        let place = u32::try_from(place)
            .ok()
            .filter(|place| *place < u32::MAX - 1);
        place.expect("invariant: far fewer than 2^32 unflushed entries")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ShortKey<N>, &Slot)> {
        let entries = self.blocks.iter().flatten();
        entries
            .filter(|(_, slot)| !is_removed(slot))
            .map(|(key, slot)| (key, slot))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        let slots = self.blocks.iter_mut().flatten().map(|(_, slot)| slot);
        slots.filter(|slot| !is_removed(slot))
    }

    /// Makes room for one word more: at least three eighths of the table stay empty.
    fn reserve(&mut self) {
        if (self.used + 1) * 8 <= self.table.len() * 5 {
            return;
        }
        let length = (2 * (self.len + 1)).next_power_of_two().max(LEAST);
        let old = std::mem::replace(&mut self.table, vec![0; length]);
        self.used = self.len;
        for word in old
            .into_iter()
            .filter(|word| *word != 0 && *word != REMOVED)
        {
            self.insert_word(word);
        }
    }

    /// Puts a word, which has the upper half of a hash, into the first free place.
    fn insert_word(&mut self, word: u64) {
        let mut at = self.start(word);
        while self.table[at] != 0 {
            at = (at + 1) & (self.table.len() - 1);
        }
        self.table[at] = word;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::slot::Base;

    #[test]
    fn what_comes_and_goes_takes_one_place() {
        let mut hashed = Hashed::<40>::default();
        for round in 0u32..10_000 {
            let key = round.to_be_bytes();
            for value in [Some(New::Copied(&[1, 2])), None] {
                hashed.put(&key, value, Base::Absent);
            }
        }
        assert_eq!(
            (hashed.len(), hashed.blocks.len(), hashed.blocks[0].len()),
            (0, 1, 1)
        );
        assert_eq!(hashed.table.len(), LEAST);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn does_what_a_hash_map_does(steps in proptest::collection::vec((0u16..900, any::<u8>()), 0..3000), capacity in 0usize..200) {
            let mut hashed = Hashed::<40>::with_capacity(capacity);
            let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
            for (key, value) in steps {
                let key = key.to_be_bytes();
                let new: Option<Value> = (value % 4 > 0).then(|| vec![value; usize::from(value % 3) + 1].into());
                let put = new.as_ref().map(|new| if value % 2 == 0 { New::Shared(new.clone()) } else { New::Copied(new) });
                let change = hashed.put(&key, put, Base::Absent);
                let old = match &new {
                    None => model.remove(&key[..]),
                    Some(new) => model.insert(key.to_vec(), new.to_vec()),
                };
                let length = old.as_ref().map_or(0, Vec::len);
                match change {
                    Change::None => prop_assert!(old.is_none() && new.is_none()),
                    Change::Added(place) => prop_assert!(old.is_none() && hashed.at(place).value == new),
                    Change::Replaced(bytes) => prop_assert_eq!((old.is_some(), bytes), (true, length)),
                    Change::Removed(bytes) => prop_assert_eq!((old.is_some(), bytes, new), (true, length, None)),
                }
            }
            prop_assert_eq!(hashed.len(), model.len());
            let keys: Vec<_> = (0u16..900).map(u16::to_be_bytes).collect();
            for keys in keys.chunks(KEYS_WARMED_TOGETHER) {
                hashed.warm(keys.iter().map(|key| &key[..]));
            }
            for key in 0u16..900 {
                let found = hashed.get(&key.to_be_bytes()).and_then(|slot| slot.value.as_deref());
                prop_assert_eq!(found, model.get(&key.to_be_bytes()[..]).map(|value| &value[..]));
            }
            let all: HashMap<Vec<u8>, Vec<u8>> = hashed.iter().map(|(key, slot)| (key.to_bytes().to_vec(), slot.value.as_ref().map_or(Vec::new(), |value| value.to_vec()))).collect();
            prop_assert_eq!(all, model);
        }
    }
}
