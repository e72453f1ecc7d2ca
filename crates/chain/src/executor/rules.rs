//! The rules in force for one block.

use alloy_consensus::Header;
use alloy_eips::eip7840::BlobParams;
use alloy_primitives::{Address, U256};
use revm::primitives::hardfork::SpecId;

use crate::genesis::{ChainSpec, Fork, RewardSchedule, WitnessGas};

/// Blocks from the DAO fork on whose extra data is bound (EIP-779).
const DAO_EXTRA_DATA_BLOCKS: u64 = 10;

/// What the DAO fork (EIP-779) demands of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DaoRule {
    /// Nothing: the block is not among the ten from the fork on.
    #[default]
    None,
    /// The extra data must not be `dao-hard-fork`: this chain stayed as it was.
    Opposed,
    /// The extra data must be `dao-hard-fork`.
    Supported,
    /// As [`DaoRule::Supported`], and the balances are moved before the first transaction.
    Transition,
}

/// Everything that a chain's configuration says about one block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Chain id, for EIP-155 and the `CHAINID` opcode.
    pub chain_id: u64,
    /// The fork.
    pub fork: Fork,
    /// The fork as revm knows it.
    pub spec: SpecId,
    /// Whether signatures may carry the chain id (EIP-155).
    pub eip155: bool,
    /// Whether London begins with this block: the parent has no base fee and its gas limit counts twice.
    pub london_begins: bool,
    /// The difficulty that the header must have; zero from the merge on.
    pub difficulty: U256,
    /// What a proof-of-work block pays.
    pub rewards: RewardSchedule,
    /// The DAO fork.
    pub dao: DaoRule,
    /// Gas for each byte of `EXP`'s exponent, where it is not what revm takes for `spec`.
    pub exp_byte_gas: Option<u64>,
    /// Blob parameters (EIP-7840), from Cancun on.
    pub blobs: Option<BlobParams>,
    /// The contract whose logs are deposits (EIP-6110), if the chain has one.
    pub deposit_contract: Option<Address>,
    /// Whether execution pays for its part of a witness, and by which text.
    pub witness_gas: Option<WitnessGas>,
}

impl Rules {
    /// Returns what `chain` says about the block of `header` after `parent`.
    ///
    /// Whether it is a block of proof of stake is decided by `parent_total_difficulty` (the difficulties of
    /// all blocks up to the parent together, EIP-3675); where that is not known, by the header's own
    /// difficulty being zero, and by the parent being one.
    pub fn at(
        chain: &ChainSpec,
        header: &Header,
        parent: &Header,
        parent_total_difficulty: Option<U256>,
    ) -> Self {
        let (number, timestamp) = (header.number, header.timestamp);
        let merged = match (chain.terminal_total_difficulty(), parent_total_difficulty) {
            (None, _) => false,
            (Some(terminal), Some(total)) => total >= terminal,
            (Some(_), None) => chain.is_proof_of_stake(header) || chain.is_proof_of_stake(parent),
        };
        let fork = chain.fork_at(number, timestamp, merged);
        let spec = fork.spec_id();
        let has = |other| spec.is_enabled_in(other);
        Self {
            chain_id: chain.chain_id(),
            fork,
            spec,
            eip155: chain.is_eip155_active(number),
            london_begins: has(SpecId::LONDON) && parent.base_fee_per_gas.is_none(),
            difficulty: if merged {
                U256::ZERO
            } else {
                chain.next_difficulty(parent, timestamp)
            },
            rewards: *chain.rewards(),
            dao: dao_rule(chain, number),
            exp_byte_gas: chain.exp_byte_gas_override(number),
            blobs: chain
                .blob_params_at(timestamp)
                .filter(|_| has(SpecId::CANCUN)),
            deposit_contract: chain.deposit_contract(),
            witness_gas: chain.witness_gas(),
        }
    }

    /// Tells whether a fork is in force.
    pub fn has(&self, spec: SpecId) -> bool {
        self.spec.is_enabled_in(spec)
    }

    /// Tells whether the block is one of proof of stake.
    pub fn is_merged(&self) -> bool {
        self.has(SpecId::MERGE)
    }
}

fn dao_rule(chain: &ChainSpec, number: u64) -> DaoRule {
    let Some(dao) = chain.dao_fork() else {
        return DaoRule::None;
    };
    match number.checked_sub(dao.block) {
        Some(0) if dao.support => DaoRule::Transition,
        Some(age) if age < DAO_EXTRA_DATA_BLOCKS => {
            if dao.support {
                DaoRule::Supported
            } else {
                DaoRule::Opposed
            }
        }
        _ => DaoRule::None,
    }
}
