//! Pairings on BLS12-381 as contracts.
//!
//! [`Pairing`] writes three kinds of code: a pairing, or one half of it, on points in Montgomery form; and the whole pairing check of EIP-2537 with that
//! precompile's encoding, all checks included.

mod calldata;
mod check;
mod constants;
mod exponentiation;
mod miller;
mod points;
mod program;
mod routines;

pub use calldata::precompile;
pub use constants::{GENERATORS, MODULUS, PARAMETER};
pub use program::{Goal, Pairing, Part, Program};
