//! The counter of states.

/// Our own counter of applied states; 0 is the first, usually genesis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version(pub u64);
