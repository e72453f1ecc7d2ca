//! All integration tests of this crate in one program: it is linked once.

mod arithmetic;
mod engine;
mod frames;
mod interfaces;
mod registers;
