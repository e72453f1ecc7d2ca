//! A hash map whose entries lie in blocks that never move.
//!
//! The table that finds an entry holds four bytes for each, not the entry: tables grow by doubling, are up to half empty, and are twice there while they grow, which for
//! entries of a hundred bytes is most of what a map takes.

use std::hash::BuildHasher;

use arbor_store::ShortKey;
use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table};

use crate::layer::Slot;

/// Most keys of nodes are an account's hash and a short path.
pub(crate) type Key = ShortKey<40>;
/// Entries of a block.
const BLOCK: usize = 1 << 9;

type Blocks = Vec<Vec<(Key, Slot)>>;

/// Keys and what they hold, in no order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Hashed {
    /// Where the entries are.
    places: HashTable<u32>,
    /// All blocks but the last are full. What was removed leaves its key behind.
    blocks: Blocks,
    hasher: RandomState,
}

/// A key's entry, or where it would be.
pub(crate) enum Entry<'a> {
    Occupied(Occupied<'a>),
    Vacant(Vacant<'a>),
}

pub(crate) struct Occupied<'a> {
    place: hash_table::OccupiedEntry<'a, u32>,
    blocks: &'a mut Blocks,
}

pub(crate) struct Vacant<'a> {
    place: hash_table::VacantEntry<'a, u32>,
    blocks: &'a mut Blocks,
    key: Key,
}

fn at(blocks: &Blocks, place: u32) -> &(Key, Slot) {
    &blocks[place as usize / BLOCK][place as usize % BLOCK]
}

impl Hashed {
    /// Makes an empty one whose table need not grow for so many entries.
    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self {
            places: HashTable::with_capacity(entries),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Slot> {
        let same = |place: &u32| at(&self.blocks, *place).0 == *key;
        let place = self.places.find(self.hasher.hash_one(key), same)?;
        Some(&at(&self.blocks, *place).1)
    }

    pub(crate) fn entry(&mut self, key: Key) -> Entry<'_> {
        let Self {
            places,
            blocks,
            hasher,
        } = self;
        let same = |place: &u32| at(blocks, *place).0 == key;
        let hash = |place: &u32| hasher.hash_one(&at(blocks, *place).0);
        match places.entry(hasher.hash_one(&key), same, hash) {
            hash_table::Entry::Occupied(place) => Entry::Occupied(Occupied { place, blocks }),
            hash_table::Entry::Vacant(place) => Entry::Vacant(Vacant { place, blocks, key }),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Slot)> {
        let entries = self.places.iter().map(|place| at(&self.blocks, *place));
        entries.map(|(key, slot)| (key, slot))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.blocks.iter_mut().flatten().map(|(_, slot)| slot)
    }
}

impl Occupied<'_> {
    pub(crate) fn get_mut(&mut self) -> &mut Slot {
        let place = *self.place.get() as usize;
        &mut self.blocks[place / BLOCK][place % BLOCK].1
    }

    pub(crate) fn remove(mut self) {
        self.get_mut().value = None;
        self.place.remove();
    }
}

impl Vacant<'_> {
    pub(crate) fn insert(self, slot: Slot) {
        let full = self.blocks.last().is_none_or(|last| last.len() == BLOCK);
        if full {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let block = self.blocks.len() - 1;
        let place = BLOCK * block + self.blocks[block].len();
        self.blocks[block].push((self.key, slot));
        let place = u32::try_from(place).expect("invariant: far fewer than 2^32 unflushed entries");
        self.place.insert(place);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::layer::Base;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn does_what_a_hash_map_does(steps in proptest::collection::vec((0u16..900, any::<u8>()), 0..3000), capacity in 0usize..200) {
            let mut hashed = Hashed::with_capacity(capacity);
            let mut model: HashMap<Vec<u8>, u8> = HashMap::new();
            for (key, value) in steps {
                let key = key.to_be_bytes();
                let slot = Slot { value: Some([value][..].into()), base: Base::Unknown };
                match (hashed.entry(Key::new(&key)), value % 4) {
                    (Entry::Occupied(entry), 0) => {
                        entry.remove();
                        model.remove(&key[..]);
                    }
                    (Entry::Occupied(mut entry), _) => {
                        *entry.get_mut() = slot;
                        model.insert(key.to_vec(), value);
                    }
                    (Entry::Vacant(entry), _) => {
                        prop_assert!(model.insert(key.to_vec(), value).is_none());
                        entry.insert(slot);
                    }
                }
            }
            prop_assert_eq!(hashed.len(), model.len());
            for key in 0u16..900 {
                let found = hashed.get(&Key::new(&key.to_be_bytes())).and_then(|slot| slot.value.as_ref().map(|value| value[0]));
                prop_assert_eq!(found, model.get(&key.to_be_bytes()[..]).copied());
            }
            let all: HashMap<Vec<u8>, u8> = hashed.iter().map(|(key, slot)| (key.to_bytes().to_vec(), slot.value.as_ref().map_or(0, |value| value[0]))).collect();
            prop_assert_eq!(all, model);
        }
    }
}
