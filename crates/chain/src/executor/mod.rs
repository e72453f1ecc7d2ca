//! Executes and verifies one block over any state view.
//!
//! The driver is a thin one over revm: [`Executor::execute`] takes a [`BlockInput`] (the block, its senders,
//! its parent and the [`Rules`] in force), reads the parent's state through a
//! [`StateView`](arbor_state::StateView) and past blocks through [`Ancestors`], and returns a [`BlockOutput`]:
//! the block's [`StateChanges`](arbor_state::StateChanges), receipts, requests and the values that a header
//! commits to. Nothing is written anywhere, and the state root is left to the caller, who owns the tree.
//!
//! The steps, each usable alone:
//!
//! 1. [`check_header`]: the header against its parent;
//! 2. [`check_body`]: the body against the header, ommers against recent ancestors;
//! 3. [`Executor::run`]: system calls, transactions, withdrawals, rewards, requests;
//! 4. [`BlockOutput::check`]: gas, receipts, bloom and requests against the header.
//!
//! A block that breaks a rule is an [`ExecutionError::Invalid`] with the block's number and hash and a
//! [`BlockError`] that names field, expected and actual value. A state that cannot be read is an
//! [`ExecutionError::State`], never a failed transaction.
//!
//! ```
//! use alloy_consensus::Header;
//! use alloy_primitives::U256;
//! use arbor_chain::executor::{Block, Executor, MemoryState, RecentBlocks, Rules};
//! use arbor_chain::genesis::{Genesis, Network};
//!
//! let genesis = Genesis::preset(Network::Sepolia)?;
//! let state = MemoryState::from_genesis(&genesis.alloc);
//! // A proof-of-work block without transactions: all that it does is pay its miner two ether.
//! let difficulty = U256::from(131_072);
//! let header = Header { number: 1, difficulty, ..Header::default() };
//! let rules = Rules::at(&genesis.spec, &header, &genesis.header, None);
//! let (block, chain) = (Block::uncle(header), RecentBlocks::default());
//! let output = Executor::new().run(&rules, &block, &[], &state, &chain, None)?;
//! let miner = output.changes.accounts[&block.header.beneficiary].new.expect("paid");
//! assert_eq!(miner.balance, U256::from(2_000_000_000_000_000_000u64));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With [`Executor::with_evm384`] a chain has 384-bit arithmetic as opcodes besides its fork's.
//!
//! Forks from Frontier to Osaka with its blob-parameter forks are covered. Two things are not: proof-of-work
//! seals are not checked; Amsterdam (block access lists) is refused by name. Beside all of them, gas for witnesses
//! (EIP-4762) can be charged, where a chain's specification says so ([`Rules::witness_gas`]).

mod access_events;
mod accesses;
mod ancestors;
mod block;
mod body;
mod bounds;
mod call;
mod code_cache;
mod code_reads;
mod context;
mod creation;
mod dao_accounts;
mod eip1283;
mod error;
mod execution_error;
mod fees;
mod hash_cache;
mod header;
mod keccak256;
mod memory_state;
mod metering;
mod ommers;
mod output;
mod overlay;
mod receipts;
mod recording;
mod requests;
mod rewards;
mod ripemd;
mod rules;
mod stop;
mod system;
mod transaction;

pub use access_events::LeafName;
pub use accesses::{Place, TransactionAccess};
pub use ancestors::{Ancestor, Ancestors, RecentBlocks};
pub use arbor_evm384::{GasSchedule, Interface};
pub use block::{BlockInput, Evm384, Executor};
pub use body::{Block, BodyFacts, check_body};
pub use bounds::Exceeded;
pub use call::{Call, CallEnd, CallError, CallOutcome, CallPlace};
pub use error::{BlockError, TransactionError};
pub use execution_error::ExecutionError;
pub use header::check_header;
pub use memory_state::MemoryState;
pub use ommers::OmmerCheck;
pub use output::{BlockOutput, CodeReads, Timings};
pub use recording::{Reads, RecordingView};
pub use revm::context::result::{HaltReason, InvalidTransaction};
pub use revm::primitives::hardfork::SpecId;
pub use rules::{DaoRule, Rules};
pub(crate) use transaction::authority;
