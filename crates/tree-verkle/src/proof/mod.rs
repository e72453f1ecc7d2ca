//! Proofs: a witness says what values some keys have and what they are to become, and proves the former against a root.

mod compact;
mod json;
mod prove;
mod skeleton;
mod ssz;
mod verify;
mod witness;

pub use compact::{CompactError, CompactSizes};
pub use prove::{prove, prove_guarded};
pub use verify::Verified;
pub use witness::{Proof, StemDiff, SuffixDiff, Witness, WitnessError, WitnessSizes};
