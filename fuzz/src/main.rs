//! libFuzzer over one decoder, which `ARBOR_FUZZ_TARGET` names. `fuzz/run.sh` builds and runs it.
#![no_main]

// Seeds are for the ordinary test alone.
#[allow(dead_code, unused_imports)]
mod targets;

use std::sync::LazyLock;

/// Fails for every input that has a byte, to show that a failure ends `fuzz/run.sh` with an error.
const PLANTED: targets::Target = ("planted_panic", |bytes| {
    assert!(bytes.is_empty(), "planted")
});

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("ARBOR_FUZZ_TARGET").unwrap_or_default();
    let found = targets::TARGETS
        .iter()
        .chain([&PLANTED])
        .find(|(name, _)| *name == wanted);
    let names: Vec<_> = targets::TARGETS.iter().map(|(name, _)| *name).collect();
    found
        .unwrap_or_else(|| {
            panic!(
                "ARBOR_FUZZ_TARGET is '{wanted}', but the targets are {}",
                names.join(" ")
            )
        })
        .1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
