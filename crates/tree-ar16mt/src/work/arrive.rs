//! What becomes of leaves when others come, one after the other.

use std::collections::BTreeMap;

use arbor_tree::shared_nibbles;

use super::{Placed, Start, Work};
use crate::{Hash, Hasher, Reader};

impl<R: Reader, H: Hasher> Work<'_, R, H> {
    /// Counts the new leaves below a path of so many nibbles, one coming after the other by their indices, and what they do to those that are there.
    pub(super) fn arrive(&mut self, top: usize, placed: &[Placed]) {
        if let [one] = placed {
            if one.is_new {
                self.stats.new_leaves += 1;
                self.reached(top);
            }
            return;
        }
        let (mut came, mut there): (Vec<(u64, Hash)>, BTreeMap<Hash, usize>) = Default::default();
        for leaf in placed {
            match leaf.start {
                Start::Entry(entry) if leaf.is_new => came.push((entry.index, leaf.key)),
                _ => drop(there.insert(leaf.key, top)),
            }
        }
        came.sort_unstable();
        for (_, key) in came {
            let before = there.range(..key).next_back();
            let after = there.range(key..).next();
            let near = before.into_iter().chain(after);
            let nearest = near
                .map(|(other, level)| (shared_nibbles(&key, other), *other, *level))
                .max();
            let level = match nearest {
                None => top,
                Some((shared, other, level)) => {
                    if shared >= level {
                        there.insert(other, shared + 1);
                        self.stats.moved_leaves += 1;
                        self.reached(shared + 1);
                    }
                    shared + 1
                }
            };
            there.insert(key, level);
            self.stats.new_leaves += 1;
            self.reached(level);
        }
    }

    fn reached(&mut self, nibbles: usize) {
        let level = 4 * nibbles as u64;
        self.stats.level_sum += level;
        self.stats.level_max = self.stats.level_max.max(level);
    }
}
