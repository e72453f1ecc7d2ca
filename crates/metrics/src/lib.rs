//! Counters that every layer may fill, the JSON envelope of every result, and tables for a terminal.
//!
//! A command starts a [`Measurement`], does its work, and finishes it into an [`Envelope`]: one
//! JSON form for all commands, which says what was run, where, with which settings, and what the
//! process used. `docs/design/report-format.md` describes it.
//!
//! [`Counter`]s are process-wide sums of dear operations; [`snapshot`] reads them all by name. A [`Table`] is
//! printed in lines that fit. With the feature `parquet` there are tables that are written to Parquet files, too.
#![forbid(unsafe_code)]

mod counters;
mod envelope;
mod machine;
#[cfg(feature = "parquet")]
pub mod parquet_table;
mod process;
mod table;
mod timestamp;

pub use counters::{
    BLAKE2S_COMPRESSIONS, BLAKE3_COMPRESSIONS, Counter, FIELD_INVERSIONS, KECCAK_PERMUTATIONS,
    NORMALISATIONS, POINT_ADDITIONS, SHA256_COMPRESSIONS, SQUARE_ROOTS, STORE_READ_BYTES,
    STORE_READS, STORE_WRITES, STORE_WRITTEN_BYTES, described, snapshot,
};
pub use envelope::{Envelope, Measurement, SCHEMA, Versions};
pub use machine::Machine;
pub use process::ProcessUsage;
pub use table::Table;
