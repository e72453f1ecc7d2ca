//! All integration tests of this crate in one program: it is linked once.

#[allow(dead_code, reason = "the tests of the trees use the rest")]
#[path = "../../trees/tests/support/trees.rs"]
mod trees;

mod account_list;
mod every_pair;
mod hashed;
mod parts;
