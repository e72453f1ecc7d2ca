//! Proofs.

mod leaf;
mod operations;
mod prove;
mod sequence;

pub use leaf::LeafProof;
pub use operations::{Operation, OperationProof, OperationProofs, Outcome, apply_with_proofs};
pub use prove::prove;
