//! Proofs.

mod leaf;
mod prove;

pub use leaf::LeafProof;
pub use prove::prove;
