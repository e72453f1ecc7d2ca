//! Makes chains to try things on: valid, post-merge, the same bytes for the same settings.
//!
//! [`generate`] writes a chain as geth exports it (RLP, block after block from block 0) with its genesis in
//! geth's form, every fork up to Prague in force from the start. Accounts send plain transfers, token
//! transfers, swaps, creations, calls that spread over wide or sparse storage, and calls that delete, in
//! the proportions of [`Mix`]; Zipf's law says who and what is popular. The contracts' sources are in this crate's folder
//! `contracts`.
//!
//! ```no_run
//! use std::{ops::ControlFlow, path::Path};
//! use arbor_generator::{GeneratorSettings, Preset, generate};
//!
//! let settings = GeneratorSettings { seed: 7, blocks: 1_000, ..Preset::Demo.settings() };
//! let summary = generate(&settings, Path::new("chain"), |progress| {
//!     println!("block {} of {}", progress.block, progress.blocks);
//!     ControlFlow::Continue(())
//! })?;
//! println!("state root {}", summary.state_root);
//! # Ok::<(), arbor_generator::GeneratorError>(())
//! ```
//!
//! # How it stays the same
//!
//! Every block is a function of the settings, its number, its parent's header and its parent's state. Random
//! choices come from ChaCha8 streams, one for each purpose and block, sampled by this module's own
//! functions; floating-point ones by a portable library. What else the choices depend on (nonces,
//! balances, allowances, how far the contracts have been filled) is read from the state, and the one number that
//! is not there, of addresses reached so far, stands in the header's extra data. So a chain can be continued from any
//! block whose state is at hand, and blocks whose state is lost are made again and compared with the file.

#![forbid(unsafe_code)]

mod accounts;
mod block;
mod contracts;
mod error;
mod file;
mod folder;
mod generate;
mod genesis;
mod ledger;
mod marker;
mod over_state;
mod random;
mod settings;
mod signing;
mod workload;

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod testing;

pub use error::GeneratorError;
pub use folder::settings_of;
pub use generate::{Phase, Progress, Summary, generate};
pub use over_state::{OverState, folder_of, generate_over_state};
pub use settings::{GeneratorSettings, Kind, Mix, Preset, SettingsError};
