//! Which instructions the processor has, and which of them to compute with.
//!
//! Everything that has wide code asks [`Backend::detect`], so that one environment variable, [`BACKEND_VARIABLE`], switches all of it:
//! hashes and field arithmetic. What a backend means to a crate is that crate's to say; questions about
//! single instructions that not every processor of a backend has (`adx`, `avx512ifma`) are answered by [`Features`].
//!
//! Beside it, what processor and system are told of memory that will be read: [`prefetch`], [`prefetch_early`], [`ask_for_large_pages`].
//! And [`threads`], over which work is spread.
#![deny(unsafe_code)]

mod backend;
mod features;
mod memory;
pub mod threads;

pub use backend::{BACKEND_VARIABLE, Backend, UnsupportedBackend};
pub use features::{Features, WITHOUT_VARIABLE};
pub use memory::{ask_for_large_pages, prefetch, prefetch_early};
