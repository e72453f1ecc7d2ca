#!/usr/bin/env bash
# Fuzzes decoders with libFuzzer, on the pinned toolchain: no nightly, no cargo-fuzz.
#
#   fuzz/run.sh [SECONDS [TARGET...]]     default: 300 seconds each, all targets, one after the other
#
# Inputs that lead somewhere new are kept in fuzz/corpus/TARGET (not committed); what fails in fuzz/artifacts/TARGET. Once fixed, it
# goes to fuzz/regressions/TARGET, which an ordinary test runs. Seeds come from our own generator: see docs/fuzzing.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-300}
shift || true

# What cargo-fuzz passes without a sanitizer. Only --target keeps build scripts and macros uninstrumented.
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
# Not --locked: the lock follows the crates above.
cargo build --release --manifest-path fuzz/Cargo.toml --target "$host"
target_dir=${CARGO_TARGET_DIR:-fuzz/target}

ARBOR_WRITE_SEEDS="$PWD/fuzz/corpus" RUSTFLAGS='' cargo test -q --locked -p arbor-cli --test decoders
# Every target has seeds, in a folder of its name.
(($#)) || set -- $(ls fuzz/corpus)
for target; do
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    echo "== $target"
    ARBOR_FUZZ_TARGET=$target "$target_dir/$host/release/arbor-fuzz" "fuzz/corpus/$target" \
        -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 2>&1 |
        grep -E 'Done|panicked|SUMMARY|^stat::|cov:.*(DONE|pulse)|Test unit written|assertion' || true
done
