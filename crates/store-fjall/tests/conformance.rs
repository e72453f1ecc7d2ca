//! The fjall store against the suite that all stores pass.

use std::sync::Arc;

use arbor_store::conformance::{Files, Subject, run};
use arbor_store_fjall::{FjallStore, Options};

fn conforms(options: &Options) {
    let folder = tempfile::tempdir().expect("a folder");
    run(&Subject {
        open: &|name| Arc::new(FjallStore::open(&folder.path().join(name), options).expect("open")),
        files: Files::Kept,
    });
}

#[test]
fn conforms_with_default_options() {
    conforms(&Options::default());
}

#[test]
fn conforms_when_small_and_compressed() {
    conforms(&Options {
        cache_bytes: 1 << 20,
        memtable_bytes: 64 << 10,
        level0_files: 2,
        compress: true,
        ..Options::default()
    });
}
