//! What cannot be run, and why. docs/official-tests.md has the same list.

use super::fixture::Fixture;

/// Whether a file of fixtures is not for us: those of Amsterdam's development network follow drafts.
pub(crate) fn file(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "blockchain_tests_devnet")
}

/// Why a fixture as a whole is not for us.
pub(crate) fn fixture(path: &str, fixture: &Fixture) -> Option<&'static str> {
    if fixture.network != "Prague" || fixture.has_requests() {
        return None;
    }
    Some(match path.contains("/stEOF/") {
        true => "EOF (EIP-3540 and others), which was taken out of Prague and is in no fork",
        false => {
            "Prague as of April 2024, before headers had a requests hash (EIP-7685) and EIP-2537 its present form"
        }
    })
}

/// Why a block that is to be rejected for `exception` is not rejected for that.
pub(crate) fn exception(exception: &str) -> Option<&'static str> {
    (exception == "InvalidBlockNonce").then_some("proof-of-work seals are not checked")
}
