//! Accounts in the unified binary tree of EIP-7864: names, leaves, proofs and witnesses.
//!
//! The embedding is that of all trees of [stems](crate::stems), with EIP-6800's fields. A stem is
//! the first 31 bytes of `H(12 zero bytes || address || index)`, the index in 32 bytes. The drafts
//! differ in the order of these ([`Revision`]), and leave the hash function open: the tree's own
//! hashes names, too.

mod forms;
mod named;
mod stems;
mod witness;

pub use crate::hash_name::HashName;
pub use crate::stems::{HeaderLayout, StemHash, StemName, account_places};
pub use arbor_tree_eip7864::{HashFunction, Hasher};
pub use forms::{AccountsMultiproof, FalseProof, MultiproofFile, VERIFY, VERIFY_A, keys_of};
pub use stems::{Revision, Stems};
