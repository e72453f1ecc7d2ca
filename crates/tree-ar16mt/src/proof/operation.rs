//! What is done to one key, and what came of it.

use crate::{Entry, Hash};

/// One operation of a batch, on what the operations before it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The key.
    pub key: Hash,
    /// What is written; `None` reads.
    pub new: Option<Entry>,
}

/// What an operation found and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The key was written and held nothing before.
    Inserted,
    /// The key was written and held this before.
    Updated(Entry),
    /// The key was read and holds this.
    Read(Entry),
    /// The key was read and holds nothing.
    ReadMissing,
}

impl Outcome {
    /// What the key held before the operation.
    #[must_use]
    pub fn before(&self) -> Option<Entry> {
        match self {
            Self::Inserted | Self::ReadMissing => None,
            Self::Updated(entry) | Self::Read(entry) => Some(*entry),
        }
    }
}
