#![doc = include_str!("../../../docs/math/keccak.md")]

mod batch;
mod engine;
mod lanes;
mod permutation;
mod schedule;
mod sponge;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use batch::KeccakBatch;
pub use engine::Keccak;

/// A Keccak-256 digest, in the order of bytes in which Ethereum writes it.
pub type Digest = [u8; 32];

/// Bytes absorbed by one permutation: the 1600 bits of the state less twice the 256 bits of the digest.
pub const RATE: usize = 136;

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
