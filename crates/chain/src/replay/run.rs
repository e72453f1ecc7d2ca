//! The main road: execute, compute, compare, commit.

use std::time::Instant;

use alloy_consensus::Header;
use alloy_primitives::B256;
use alloy_rlp::{Decodable, Encodable};
use arbor_state::{BlockRef, Head, IntermediateRoots, MptState, StateError};
use arbor_versions::{Meta, Version};

use super::error::Failure;
use super::{BlockStats, ReplayError, Times};
use crate::executor::{Ancestor, BlockInput, BlockOutput, Executor, RecentBlocks};
use crate::genesis::{ChainSpec, Genesis};
use crate::senders::RecoveredBlock;

/// Blocks that `BLOCKHASH` and ommer validation look back on.
const RECENT: u64 = 256;

/// A database being replayed into.
pub struct Replay {
    state: MptState,
    spec: ChainSpec,
    executor: Executor,
    recent: RecentBlocks,
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
                    computed,
                })));
            }
            let block = BlockRef {
                number: 0,
                hash: genesis.hash,
                header: stored_header(&genesis.header, &[]),
            };
            state.commit(&block, computed).map_err(failed)?;
        }
        let recent = recent_blocks(&state)?;
        Ok(Self {
            state,
            spec: genesis.spec.clone(),
            executor: Executor::new(),
            recent,
        })
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
                computed,
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
        let reference = BlockRef {
            number: header.number,
            hash: block.hash,
            header: stored_header(header, &ommers),
        };
        self.state.commit(&reference, computed).map_err(failed)?;
        self.recent.push(Ancestor {
            hash: block.hash,
            header: header.clone(),
            ommers,
        });
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
        let input = BlockInput::new(block, &parent.header, parent.hash, &self.spec);
        let mut roots = self.state.intermediate_roots();
        let roots: &mut dyn IntermediateRoots = &mut roots;
        Ok(self
            .executor
            .execute(&input, &self.state, &self.recent, Some(roots))?)
    }
}

/// What a version keeps of its block: the header's RLP, then the hashes of its ommers.
fn stored_header(header: &Header, ommers: &[B256]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(header.length() + 32 * ommers.len());
    header.encode(&mut bytes);
    ommers
        .iter()
        .for_each(|hash| bytes.extend_from_slice(hash.as_slice()));
    bytes
}

/// The block of a version as execution of later blocks needs it.
pub(super) fn ancestor(meta: &Meta) -> Result<Ancestor, ReplayError> {
    let damaged = || ReplayError::DamagedHeader(meta.block_number);
    let mut rest = &meta.extra[..];
    let header = Header::decode(&mut rest).map_err(|_| damaged())?;
    if !rest.len().is_multiple_of(32) {
        return Err(damaged());
    }
    Ok(Ancestor {
        hash: meta.block_hash.into(),
        header,
        ommers: rest.chunks(32).map(B256::from_slice).collect(),
    })
}

/// The latest blocks of a database.
fn recent_blocks(state: &MptState) -> Result<RecentBlocks, ReplayError> {
    let head = state.head().map_or(0, |head| head.version.0);
    recent_blocks_at(state.reader(), Version(head))
}

/// The blocks up to a version, as many as are remembered and needed.
pub(crate) fn recent_blocks_at(
    state: Head<'_>,
    head: Version,
) -> Result<RecentBlocks, ReplayError> {
    let mut recent = RecentBlocks::default();
    for version in head.0.saturating_sub(RECENT)..=head.0 {
        let failed = |error: arbor_versions::VersionsError| ReplayError::State {
            number: version,
            error: StateError::from(error),
        };
        if let Some(meta) = state.view().meta(Version(version)).map_err(failed)? {
            recent.push(ancestor(&meta)?);
        }
    }
    Ok(recent)
}
