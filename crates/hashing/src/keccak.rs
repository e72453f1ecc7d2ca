#![doc = include_str!("keccak.md")]

mod function;
mod lanes;
mod permutation;
mod sponge;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use function::Keccak256;
pub use sponge::RATE;

use crate::{batch::Batch, hasher::Hasher, states::Digest};

/// Keccak-256, the original with padding byte 0x01, on one backend.
pub type Keccak = Hasher<Keccak256>;

/// Messages that are hashed together with Keccak-256.
pub type KeccakBatch = Batch<Keccak256>;

/// Keccak-256 of one message, on [`Backend::detect`](crate::Backend::detect).
#[must_use]
pub fn keccak256(message: &[u8]) -> Digest {
    Keccak::new().hash(message)
}

/// Keccak-256 of each message; see [`Keccak::hash_batch`].
///
/// # Panics
///
/// If `messages` and `digests` differ in length.
pub fn keccak256_batch<M: AsRef<[u8]>>(messages: &[M], digests: &mut [Digest]) {
    Keccak::new().hash_batch(messages, digests);
}

/// Keccak-256 of messages that are all `LEN` bytes; see [`Keccak::hash_fixed`].
///
/// # Panics
///
/// If `messages` and `digests` differ in length.
pub fn keccak256_fixed<const LEN: usize, M>(messages: &[M], digests: &mut [Digest])
where
    M: std::borrow::Borrow<[u8; LEN]>,
{
    Keccak::new().hash_fixed(messages, digests);
}
