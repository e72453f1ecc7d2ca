//! All integration tests of this crate in one program: it is linked once.

mod blake2s;
mod blake3;
mod keccak;
mod sha256;
