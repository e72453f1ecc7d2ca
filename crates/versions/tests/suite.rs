//! All integration tests of this crate in one program: it is linked once.

mod support;

mod by_owner;
mod interrupted;
mod model;
mod opening;
mod runs;
mod snapshots;
mod stored;
mod together;
