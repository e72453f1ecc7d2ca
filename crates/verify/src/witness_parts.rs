//! What a witness has of a state, whatever tree it is of.

use alloy_primitives::{B256, Bytes};

/// What a witness has of a state.
#[derive(Clone, Copy, Debug)]
pub struct WitnessParts<'a> {
    /// The name of the tree's hash function.
    pub hash: &'a str,
    /// The root.
    pub root: B256,
    /// Nodes, in any order.
    pub nodes: &'a [Bytes],
    /// Codes, in any order.
    pub codes: &'a [Bytes],
}
