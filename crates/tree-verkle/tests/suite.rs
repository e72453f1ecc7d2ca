//! All integration tests of this crate in one program: it is linked once.

#[path = "support/naive.rs"]
mod naive;
mod support;

mod bad_input;
mod bulk;
mod conformance;
mod format;
mod proofs;
mod together;
mod vectors;
