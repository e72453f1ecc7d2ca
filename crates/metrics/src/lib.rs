//! Counters that every layer may fill, and the JSON envelope of every result.
//!
//! A command starts a [`Measurement`], does its work, and finishes it into an [`Envelope`]: one
//! JSON form for all commands, which says what was run, where, with which settings, and what the
//! process used. `docs/design/report-format.md` describes it.
#![forbid(unsafe_code)]

mod envelope;
mod machine;
mod process;
mod timestamp;

pub use envelope::{Envelope, Measurement, SCHEMA, Versions};
pub use machine::Machine;
pub use process::ProcessUsage;
