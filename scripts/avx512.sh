#!/usr/bin/env bash
# Tests the AVX-512 and IFMA code where the processor has neither, on an emulated one (scripts/emulated/run):
#     scripts/avx512.sh [ARGUMENT OF cargo test...]      default: the crates that have such code
# One test at a time, few random cases: emulation is some hundred times slower. Of the crates above these, banderwagon's group tests did not end
# within nine minutes. One thing differs from the code that users run, for the emulator's sake (Bochs 2.7): no `adox`, whose carry it gets wrong.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- -p arbor-cpu -p arbor-hashing -p arbor-field -p arbor-secp256k1 --lib --tests
export RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static -C no-redzone=yes"
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/scripts/emulated/run"
export ARBOR_WITHOUT=adx ARBOR_BACKEND="${ARBOR_BACKEND:-avx512}" PROPTEST_CASES="${PROPTEST_CASES:-8}"
# A static program of this machine's own kind is built as for another, so that build scripts stay dynamic.
exec cargo test --locked --target x86_64-unknown-linux-gnu "$@" -- --test-threads=1
