//! The hash functions of binary trees.

use arbor_hashing::{Blake3, Blake3Batch, Keccak, KeccakBatch, Sha256, Sha256Batch};

use crate::Hash;

/// A hash function of 32 bytes, on the widest instructions that the processor has. The drafts of
/// binary trees leave the choice open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashFunction {
    /// BLAKE3.
    Blake3(Blake3),
    /// SHA-256.
    Sha256(Sha256),
    /// Keccak-256.
    Keccak256(Keccak),
}

/// BLAKE3, the placeholder of the drafts.
impl Default for HashFunction {
    fn default() -> Self {
        Self::Blake3(Blake3::new())
    }
}

impl HashFunction {
    /// The names of all functions as a database has them, the usual one first.
    pub const NAMES: [&'static str; 3] = ["blake3", "sha256", "keccak256"];

    /// Returns the function with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "blake3" => Some(Self::default()),
            "sha256" => Some(Self::Sha256(Sha256::new())),
            "keccak256" => Some(Self::Keccak256(Keccak::new())),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake3(_) => "blake3",
            Self::Sha256(_) => "sha256",
            Self::Keccak256(_) => "keccak256",
        }
    }

    /// Hashes one message.
    #[must_use]
    pub fn hash(self, message: &[u8]) -> Hash {
        match self {
            Self::Blake3(function) => function.hash(message),
            Self::Sha256(function) => function.hash(message),
            Self::Keccak256(function) => function.hash(message),
        }
    }

    /// Hashes messages of one length known to the compiler: names of accounts and slots, pairs of
    /// hashes.
    #[must_use]
    pub fn hash_fixed<const LEN: usize>(self, messages: &[[u8; LEN]]) -> Vec<Hash> {
        let mut digests = vec![[0; 32]; messages.len()];
        match self {
            Self::Blake3(function) => function.hash_fixed(messages, &mut digests),
            Self::Sha256(function) => function.hash_fixed(messages, &mut digests),
            Self::Keccak256(function) => function.hash_fixed(messages, &mut digests),
        }
        digests
    }

    /// Returns a batch without messages.
    #[must_use]
    pub fn batch(self) -> Batch {
        match self {
            Self::Blake3(function) => Batch::Blake3(Blake3Batch::on(function)),
            Self::Sha256(function) => Batch::Sha256(Sha256Batch::on(function)),
            Self::Keccak256(function) => Batch::Keccak256(KeccakBatch::on(function)),
        }
    }
}

/// Messages of any lengths that are hashed together.
#[derive(Debug)]
pub enum Batch {
    /// With BLAKE3.
    Blake3(Blake3Batch),
    /// With SHA-256.
    Sha256(Sha256Batch),
    /// With Keccak-256.
    Keccak256(KeccakBatch),
}

impl Batch {
    /// Adds the message that `write` appends to a buffer.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Self::Blake3(batch) => batch.push_with(write),
            Self::Sha256(batch) => batch.push_with(write),
            Self::Keccak256(batch) => batch.push_with(write),
        };
    }

    /// Hashes what has been pushed, and returns the digests in the order of the pushes.
    pub fn finish(&mut self) -> &[Hash] {
        match self {
            Self::Blake3(batch) => batch.finish(),
            Self::Sha256(batch) => batch.finish(),
            Self::Keccak256(batch) => batch.finish(),
        }
    }
}
