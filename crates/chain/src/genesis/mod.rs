//! Where a chain begins and which rules it follows: genesis files, presets, fork schedules, block rewards.
//!
//! [`Genesis::load`] reads geth's genesis JSON (and core-geth's, for Ethereum Classic), makes the header of block 0 as
//! the forks active at genesis want it, and turns the configuration into a [`ChainSpec`]. What the file says and this
//! crate does not know is listed in [`Genesis::warnings`]; rules that cannot be executed exactly are listed in
//! [`ChainSpec::limitations`], with the blocks they concern.
//!
//! ```
//! use arbor_chain::genesis::{Fork, Genesis, Network};
//!
//! let genesis = Genesis::preset(Network::Sepolia)?;
//! assert_eq!(genesis.hash, Network::Sepolia.genesis_hash());
//! assert_eq!(genesis.spec.fork_at(2_990_908, 1_677_557_088, true), Fork::Shanghai);
//! # Ok::<(), arbor_chain::genesis::GenesisError>(())
//! ```

mod account;
mod alloc;
mod classic;
mod config;
mod difference;
mod difficulty;
mod error;
mod fields;
mod file;
mod fork;
mod generated;
mod load;
mod network;
mod parameters;
mod population;
mod raw_config;
mod rewards;
mod source;
mod spec;
mod witness_gas;

pub use account::GenesisAccount;
pub use alloc::Alloc;
pub use error::GenesisError;
pub use fork::{Activation, Fork};
pub use generated::{GENERATED_CHAIN_ID, generated_config, generated_spec};
pub use load::{Genesis, naive_state_root};
pub use network::Network;
pub use parameters::{DaoFork, Limitation};
pub use population::Population;
pub use rewards::RewardSchedule;
pub(crate) use source::info;
pub use spec::ChainSpec;
pub use witness_gas::WitnessGas;
