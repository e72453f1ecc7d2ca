//! Proofs.

mod leaf;
mod multi;
mod operation;
mod operations;
mod prove;
mod range;
mod sequence;
mod witness;

pub use leaf::LeafProof;
pub use multi::{Multiproof, MultiproofError};
pub use operation::{Operation, Outcome};
pub use operations::{OperationProof, OperationProofs, apply_with_proofs, order_of};
pub use prove::prove;
pub use range::{RangeDigest, RangeError};
pub use witness::{LogsError, StorageLog, StorageLogs};

/// Takes bytes from the front, if there are as many.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}
