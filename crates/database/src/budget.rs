//! How memory and history are divided.

use arbor_state::Tree;
use arbor_store::disk::Limits;
use arbor_versions::{Options, Retain};

/// Memory and history of a database that is open for writing.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes for caches, write-back and tables together.
    pub memory: u64,
    /// Bytes of unflushed changes; [`usual_write_back`] if not given.
    pub write_back: Option<u64>,
    /// History to keep.
    pub retain: Retain,
    /// Whether nodes of older versions are kept from here on, so that proofs of them are look-ups. Without it a database goes on as it was.
    pub history_proofs: bool,
    /// Whether every version is made durable.
    pub durable: bool,
    /// The limits of a disk that the store imitates; `None` for the speed of the real one.
    pub throttle: Option<Limits>,
    /// Whether flushes run on the thread that commits, one after another, so that counts do not depend on how long
    /// anything takes.
    pub in_turn: bool,
}

/// The least write-back that is taken if none is asked for. With less, flushes make so many small files that merging them takes more memory than it saves:
/// 188 flushes of 1 MiB peaked at 123 MiB, and 30 of 4 MiB at 75 (600 blocks of the synthetic swaps, `--memory 16MiB`).
const LEAST_WRITE_BACK: u64 = 4 << 20;

/// Returns the bytes of unflushed changes within a memory budget, if nothing else is asked for.
#[must_use]
pub fn usual_write_back(memory: u64) -> u64 {
    (memory / 16).max(LEAST_WRITE_BACK)
}

impl Budget {
    /// A budget of this many bytes that keeps all history that there is.
    #[must_use]
    pub const fn new(memory: u64) -> Self {
        Self {
            memory,
            write_back: None,
            retain: Retain::All,
            history_proofs: false,
            durable: false,
            throttle: None,
            in_turn: false,
        }
    }

    /// The same budget; unless it has its own write-back, without any for a tree that is to be written through.
    #[must_use]
    pub fn for_tree(self, tree: &Tree) -> Self {
        let through = tree.writes_through().then_some(0);
        Self {
            write_back: self.write_back.or(through),
            ..self
        }
    }

    /// The settings of the versions in a database.
    #[must_use]
    pub fn options(self) -> Options {
        let usual = usual_write_back(self.memory);
        let dirty = self.write_back.unwrap_or(usual);
        Options {
            cache_bytes: self.memory / 4,
            dirty_bytes: usize::try_from(dirty).unwrap_or(usize::MAX),
            durable_each: self.durable,
            retain: self.retain,
            keep_nodes: self.history_proofs,
            background: !self.in_turn,
            ..Options::default()
        }
    }

    /// Bytes for the cache of the store.
    pub(crate) const fn store_cache(self) -> u64 {
        self.memory / 16
    }

    /// Bytes for accounts and slots that execution used lately.
    #[must_use]
    pub fn names(self) -> usize {
        usize::try_from(self.memory / 16).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sixteenth of 16 MiB was flushed after every third block, and took more memory than 32 MiB.
    #[test]
    fn a_small_budget_has_room_for_flushes() {
        let usual = [16 << 20, 32 << 20, 64 << 20, 128 << 20].map(usual_write_back);
        assert_eq!(usual, [4 << 20, 4 << 20, 4 << 20, 8 << 20]);
    }
}
