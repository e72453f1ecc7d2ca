//! How much of a block could be executed side by side: a simulation over what its transactions read and write.
//!
//! A transaction waits for every one before it in its block that wrote what it reads or writes, and takes as long as its gas.
//! What it reads is known before it begins, so the figures are bounds that no scheduler beats, and nothing is executed twice.

use std::collections::HashMap;

use arbor_chain::executor::{Executor, Place, TransactionAccess};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::replay::ReplayError;

use super::floor::Floor;

/// Numbers of cores that are simulated.
pub const CORES: [usize; 4] = [2, 4, 8, 16];

/// What blocks take, in gas of their transactions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spans {
    /// Transactions.
    pub transactions: u64,
    /// One after the other.
    pub serial: u64,
    /// The longest chains of transactions that wait for each other: with as many cores as one likes.
    pub longest_chain: u64,
    /// With so many cores as [`CORES`] says.
    pub on_cores: [u64; CORES.len()],
}

/// Executes a chain's blocks, one after the other, and simulates how they would run on several cores.
pub struct Simulation {
    floor: Floor,
    /// Of all blocks so far.
    pub spans: Spans,
}

impl Simulation {
    /// Begins with a genesis.
    pub fn new(genesis: &Genesis) -> Self {
        let executor = Executor::new().recording_accesses();
        Self {
            floor: Floor::new(genesis).with_executor(executor),
            spans: Spans::default(),
        }
    }

    /// Goes on with a block.
    ///
    /// # Errors
    /// What does not hold of it.
    pub fn block(&mut self, block: &RecoveredBlock) -> Result<(), ReplayError> {
        let output = self.floor.execute(block)?;
        self.floor.apply(block, &output);
        self.spans.add(&spans(&self.floor.take_accesses()));
        Ok(())
    }
}

impl Spans {
    fn add(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.serial += other.serial;
        self.longest_chain += other.longest_chain;
        for (span, more) in self.on_cores.iter_mut().zip(other.on_cores) {
            *span += more;
        }
    }
}

/// What one block takes.
fn spans(transactions: &[TransactionAccess]) -> Spans {
    Spans {
        transactions: transactions.len() as u64,
        serial: transactions.iter().map(|transaction| transaction.gas).sum(),
        longest_chain: span(transactions, transactions.len()),
        on_cores: CORES.map(|cores| span(transactions, cores)),
    }
}

/// When the last transaction ends, on so many cores. Each begins, in their order, as soon as a core is free and all that it
/// waits for are done.
fn span(transactions: &[TransactionAccess], cores: usize) -> u64 {
    let mut free = vec![0u64; cores.max(1)];
    let mut written: HashMap<Place, u64> = HashMap::new();
    for TransactionAccess { reads, writes, gas } in transactions {
        let waits = reads.iter().chain(writes);
        let waits = waits.filter_map(|place| written.get(place)).copied().max();
        let core = free.iter_mut().min().expect("invariant: there is a core");
        let end = waits.unwrap_or(0).max(*core) + gas;
        *core = end;
        written.extend(writes.iter().map(|place| (*place, end)));
    }
    free.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, U256};

    use super::*;

    fn transaction(gas: u64, reads: &[u8], writes: &[u8]) -> TransactionAccess {
        let place = |number: &u8| (Address::repeat_byte(*number), Some(U256::from(*number)));
        TransactionAccess {
            reads: reads.iter().chain(writes).map(place).collect(),
            writes: writes.iter().map(place).collect(),
            gas,
        }
    }

    #[test]
    fn what_shares_nothing_runs_side_by_side() {
        let block: Vec<_> = (0..8)
            .map(|number| transaction(10, &[], &[number]))
            .collect();
        let spans = spans(&block);
        assert_eq!((spans.serial, spans.longest_chain), (80, 10));
        assert_eq!(spans.on_cores, [40, 20, 10, 10]);
    }

    #[test]
    fn a_reader_waits_for_the_writer_before_it_alone() {
        let block = [
            transaction(10, &[1], &[]),
            transaction(20, &[], &[1]),
            transaction(5, &[1], &[2]),
            transaction(7, &[3], &[]),
            transaction(1, &[2], &[]),
        ];
        let spans = spans(&block);
        // The second, third and last make a chain; nobody waits for a mere reader.
        assert_eq!((spans.serial, spans.longest_chain), (43, 26));
        assert_eq!(spans.on_cores[1], 26);
    }
}
