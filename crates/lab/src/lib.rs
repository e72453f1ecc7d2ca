//! Studies: what single operations cost.
//!
//! [`commitments`] is the one of Keccak against Pedersen commitments, with the proofs beside it; docs/math/study.md explains what it found. Every
//! result is checked before it is timed, against another way to compute it, and a digest of all results of a row is reported, by which another
//! implementation that was given the same inputs ([`inputs`]) can be compared. [`reads`] is about whole databases: reads and proofs of a state,
//! now and in the past. [`survey`] measures proofs and updates over a database by their size. [`senders`] compares the recovery of senders in lanes with libsecp256k1.
//! With the feature `execution` there are studies of executing blocks.

pub mod commitments;
#[cfg(feature = "execution")]
pub mod execution;
pub mod inputs;
pub mod loadtest;
pub mod measure;
pub mod plot;
pub mod reads;
pub mod senders;
pub mod survey;

pub use measure::{Failed, Row, Sample};
