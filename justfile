# For contributors; users need cargo alone. `just --list` shows the recipes.

# all that must hold before a change goes in (CI runs the same)
check *STEPS:
    scripts/check.sh {{STEPS}}

# all tests, or those of one crate: `just test tree-mpt`
test CRATE="":
    cargo test {{ if CRATE == "" { "--workspace --exclude arbor-store-rocksdb" } else { "-p arbor-" + CRATE } }}

# the official blockchain tests: all, or those with every word in their path, name or network
official *WORDS:
    cargo test --release -p arbor-chain --test official -- {{ if WORDS == "" { "" } else { "only " + WORDS } }}

# format everything
fmt:
    cargo fmt --all

# the crates' documentation, in a browser
docs:
    cargo doc --workspace --exclude arbor-store-rocksdb --no-deps --open

# the RocksDB store: needs a C++ compiler and libclang, takes some 20 minutes the first time
rocksdb:
    cargo clippy -p arbor-store-rocksdb --all-targets -- -D warnings
    cargo test -p arbor-store-rocksdb

# build the other programs that we compare with (needs Go)
peers-setup:
    bench-peers/setup.sh

# compare with others: `just peers replay CHAIN_DIR...`, `just peers generated`
peers AREA *ARGUMENTS:
    cargo build --release
    bench-peers/{{AREA}}.py {{ARGUMENTS}}
