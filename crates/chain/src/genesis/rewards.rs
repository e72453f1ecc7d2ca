//! What proof-of-work blocks pay.

use alloy_primitives::{U256, U512};

use super::Fork;

/// Wei in one ether.
const ETHER: u64 = 1_000_000_000_000_000_000;

/// How the reward of proof-of-work blocks changes over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RewardSchedule {
    /// 5 ether, 3 from Byzantium (EIP-649), 2 from Constantinople (EIP-1234).
    #[default]
    Ethereum,
    /// 5 ether, less a fifth with each era of `era_blocks` blocks (ECIP-1017), from block `from` on.
    Classic {
        /// First block under the rule.
        from: u64,
        /// Blocks in an era: 5,000,000 on Ethereum Classic.
        era_blocks: u64,
    },
}

impl RewardSchedule {
    /// Wei for the author of block `number`, without the share for ommers.
    pub fn block(&self, fork: Fork, number: u64) -> U256 {
        match self.era(number) {
            Some(era) => era_reward(era),
            None => self.plain(fork),
        }
    }

    /// Wei for an ommer's author, and wei for including it.
    ///
    /// The ommer's author gets the block's reward less an eighth for each block between the two, the includer a
    /// thirty-second (Yellow Paper, section 11.3). From ECIP-1017's second era on, both get a thirty-second.
    pub fn ommer(&self, fork: Fork, number: u64, ommer_number: u64) -> (U256, U256) {
        let reward = self.block(fork, number);
        let nephew = reward / U256::from(32);
        if self.era(number).is_some_and(|era| era > 0) {
            return (nephew, nephew);
        }
        let eighths = (ommer_number + 8).saturating_sub(number);
        (reward * U256::from(eighths) / U256::from(8), nephew)
    }

    /// ECIP-1017's era of a block, from 0; none if the rule does not hold.
    fn era(&self, number: u64) -> Option<u64> {
        match *self {
            Self::Classic { from, era_blocks } if number >= from => {
                Some(number.saturating_sub(1) / era_blocks.max(1))
            }
            _ => None,
        }
    }

    fn plain(&self, fork: Fork) -> U256 {
        let ethers = match self {
            Self::Classic { .. } => 5,
            Self::Ethereum if fork >= Fork::Constantinople => 2,
            Self::Ethereum if fork >= Fork::Byzantium => 3,
            Self::Ethereum => 5,
        };
        U256::from(ethers) * U256::from(ETHER)
    }
}

/// 5 ether times (4/5)^era, rounded down once.
fn era_reward(era: u64) -> U256 {
    // Nothing is left after 193 eras; up to there the product has at most 449 bits.
    if era > 193 {
        return U256::ZERO;
    }
    let era = U512::from(era);
    let reward = U512::from(5 * ETHER) * U512::from(4).pow(era) / U512::from(5).pow(era);
    reward.to::<U256>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethereum_pays_five_three_two() {
        let rewards = RewardSchedule::Ethereum;
        let ethers = |fork| rewards.block(fork, 9) / U256::from(ETHER);
        assert_eq!(ethers(Fork::SpuriousDragon), U256::from(5));
        assert_eq!(ethers(Fork::Byzantium), U256::from(3));
        assert_eq!(ethers(Fork::Petersburg), U256::from(2));
        let (ommer, nephew) = rewards.ommer(Fork::Frontier, 100, 98);
        assert_eq!(ommer, U256::from(3_750_000_000_000_000_000u64));
        assert_eq!(nephew, U256::from(156_250_000_000_000_000u64));
    }

    /// The table of ECIP-1017: 5, 4, 3.2, 2.56, 2.048 ether, and ommers of the second era on at a thirty-second.
    #[test]
    fn classic_pays_a_fifth_less_each_era() {
        let rewards = RewardSchedule::Classic {
            from: 5_000_000,
            era_blocks: 5_000_000,
        };
        let pay = |number| rewards.block(Fork::Istanbul, number);
        assert_eq!(pay(5_000_000), U256::from(5 * ETHER));
        assert_eq!(pay(5_000_001), U256::from(4 * ETHER));
        assert_eq!(pay(10_000_001), U256::from(3_200_000_000_000_000_000u64));
        assert_eq!(pay(20_000_001), U256::from(2_048_000_000_000_000_000u64));
        let share = U256::from(125_000_000_000_000_000u64);
        assert_eq!(
            rewards.ommer(Fork::Istanbul, 5_000_001, 5_000_000),
            (share, share)
        );
        assert_eq!(era_reward(1000), U256::ZERO);
        // One multiplication and division rather than a rounded step per era.
        assert_eq!(era_reward(97), U256::from(1_989_292_945u64));
    }
}
