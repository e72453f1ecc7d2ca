//! Programs for EVM384: pairings and signatures on BLS12-381, groups and hashes over other fields, and the checks that a
//! Verkle witness consists of.
//!
//! [`BuiltIn`] lists them, each with a sample; [`rows`] compares them with what they stand for.

pub mod bls12_381;
mod programs;
pub mod rows;

pub use programs::{
    AMPLE_GAS, BuiltIn, PAIRING_CHECK, PrimeField, REFERENCE_STRING, polynomial, verkle,
};
