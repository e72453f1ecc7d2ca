# For contributors; users need cargo alone. `just --list` shows the recipes.

# all that must hold before a change goes in (CI runs the same)
check *STEPS:
    scripts/check.sh {{STEPS}}

# what takes hours or needs more than Rust and a C compiler: RocksDB, AVX-512 on an emulated processor, kills, power losses, flipped bits, fuzzing
nightly:
    scripts/check.sh nightly

# all tests, or those of one crate: `just test tree-mpt`
test CRATE="":
    cargo {{ if CRATE == "" { "xtask test" } else { "test -p arbor-" + CRATE } }}

# the official blockchain tests: all, or those with every word in their path, name or network
official *WORDS:
    cargo test --release -p arbor-chain --test official -- {{ if WORDS == "" { "" } else { "only " + WORDS } }}

# fetch the public part of the test data with git, or compare what is there: `just testdata --check`
testdata *ARGUMENTS:
    scripts/fetch-testdata.py {{ARGUMENTS}}

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

# test the AVX-512 and IFMA code on an emulated processor, where this one has neither (Debian: bochs bochs-term bochsbios vgabios)
avx512 *ARGUMENTS:
    scripts/avx512.sh {{ARGUMENTS}}

# kill replays, rollbacks and prunes at random moments: `just kills 100`, `just kills 100 rocksdb`
kills COUNT="100" STORE="fjall":
    ARBOR_KILLS={{COUNT}} cargo test -p arbor-cli {{ if STORE == "rocksdb" { "--features rocksdb" } else { "" } }} --test suite -- --nocapture leaves_a_whole_database_on_{{STORE}}

# kill conversions at random moments: `just convert-kills 50 1000000`
convert-kills COUNT="50" ACCOUNTS="20000":
    ARBOR_KILLS={{COUNT}} ARBOR_ACCOUNTS={{ACCOUNTS}} cargo test -p arbor-cli --test suite -- --nocapture a_killed_conversion

# lose power at each point of a short replay (needs strace), or at some: `just power 200`
power COUNT="all":
    ARBOR_POWER_CUTS={{COUNT}} cargo test -p arbor-cli --test suite -- --nocapture a_power_loss

# flip bits in a database's files: `just flips 1000`
flips COUNT="1000":
    ARBOR_FLIPS={{COUNT}} cargo test -p arbor-cli --test suite -- --nocapture a_flipped_bit_in_a_file

# fuzz decoders, each for so many seconds: `just fuzz 300`, `just fuzz 60 undo proof`
fuzz SECONDS="300" *TARGETS:
    fuzz/run.sh {{SECONDS}} {{TARGETS}}

# compile the bench over zkSync's tree, which builds RocksDB
zksync-tree:
    cargo check --locked --manifest-path bench-peers/zksync-tree/Cargo.toml

# build the other programs that we compare with (needs Go)
peers-setup:
    bench-peers/setup.sh

# run arbor over random chains that go-ethereum makes, in every mode (needs Go): `just chains 1 100`
chains SEED COUNT *ARGUMENTS:
    cargo build
    bench-peers/random-chains/run.py {{SEED}} {{COUNT}} {{ARGUMENTS}}

# compare with others: `just peers all` (everything, into results/), `just peers replay CHAIN_DIR...`, `just peers generated`
peers AREA *ARGUMENTS:
    cargo build --release
    bench-peers/{{AREA}}.py {{ARGUMENTS}}
