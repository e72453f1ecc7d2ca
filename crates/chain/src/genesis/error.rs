//! What can be wrong with a genesis.

use std::path::PathBuf;

use alloy_primitives::{Address, B256};

use super::Fork;
use crate::bounded_input::InputError;

/// Why a genesis cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    /// A genesis that is another block than the first.
    #[error("its number is {0}, and a genesis is block 0")]
    Number(u64),
    /// The file cannot be read, or is too long.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file is not JSON of the form wanted; the message has line and column.
    #[error("genesis is not in geth's form: {0}")]
    Json(#[from] serde_json::Error),
    /// A file of another program's form.
    #[error(
        "this is a chainspec in Nethermind's or Parity's form (it has {0} and no gasLimit): convert it to geth's genesis.json"
    )]
    Chainspec(String),
    /// A field that every genesis has.
    #[error("genesis has no {0}")]
    Missing(&'static str),
    /// A field has a value that cannot be used.
    #[error("genesis: {field} is {reason}")]
    Field {
        /// Its path in the file.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// An account is listed twice in `alloc`.
    #[error("genesis alloc lists account {0:#x} twice")]
    DuplicateAccount(Address),
    /// A later fork is set to start before an earlier one, or without it.
    #[error("genesis config: {later:?} starts at {later_at}, but {earlier:?}, which it builds on, {}", match earlier_at { Some(at) => format!("at {at}"), None => "never".into() })]
    ForkOrder {
        /// The fork that must come first.
        earlier: Fork,
        /// Its block or time; none if it is not set.
        earlier_at: Option<String>,
        /// The fork that builds on it.
        later: Fork,
        /// Its block or time.
        later_at: String,
    },
    /// The file has no `config`, and its block is not a known network's.
    #[error(
        "genesis has no config, and its block {0} is not block 0 of mainnet, sepolia, holesky or hoodi"
    )]
    NoConfig(B256),
    /// The file counts accounts instead of listing them, and states no root.
    #[error("genesis has a population but does not say its state root")]
    NoStateRoot,
    /// The file states a state root that its accounts do not have.
    #[error("genesis says state root {stated}, but its accounts have {computed}")]
    StateRoot {
        /// Root in the file.
        stated: B256,
        /// Root of the accounts.
        computed: B256,
    },
    /// A folder in place of a file.
    #[error("{} is a folder: give the genesis file in it, or the name of a network", .0.display())]
    Folder(PathBuf),
    /// Neither a file nor a preset.
    #[error("{0} is neither a file nor one of mainnet, sepolia, holesky, hoodi")]
    UnknownPreset(String),
    /// Genesis and blocks belong to different networks.
    #[error("this is {genesis_network}'s genesis ({genesis_hash}), the chain holds {chain_network} blocks{}", chain_genesis.map(|hash| format!(" (from genesis {hash})")).unwrap_or_default())]
    WrongNetwork {
        /// Network of the genesis, or "another network".
        genesis_network: String,
        /// Its hash.
        genesis_hash: B256,
        /// Network of the blocks, or "another network's".
        chain_network: String,
        /// Block 0 of the blocks' chain, where known.
        chain_genesis: Option<B256>,
    },
}
