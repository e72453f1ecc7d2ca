//! Blocks in, state roots out: sources, genesis, execution, replay, generation.
#![forbid(unsafe_code)]

pub mod bounded_input;
pub mod executor;
pub mod genesis;
pub mod json;
pub mod prepare;
pub mod replay;
pub mod rules;
pub mod source;
pub mod witness;
