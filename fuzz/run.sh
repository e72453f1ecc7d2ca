#!/usr/bin/env bash
# Fuzzes decoders with libFuzzer, on the pinned toolchain: no nightly, no cargo-fuzz.
#
#   fuzz/run.sh [SECONDS [TARGET...]]     default: 300 seconds each, all targets, one after the other
#
# Inputs that lead somewhere new are kept in fuzz/corpus/TARGET (not committed); what fails in fuzz/artifacts/TARGET. Once fixed, it
# goes to fuzz/regressions/TARGET, which an ordinary test runs. Seeds come from our own generator: see docs/fuzzing.md.
#
# Exit codes: 0 nothing was found, 1 a target failed (the others are fuzzed all the same), or what it needs cannot be built.
# The target `planted_panic` always fails, and shows that a failure is reported: fuzz/run.sh 5 planted_panic
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-300}
shift || true
# A program that takes libFuzzer's arguments and is built already, for tests of this script, and the folder that it may write into.
fuzzer=${ARBOR_FUZZER:-}
folder=${ARBOR_FUZZ_FOLDER:-fuzz}

if [[ -z $fuzzer ]]; then
    # What cargo-fuzz passes without a sanitizer. Only --target keeps build scripts and macros uninstrumented.
    host=$(rustc -vV | sed -n 's/^host: //p')
    RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
        cargo build --locked --release --manifest-path fuzz/Cargo.toml --target "$host"
    fuzzer=${CARGO_TARGET_DIR:-fuzz/target}/$host/release/arbor-fuzz
    ARBOR_WRITE_SEEDS="$PWD/$folder/corpus" cargo test -q --locked -p arbor-cli --test suite decoders::
fi

# Every target has seeds, in a folder of its name.
(($#)) || set -- $(ls "$folder/corpus")
failed=()
for target; do
    corpus=$folder/corpus/$target artifacts=$folder/artifacts/$target
    mkdir -p "$corpus" "$artifacts"
    echo "== $target"
    ARBOR_FUZZ_TARGET=$target "$fuzzer" "$corpus" -artifact_prefix="$artifacts/" -max_total_time="$seconds" \
        -rss_limit_mb=2048 -timeout=20 -print_final_stats=1 >"$artifacts/log" 2>&1 || failed+=("$target")
    grep -E 'Done|panicked|SUMMARY|^stat::|cov:.*(DONE|pulse)|Test unit written|assertion' "$artifacts/log" || true
done
if ((${#failed[@]})); then
    echo "failed: ${failed[*]}; inputs and logs are in $folder/artifacts" >&2
    exit 1
fi
