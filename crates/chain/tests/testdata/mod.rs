//! Where the shared test data lies.

use std::path::PathBuf;

/// The path of `name` under `ARBOR_TESTDATA` (default `../shared` beside the checkout); none, with a line that says so,
/// if it is not there and `ARBOR_REQUIRE_DATA` is not 1.
pub(crate) fn shared(test: &str, name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ARBOR_TESTDATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var("ARBOR_REQUIRE_DATA").is_ok_and(|value| value == "1");
    assert!(
        !required,
        "test data is required and missing: {}",
        path.display()
    );
    println!("SKIPPED (no test data): {test}");
    None
}
