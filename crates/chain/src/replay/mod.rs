//! Replay: blocks in, every header field and root verified, state committed.
//!
//! [`Replay`] holds a database's state, the chain's rules and the recent blocks, and takes block after block:
//! execute, compute the root, compare, commit, the latter three beside the execution of the next blocks. Nothing of a
//! block that does not verify is applied.
//! [`stateless`](crate::witness::stateless) does the same over a witness.

mod ancestry;
mod delays;
mod earlier;
mod error;
mod failure_dump;
mod genesis_state;
mod header_check;
mod options;
mod pipeline;
mod prewarm;
pub(crate) mod record;
mod run;
mod settle;
mod stats;

pub use ancestry::{KeptBlock, RootInChain, blocks_of_chain, blocks_up_to, find_root, kept_header};
pub use delays::{DelaySummary, RootDelays};
pub use earlier::{Chain, EarlierBlocks};
pub(crate) use error::of_whole_state;
pub use error::{Failure, ReplayError};
pub use genesis_state::listed_changes;
pub use header_check::HeaderCheck;
pub use options::{Options, Publish, Roots, Verify};
pub use record::recent_blocks;
pub use run::Replay;
pub use stats::{BlockStats, DatabaseTotals, Series, Sums, Times};
