//! What a configuration says of a chain.

use alloy_primitives::{Address, U256};

use super::rewards::RewardSchedule;
use super::{Activation, Fork};

/// Everything that a [`super::ChainSpec`] is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) chain_id: u64,
    pub(crate) forks: Vec<(Fork, Activation)>,
    pub(crate) terminal_total_difficulty: Option<U256>,
    pub(crate) dao: Option<DaoFork>,
    pub(crate) eip155: Option<u64>,
    pub(crate) merge_netsplit: Option<u64>,
    pub(crate) eip160: Option<u64>,
    pub(crate) blobs: Vec<(Fork, BlobEntry)>,
    pub(crate) deposit_contract: Option<Address>,
    pub(crate) rewards: RewardSchedule,
    pub(crate) bomb: Bomb,
    pub(crate) limitations: Vec<Limitation>,
}

/// An entry of `blobSchedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlobEntry {
    pub(crate) target: u64,
    pub(crate) max: u64,
    pub(crate) fraction: u128,
}

/// How the difficulty bomb is put off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Bomb {
    /// By Byzantium (EIP-649), Constantinople (EIP-1234), Muir Glacier (EIP-2384), London (EIP-3554), Arrow Glacier
    /// (EIP-4345) and Gray Glacier (EIP-5133).
    #[default]
    Ethereum,
    /// Held still for `pause_blocks` blocks from `pause_from` (ECIP-1010), gone from `gone_from` (ECIP-1041).
    Classic {
        pause_from: Option<u64>,
        pause_blocks: u64,
        gone_from: Option<u64>,
    },
}

/// The fork at which mainnet moved the DAO's ether (EIP-779).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaoFork {
    /// Its block.
    pub block: u64,
    /// Whether the chain is on the side that moved it.
    pub support: bool,
}

/// Blocks whose rules cannot be executed exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limitation {
    /// First block concerned.
    pub from: u64,
    /// First block not concerned any more; none if it goes on.
    pub until: Option<u64>,
    /// What differs, and why.
    pub reason: String,
}

impl std::fmt::Display for Limitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            from,
            until,
            reason,
        } = self;
        match until {
            Some(until) => write!(f, "blocks {from} to {}: {reason}", until.saturating_sub(1)),
            None => write!(f, "from block {from}: {reason}"),
        }
    }
}
