//! The main road: execute, compute, compare, commit.

use std::time::Instant;

use alloy_consensus::Header;
use alloy_primitives::{B256, U256};
use arbor_state::{BlockRef, IntermediateRoots, MptState};
use arbor_versions::Version;

use super::error::Failure;
use super::record::{BlockRecord, recent_blocks};
use super::{BlockStats, ReplayError, Times};
use crate::executor::{Ancestor, BlockInput, BlockOutput, Executor, RecentBlocks};
use crate::genesis::{ChainSpec, Genesis};
use crate::senders::RecoveredBlock;

/// A database being replayed into.
pub struct Replay {
    state: MptState,
    spec: ChainSpec,
    executor: Executor,
    recent: RecentBlocks,
    /// The difficulties of all blocks up to the head together, where the head's record has it.
    total_difficulty: Option<U256>,
}

impl Replay {
    /// Continues a database, or begins it with its genesis.
    pub fn new(mut state: MptState, genesis: &Genesis) -> Result<Self, ReplayError> {
        let failed = |error| ReplayError::State { number: 0, error };
        if state.head().is_none() {
            let changes = genesis.state_changes();
            let computed = state.compute(&changes).map_err(failed)?;
            if computed.root() != genesis.header.state_root {
                return Err(ReplayError::StateRoot(Box::new(Failure {
                    number: 0,
                    hash: genesis.hash,
                    expected: genesis.header.state_root,
                    actual: computed.root(),
                    changes,
                    receipts: Vec::new(),
                })));
            }
            let record = BlockRecord {
                block: Ancestor {
                    hash: genesis.hash,
                    header: genesis.header.clone(),
                    ommers: Vec::new(),
                },
                total_difficulty: Some(genesis.header.difficulty),
            };
            let block = BlockRef {
                number: 0,
                hash: genesis.hash,
                header: record.encode(),
            };
            state.commit(&block, computed).map_err(failed)?;
        }
        let mut replay = Self {
            state,
            spec: genesis.spec.clone(),
            executor: Executor::new(),
            recent: RecentBlocks::default(),
            total_difficulty: None,
        };
        replay.look_back()?;
        Ok(replay)
    }

    /// Reads what is remembered of the head and the blocks before it.
    fn look_back(&mut self) -> Result<(), ReplayError> {
        let head = self.state.head().map_or(Version(0), |head| head.version);
        self.recent = recent_blocks(self.state.reader(), head)?;
        self.total_difficulty =
            BlockRecord::of_head(&self.state)?.and_then(|record| record.total_difficulty);
        Ok(())
    }

    /// Returns to block `number`, from which another branch of the chain can be taken.
    ///
    /// # Errors
    /// A block whose state is not retained; the database is then as it was.
    pub fn rollback(&mut self, number: u64) -> Result<(), ReplayError> {
        let failed = |error| ReplayError::State { number, error };
        let versions = self.state.versions().view();
        let version = versions.version_of_block(number);
        let version = version.map_err(|error| failed(error.into()))?;
        self.state
            .rollback(version.ok_or(ReplayError::UnknownBlock(number))?)
            .map_err(failed)?;
        self.look_back()
    }

    /// The state replayed into.
    pub fn state(&self) -> &MptState {
        &self.state
    }

    /// The state, to flush, prune or roll back.
    pub fn into_state(self) -> MptState {
        self.state
    }

    /// The number and hash of the latest block.
    pub fn head(&self) -> (u64, B256) {
        self.recent
            .latest()
            .map_or((0, B256::ZERO), |block| (block.header.number, block.hash))
    }

    /// Compares a block at or below the head with the database's.
    ///
    /// # Errors
    /// [`ReplayError::OtherChain`] if the database remembers another hash for it.
    pub fn check_known(&self, number: u64, hash: B256) -> Result<(), ReplayError> {
        let failed = |error: arbor_versions::VersionsError| ReplayError::State {
            number,
            error: error.into(),
        };
        let versions = self.state.versions();
        let Some(version) = versions.view().version_of_block(number).map_err(failed)? else {
            return Ok(());
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
            _ => Ok(()),
        }
    }

    /// Executes a block on top of the head, verifies every field and root, and commits it.
    ///
    /// # Errors
    /// What does not hold; the database is then as it was.
    pub fn block(&mut self, block: &RecoveredBlock) -> Result<BlockStats, ReplayError> {
        let start = Instant::now();
        let header = &block.block.header;
        let output = self.execute(block)?;
        let changes = output.changes;
        let executed = Instant::now();
        let failed = |error| ReplayError::State {
            number: header.number,
            error,
        };
        let computed = self.state.compute(&changes).map_err(failed)?;
        if computed.root() != header.state_root {
            return Err(ReplayError::StateRoot(Box::new(Failure {
                number: header.number,
                hash: block.hash,
                expected: header.state_root,
                actual: computed.root(),
                changes,
                receipts: output.receipts,
            })));
        }
        let timings = computed.timings();
        let nodes = computed.nodes().len() as u64;
        let committing = Instant::now();
        let ommers: Vec<B256> = block
            .block
            .body
            .ommers
            .iter()
            .map(Header::hash_slow)
            .collect();
        // After the merge nobody asks for it any more.
        let total = self
            .total_difficulty
            .map(|total| total.saturating_add(header.difficulty));
        let record = BlockRecord {
            block: Ancestor {
                hash: block.hash,
                header: header.clone(),
                ommers,
            },
            total_difficulty: total.filter(|_| !self.spec.is_proof_of_stake(header)),
        };
        let reference = BlockRef {
            number: header.number,
            hash: block.hash,
            header: record.encode(),
        };
        self.state.commit(&reference, computed).map_err(failed)?;
        self.total_difficulty = record.total_difficulty;
        self.recent.push(record.block);
        Ok(BlockStats {
            number: header.number,
            transactions: block.block.body.transactions.len() as u64,
            gas: output.gas_used,
            accounts: changes.accounts.len() as u64,
            slots: changes
                .accounts
                .values()
                .map(|account| account.slots.len() as u64)
                .sum(),
            nodes,
            times: Times {
                source: Default::default(),
                execution: executed - start,
                keys: timings.keys,
                tree: timings.tree,
                store: timings.writes + committing.elapsed(),
            },
        })
    }
}

impl Replay {
    fn execute(&mut self, block: &RecoveredBlock) -> Result<BlockOutput, ReplayError> {
        let Some(parent) = self.recent.latest().cloned() else {
            return Err(ReplayError::DamagedHeader(
                block.block.header.number.saturating_sub(1),
            ));
        };
        let input = BlockInput {
            parent_total_difficulty: self.total_difficulty,
            ..BlockInput::new(block, &parent.header, parent.hash, &self.spec)
        };
        let mut roots = self.state.intermediate_roots();
        let roots: &mut dyn IntermediateRoots = &mut roots;
        Ok(self
            .executor
            .execute(&input, &self.state, &self.recent, Some(roots))?)
    }
}
