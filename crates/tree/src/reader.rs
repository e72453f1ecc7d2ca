//! How a tree reads what it needs.

use std::sync::Arc;

use crate::{Hash, Position};

/// A request for the node or leaf at a position.
#[derive(Clone, Copy, Debug)]
pub struct NodeRequest {
    /// Where it hangs.
    pub position: Position,
    /// Its hash, by which a witness finds it; `None` for a node small enough to be inlined in its
    /// parent.
    pub expected: Option<Hash>,
}

/// A leaf as the tree commits to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The whole key.
    pub key: Hash,
    /// The value as it is hashed (for an account its RLP, inner root filled in).
    pub value: Vec<u8>,
}

/// Reads nodes and leaves of one state.
pub trait NodeReader: Sync {
    /// Returns the records of inner nodes in the order of the requests; `None` where there is none.
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError>;

    /// Returns the only leaf at or below a position; `None` where there is none.
    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError>;
}

impl<R: NodeReader + ?Sized> NodeReader for &R {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        (**self).nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        (**self).leaf(request)
    }
}

/// Why a node could not be read.
#[derive(Debug, thiserror::Error)]
#[error("reading {what}: {cause}")]
pub struct ReadError {
    /// What was read.
    pub what: String,
    /// Why it failed.
    #[source]
    pub cause: Box<dyn std::error::Error + Send + Sync>,
}
