//! Two executors over the same blocks: that they agree, and how long each takes.

use std::time::{Duration, Instant};

use arbor_chain::executor::{BlockOutput, Executor};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::replay::ReplayError;

use super::floor::Floor;

/// Executes each block with both, in turns, over the same state in memory.
pub struct SideBySide {
    floor: Floor,
    other: Executor,
}

impl SideBySide {
    /// Begins with a genesis.
    pub fn new(genesis: &Genesis, [one, other]: [Executor; 2]) -> Self {
        Self {
            floor: Floor::new(genesis).with_executor(one),
            other,
        }
    }

    /// Executes the next block so many times with each, and says how long the shortest took each of them.
    ///
    /// Who is first changes from round to round, so that neither always finds what the other has brought to the caches.
    ///
    /// # Errors
    /// The block's own, and [`ReplayError::Different`].
    pub fn block(
        &mut self,
        block: &RecoveredBlock,
        rounds: u32,
    ) -> Result<[Duration; 2], ReplayError> {
        let mut shortest = [Duration::MAX; 2];
        let mut kept: Option<BlockOutput> = None;
        for round in 0..rounds.max(1) {
            for which in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                let (time, output) = self.execute(block, which)?;
                shortest[which] = shortest[which].min(time);
                if let Some(what) = kept.as_ref().and_then(|kept| difference(kept, &output)) {
                    let number = block.block.header.number;
                    return Err(ReplayError::Different { number, what });
                }
                kept = Some(output);
            }
        }
        if let Some(output) = kept {
            self.floor.apply(block, &output);
        }
        Ok(shortest)
    }

    fn execute(
        &mut self,
        block: &RecoveredBlock,
        which: usize,
    ) -> Result<(Duration, BlockOutput), ReplayError> {
        if which == 1 {
            self.floor.swap_executor(&mut self.other);
        }
        let start = Instant::now();
        let output = self.floor.execute(block);
        let time = start.elapsed();
        if which == 1 {
            self.floor.swap_executor(&mut self.other);
        }
        Ok((time, output?))
    }
}

/// What of two results is not the same.
fn difference(one: &BlockOutput, other: &BlockOutput) -> Option<&'static str> {
    let equal = [
        ("changes", one.changes == other.changes),
        ("receipts", one.receipts == other.receipts),
        ("receipts roots", one.receipts_root == other.receipts_root),
        ("filters", one.logs_bloom == other.logs_bloom),
        ("gas", one.gas_used == other.gas_used),
        ("requests", one.requests == other.requests),
    ];
    let different = equal.into_iter().find(|(_, equal)| !equal);
    different.map(|(what, _)| what)
}
