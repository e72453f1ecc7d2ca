#![doc = include_str!("secp256k1.md")]
// One index for several arrays of vectors: closures, which iterators need, must not touch vectors.
#![allow(clippy::needless_range_loop)]

mod base;
mod combination;
mod generator;
mod group;
mod library;
mod method;
mod recovery;
mod runner;
mod scalar;
mod vector;
mod verification;

pub use method::Method;

use arbor_hashing::{Digest, keccak256_fixed};

/// A public key: its two coordinates, each 32 bytes, most significant byte first.
pub type Key = [u8; 64];

/// A digest and a signature of it. Numbers are 32 bytes, most significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    /// What was signed.
    pub digest: Digest,
    /// The signature's first number.
    pub r: [u8; 32],
    /// The signature's second number.
    pub s: [u8; 32],
    /// The lower bit of the recovery id: whether the y coordinate of the signer's point is odd.
    pub y_is_odd: bool,
    /// The upper bit of the recovery id: whether the point's x coordinate is `r` plus the group's order.
    /// No transaction has it.
    pub x_is_large: bool,
}

/// Why a signature has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrecoverable {
    /// `r` or `s` is no residue.
    #[error("r or s is not below the order of the group")]
    OutOfRange,
    /// `r` or `s` is zero, no point has that x coordinate, or the key would be infinity.
    #[error("no key can have made the signature")]
    NoKey,
}

/// Ethereum's addresses of keys, hashed in lanes.
#[must_use]
pub fn addresses(keys: &[Key]) -> Vec<[u8; 20]> {
    let mut hashes = vec![[0; 32]; keys.len()];
    keccak256_fixed(keys, &mut hashes);
    let mut addresses = vec![[0; 20]; keys.len()];
    for (address, hash) in addresses.iter_mut().zip(&hashes) {
        address.copy_from_slice(&hash[12..]);
    }
    addresses
}
