//! Studies of executing blocks: without tree and store ([`Floor`]), by two executors next to each other ([`SideBySide`]), how much of a block could run
//! in parallel ([`parallel`]), and how large the witnesses of blocks are ([`WitnessSize`]).

mod floor;
pub mod parallel;
mod side_by_side;
mod witness_size;

pub use floor::Floor;
pub use side_by_side::SideBySide;
pub use witness_size::{WitnessSize, block_with_witness};
