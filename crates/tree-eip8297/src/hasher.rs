//! The hash function, and nodes hashed in batches.

use arbor_hashing::{Blake3, Blake3Batch, Keccak, KeccakBatch, Sha256, Sha256Batch};

use crate::{Hash, Path};

/// First byte of a leaf's message (EIP-8297, "Node hashing").
pub const LEAF: u8 = 0;
/// First byte of a branch's message.
pub const BRANCH: u8 = 1;

/// The hash function of a tree, which the EIP leaves open: BLAKE3 is its placeholder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hasher {
    /// BLAKE3.
    Blake3(Blake3),
    /// SHA-256.
    Sha256(Sha256),
    /// Keccak-256.
    Keccak256(Keccak),
}

impl Hasher {
    /// The names of all functions as a database has them, the usual one first.
    pub const NAMES: [&'static str; 3] = ["blake3", "sha256", "keccak256"];

    /// BLAKE3, on the widest instructions that the processor has.
    #[must_use]
    pub fn blake3() -> Self {
        Self::Blake3(Blake3::new())
    }

    /// Returns the function with this name, on the widest instructions that the processor has.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "blake3" => Some(Self::blake3()),
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

    /// Hashes messages of one length known to the compiler: names of accounts and slots.
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

    pub(crate) fn batch(self) -> Batch {
        match self {
            Self::Blake3(function) => Batch::Blake3(Blake3Batch::on(function)),
            Self::Sha256(function) => Batch::Sha256(Sha256Batch::on(function)),
            Self::Keccak256(function) => Batch::Keccak256(KeccakBatch::on(function)),
        }
    }
}

/// Messages that are hashed together.
pub(crate) enum Batch {
    Blake3(Blake3Batch),
    Sha256(Sha256Batch),
    Keccak256(KeccakBatch),
}

impl Batch {
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Self::Blake3(batch) => batch.push_with(write),
            Self::Sha256(batch) => batch.push_with(write),
            Self::Keccak256(batch) => batch.push_with(write),
        };
    }

    /// Hashes what has been pushed, and returns the digests in the order of the pushes.
    pub(crate) fn finish(&mut self) -> &[Hash] {
        match self {
            Self::Blake3(batch) => batch.finish(),
            Self::Sha256(batch) => batch.finish(),
            Self::Keccak256(batch) => batch.finish(),
        }
    }
}

/// Writes the message of a leaf: `00 || key || value`.
pub fn write_leaf(key: &Path, value: &Hash, out: &mut Vec<u8>) {
    out.push(LEAF);
    out.extend_from_slice(key.packed());
    out.extend_from_slice(value);
}

/// Writes the message of a branch at a path, whose prefix begins with bit `start`: `01 || count of
/// bits (2 bytes, big-endian) || bits || left || right`.
pub fn write_branch(path: &Path, start: usize, [left, right]: [&Hash; 2], out: &mut Vec<u8>) {
    out.push(BRANCH);
    out.extend(((path.len() - start) as u16).to_be_bytes());
    path.write_bits(start, path.len(), out);
    out.extend_from_slice(left);
    out.extend_from_slice(right);
}
