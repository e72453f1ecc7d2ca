//! What a replay measures.

use std::time::Duration;

use alloy_primitives::B256;
use arbor_state::Work;
use serde::Serialize;

/// One block's share of the work.
#[derive(Clone, Copy, Default, Debug)]
pub struct BlockStats {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// Transactions in it.
    pub transactions: u64,
    /// Gas used by it.
    pub gas: u64,
    /// Accounts changed.
    pub accounts: u64,
    /// Slots changed.
    pub slots: u64,
    /// Tree nodes written or deleted.
    pub nodes: u64,
    /// The root that was computed after it; none where one root was computed for it and later blocks.
    pub root: Option<B256>,
    /// What computing the root took.
    pub work: Work,
    /// Where the time went.
    pub times: Times,
    /// The header's timestamp, in seconds since 1970.
    pub timestamp: u64,
    /// The header's base fee per gas, in wei; none before London.
    pub base_fee: Option<u64>,
    /// From the end of the block's execution until its root was known; zero without a tree.
    pub root_delay: Duration,
    /// Blocks whose roots were computed in the same step, this one included; zero without a tree.
    pub root_group: u64,
    /// The database's totals once the block was committed.
    pub database: DatabaseTotals,
}

/// Counts of a database since it was opened.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DatabaseTotals {
    /// Bytes of keys and values handed to the store, of all kinds.
    pub store_bytes: u64,
    /// Reads by key answered from memory: by unflushed versions and by the cache.
    pub cache_hits: u64,
    /// Reads by key that went to the store.
    pub cache_misses: u64,
    /// Bytes of the store's files, counted a few times a second; `None` in memory.
    pub disk_bytes: Option<u64>,
}

/// Time by part of the way.
#[derive(Clone, Copy, Default, Debug)]
pub struct Times {
    /// Waiting for the block: reading, decoding, sender recovery.
    pub source: Duration,
    /// Execution waiting for the roots of earlier blocks.
    pub backlog: Duration,
    /// Executing and verifying everything but the state root.
    pub execution: Duration,
    /// Hashing names and forming tree updates.
    pub keys: Duration,
    /// The tree.
    pub tree: Duration,
    /// Forming writes, applying them, flushing.
    pub store: Duration,
    /// Checking the state's flat tables.
    pub check: Duration,
}

impl Times {
    fn each(&mut self) -> [&mut Duration; 7] {
        [
            &mut self.source,
            &mut self.backlog,
            &mut self.execution,
            &mut self.keys,
            &mut self.tree,
            &mut self.store,
            &mut self.check,
        ]
    }

    /// The sum of all parts.
    pub fn total(&self) -> Duration {
        self.source
            + self.backlog
            + self.execution
            + self.keys
            + self.tree
            + self.store
            + self.check
    }
}

/// Sums over blocks, as reports carry them; times in seconds.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Sums {
    /// The first block.
    pub first_block: u64,
    /// The last block.
    pub last_block: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Transactions executed.
    pub transactions: u64,
    /// Gas used.
    pub gas: u64,
    /// Accounts changed, summed over blocks.
    pub accounts: u64,
    /// Slots changed, summed over blocks.
    pub slots: u64,
    /// Tree nodes written or deleted, summed over blocks.
    pub nodes: u64,
    /// What computing roots took, in counts; left out if it took none of what is counted.
    #[serde(skip_serializing_if = "Work::is_none")]
    pub work: Work,
    /// Waiting for blocks: reading, decoding, sender recovery.
    pub source_s: f64,
    /// Execution waiting for the roots of earlier blocks.
    pub backlog_s: f64,
    /// Execution and verification.
    pub execution_s: f64,
    /// Hashing names and forming tree updates.
    pub keys_s: f64,
    /// The tree.
    pub tree_s: f64,
    /// Forming writes, applying them, flushing.
    pub store_s: f64,
    /// Checking the state's flat tables, where that is asked for.
    pub check_s: f64,
    #[serde(skip)]
    times: Times,
}

impl Sums {
    /// Adds a block.
    pub fn add(&mut self, block: &BlockStats) {
        if self.blocks == 0 {
            self.first_block = block.number;
        }
        self.last_block = block.number;
        self.blocks += 1;
        self.transactions += block.transactions;
        self.gas += block.gas;
        self.accounts += block.accounts;
        self.slots += block.slots;
        self.nodes += block.nodes;
        self.work += block.work;
        let mut times = block.times;
        self.add_times(&mut times);
    }

    fn add_times(&mut self, times: &mut Times) {
        for (sum, part) in self.times.each().into_iter().zip(times.each()) {
            *sum += *part;
        }
        let seconds = self.times.each().map(|part| part.as_secs_f64());
        [
            self.source_s,
            self.backlog_s,
            self.execution_s,
            self.keys_s,
            self.tree_s,
            self.store_s,
            self.check_s,
        ] = seconds;
    }

    /// Adds the sums of blocks that follow.
    pub fn merge(&mut self, later: &Sums) {
        if self.blocks == 0 {
            self.first_block = later.first_block;
        }
        self.last_block = later.last_block;
        self.blocks += later.blocks;
        self.transactions += later.transactions;
        self.gas += later.gas;
        self.accounts += later.accounts;
        self.slots += later.slots;
        self.nodes += later.nodes;
        self.work += later.work;
        let mut times = later.times;
        self.add_times(&mut times);
    }

    /// Adds time of the store after the last block: the final flush.
    pub fn add_store_time(&mut self, time: Duration) {
        self.add_times(&mut Times {
            store: time,
            ..Times::default()
        });
    }
}

/// Sums over consecutive blocks, at most [`Series::MOST`] of them however long the chain.
///
/// Short chains get one entry a block; when the entries are full, neighbours are merged and each
/// covers twice as many blocks from then on.
#[derive(Clone, Debug)]
pub struct Series {
    entries: Vec<Sums>,
    blocks_each: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            blocks_each: 1,
        }
    }
}

impl Series {
    /// The most entries a series has.
    pub const MOST: usize = 4096;

    /// Adds a block.
    pub fn add(&mut self, block: &BlockStats) {
        if self
            .entries
            .last()
            .is_none_or(|last| last.blocks >= self.blocks_each)
        {
            if self.entries.len() == Self::MOST {
                self.halve();
            }
            self.entries.push(Sums::default());
        }
        if let Some(last) = self.entries.last_mut() {
            last.add(block);
        }
    }

    fn halve(&mut self) {
        self.entries = self
            .entries
            .chunks(2)
            .map(|pair| {
                let mut sums = pair[0];
                pair[1..].iter().for_each(|later| sums.merge(later));
                sums
            })
            .collect();
        self.blocks_each *= 2;
    }

    /// The entries, in the order of their blocks.
    pub fn entries(&self) -> &[Sums] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_stays_bounded_and_loses_nothing() {
        let (mut series, mut whole) = (Series::default(), Sums::default());
        for number in 0..20_000 {
            let block = BlockStats {
                number,
                gas: number,
                transactions: 1,
                ..BlockStats::default()
            };
            series.add(&block);
            whole.add(&block);
        }
        assert!(series.entries().len() <= Series::MOST);
        let mut merged = Sums::default();
        series
            .entries()
            .iter()
            .for_each(|entry| merged.merge(entry));
        assert_eq!((merged.blocks, merged.gas), (whole.blocks, whole.gas));
        assert_eq!((merged.first_block, merged.last_block), (0, 19_999));
        let contiguous = series
            .entries()
            .windows(2)
            .all(|pair| pair[0].last_block + 1 == pair[1].first_block);
        assert!(contiguous);
    }
}
