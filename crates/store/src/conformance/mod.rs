//! One suite that every store must pass.
//!
//! A store's crate calls [`run`] from a test, with a closure that opens a store by name:
//!
//! ```
//! use std::sync::Arc;
//! use arbor_store::conformance::{Files, Subject, run};
//! use arbor_store::MemoryStore;
//!
//! run(&Subject { open: &|_name| Arc::new(MemoryStore::default()), files: Files::None });
//! ```

mod ingestion;
mod model;
mod persistence;
mod random;
mod reading;
mod snapshots;
mod writing;

use std::sync::Arc;

use crate::{Reader, Store, Table};

/// Whether a store outlives its handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Files {
    /// Opening a name again makes an empty store.
    None,
    /// Opening a name again, after every handle is dropped, finds what was stored.
    Kept,
}

/// A store under test.
pub struct Subject<'a> {
    /// Opens the store of a name, creating it if it does not exist. Names differ between cases.
    pub open: &'a dyn Fn(&str) -> Arc<dyn Store>,
    /// Whether reopening finds the contents again.
    pub files: Files,
}

type Case = (&'static str, fn(&Subject<'_>, &str));

const CASES: &[Case] = &[
    ("points", reading::points),
    ("multi-get-order", reading::multi_get_order),
    ("odd-keys", reading::odd_keys),
    ("tables-apart", reading::tables_apart),
    ("scans", reading::scans),
    ("sizes-of-values", reading::sizes_of_values),
    ("overwrite-and-delete", writing::overwrite_and_delete),
    ("last-write-counts", writing::last_write_counts),
    ("write-is-atomic", writing::write_is_atomic),
    ("long-key", writing::long_key),
    ("no-owner", writing::no_owner),
    ("delete-prefix", writing::delete_prefix),
    ("ingest", ingestion::ingest),
    ("ingest-nothing", ingestion::nothing),
    ("ingest-unsorted", ingestion::unsorted),
    ("ingest-by-owner", ingestion::by_owner),
    ("ingest-over-existing", ingestion::over_existing),
    ("ingest-between-writes", ingestion::between_writes),
    ("ingest-many", ingestion::many),
    ("snapshot", snapshots::frozen),
    ("snapshot-outlives-store", snapshots::outlives_the_store),
    ("scan-is-frozen", snapshots::scan_is_frozen),
    ("readers-beside-writer", snapshots::readers_beside_a_writer),
    ("compact", persistence::compact),
    ("reopen", persistence::reopen),
    ("reopen-after-ingest", persistence::reopen_after_ingest),
    ("disk-bytes", persistence::disk_bytes),
    ("model", model::against_a_map),
];

/// Runs every case.
///
/// # Panics
/// At the first case that the store fails; the case's name is printed before it starts.
pub fn run(subject: &Subject<'_>) {
    for (name, case) in CASES {
        eprintln!("store conformance: {name}");
        case(subject, name);
    }
}

/// The table that cases use where one is enough.
const TABLE: Table = Table(3);

/// Everything that a scan returns.
fn scanned(
    reader: &dyn Reader,
    table: Table,
    prefix: &[u8],
    from: &[u8],
) -> Vec<(Vec<u8>, Vec<u8>)> {
    reader
        .scan(table, prefix, from)
        .expect("scan starts")
        .map(|item| item.expect("scan goes on"))
        .map(|(key, value)| (key.into_vec(), value.to_vec()))
        .collect()
}

/// The keys that a scan returns.
fn scanned_keys(reader: &dyn Reader, table: Table, prefix: &[u8], from: &[u8]) -> Vec<Vec<u8>> {
    scanned(reader, table, prefix, from)
        .into_iter()
        .map(|(key, _)| key)
        .collect()
}

/// A value, as a vector for comparing.
fn value(reader: &dyn Reader, table: Table, key: &[u8]) -> Option<Vec<u8>> {
    reader
        .get(table, key)
        .expect("get")
        .map(|value| value.to_vec())
}
