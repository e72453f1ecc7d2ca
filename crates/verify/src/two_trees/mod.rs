//! Proofs of a state on its way from one tree to another.
//!
//! Its root is the Keccak-256 of both trees' roots, the source's first. A proof has one of each tree, for the same names. What the target has is as it says. What
//! it does not have is as the source says, if it was not moved and not written since; no root shows that, so that the proof says it, and who checks is told.

mod forms;

pub use forms::{Held, OneOfTwo, Place, TwoTrees, VERIFY};
