//! A replay: blocks are executed, their roots computed and compared, and their versions committed.

use std::path::PathBuf;
use std::sync::Arc;

use alloy_primitives::{B256, U256};
use arbor_state::{RecentState, State};
use arbor_versions::Version;

use super::earlier::EarlierBlocks;
use super::options::{Options, Publish, Roots, Verify};
use super::pipeline::Pipeline;
use super::prewarm::Prewarm;
use super::record::{BlockRecord, recent_blocks};
use super::settle::SharedState;
use super::{BlockStats, ReplayError};
use crate::executor::{Executor, RecentBlocks};
use crate::genesis::{ChainSpec, Genesis};
use crate::prepare::RecoveredBlock;

/// A database being replayed into.
pub struct Replay {
    state: State,
    spec: ChainSpec,
    executor: Executor,
    recent: RecentBlocks,
    earlier: EarlierBlocks,
    /// The difficulties of all blocks up to the head together, where the head's record has it.
    total_difficulty: Option<U256>,
    names: RecentState,
    names_bytes: usize,
    prewarm: Prewarm,
    publisher: Option<Arc<dyn Publish>>,
}

impl Replay {
    /// Continues a database, or begins it with its genesis. Accounts and slots used lately are kept ready for execution
    /// in about `names_bytes` of memory.
    pub fn new(
        mut state: State,
        genesis: &Genesis,
        names_bytes: usize,
    ) -> Result<Self, ReplayError> {
        if state.head().is_none() {
            genesis.commit(&mut state, &|_, _| ())?;
        }
        let mut replay = Self {
            state,
            spec: genesis.spec.clone(),
            executor: Executor::new(),
            recent: RecentBlocks::default(),
            earlier: EarlierBlocks::default(),
            total_difficulty: None,
            names: RecentState::new(names_bytes),
            names_bytes,
            prewarm: Prewarm::default(),
            publisher: None,
        };
        replay.look_back()?;
        Ok(replay)
    }

    /// Executes with another executor than the usual one.
    #[must_use]
    pub fn with_executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// Executes no block ahead to learn which slots it reads, however long it waits for them. Then counts of reads and
    /// hashes do not depend on how long anything takes.
    #[must_use]
    pub fn without_execution_ahead(mut self) -> Self {
        self.prewarm = Prewarm::off();
        self
    }

    /// Gives each version that is committed from now on to those who want it, and the present one at once.
    ///
    /// # Errors
    /// The store's errors.
    pub fn publish_to(&mut self, publisher: Arc<dyn Publish>) -> Result<(), ReplayError> {
        self.publisher = Some(publisher);
        self.publish()
    }

    fn publish(&mut self) -> Result<(), ReplayError> {
        let Some(publisher) = &self.publisher else {
            return Ok(());
        };
        let number = self.state.head().map_or(0, |head| head.block_number);
        let snapshot = self.state.snapshot();
        publisher.publish(snapshot.map_err(|error| ReplayError::State { number, error })?);
        Ok(())
    }

    /// Stands at the head, whatever was executed before: reads what is remembered of it and the blocks before it.
    fn look_back(&mut self) -> Result<(), ReplayError> {
        self.names = RecentState::new(self.names_bytes);
        let head = self.state.head().map_or(Version(0), |head| head.version);
        self.recent = recent_blocks(self.state.reader(), head)?;
        self.earlier.complete(&mut self.recent);
        self.total_difficulty =
            BlockRecord::of_head(&self.state)?.and_then(|record| record.total_difficulty);
        Ok(())
    }

    /// Reads the blocks before the head that the database does not remember from the files of its chain. `BLOCKHASH` may ask for their hashes.
    ///
    /// # Errors
    /// As [`EarlierBlocks::read`].
    pub fn look_further_back(&mut self, chain: &[PathBuf]) -> Result<(), ReplayError> {
        let head = self.state.head().map_or(Version(0), |head| head.version);
        self.earlier = EarlierBlocks::read(self.state.reader(), head, chain)?;
        self.earlier.complete(&mut self.recent);
        Ok(())
    }

    /// Returns to block `number`, from which another branch of the chain can be taken.
    ///
    /// # Errors
    /// [`ReplayError::UnknownBlock`] for one after the latest, [`ReplayError::NotRetained`] for one whose state is not retained; the database is then as it was.
    pub fn rollback(&mut self, number: u64) -> Result<(), ReplayError> {
        let failed = |error| ReplayError::State { number, error };
        if number > self.head().0 {
            return Err(ReplayError::UnknownBlock(number));
        }
        let versions = self.state.versions().view();
        let version = versions.version_of_block(number);
        let version = version.map_err(|error| failed(error.into()))?;
        let Some(version) = version.filter(|version| versions.retained(*version).is_ok()) else {
            return Err(self.not_retained(number));
        };
        self.state.rollback(version).map_err(failed)?;
        self.publish()?;
        self.look_back()
    }

    /// The error for a block that the database cannot return to, with the blocks that it can.
    pub fn not_retained(&self, number: u64) -> ReplayError {
        let view = self.state.versions().view();
        let (newest, _) = self.head();
        let oldest = view.oldest().map(|oldest| view.meta(oldest));
        let oldest = match oldest.transpose() {
            Ok(oldest) => oldest.flatten().map_or(newest, |meta| meta.block_number),
            Err(error) => {
                let error = error.into();
                return ReplayError::State { number, error };
            }
        };
        ReplayError::NotRetained {
            number,
            oldest,
            newest,
        }
    }

    /// Makes all that was committed durable, so that other processes can read it, and [gives](Self::publish_to) the latest version to those who want it.
    ///
    /// # Errors
    /// The store's errors.
    pub fn flush(&mut self) -> Result<(), ReplayError> {
        let (number, _) = self.head();
        let flushed = self.state.flush();
        flushed.map_err(|error| ReplayError::State { number, error })?;
        self.publish()
    }

    /// Goes on over the state as it is opened again, as after its move to another tree.
    ///
    /// # Errors
    /// An error of `open`, or one of reading the state as [`new`](Self::new) does.
    pub fn open_again<E: From<ReplayError>>(
        self,
        open: impl FnOnce(State) -> Result<State, E>,
    ) -> Result<Self, E> {
        let mut replay = Self {
            state: open(self.state)?,
            ..self
        };
        replay.look_back()?;
        replay.publish()?;
        Ok(replay)
    }

    /// The state replayed into.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The state, to flush, prune or roll back.
    pub fn into_state(self) -> State {
        self.state
    }

    /// The number and hash of the latest block.
    pub fn head(&self) -> (u64, B256) {
        self.recent
            .latest()
            .map_or((0, B256::ZERO), |block| (block.header.number, block.hash))
    }

    /// The gas limit of the latest block.
    pub fn gas_limit(&self) -> Option<u64> {
        Some(self.recent.latest()?.header.gas_limit)
    }

    /// Compares a block at or below the head with the database's; says whether the database remembers one.
    ///
    /// # Errors
    /// [`ReplayError::OtherChain`] if the database remembers another hash for it.
    pub fn check_known(&self, number: u64, hash: B256) -> Result<bool, ReplayError> {
        let failed = |error: arbor_versions::VersionsError| ReplayError::State {
            number,
            error: error.into(),
        };
        let versions = self.state.versions();
        let Some(version) = versions.view().version_of_block(number).map_err(failed)? else {
            return Ok(false);
        };
        match versions.view().meta(version).map_err(failed)? {
            Some(meta) if meta.block_hash != hash => {
                let stored = meta.block_hash.into();
                Err(ReplayError::OtherChain {
                    number,
                    given: hash,
                    stored,
                })
            }
            meta => Ok(meta.is_some()),
        }
    }

    /// Replays blocks on top of the head: executes them in their order, verifies every field and the roots that the
    /// options ask for, and commits them. `each` is told of every block committed, in order.
    ///
    /// # Errors
    /// The blocks' own, and what does not hold; the blocks before it are then committed.
    pub fn blocks(
        &mut self,
        blocks: &mut dyn Iterator<Item = Result<RecoveredBlock, ReplayError>>,
        options: Options<'_>,
        each: &mut dyn FnMut(&BlockStats),
    ) -> Result<(), ReplayError> {
        let database = SharedState::new(&mut self.state, self.publisher.as_deref());
        let pipeline = Pipeline {
            database: &database,
            spec: &self.spec,
            executor: &mut self.executor,
            chain: &mut self.recent,
            total_difficulty: &mut self.total_difficulty,
            names: &mut self.names,
            prewarm: &mut self.prewarm,
            options,
            each,
        };
        let result = pipeline.run(blocks);
        if result.is_err() {
            // What was executed beyond the last block committed is forgotten.
            self.look_back()?;
        }
        result
    }

    /// Replays one block, on this thread.
    ///
    /// # Errors
    /// What does not hold; the database is then as it was.
    pub fn block(&mut self, block: RecoveredBlock) -> Result<(), ReplayError> {
        let options = Options {
            verify: Verify::Every,
            roots: Roots::Here,
            check_every: None,
        };
        self.blocks(&mut std::iter::once(Ok(block)), options, &mut |_| {})
    }
}
