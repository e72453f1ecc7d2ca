//! Studies of executing blocks: without tree and store ([`Floor`]), by two executors next to each other ([`SideBySide`]), how much of a block could run
//! in parallel ([`parallel`]), how large the witnesses of blocks are ([`WitnessSize`]), and what each block reads and changes ([`AccessTables`]).

mod access_tables;
mod block_accesses;
mod floor;
pub mod parallel;
mod side_by_side;
mod witness_size;

pub use access_tables::{ACCESSES, AccessTables, BLOCKS, TablesError};
pub use block_accesses::{ReplayedBlock, block_with_accesses};
pub use floor::Floor;
pub use side_by_side::SideBySide;
pub use witness_size::{WitnessSize, block_with_witness};
