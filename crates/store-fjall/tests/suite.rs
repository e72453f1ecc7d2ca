//! All integration tests of this crate in one program: it is linked once.

mod assumptions;
mod conformance;
mod integrity;
mod journals;
mod opening;
mod reading;
