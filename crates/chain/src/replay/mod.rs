//! Replay: blocks in, every header field and root verified, state committed.
//!
//! [`Replay`] holds a database's state, the chain's rules and the recent blocks, and takes block after block:
//! execute, compute the root, compare, commit, the latter three beside the execution of the next blocks. Nothing of a
//! block that does not verify is applied.
//! [`Floor`](floor::Floor) does the same without tree and store, which is the floor that a replay's time
//! is measured against; [`stateless`] does it over a witness.

mod delays;
mod earlier;
mod error;
mod failure_dump;
pub mod floor;
mod foresight;
mod genesis_state;
mod header_check;
mod make_witness;
mod options;
pub mod parallel;
mod pipeline;
mod record;
mod run;
mod settle;
pub mod side_by_side;
pub mod stateless;
mod stats;
mod witness_size;

pub use delays::{DelaySummary, RootDelays};
pub use earlier::{Chain, EarlierBlocks};
pub use error::{Failure, ReplayError};
pub use genesis_state::listed_changes;
pub use header_check::HeaderCheck;
pub use make_witness::{LeafWitness, MadeWitness, make_witness};
pub use options::{Options, Roots, Verify};
pub use run::Replay;
pub use stats::{BlockStats, DatabaseTotals, Series, Sums, Times};
pub use witness_size::{WitnessSize, leaf_parts};
