//! The memory store against the suite.

use std::sync::Arc;

use arbor_store::MemoryStore;
use arbor_store::conformance::{Files, Subject, run};

#[test]
fn memory_store_conforms() {
    run(&Subject {
        open: &|_| Arc::new(MemoryStore::default()),
        files: Files::None,
    });
}
