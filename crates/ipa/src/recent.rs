//! What was used lately.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// A map of bounded size in two generations: what is used moves to the young one, and when that is full the old one goes.
pub struct Recent<K, V> {
    young: HashMap<K, V, RandomState>,
    old: HashMap<K, V, RandomState>,
    /// Entries of a generation.
    most: usize,
}

impl<K: Eq + Hash, V: Copy> Recent<K, V> {
    /// Holds so many entries at most, or one more for an odd number; nothing, if it is none.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            most: entries.div_ceil(2),
        }
    }

    /// The value of a key, which is used thereby.
    pub fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(*value);
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value);
        Some(value)
    }

    /// Puts a value in; the longest unused half may go for it.
    pub fn put(&mut self, key: K, value: V) {
        if self.most == 0 {
            return;
        }
        if self.young.len() >= self.most {
            // The memory of what goes serves what comes.
            std::mem::swap(&mut self.old, &mut self.young);
            self.young.clear();
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let mut recent = Recent::new(4);
        (0..2).for_each(|key| recent.put(key, key));
        recent.put(2, 2);
        assert_eq!(recent.get(&0), Some(0));
        recent.put(3, 3);
        assert_eq!(
            [0, 1, 2, 3].map(|key| recent.get(&key)),
            [Some(0), None, Some(2), Some(3)]
        );
        let mut none = Recent::new(0);
        none.put(1, 1);
        assert_eq!(none.get(&1), None);
    }
}
