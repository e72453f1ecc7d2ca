//! Tables, settings and a store that can fail for the tests of this crate.

use std::sync::Arc;

use arbor_store::faulty::FaultyStore;
use arbor_store::{MemoryStore, Table, Value};
use arbor_versions::{
    Change, Changes, Identity, Meta, Options, Retain, TableKind, TableSpec, Version,
};

pub(crate) const ACCOUNTS: Table = Table(1);
pub(crate) const SLOTS: Table = Table(2);
pub(crate) const NODES: Table = Table(3);
pub(crate) const CODE: Table = Table(4);

pub(crate) fn tables() -> Vec<TableSpec> {
    [
        (ACCOUNTS, "accounts", TableKind::Flat),
        (SLOTS, "slots", TableKind::Flat),
        (NODES, "nodes", TableKind::Nodes),
        (CODE, "code", TableKind::Blobs),
    ]
    .map(|(table, name, kind)| TableSpec { table, name, kind })
    .to_vec()
}

pub(crate) fn identity() -> Identity {
    Identity {
        tree: "mpt".into(),
        revision: "1".into(),
        hash: "keccak256".into(),
        layout: 1,
        chain_id: 1,
        genesis: [7; 32],
        space: 0,
        moves_to: None,
        since: None,
    }
}

/// Everything small, so that a short history meets every case.
pub(crate) fn options() -> Options {
    Options {
        cache_bytes: 4096,
        dirty_bytes: 2000,
        retain: Retain::All,
        metas_below: 256,
        durable_each: false,
        background: false,
        ingest_above: 200,
        undo_chunk: 64,
        keep_nodes: false,
        epoch: 4,
    }
}

pub(crate) fn meta(version: u64) -> Meta {
    Meta {
        version: Version(version),
        block_number: version,
        block_hash: [version as u8; 32],
        root: [!(version as u8); 32],
        extra: version.to_le_bytes().to_vec(),
    }
}

pub(crate) fn value(bytes: impl AsRef<[u8]>) -> Value {
    Value::from(bytes.as_ref())
}

/// The change of one account alone.
pub(crate) fn change(key: &str, old: Option<&str>, new: Option<&str>) -> Changes {
    let mut changes = Changes::default();
    changes.put_flat(account(key, old, new));
    changes
}

/// A change of one account.
pub(crate) fn account<'a>(key: &'a str, old: Option<&'a str>, new: Option<&'a str>) -> Change<'a> {
    Change {
        table: ACCOUNTS,
        key: key.as_bytes(),
        old: old.map(str::as_bytes),
        new: new.map(str::as_bytes),
    }
}

/// A memory store that fails when told to.
pub(crate) fn faulty() -> Arc<FaultyStore> {
    FaultyStore::new(Arc::new(MemoryStore::default()))
}
