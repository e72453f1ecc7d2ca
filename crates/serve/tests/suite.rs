//! All integration tests of this crate in one program: it is linked once.

mod support;

mod clients;
mod execution_apis;
mod live;
mod served_trees;
