//! All integration tests of this crate in one program: it is linked once.

mod subject;

mod bad_input;
mod bare;
mod bulk;
mod conformance;
mod format;
mod vectors;
