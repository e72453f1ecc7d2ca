//! Proofs.

mod leaf;
mod multi;
mod operations;
mod prove;
mod range;
mod sequence;
mod witness;

pub use leaf::LeafProof;
pub use multi::{Multiproof, MultiproofError};
pub use operations::{
    Operation, OperationProof, OperationProofs, Outcome, apply_with_proofs, order_of,
};
pub use prove::prove;
pub use range::{RangeDigest, RangeError};
pub use witness::{StorageLog, StorageLogs};
