//! All integration tests of this crate in one program: it is linked once.

mod common;

mod asm;
mod bls12_377;
mod build;
mod debug;
mod fields;
mod groups;
mod pairing;
mod signatures;
mod verkle;
