//! All integration tests of this crate in one program: it is linked once.

mod support;
#[path = "support/trees.rs"]
mod trees;
#[path = "support/vectors.rs"]
mod vectors;

mod absence;
mod account_snapshots;
mod ar16mt_proofs;
mod compact_witnesses;
mod damage;
mod eip7864;
mod eip8297;
mod embedding;
mod expected;
mod inspect;
mod layouts;
mod lives;
mod load;
mod model;
mod moving;
mod past_states;
mod recent;
mod recovery;
mod refusals;
mod registry;
mod sessions;
mod spread;
mod streams;
mod verified_parts;
mod witnesses;
