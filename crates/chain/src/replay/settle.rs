//! What is left of a block once it was executed: its state root, and the database's next version.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_state::{
    Account, BlockRef, Computed, ReadError, RootPlace, State, StateChanges, StateError, StateView,
};

use super::error::Failure;
use super::options::{Options, Publish, Verify};
use super::record::BlockRecord;
use super::{BlockStats, DatabaseTotals, ReplayError, Times};

/// The database, which one thread reads for execution while another computes roots over it and commits.
///
/// Nothing panics while it writes without the panic ending the replay, so a poisoned lock is taken all the same.
pub(super) struct SharedState<'a> {
    state: RwLock<&'a mut State>,
    /// Nanoseconds that execution waited for commits to end.
    held_up: AtomicU64,
    publisher: Option<&'a dyn Publish>,
}

impl<'a> SharedState<'a> {
    pub(super) fn new(state: &'a mut State, publisher: Option<&'a dyn Publish>) -> Self {
        Self {
            state: RwLock::new(state),
            held_up: AtomicU64::new(0),
            publisher,
        }
    }

    /// Gives the version that was committed just now to whoever wants it.
    fn publish(&self) -> Result<(), StateError> {
        if let Some(publisher) = self.publisher
            && publisher.is_wanted()
        {
            let snapshot = self.write().snapshot()?;
            publisher.publish(snapshot);
        }
        Ok(())
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, &'a mut State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, &'a mut State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// For execution, whose waiting is counted.
    fn view(&self) -> RwLockReadGuard<'_, &'a mut State> {
        if let Ok(state) = self.state.try_read() {
            return state;
        }
        let start = Instant::now();
        let state = self.read();
        let held_up = start.elapsed().as_nanos() as u64;
        self.held_up.fetch_add(held_up, Ordering::Relaxed);
        state
    }

    /// How long execution waited for commits to end, which is no waiting for what it reads.
    pub(super) fn held_up(&self) -> Duration {
        Duration::from_nanos(self.held_up.load(Ordering::Relaxed))
    }
}

impl StateView for SharedState<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        self.view().account(address)
    }

    fn accounts(&self, addresses: &[Address]) -> Result<Vec<Option<Account>>, ReadError> {
        self.view().accounts(addresses)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        self.view().storage(address, slot)
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        self.view().has_storage(address)
    }

    fn expect(&self, accounts: &[Address], slots: &[(Address, U256)]) {
        self.view().expect(accounts, slots);
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.view().code(code_hash)
    }
}

/// A block of which everything holds but what its state root says.
pub(super) struct Executed {
    pub(super) record: BlockRecord,
    pub(super) changes: StateChanges,
    pub(super) receipts: Vec<ReceiptEnvelope>,
    /// With what is known so far.
    pub(super) stats: BlockStats,
    /// When its execution ended.
    pub(super) executed_at: Instant,
    /// Accounts and slots that change, chunks of new code, and 64 bytes of logs: what it is to be computed, or kept until then.
    pub(super) size: u64,
}

impl Executed {
    fn header(&self) -> &Header {
        &self.record.block.header
    }

    pub(super) fn number(&self) -> u64 {
        self.header().number
    }

    fn reference(&self) -> BlockRef {
        BlockRef {
            number: self.number(),
            hash: self.record.block.hash,
            record: self.record.encode(),
        }
    }

    /// The failure of a state root that is not the header's.
    fn failed(&self, actual: B256) -> ReplayError {
        ReplayError::StateRoot(Box::new(Failure {
            number: self.number(),
            hash: self.record.block.hash,
            expected: self.header().state_root,
            actual,
            changes: self.changes.clone(),
            receipts: self.receipts.clone(),
        }))
    }
}

/// What came of checking the state after a block.
#[derive(Default)]
struct Checked {
    /// The Merkle-Patricia root, where it is not the header's.
    false_root: Option<B256>,
    time: Duration,
}

/// Blocks whose roots are computed together at most, where the tree gains by that: so many small blocks that they share as much as a large one has for itself
/// (docs/measurements/verkle.md).
pub(super) const BLOCKS_TOGETHER: usize = 64;
/// Their sizes from which on they are enough: changes of accounts and slots, and what else takes as much to compute or to keep.
pub(super) const SIZE_TOGETHER: u64 = 2_000;

/// Computes the roots of executed blocks, compares and commits.
pub(super) struct Settler<'a, 'b> {
    database: &'a SharedState<'b>,
    options: Options<'a>,
    /// Whether roots are computed together where each is wanted.
    together: bool,
    /// Blocks that are settled together with the next.
    gathered: Vec<Executed>,
    /// When the bytes of the store's files were last counted, and how many there were.
    disk: Cell<(Option<Instant>, Option<u64>)>,
}

/// How often the bytes of the store's files are counted, which lists its folder.
const DISK_EVERY: Duration = Duration::from_millis(250);

impl<'a, 'b> Settler<'a, 'b> {
    pub(super) fn new(database: &'a SharedState<'b>, options: Options<'a>) -> Self {
        let state = database.read();
        let together = state.computes_together() && matches!(options.verify, Verify::Every);
        drop(state);
        Self {
            database,
            options,
            together,
            gathered: Vec::new(),
            disk: Cell::default(),
        }
    }

    /// Whether headers tell what the roots of the next blocks must be.
    fn in_headers(&self) -> Result<bool, StateError> {
        Ok(self.database.read().next_root()? == RootPlace::InHeaders)
    }

    /// Takes a block; tells of those that are then settled.
    ///
    /// # Errors
    /// What does not hold, or the database's errors; the database stays at the last block that does.
    pub(super) fn take(
        &mut self,
        block: Executed,
        settled: &mut dyn FnMut(BlockStats),
    ) -> Result<(), ReplayError> {
        self.gathered.push(block);
        if self.has_enough() {
            self.settle(settled)?;
        }
        Ok(())
    }

    /// Whether what was gathered is to be settled.
    fn has_enough(&self) -> bool {
        let blocks = &self.gathered[..];
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return false;
        };
        if self.is_to_be_checked(last) {
            return true;
        }
        if !self.together {
            return blocks.len() >= self.options.verify.blocks_at(first.number());
        }
        let size: u64 = blocks.iter().map(|block| block.size).sum();
        blocks.len() >= BLOCKS_TOGETHER || size >= SIZE_TOGETHER
    }

    /// Settles all that was taken.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn settle(
        &mut self,
        settled: &mut dyn FnMut(BlockStats),
    ) -> Result<(), ReplayError> {
        let blocks = std::mem::take(&mut self.gathered);
        if blocks.len() > 1 {
            let done = match self.together {
                true => self.settle_together(&blocks, settled)?,
                false => self.commit_as_one(&blocks, settled)?,
            };
            if done {
                return Ok(());
            }
        }
        // One block, or something that does not hold: one by one tells which.
        for block in &blocks {
            settled(self.settle_one(block)?);
        }
        if let [first, .., last] = &blocks[..] {
            tracing::warn!(
                "blocks {} to {} hold one by one and did not together: please report this",
                first.number(),
                last.number()
            );
        }
        Ok(())
    }

    fn settle_one(&self, block: &Executed) -> Result<BlockStats, ReplayError> {
        let failed = state_error(block.number());
        let computed = self
            .database
            .read()
            .compute(&block.changes)
            .map_err(&failed)?;
        let known = Instant::now();
        if self.in_headers().map_err(failed)? && computed.root() != block.header().state_root {
            return Err(block.failed(computed.root()));
        }
        let checked = self.check(block, std::slice::from_ref(&computed))?;
        if let Some(root) = checked.false_root {
            return Err(block.failed(root));
        }
        let mut stats = self.commit(std::slice::from_ref(block), computed)?;
        stats.times.check = checked.time;
        stats.root_delay = known - block.executed_at;
        stats.root_group = 1;
        Ok(stats)
    }

    /// Computes one root, that after all blocks, and commits them; not if it is not the last one's, nor if the state that it is of
    /// does not hold or cannot be checked.
    fn commit_as_one(
        &self,
        blocks: &[Executed],
        settled: &mut dyn FnMut(BlockStats),
    ) -> Result<bool, ReplayError> {
        let Some((last, before)) = blocks.split_last() else {
            return Ok(true);
        };
        let mut changes = StateChanges::default();
        blocks
            .iter()
            .for_each(|block| changes.extend(&block.changes));
        let failed = state_error(last.number());
        let computed = self.database.read().compute(&changes).map_err(&failed)?;
        let known = Instant::now();
        if self.in_headers().map_err(failed)? && computed.root() != last.header().state_root {
            return Ok(false);
        }
        let Ok(Checked {
            false_root: None,
            time,
        }) = self.check(last, std::slice::from_ref(&computed))
        else {
            return Ok(false);
        };
        let mut last_stats = self.commit(blocks, computed)?;
        last_stats.times.check = time;
        let group = blocks.len() as u64;
        let shared = |block: &Executed, stats: BlockStats| BlockStats {
            root_delay: known - block.executed_at,
            root_group: group,
            database: last_stats.database,
            ..stats
        };
        before
            .iter()
            .for_each(|block| settled(shared(block, block.stats)));
        settled(shared(last, last_stats));
        Ok(true)
    }

    /// Computes the root after each block, all together, and commits them; not if one does not hold, or cannot be computed,
    /// nor if the state after them does not hold or cannot be checked.
    fn settle_together(
        &self,
        blocks: &[Executed],
        settled: &mut dyn FnMut(BlockStats),
    ) -> Result<bool, ReplayError> {
        let changes: Vec<&StateChanges> = blocks.iter().map(|block| &block.changes).collect();
        let [first, .., last] = blocks else {
            return Ok(false);
        };
        let computed = match self.database.read().compute_together(&changes) {
            Ok(computed) => computed,
            Err(error) => {
                let (first, last) = (first.number(), last.number());
                tracing::warn!(
                    "blocks {first} to {last} cannot be computed together ({error}): one by one"
                );
                return Ok(false);
            }
        };
        let known = Instant::now();
        let in_headers = self.in_headers().map_err(state_error(first.number()))?;
        let holds = |(block, computed): (&Executed, &Computed)| {
            !in_headers || computed.root() == block.header().state_root
        };
        if !blocks.iter().zip(&computed).all(holds) {
            return Ok(false);
        }
        let Ok(Checked {
            false_root: None,
            time: checking,
        }) = self.check(last, &computed)
        else {
            return Ok(false);
        };
        let mut stats: Vec<BlockStats> = blocks.iter().map(|block| block.stats).collect();
        let committing = Instant::now();
        let mut times = Times::default();
        for (stats, computed) in stats.iter_mut().zip(&computed) {
            let timings = computed.timings();
            stats.root = Some(computed.root());
            stats.nodes = computed.nodes().len() as u64;
            stats.work = computed.work();
            times.keys += timings.keys;
            times.tree += timings.tree;
            times.store += timings.writes;
        }
        let references: Vec<BlockRef> = blocks.iter().map(Executed::reference).collect();
        let versions = references.into_iter().zip(computed);
        let committed = self.database.write().commit_together(versions);
        committed.map_err(state_error(first.number()))?;
        let published = self.database.publish();
        published.map_err(state_error(last.number()))?;
        self.tell_unflushed(last.number());
        times.store += committing.elapsed();
        // Each block took its part of it.
        let count = blocks.len() as u32;
        let database = self.database_totals();
        for (stats, block) in stats.iter_mut().zip(blocks) {
            stats.root_delay = known - block.executed_at;
            stats.root_group = blocks.len() as u64;
            stats.database = database;
            stats.times.keys = times.keys / count;
            stats.times.tree = times.tree / count;
            stats.times.store = times.store / count;
        }
        if let Some(of_last) = stats.last_mut() {
            of_last.times.check = checking;
        }
        stats.into_iter().for_each(settled);
        Ok(true)
    }

    /// Commits blocks that hold; returns the last one's figures, with the work that was done for all.
    fn commit(&self, blocks: &[Executed], computed: Computed) -> Result<BlockStats, ReplayError> {
        let last = blocks.last().expect("invariant: a commit has a block");
        let mut stats = last.stats;
        let (timings, nodes) = (computed.timings(), computed.nodes().len() as u64);
        stats.work = computed.work();
        let committing = Instant::now();
        let root = computed.root();
        // The roots of blocks in between are known only if headers have them.
        let in_headers = self.in_headers().map_err(state_error(last.number()))?;
        let claimed = |block: &Executed| match in_headers {
            true => block.header().state_root,
            false if std::ptr::eq(block, last) => root,
            false => B256::ZERO,
        };
        let references = blocks
            .iter()
            .map(|block| (block.reference(), claimed(block)));
        let references: Vec<_> = references.collect();
        let committed = self.database.write().commit_as_one(references, computed);
        committed.map_err(state_error(last.number()))?;
        let published = self.database.publish();
        published.map_err(state_error(last.number()))?;
        self.tell_unflushed(last.number());
        stats.root = Some(root);
        stats.nodes = nodes;
        stats.database = self.database_totals();
        stats.times.keys = timings.keys;
        stats.times.tree = timings.tree;
        stats.times.store = timings.writes + committing.elapsed();
        Ok(stats)
    }

    /// Whether the state after the block is to be checked. Such a block is the last of those that are settled together.
    fn is_to_be_checked(&self, block: &Executed) -> bool {
        let every = self.options.check_every;
        every.is_some_and(|every| block.number().is_multiple_of(every.get()))
    }

    /// Compares, if it is to be done, the Merkle-Patricia root of the flat tables, from which execution reads, with the header's: of the tables as they are after
    /// the block, whose changes and those before them were computed.
    fn check(&self, block: &Executed, computed: &[Computed]) -> Result<Checked, ReplayError> {
        if !self.is_to_be_checked(block) {
            return Ok(Checked::default());
        }
        let start = Instant::now();
        let root = self.database.read().flat_root_after(computed);
        let root = root.map_err(state_error(block.number()))?;
        Ok(Checked {
            false_root: (root != block.header().state_root).then_some(root),
            time: start.elapsed(),
        })
    }

    /// Returns what the database has counted until now.
    fn database_totals(&self) -> DatabaseTotals {
        let state = self.database.read();
        let stats = state.versions().stats();
        let (counted, mut disk_bytes) = self.disk.get();
        if counted.is_none_or(|counted| counted.elapsed() >= DISK_EVERY) {
            // A figure that cannot be had does not end a replay.
            disk_bytes = state.disk_bytes().unwrap_or_default();
            self.disk.set((Some(Instant::now()), disk_bytes));
        }
        DatabaseTotals {
            disk_bytes,
            store_bytes: stats.flush.bytes.total(),
            cache_hits: stats.unflushed_hits + stats.cache_hits,
            cache_misses: stats.cache_misses,
        }
    }

    /// Tells, if debugging, how much a crash at this moment would cost.
    fn tell_unflushed(&self, number: u64) {
        if tracing::enabled!(tracing::Level::DEBUG) {
            let stats = self.database.read().versions().stats();
            let bytes = stats.dirty_bytes + stats.pending_undo_bytes;
            tracing::debug!("block {number}: {bytes} bytes not flushed");
        }
    }
}

fn state_error(number: u64) -> impl Fn(StateError) -> ReplayError {
    move |error| ReplayError::State { number, error }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use arbor_state::Network;
    use arbor_store::MemoryStore;
    use arbor_trees::MPT;

    use super::*;

    #[test]
    fn waiting_for_a_commit_is_counted_apart() {
        let network = Network {
            chain_id: 1,
            genesis_hash: B256::ZERO,
        };
        let state = State::open(
            Arc::new(MemoryStore::default()),
            None,
            MPT.tree(),
            network,
            Default::default(),
        );
        let mut state = state.expect("opens");
        let database = SharedState::new(&mut state, None);
        let read = || assert_eq!(database.account(Address::ZERO).expect("reads"), None);
        read();
        assert_eq!(database.held_up(), Duration::ZERO);
        // Until the other thread came to read before the commit ended.
        while database.held_up().is_zero() {
            let (about_to_read, told) = channel();
            let committing = database.write();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    about_to_read.send(()).expect("somebody listens");
                    read();
                });
                told.recv().expect("it reads");
                std::thread::sleep(Duration::from_millis(20));
                drop(committing);
            });
        }
        let held_up = database.held_up();
        read();
        assert_eq!(database.held_up(), held_up);
    }
}
