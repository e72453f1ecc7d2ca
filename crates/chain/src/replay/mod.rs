//! Replay: blocks in, every header field and root verified, state committed.
//!
//! [`Replay`] holds a database's state, the chain's rules and the recent blocks, and takes one block at a time:
//! execute, compute the root, compare, commit. Nothing of a block that does not verify is applied.
//! [`Floor`](floor::Floor) does the same without tree and store, which is the floor that a replay's time
//! is measured against; [`stateless`] does it over a witness.

mod error;
mod failure_dump;
pub mod floor;
mod genesis_state;
mod make_witness;
mod record;
mod run;
pub mod stateless;
mod stats;

pub use error::{Failure, ReplayError};
pub use genesis_state::genesis_state_root;
pub use make_witness::make_witness;
pub use run::Replay;
pub use stats::{BlockStats, Series, Sums, Times};
