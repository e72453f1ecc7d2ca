//! This crate's own tables and their keys; `docs/design/storage-format.md` describes them.

use std::sync::Arc;

use arbor_store::{Table, Value, Write};

/// Version and chunk number, big-endian, to a chunk of the [old nodes](crate::kept_nodes) of a version.
pub(crate) const OLD_NODES: Table = Table(0xee);
/// Epoch, big-endian, table byte and key, to the versions of that epoch which change the node.
pub(crate) const NODE_INDEX: Table = Table(0xef);
/// Version, big-endian, to its meta.
pub(crate) const META: Table = Table(0xf0);
/// Block number, big-endian, to the newest version of that block, big-endian.
pub(crate) const BLOCK: Table = Table(0xf1);
/// Version and chunk number, big-endian, to an undo chunk.
pub(crate) const UNDO: Table = Table(0xf2);
/// Epoch, big-endian, table byte and key, to the versions of that epoch which change the key.
pub(crate) const INDEX: Table = Table(0xf3);
/// Identity, head record and the marks of indexed epochs. The last table, so that in a sorted
/// ingestion a mark follows the data that it vouches for.
pub(crate) const SYSTEM: Table = Table(0xf4);

/// Key of [`StoredIdentity`](crate::identity::StoredIdentity) in [`SYSTEM`].
pub(crate) const IDENTITY_KEY: &[u8] = b"fixed";
/// Key of [`HeadRecord`](crate::meta::HeadRecord) in [`SYSTEM`].
pub(crate) const HEAD_KEY: &[u8] = b"head";
/// Key of an empty mark in [`SYSTEM`]: a state has been loaded, or partly; it counts only until there is a head record.
pub(crate) const LOADING_KEY: &[u8] = b"loading";
/// Prefix of the marks in [`SYSTEM`]: an epoch, big-endian, follows.
pub(crate) const INDEXED_PREFIX: &[u8] = b"indexed/";

/// Key in [`SYSTEM`] of the version from which on nodes are kept, big-endian; absent if they are not.
pub(crate) const KEPT_NODES_KEY: &[u8] = b"kept nodes";
/// As [`INDEXED_PREFIX`], of [`NODE_INDEX`].
pub(crate) const NODE_INDEXED_PREFIX: &[u8] = b"node indexed/";

pub(crate) fn undo_key(version: u64, chunk: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&version.to_be_bytes());
    key[8..].copy_from_slice(&chunk.to_be_bytes());
    key
}

pub(crate) fn index_key(epoch: u64, table: Table, key: &[u8]) -> Box<[u8]> {
    [&epoch.to_be_bytes(), &[table.0][..], key].concat().into()
}

/// A write of bytes that are not yet shared.
pub(crate) fn put(table: Table, key: impl Into<Box<[u8]>>, value: Vec<u8>) -> Write {
    Write {
        table,
        key: key.into(),
        value: Some(Value::from(value)),
    }
}

/// The value of an empty mark.
pub(crate) fn empty() -> Value {
    Arc::from([])
}
