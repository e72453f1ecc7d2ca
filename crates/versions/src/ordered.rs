//! A map that is looked up by hash and listed in order.
//!
//! Most of what is asked of unflushed flat values is whether a key is there, and most of what is put there replaces a value: both take a hash and a step or two, where a descent through
//! ordered keys, an account's slots all alike in their first half, waits for memory at every level. Only a new key goes into the order.

use std::collections::BTreeMap;

use arbor_store::ShortKey;

use crate::changes::New;
use crate::hashed::Hashed;
use crate::slot::{Base, Change, Slot};

/// Keys of flat tables are mostly an account's hash, or that and a slot's.
pub(crate) type Key = ShortKey<64>;

/// Keys and what they hold.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ordered {
    entries: Hashed<64>,
    /// Where the entries are.
    order: BTreeMap<Key, u32>,
}

impl Ordered {
    /// Makes an empty one whose table need not grow for as many entries.
    pub(crate) fn successor(&self) -> Self {
        Self {
            entries: Hashed::with_capacity(self.len()),
            order: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn entries(&self) -> &Hashed<64> {
        &self.entries
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Slot> {
        self.entries.get(key)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.entries.values_mut()
    }

    /// As [`Hashed::put`].
    pub(crate) fn put(&mut self, key: &[u8], new: Option<New<'_>>, base: Base) -> Change {
        let change = self.put_unlisted(key, new, base);
        if let Change::Added(place) = change {
            self.order.insert(Key::new(key), place);
        }
        change
    }

    /// As [`put`](Self::put), but for the order of an entry that is added, which is to be [listed](Self::list).
    pub(crate) fn put_unlisted(&mut self, key: &[u8], new: Option<New<'_>>, base: Base) -> Change {
        let change = self.entries.put(key, new, base);
        if let Change::Removed(_) = change {
            self.order.remove(&Key::new(key));
        }
        change
    }

    /// Puts very many ascending keys and their places into the order, merging it anew: tree nodes that are filled in order are full.
    pub(crate) fn list(&mut self, added: Vec<(Key, u32)>) {
        self.order.append(&mut added.into_iter().collect());
    }

    /// The entries from a key on, ascending.
    pub(crate) fn from<'a>(
        &'a self,
        start: &[u8],
    ) -> impl Iterator<Item = (&'a Key, &'a Slot)> + use<'a> {
        let order = self.order.range(Key::new(start)..);
        order.map(|(key, place)| (key, self.entries.at(*place)))
    }
}
