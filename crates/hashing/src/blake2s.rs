#![doc = include_str!("../../../docs/math/blake2s.md")]

#[cfg(target_arch = "x86_64")]
mod assembly;
#[cfg(target_arch = "x86_64")]
mod assembly512;
mod batch;
mod compression;
mod engine;
mod fold;
mod lanes;
mod single;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use engine::Blake2s;
pub use fold::Chain;

/// A BLAKE2s-256 digest.
pub type Digest = [u8; 32];

/// Bytes that one compression takes in.
pub const BLOCK: usize = 64;
