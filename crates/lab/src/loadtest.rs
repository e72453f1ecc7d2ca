//! The load test of zkSync's tree, for every tree: blocks of new leaves, updates and reads.
//!
//! Leaf `i` is slot `i` of one contract, and what is written to it are running numbers, as in the original: block `b` of `w` writes and `u` updates brings the
//! slots from `b * w` on with the values from `(b + 1) * (w + u)` on. Blocks that only change leaves may follow. [`Numbering`] gives the leaves of an AR16MT
//! tree their indices. The slots that are read and updated are drawn from [`Settings::seed`].

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, address};
use arbor_metrics::ProcessUsage;
use arbor_state::{
    Account, AccountChange, BlockRef, Computed, LeafProofs, SlotChange, State, StateChanges,
    StateError, StateView,
};
use arbor_versions::{Stats, TableSpec, VersionsError};

mod by_leaves;
mod figures;

pub use by_leaves::Numbering;
use by_leaves::{ByLeaves, Proven};
use figures::percentiles;
pub use figures::{BlockFigures, Results, Run, TableSize, TreeFigures};

/// The contract that the original writes to.
const CONTRACT: Address = address!("4b3af74f66ab1f0da3f2e4ec7a3cb99baf1af7b2");

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Blocks, a version each.
    pub blocks: u64,
    /// New leaves in a block.
    pub writes: u64,
    /// Leaves of earlier blocks that a block changes; fewer while there are fewer.
    pub updates: u64,
    /// Blocks after those which bring no leaves, and change as many as the others wrote.
    pub update_blocks: u64,
    /// Leaves of earlier blocks that a block reads; fewer while there are fewer.
    pub reads: u64,
    /// Which leaves those are.
    pub seed: u64,
    /// The indices of leaves, of a tree whose leaves are written by key. For [`Numbering::Upstream`] the tree has to be made
    /// with [`Numbering::setting`].
    pub numbering: Numbering,
    /// Whether each write and read is proven, with the root after it, of a tree whose leaves are written by key.
    pub proofs: bool,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum LoadTestError {
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A leaf that was read has another value than was written.
    #[error("block {block}: slot {slot} should hold {expected}, but {found} was read")]
    Wrong {
        /// The block that read it.
        block: u64,
        /// The slot.
        slot: u64,
        /// What was written there.
        expected: U256,
        /// What was read.
        found: U256,
    },
    /// A proof that does not lead from the root before an operation to the one after it.
    #[error("block {block}: the proof of operation {operation} does not hold")]
    Proof {
        /// The block.
        block: u64,
        /// Which of its operations, writes first.
        operation: usize,
    },
    /// The database is not what its contents make of it.
    #[error("the whole database was checked, and {faults} faults found; the first: {first}")]
    Faults {
        /// How many.
        faults: u64,
        /// One of them.
        first: String,
    },
}

impl From<VersionsError> for LoadTestError {
    fn from(error: VersionsError) -> Self {
        Self::State(error.into())
    }
}

/// What a test has come to.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A block is in.
    Block {
        /// What it took.
        figures: &'a BlockFigures,
        /// Whether a flush is next, not another block.
        last: bool,
    },
    /// The blocks that bring leaves are flushed, and those that only change some are next.
    Flushed,
}

/// Runs the test on an empty state, and checks the whole database at the end. `passed` is told how far it is, and may break off there: what was done by then
/// is made durable and told, but not checked.
///
/// # Errors
/// [`LoadTestError`].
pub fn run(
    settings: &Settings,
    state: &mut State,
    passed: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
) -> Result<Results, LoadTestError> {
    let mut load = Load {
        settings: *settings,
        random: Random(settings.seed),
        slots: 0,
        changed: HashMap::new(),
        before: Stats::default(),
        stopped_after: None,
    };
    let mut blocks = Vec::new();
    let new = load.run(state, 0..settings.blocks, &mut blocks, passed)?;
    let after = settings.blocks..settings.blocks + settings.update_blocks;
    let goes_on = !after.is_empty() && load.stopped_after.is_none();
    let updates = match goes_on && passed(Progress::Flushed).is_continue() {
        true => Some(load.run(state, after, &mut blocks, passed)?),
        false => None,
    };
    if goes_on && updates.is_none() {
        load.stopped_after = settings.blocks.checked_sub(1);
    }
    let mut results = Results {
        stopped_after: load.stopped_after,
        leaves: load.slots,
        root: state.root(),
        new,
        updates,
        peak_rss_bytes: ProcessUsage::now().peak_rss_bytes,
        disk_bytes: state.disk_bytes()?,
        compact_s: None,
        compacted_bytes: None,
        tables: Vec::new(),
        verify_s: None,
        verify_cpu_s: None,
        verified_nodes: None,
        verified_versions: None,
        blocks,
    };
    if results.stopped_after.is_none() {
        end(state, &mut results)?;
    }
    Ok(results)
}

/// Merges the store's files, checks the whole database, and counts its tables.
fn end(state: &mut State, results: &mut Results) -> Result<(), LoadTestError> {
    let compacting = Instant::now();
    state.compact()?;
    results.compact_s = Some(seconds(compacting));
    let (verifying, usage) = (Instant::now(), ProcessUsage::now());
    let report = state.verify()?;
    if !report.is_ok() {
        return Err(LoadTestError::Faults {
            faults: report.fault_count,
            first: report.faults.into_iter().next().unwrap_or_default(),
        });
    }
    results.verify_s = Some(seconds(verifying));
    results.verify_cpu_s = cpu_since(&usage);
    results.verified_nodes = Some(report.nodes);
    results.verified_versions = Some(report.versions);
    results.compacted_bytes = state.disk_bytes()?;
    let sizes = state.tables().iter().map(|spec| size(state, spec));
    results.tables = sizes.collect::<Result<_, _>>()?;
    Ok(())
}

fn size(state: &State, spec: &TableSpec) -> Result<TableSize, LoadTestError> {
    let (mut records, mut bytes) = (0, 0);
    for entry in state.versions().view().scan(spec.table, &[], &[])? {
        let (key, value) = entry?;
        records += 1;
        bytes += (key.len() + value.len()) as u64;
    }
    let table = spec.name;
    Ok(TableSize {
        table,
        records,
        bytes,
    })
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// Seconds of the processor since these counters were read.
fn cpu_since(usage: &ProcessUsage) -> Option<f64> {
    let used = ProcessUsage::now().since(usage);
    Some(used.user_s? + used.sys_s?)
}

/// Numbers drawn from a seed (SplitMix64: Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Different numbers below `below`, ascending; all of them if there are no more than asked for.
    fn distinct(&mut self, count: u64, below: u64) -> Vec<u64> {
        if below <= count {
            return (0..below).collect();
        }
        let mut found = HashSet::new();
        while (found.len() as u64) < count {
            found.insert(self.next() % below);
        }
        let mut found = Vec::from_iter(found);
        found.sort_unstable();
        found
    }
}

/// The test under way.
struct Load {
    settings: Settings,
    random: Random,
    /// Slots that have leaves.
    slots: u64,
    /// What slots hold that were changed since they came.
    changed: HashMap<u64, u64>,
    /// What the database had done before the block.
    before: Stats,
    stopped_after: Option<u64>,
}

/// A write: a slot, its value before (zero if new) and after.
#[derive(Clone, Copy)]
struct SlotWrite {
    slot: u64,
    old: u64,
    new: u64,
}

/// What flushes did.
struct Flushed {
    batch_bytes: u64,
    pruned_keys: u64,
    prune_s: f64,
}

impl Load {
    /// Leaves that a block brings, and that it changes.
    fn of_block(&self, block: u64) -> (u64, u64) {
        let Settings {
            blocks,
            writes,
            updates,
            ..
        } = self.settings;
        match block < blocks {
            true => (writes, updates),
            false => (0, writes),
        }
    }

    /// The first number that a block writes.
    fn first_value(&self, block: u64) -> u64 {
        (block + 1) * (self.settings.writes + self.settings.updates)
    }

    /// What a slot holds; zero before it has a leaf.
    fn value(&self, slot: u64) -> u64 {
        let came = || match slot < self.slots {
            true => self.first_value(slot / self.settings.writes) + slot % self.settings.writes,
            false => 0,
        };
        self.changed.get(&slot).copied().unwrap_or_else(came)
    }

    /// Applies consecutive blocks, and makes them durable.
    fn run(
        &mut self,
        state: &mut State,
        numbers: Range<u64>,
        figures: &mut Vec<BlockFigures>,
        passed: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Run, LoadTestError> {
        let usage = ProcessUsage::now();
        let written = || ProcessUsage::now().since(&usage).written_bytes;
        let (start, first) = (Instant::now(), figures.len());
        let (mut leaves, mut changed) = (0, 0);
        let end = numbers.end;
        for block in numbers {
            let (mut of_block, new, updated) = self.block(state, block)?;
            (leaves, changed) = (leaves + new, changed + updated);
            of_block.written_bytes = written();
            let progress = Progress::Block {
                figures: &of_block,
                last: block + 1 == end,
            };
            let stop = passed(progress).is_break();
            figures.push(of_block);
            if stop {
                self.stopped_after = Some(block);
                break;
            }
        }
        let all_blocks_s = seconds(start);
        let in_blocks_s: f64 = figures[first..].iter().map(|block| block.wall_s).sum();
        let flushing = Instant::now();
        state.flush()?;
        let (flush_s, wall_s) = (seconds(flushing), seconds(start));
        let flushed = self.flushed(state.versions().stats());
        Ok(Run {
            wall_s,
            writes_per_second: if leaves > 0 { leaves } else { changed } as f64 / wall_s,
            between_s: (all_blocks_s - in_blocks_s).max(0.0),
            flush_s,
            flush_batch_bytes: flushed.batch_bytes,
            flush_pruned_keys: flushed.pruned_keys,
            flush_prune_s: flushed.prune_s,
            cpu_s: cpu_since(&usage),
            written_bytes: written(),
            block_ms: percentiles(&figures[first..]),
        })
    }

    /// Applies a block; returns its figures, and how many leaves came and were changed.
    fn block(
        &mut self,
        state: &mut State,
        block: u64,
    ) -> Result<(BlockFigures, u64, u64), LoadTestError> {
        let Settings { reads, .. } = self.settings;
        let (writes, updates) = self.of_block(block);
        let known = self.slots;
        let read = self.random.distinct(reads, known);
        let key_reads = read.len() as u64;
        let updated = self.random.distinct(updates, known);
        let first = self.first_value(block);
        let slots = (known..known + writes).chain(updated);
        let changes: Vec<SlotWrite> = slots
            .zip(first..)
            .map(|(slot, new)| SlotWrite {
                slot,
                old: self.value(slot),
                new,
            })
            .collect();

        let before = state.root();
        let start = Instant::now();
        let proven = if self.settings.proofs {
            read
        } else {
            for slot in read {
                self.read(state, block, slot)?;
            }
            Vec::new()
        };
        let reads_s = seconds(start);
        let giving = Instant::now();
        let by_leaves = state.leaves().is_some();
        let Settings {
            numbering,
            proofs: is_proven,
            ..
        } = self.settings;
        let given = match by_leaves {
            true => {
                let proven = is_proven.then_some(&proven[..]);
                Given::Leaves(ByLeaves::new(numbering, &changes, proven))
            }
            false => Given::Slots(slot_changes(&changes, block == 0)),
        };
        let leaves_s = seconds(giving);
        let Outcome {
            computed,
            tree,
            proofs,
        } = given.compute(state)?;
        let (root, timings) = (computed.root(), computed.timings());
        let committing = Instant::now();
        let at = BlockRef {
            number: block,
            hash: B256::from(U256::from(block)),
            record: Vec::new(),
        };
        state.commit(&at, computed)?;
        let (commit_s, wall_s) = (seconds(committing), seconds(start));

        let proofs = match proofs {
            Some(proofs) => {
                let proven = Proven {
                    block,
                    numbering,
                    before,
                    changes: &changes,
                    reads: &proven,
                };
                proven.check(&*proofs, |slot| self.value(slot))?
            }
            None => 0,
        };
        self.slots += writes;
        let updates = &changes[writes as usize..];
        self.changed
            .extend(updates.iter().map(|change| (change.slot, change.new)));
        let (stats, view) = (state.versions().stats(), state.versions().view());
        let duration = |duration: Duration| duration.as_secs_f64();
        let before = self.before;
        let flushed = self.flushed(stats);
        let figures = BlockFigures {
            block,
            root,
            wall_s,
            reads_s,
            leaves_s,
            keys_s: duration(timings.keys),
            tree_s: duration(timings.tree),
            records_s: duration(timings.writes),
            commit_s,
            proofs,
            leaves: self.slots,
            oldest_version: view.oldest().map_or(0, |version| version.0),
            pruned_keys: flushed.pruned_keys,
            prune_s: flushed.prune_s,
            batch_bytes: flushed.batch_bytes,
            tree,
            dirty_bytes: stats.dirty_bytes + stats.pending_undo_bytes,
            key_reads,
            unflushed_hits: stats.unflushed_hits - before.unflushed_hits,
            cache_hits: stats.cache_hits - before.cache_hits,
            cache_misses: stats.cache_misses - before.cache_misses,
            written_bytes: None,
        };
        Ok((figures, writes, changes.len() as u64 - writes))
    }

    /// What flushes did since the last block or flush.
    fn flushed(&mut self, stats: Stats) -> Flushed {
        let before = std::mem::replace(&mut self.before, stats).flush;
        let now = stats.flush;
        Flushed {
            batch_bytes: now.bytes.total() - before.bytes.total(),
            pruned_keys: now.pruned_keys - before.pruned_keys,
            prune_s: (now.prune_time - before.prune_time).as_secs_f64(),
        }
    }

    fn read(&self, state: &State, block: u64, slot: u64) -> Result<(), LoadTestError> {
        let found = state
            .storage(CONTRACT, U256::from(slot))
            .map_err(StateError::from)?;
        let expected = U256::from(self.value(slot));
        if found != expected {
            return Err(LoadTestError::Wrong {
                block,
                slot,
                expected,
                found,
            });
        }
        Ok(())
    }
}

/// What a block writes, as the state takes it.
enum Given {
    /// Leaves by their keys.
    Leaves(ByLeaves),
    /// Slots of an account, under any other tree.
    Slots(StateChanges),
}

/// What becomes of a block before it is in.
struct Outcome {
    computed: Computed,
    /// What the tree counts, if it does.
    tree: Option<TreeFigures>,
    /// The proofs, if they were asked for.
    proofs: Option<Box<dyn LeafProofs>>,
}

impl Given {
    fn compute(&self, state: &State) -> Result<Outcome, LoadTestError> {
        match self {
            Self::Leaves(leaves) => leaves.compute(state),
            Self::Slots(changes) => Ok(Outcome {
                computed: state.compute(changes)?,
                tree: None,
                proofs: None,
            }),
        }
    }
}

/// What the slots of the contract become.
fn slot_changes(changes: &[SlotWrite], first: bool) -> StateChanges {
    let account = Account {
        nonce: 1,
        balance: U256::ZERO,
        code_hash: KECCAK256_EMPTY,
    };
    let slots = changes.iter().map(|change| {
        let values = SlotChange {
            old: U256::from(change.old),
            new: U256::from(change.new),
        };
        (U256::from(change.slot), values)
    });
    let change = AccountChange {
        old: (!first).then_some(account),
        new: Some(account),
        storage_cleared: false,
        slots: slots.collect(),
    };
    StateChanges {
        accounts: [(CONTRACT, change)].into(),
        ..StateChanges::default()
    }
}
