//! The name of a hash function in files.

use arbor_tree_binary::HashFunction;
use serde::{Deserialize, Serialize};

/// The name of a hash function of binary trees.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HashName {
    /// BLAKE3.
    #[default]
    Blake3,
    /// SHA-256.
    Sha256,
    /// Keccak-256.
    Keccak256,
}

impl HashName {
    /// The name of a hash function.
    #[must_use]
    pub fn of(function: HashFunction) -> Self {
        match function {
            HashFunction::Blake3(_) => Self::Blake3,
            HashFunction::Sha256(_) => Self::Sha256,
            HashFunction::Keccak256(_) => Self::Keccak256,
        }
    }

    /// The function with this name.
    #[must_use]
    pub fn function(self) -> HashFunction {
        let name = match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
            Self::Keccak256 => "keccak256",
        };
        HashFunction::named(name).expect("invariant: each of them is known")
    }
}
