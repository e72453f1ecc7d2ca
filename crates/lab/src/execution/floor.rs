//! The floor of a replay: the same blocks executed and verified without tree and store.

use std::time::Instant;

use alloy_consensus::Header;

use arbor_chain::executor::{
    Ancestor, BlockInput, BlockOutput, Executor, MemoryState, RecentBlocks, TransactionAccess,
};
use arbor_chain::genesis::{ChainSpec, Genesis};
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::replay::{BlockStats, ReplayError, Times};

/// Executes blocks over plain maps in memory: every header field is verified but the state root, and before
/// Byzantium the receipts root, which needs state roots.
pub struct Floor {
    state: MemoryState,
    spec: ChainSpec,
    executor: Executor,
    recent: RecentBlocks,
}

impl Floor {
    /// Begins with a genesis.
    pub fn new(genesis: &Genesis) -> Self {
        let state = MemoryState::from_genesis(&genesis.alloc);
        let mut recent = RecentBlocks::default();
        recent.push(Ancestor {
            hash: genesis.hash,
            header: genesis.header.clone(),
            ommers: Vec::new(),
        });
        Self {
            state,
            spec: genesis.spec.clone(),
            executor: Executor::new(),
            recent,
        }
    }

    /// Executes with another executor than the usual one.
    #[must_use]
    pub fn with_executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }

    /// What the transactions of the last block read and wrote, if the executor records it.
    pub(super) fn take_accesses(&mut self) -> Vec<TransactionAccess> {
        self.executor.take_accesses()
    }

    /// Executes blocks on top of the last one; `each` is told of every one.
    ///
    /// # Errors
    /// The blocks' own, and what does not hold.
    pub fn blocks(
        &mut self,
        blocks: &mut dyn Iterator<Item = Result<RecoveredBlock, ReplayError>>,
        each: &mut dyn FnMut(&BlockStats),
    ) -> Result<(), ReplayError> {
        loop {
            let start = Instant::now();
            let Some(block) = blocks.next() else {
                return Ok(());
            };
            let block = block?;
            let waited = start.elapsed();
            let mut stats = self.block(&block)?;
            stats.times.source = waited;
            each(&stats);
        }
    }

    /// Executes a block on top of the last one, which it stays.
    pub(super) fn execute(&mut self, block: &RecoveredBlock) -> Result<BlockOutput, ReplayError> {
        let Some(parent) = self.recent.latest().cloned() else {
            return Err(ReplayError::NoParent(block.block.header.number));
        };
        let input = BlockInput::new(block, &parent.header, parent.hash, &self.spec);
        let output = self
            .executor
            .execute(&input, &self.state, &self.recent, None)?;
        Ok(output)
    }

    /// Goes on to a block that was executed.
    pub(super) fn apply(&mut self, block: &RecoveredBlock, output: &BlockOutput) {
        self.state.apply(&output.changes);
        let ommers = block.block.body.ommers.iter().map(Header::hash_slow);
        self.recent.push(Ancestor {
            hash: block.hash,
            header: block.block.header.clone(),
            ommers: ommers.collect(),
        });
    }

    /// Puts another executor in the place of the one that executes.
    pub(super) fn swap_executor(&mut self, other: &mut Executor) {
        std::mem::swap(&mut self.executor, other);
    }

    fn block(&mut self, block: &RecoveredBlock) -> Result<BlockStats, ReplayError> {
        let start = Instant::now();
        let output = self.execute(block)?;
        let executed = start.elapsed();
        self.apply(block, &output);
        Ok(BlockStats {
            number: block.block.header.number,
            hash: block.hash,
            transactions: block.block.body.transactions.len() as u64,
            gas: output.gas_used,
            accounts: output.changes.accounts.len() as u64,
            slots: output
                .changes
                .accounts
                .values()
                .map(|account| account.slots.len() as u64)
                .sum(),
            times: Times {
                execution: executed,
                store: start.elapsed() - executed,
                ..Times::default()
            },
            timestamp: block.block.header.timestamp,
            base_fee: block.block.header.base_fee_per_gas,
            ..BlockStats::default()
        })
    }
}
