//! BLS12-381 as contracts.
//!
//! [`Pairing`] writes a pairing, or one half of it, on points in Montgomery form, and the whole pairing check of EIP-2537; [`Sum`] that standard's additions and multi-scalar multiplications, [`map_to_g2`] its map; [`verifier`] a contract that verifies signatures. Contracts of the standard have its precompiles'
//! encoding and checks.

mod calldata;
mod check;
mod constants;
mod exponentiation;
mod group;
mod hash;
mod miller;
mod msm;
mod points;
mod program;
mod routines;
mod signature;
mod variables;
mod writer;

pub use arbor_evm384::build::{Goal, Program};
pub use constants::{GENERATORS, MODULUS, PARAMETER};
pub use group::Group;
pub use hash::{SIGNATURE_DOMAIN, hash_to_g2, map_to_g2};
pub use msm::{ORDER, Sum};
pub use program::{Pairing, Part};
pub(crate) use signature::sample as signature_sample;
pub use signature::verifier;
