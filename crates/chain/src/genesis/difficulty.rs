//! The difficulty of proof-of-work blocks.

use alloy_consensus::{EMPTY_OMMER_ROOT_HASH, Header};
use alloy_primitives::U256;

use super::parameters::Bomb;
use super::spec::ChainSpec;
use super::{Activation, Fork};

/// Least difficulty of any block (Yellow Paper, D_0).
const MINIMUM: u64 = 131_072;

/// Blocks in which the bomb doubles once.
const BOMB_PERIOD: u64 = 100_000;

impl Bomb {
    /// The block number that the bomb takes block `number` for; none if there is no bomb.
    fn block(self, spec: &ChainSpec, number: u64) -> Option<u64> {
        match self {
            Self::Ethereum => Some(number.saturating_sub(ethereum_delay(spec, number))),
            Self::Classic {
                gone_from: Some(gone),
                ..
            } if number >= gone => None,
            Self::Classic {
                pause_from: Some(from),
                pause_blocks,
                ..
            } if number >= from => Some(if number < from.saturating_add(pause_blocks) {
                from
            } else {
                number - pause_blocks
            }),
            Self::Classic { .. } => Some(number),
        }
    }
}

/// Blocks by which the glacier forks have put off the bomb. They are optional: a chain may have Berlin without one.
fn ethereum_delay(spec: &ChainSpec, number: u64) -> u64 {
    let delays = [
        (Fork::GrayGlacier, 11_400_000),
        (Fork::ArrowGlacier, 10_700_000),
        (Fork::London, 9_700_000),
        (Fork::MuirGlacier, 9_000_000),
        (Fork::Constantinople, 5_000_000),
        (Fork::Byzantium, 3_000_000),
    ];
    let active =
        |fork| matches!(spec.activation(fork), Some(Activation::Block(block)) if number >= block);
    delays
        .into_iter()
        .find(|(fork, _)| active(*fork))
        .map_or(0, |(_, delay)| delay)
}

impl ChainSpec {
    /// Difficulty that the proof-of-work block after `parent` must have if its timestamp is `timestamp`.
    ///
    /// Yellow Paper, section 4.3.4, with EIP-2 (Homestead) and EIP-100 (Byzantium).
    pub fn next_difficulty(&self, parent: &Header, timestamp: u64) -> U256 {
        let number = parent.number + 1;
        let fork = self.fork_at(number, 0, false);
        let elapsed = timestamp.saturating_sub(parent.timestamp);
        let has_ommers = parent.ommers_hash != EMPTY_OMMER_ROOT_HASH;
        let (up, down) = match fork {
            Fork::Frontier => (u64::from(elapsed < 13), u64::from(elapsed >= 13)),
            f if f < Fork::Byzantium => signed(1, elapsed / 10),
            _ => signed(1 + u64::from(has_ommers), elapsed / 9),
        };
        let step = parent.difficulty / U256::from(2048);
        let difficulty =
            (parent.difficulty + step * U256::from(up)).saturating_sub(step * U256::from(down));
        let difficulty = difficulty.max(U256::from(MINIMUM));
        let period = self
            .bomb
            .block(self, number)
            .map_or(0, |block| block / BOMB_PERIOD);
        if period < 2 {
            difficulty
        } else {
            difficulty + (U256::ONE << U256::from(period - 2))
        }
    }
}

/// max(`gain` - `loss`, -99) as (amount up, amount down).
fn signed(gain: u64, loss: u64) -> (u64, u64) {
    (gain.saturating_sub(loss), loss.saturating_sub(gain).min(99))
}
