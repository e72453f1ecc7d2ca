//! The version that changes are computed on.

use std::fmt;

use alloy_primitives::B256;
use arbor_versions::{Meta, Version};

/// A version that changes are computed on. Of one database, two states with the same of all are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadId {
    /// The version.
    pub version: Version,
    /// The hash of its block: blocks that change nothing share their roots.
    pub block_hash: B256,
    /// Its root.
    pub root: B256,
}

impl HeadId {
    /// Of a version's record.
    pub fn of(meta: &Meta) -> Self {
        Self {
            version: meta.version,
            block_hash: meta.block_hash.into(),
            root: meta.root.into(),
        }
    }
}

impl fmt::Display for HeadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {} with root {}", self.version.0, self.root)
    }
}

/// A head, or that there is none, in words.
pub(crate) struct ShownHead<'a>(pub(crate) &'a Option<HeadId>);

impl fmt::Display for ShownHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(head) => head.fmt(f),
            None => f.write_str("the empty database"),
        }
    }
}
