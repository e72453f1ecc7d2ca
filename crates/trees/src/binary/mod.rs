//! Records of nodes in a database, for all trees of `arbor-tree-binary`: reading them at the head
//! and at older versions, comparing them with rebuilt ones, counting them, and what can be set.

mod compare;
mod compute;
mod inspect;
mod nodes;
mod settings;

use arbor_store::Table;
use arbor_versions::{TableKind, TableSpec};

pub(crate) use compare::{Comparison, check_keys};
pub(crate) use compute::computed;
pub(crate) use inspect::inspect_nodes;
pub(crate) use nodes::{AtHead, AtVersion, FlatChanges, Undo, Undone, depth_of_key, node_write};
pub(crate) use settings::{NodeSettings, SETTINGS};

/// Records of nodes by path.
pub(crate) const NODES: Table = Table(3);

/// The table of [`NODES`].
pub(crate) const NODES_TABLE: TableSpec = TableSpec {
    table: NODES,
    name: "nodes",
    kind: TableKind::Nodes,
};
