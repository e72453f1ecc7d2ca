//! A chain's rules over time.

use std::collections::BTreeMap;

use alloy_consensus::Header;
use alloy_eips::eip7840::{BLOB_BASE_COST, BlobParams};
use alloy_primitives::{Address, U256};
use revm::primitives::hardfork::SpecId;

use super::parameters::{BlobEntry, Bomb, Config, DaoFork, Limitation};
use super::raw_config::RawConfig;
use super::rewards::RewardSchedule;
use super::{Activation, Fork, GenesisError, WitnessGas};

/// Which rules hold at which block: forks, blob parameters, rewards, difficulty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSpec {
    pub(super) chain_id: u64,
    pub(super) forks: BTreeMap<Fork, Activation>,
    pub(super) terminal_total_difficulty: Option<U256>,
    /// Number of the first proof-of-stake block, if it is known.
    pub(super) merge_block: Option<u64>,
    pub(super) dao: Option<DaoFork>,
    pub(super) eip155: Option<u64>,
    /// In the fork identifier alone (EIP-2124): no rule begins there.
    pub(super) merge_netsplit: Option<u64>,
    pub(super) eip160: Option<u64>,
    /// By activation time, ascending.
    pub(super) blobs: Vec<(u64, BlobParams)>,
    pub(super) deposit_contract: Option<Address>,
    pub(super) rewards: RewardSchedule,
    pub(super) bomb: Bomb,
    pub(super) limitations: Vec<Limitation>,
    pub(super) witness_gas: Option<WitnessGas>,
}

impl ChainSpec {
    pub(super) fn new(config: Config) -> Result<Self, GenesisError> {
        let mut forks: BTreeMap<Fork, Activation> = config.forks.into_iter().collect();
        if config.terminal_total_difficulty.is_some() {
            forks.insert(Fork::Paris, Activation::Merge);
        }
        // A missing Petersburg starts with Constantinople.
        if let Some(constantinople) = forks.get(&Fork::Constantinople).copied() {
            forks.entry(Fork::Petersburg).or_insert(constantinople);
        }
        check_order(&forks)?;
        let blobs = blob_schedule(&forks, &config.blobs);
        let spec = Self {
            chain_id: config.chain_id,
            forks,
            terminal_total_difficulty: config.terminal_total_difficulty,
            // Every total difficulty reaches 0, so that only the genesis is not one of proof of stake.
            merge_block: (config.terminal_total_difficulty == Some(U256::ZERO)).then_some(1),
            dao: config.dao,
            eip155: config.eip155,
            merge_netsplit: config.merge_netsplit,
            eip160: config.eip160,
            blobs,
            deposit_contract: config.deposit_contract,
            rewards: config.rewards,
            bomb: config.bomb,
            limitations: config.limitations,
            witness_gas: None,
        };
        Ok(spec)
    }

    /// Reads a configuration in geth's form: the `config` of a genesis file. The second value lists what it says
    /// without effect.
    ///
    /// # Errors
    /// [`GenesisError`] if it is not in that form, or forks contradict each other.
    pub fn from_json(config: &str) -> Result<(Self, Vec<String>), GenesisError> {
        let (config, warnings) = RawConfig::of_text(config)?.read()?;
        Ok((Self::new(config)?, warnings))
    }

    /// Chain id (EIP-155).
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// Whether execution pays for its part of a witness (EIP-4762), and by which text. No configuration says so by itself.
    pub const fn witness_gas(&self) -> Option<WitnessGas> {
        self.witness_gas
    }

    /// Has gas charged in that way, from the first block on.
    pub const fn set_witness_gas(&mut self, text: Option<WitnessGas>) {
        self.witness_gas = text;
    }

    /// The forks that are set, in order. Frontier, which always holds, is not among them.
    pub fn forks(&self) -> impl Iterator<Item = (Fork, Activation)> + '_ {
        self.forks.iter().map(|(fork, at)| (*fork, *at))
    }

    /// When `fork` starts, if it is set.
    pub fn activation(&self, fork: Fork) -> Option<Activation> {
        self.forks.get(&fork).copied()
    }

    /// The latest fork whose rules hold for a block. `merged`: the block is a proof-of-stake block; forks by time wait
    /// for that, as the execution specifications have it.
    pub fn fork_at(&self, number: u64, timestamp: u64, merged: bool) -> Fork {
        let active = |at: &Activation| match *at {
            Activation::Block(block) => number >= block,
            Activation::Merge => merged,
            Activation::Time(time) => merged && timestamp >= time,
        };
        self.forks
            .iter()
            .rev()
            .find(|(_, at)| active(at))
            .map_or(Fork::Frontier, |(fork, _)| *fork)
    }

    /// The latest fork whose rules hold for the block of `header`.
    pub fn fork_of(&self, header: &Header) -> Fork {
        self.fork_at(
            header.number,
            header.timestamp,
            self.is_proof_of_stake(header),
        )
    }

    /// The rules that revm runs for the block of `header`.
    pub fn spec_id_of(&self, header: &Header) -> SpecId {
        self.fork_of(header).spec_id()
    }

    /// Whether the block is a proof-of-stake block (EIP-3675). Its number decides if it is known at which block the chain
    /// merged; otherwise its difficulty of 0.
    pub fn is_proof_of_stake(&self, header: &Header) -> bool {
        match (self.terminal_total_difficulty, self.merge_block) {
            (None, _) => false,
            (Some(_), Some(first)) if header.number > 0 => header.number >= first,
            (Some(_), _) => header.difficulty.is_zero(),
        }
    }

    /// Number of the first proof-of-stake block, if it is known: on public networks, and if every total difficulty
    /// suffices.
    pub const fn merge_block(&self) -> Option<u64> {
        self.merge_block
    }

    /// The block that stands for the merge in the chain's fork identifier (EIP-2124, EIP-3675), if one does.
    pub const fn merge_netsplit_block(&self) -> Option<u64> {
        self.merge_netsplit
    }

    /// Total difficulty that the last proof-of-work block must reach, none if the chain never merges.
    pub const fn terminal_total_difficulty(&self) -> Option<U256> {
        self.terminal_total_difficulty
    }

    /// Whether the DAO's ether moves before this block's transactions.
    pub fn is_dao_fork_block(&self, number: u64) -> bool {
        self.dao
            .is_some_and(|dao| dao.support && dao.block == number)
    }

    /// The DAO fork, if the chain had one.
    pub const fn dao_fork(&self) -> Option<DaoFork> {
        self.dao
    }

    /// Whether a legacy transaction may carry the chain id in its signature (EIP-155).
    pub fn is_eip155_active(&self, number: u64) -> bool {
        self.eip155.is_some_and(|block| number >= block)
    }

    /// Gas of each byte of EXP's exponent where it differs from what revm takes for the block's [`SpecId`]: 50 on chains
    /// that had EIP-160 before the rest of Spurious Dragon (Ethereum Classic).
    pub fn exp_byte_gas_override(&self, number: u64) -> Option<u64> {
        let spurious = match self.activation(Fork::SpuriousDragon) {
            Some(Activation::Block(block)) => block,
            _ => u64::MAX,
        };
        self.eip160
            .filter(|block| (*block..spurious).contains(&number))
            .map(|_| 50)
    }

    /// Blob parameters at a time; none before Cancun.
    pub fn blob_params_at(&self, timestamp: u64) -> Option<BlobParams> {
        self.blobs
            .iter()
            .rev()
            .find(|(time, _)| timestamp >= *time)
            .map(|(_, params)| *params)
    }

    /// Address whose logs are deposit requests (EIP-6110).
    pub const fn deposit_contract(&self) -> Option<Address> {
        self.deposit_contract
    }

    /// What proof-of-work blocks pay.
    pub const fn rewards(&self) -> &RewardSchedule {
        &self.rewards
    }

    /// Wei that the author of proof-of-work block `number` gets, without the share for ommers.
    pub fn block_reward(&self, number: u64) -> U256 {
        self.rewards.block(self.fork_at(number, 0, false), number)
    }

    /// Wei that the author of an ommer gets, and wei that the author of block `number` gets for including it.
    pub fn ommer_rewards(&self, number: u64, ommer_number: u64) -> (U256, U256) {
        self.rewards
            .ommer(self.fork_at(number, 0, false), number, ommer_number)
    }

    /// What cannot be executed exactly, and on which blocks.
    pub fn limitations(&self) -> &[Limitation] {
        &self.limitations
    }
}

/// Checks that every fork starts no earlier than those it builds on.
fn check_order(forks: &BTreeMap<Fork, Activation>) -> Result<(), GenesisError> {
    let wrong = |earlier: Fork, later: Fork| GenesisError::ForkOrder {
        earlier,
        earlier_at: forks.get(&earlier).map(ToString::to_string),
        later,
        later_at: forks[&later].to_string(),
    };
    let rank = |at: Activation| match at {
        Activation::Block(block) => (0, block),
        Activation::Merge => (1, 0),
        Activation::Time(time) => (2, time),
    };
    let mut previous: Option<(Fork, Activation)> = None;
    for (&fork, &at) in forks {
        // Amsterdam builds on Osaka; blob parameters may change before or after it.
        let base = previous.filter(|_| fork != Fork::Amsterdam);
        let base = base.or_else(|| {
            forks
                .get(&Fork::Osaka)
                .map(|at| (Fork::Osaka, *at))
                .filter(|_| fork == Fork::Amsterdam)
        });
        if let Some((earlier, earlier_at)) = base
            && rank(at) < rank(earlier_at)
        {
            return Err(wrong(earlier, fork));
        }
        if let Some(missing) = required_base(fork).filter(|base| !forks.contains_key(base)) {
            return Err(wrong(missing, fork));
        }
        previous = Some((fork, at));
    }
    Ok(())
}

/// The fork that must be set for `fork` to be.
const fn required_base(fork: Fork) -> Option<Fork> {
    match fork {
        Fork::Frontier | Fork::Homestead | Fork::Paris => None,
        Fork::TangerineWhistle => Some(Fork::Homestead),
        Fork::SpuriousDragon => Some(Fork::TangerineWhistle),
        Fork::Byzantium => Some(Fork::SpuriousDragon),
        Fork::Constantinople | Fork::Petersburg => Some(Fork::Byzantium),
        Fork::Istanbul => Some(Fork::Petersburg),
        Fork::MuirGlacier | Fork::Berlin => Some(Fork::Istanbul),
        Fork::London => Some(Fork::Berlin),
        Fork::ArrowGlacier | Fork::GrayGlacier => Some(Fork::London),
        Fork::Shanghai => Some(Fork::Paris),
        Fork::Cancun => Some(Fork::Shanghai),
        Fork::Prague => Some(Fork::Cancun),
        Fork::Osaka => Some(Fork::Prague),
        Fork::Bpo1 | Fork::Bpo2 | Fork::Bpo3 | Fork::Bpo4 | Fork::Bpo5 | Fork::Amsterdam => {
            Some(Fork::Osaka)
        }
    }
}

/// Blob parameters by time (EIP-7840). A fork without an entry of its own keeps the target, maximum and fraction that
/// hold before it; Cancun and Prague have defaults (EIP-4844, EIP-7691).
fn blob_schedule(
    forks: &BTreeMap<Fork, Activation>,
    entries: &[(Fork, BlobEntry)],
) -> Vec<(u64, BlobParams)> {
    let mut times: Vec<(u64, Fork)> = forks
        .iter()
        .filter(|(fork, _)| **fork >= Fork::Cancun)
        .filter_map(|(fork, at)| match at {
            Activation::Time(time) => Some((*time, *fork)),
            _ => None,
        })
        .collect();
    times.sort();
    let mut current = BlobParams::cancun();
    let mut schedule = Vec::new();
    for (time, fork) in times {
        let entry = entries
            .iter()
            .find(|(of, _)| *of == fork)
            .map(|(_, entry)| entry);
        current = match (entry, fork) {
            (Some(entry), _) => BlobParams {
                target_blob_count: entry.target,
                max_blob_count: entry.max,
                update_fraction: entry.fraction,
                max_blobs_per_tx: entry.max,
                ..current
            },
            (None, Fork::Prague) => BlobParams::prague(),
            (None, _) => current,
        };
        if fork >= Fork::Osaka {
            // EIP-7594 limits the blobs of a transaction, EIP-7918 ties their price to execution.
            current.max_blobs_per_tx = BlobParams::osaka().max_blobs_per_tx;
            current.blob_base_cost = BLOB_BASE_COST;
        }
        schedule.push((time, current));
    }
    schedule
}
