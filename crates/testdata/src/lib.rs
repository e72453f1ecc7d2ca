//! Finds test data, and records the tests that are skipped without it.
//!
//! There are two sets of data, laid out alike. The whole set has real chains and witnesses. It is not part of the
//! repository: `ARBOR_TESTDATA` names its folder, by default `../shared` beside the checkout. The small set is
//! the repository's folder `testdata`. A test that asks for a file or folder gets it from the whole set, else from the
//! small one.
//!
//! Tests on data that is in neither set are skipped. They pass as far as the test harness knows, so each is recorded:
//! `cargo xtask test` names a file in `ARBOR_SKIPPED`, and lists what stands in the file at its end.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of this crate, from which the others are found.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Where data is looked for.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of the whole set.
    pub whole: PathBuf,
    /// The folder of the small set.
    pub small: PathBuf,
    /// Whether the whole set is required: data that is missing there fails the test.
    pub required: bool,
}

impl Places {
    /// Reads `ARBOR_TESTDATA` and `ARBOR_REQUIRE_DATA` (`1`: the whole set is required, as in CI).
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let whole = variable("ARBOR_TESTDATA");
        Self {
            whole: whole.map_or_else(|| Path::new(HERE).join("../../../shared"), PathBuf::from),
            small: Path::new(HERE).join("../../testdata"),
            required: variable("ARBOR_REQUIRE_DATA") == Some(OsString::from("1")),
        }
    }

    /// Returns the path of `name` (like `data/chains/hive-sync`) in the whole set, else in the small one; `None` if it
    /// is in neither.
    ///
    /// # Panics
    ///
    /// If the whole set is required and does not have it.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let whole = self.whole.join(name);
        if whole.exists() {
            return Some(whole);
        }
        let place = whole.display();
        assert!(
            !self.required,
            "test data is required (ARBOR_REQUIRE_DATA=1) and missing: {place}"
        );
        let small = self.small.join(name);
        (small.is_absolute() && small.exists()).then_some(small)
    }
}

/// Returns the path of `name` for a test; `None`, after recording that the test is skipped, if there is no such data.
///
/// # Panics
///
/// If `ARBOR_REQUIRE_DATA` is 1 and the whole set does not have it.
pub fn find(test: &str, name: &str) -> Option<PathBuf> {
    let found = Places::from_environment().find(name);
    if found.is_none() {
        skip(test, &format!("no test data: {name}"));
    }
    found
}

/// Like [`find`], but in the whole set alone: for tests that go over all of a folder.
///
/// # Panics
///
/// If `ARBOR_REQUIRE_DATA` is 1 and the whole set does not have it.
pub fn whole(test: &str, name: &str) -> Option<PathBuf> {
    let places = Places {
        small: PathBuf::new(),
        ..Places::from_environment()
    };
    let found = places.find(name);
    if found.is_none() {
        skip(test, &format!("no test data: {name}"));
    }
    found
}

/// Records that a test, or a part of it, is skipped, and why.
///
/// # Panics
///
/// If the file that `ARBOR_SKIPPED` names cannot be written.
pub fn skip(test: &str, reason: &str) {
    println!("SKIPPED ({reason}): {test}");
    if let Some(file) = std::env::var_os("ARBOR_SKIPPED") {
        let line = format!("{test}\t{reason}\n");
        let file = OpenOptions::new().append(true).create(true).open(file);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file that ARBOR_SKIPPED names can be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places in which the small set is this crate's folder, and the whole set is another.
    fn places(whole: &str, required: bool) -> Places {
        Places {
            whole: Path::new(HERE).join(whole),
            small: HERE.into(),
            required,
        }
    }

    #[test]
    fn the_whole_set_comes_before_the_small_one() {
        let whole = places("src", false);
        assert_eq!(whole.find("lib.rs"), Some(whole.whole.join("lib.rs")));
        assert_eq!(
            whole.find("Cargo.toml"),
            Some(whole.small.join("Cargo.toml"))
        );
        assert_eq!(whole.find("no-such-file"), None);
        assert_eq!(
            places("absent", false).find("src/lib.rs"),
            Some(whole.small.join("src/lib.rs"))
        );
    }

    #[test]
    #[should_panic(expected = "test data is required")]
    fn the_small_set_does_not_do_where_the_whole_one_is_required() {
        places("absent", true).find("Cargo.toml");
    }

    /// Every suite that reads data has some in the repository, so that a fresh clone runs it.
    #[test]
    fn the_repository_has_the_small_set() {
        let places = Places {
            whole: "absent".into(),
            ..Places::from_environment()
        };
        for name in [
            "data/chains/execution-apis",
            "data/ethereum-tests",
            "data/witness",
            "vectors/eip-2537/mul_G2_bls.json",
            "vectors/evm384",
            "vectors/genesis/sepolia.json",
            "vectors/mpt_ethereum_tests",
            "vectors/small/verkle_roots.json",
            "vectors/zksync_merkle_tree",
        ] {
            // The variable of CI is about the whole set.
            let small = Places {
                required: false,
                ..places.clone()
            };
            assert!(small.find(name).is_some(), "testdata/{name}");
        }
    }
}
