#![doc = include_str!("blake2s.md")]

#[cfg(target_arch = "x86_64")]
mod assembly;
#[cfg(target_arch = "x86_64")]
mod assembly512;
mod compression;
mod fold;
mod function;
mod lanes;
mod states;

pub use compression::BLOCK;
pub use fold::Chain;
pub use function::Blake2s256;

/// BLAKE2s-256 without a key, on one backend.
pub type Blake2s = crate::Hasher<Blake2s256>;
