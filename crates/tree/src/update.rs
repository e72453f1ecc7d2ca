//! What a tree's function returns.

use std::sync::Arc;

use crate::{Leaf, Position};

/// A node written (`Some` record) or deleted (`None`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeChange {
    /// Where the node hangs.
    pub position: Position,
    /// The new record, or `None` when the node is gone.
    pub record: Option<Arc<[u8]>>,
}

/// A leaf that an update placed at a position: written, or moved there by a split or a collapse.
///
/// A store with a flat table does not need these: it finds a leaf by its key. An overlay over a
/// witness does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeafChange {
    /// Where the leaf hangs now.
    pub position: Position,
    /// The leaf.
    pub leaf: Leaf,
}
