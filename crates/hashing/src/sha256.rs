#![doc = include_str!("sha256.md")]

mod compression;
mod function;
mod states;

pub use compression::BLOCK;
pub use function::Sha256Hash;

/// SHA-256 on one backend.
pub type Sha256 = crate::Hasher<Sha256Hash>;

/// Messages that are hashed together with SHA-256.
pub type Sha256Batch = crate::Batch<Sha256Hash>;
