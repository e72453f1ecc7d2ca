//! Ethereum state in a Verkle tree, after EIP-6800: where accounts lie, and the proofs of what lies there.
//!
//! The embedding is that of all trees of [stems](crate::stems). A stem is a Pedersen hash: the
//! first 31 bytes of `pedersen_hash(address, position / 256)`. [`Stems`] computes stems in batches,
//! and remembers those that are asked for again.

mod forms;
mod named;
mod stems;
mod witness;

pub use crate::stems::{
    CHUNK, CODE, HEADER_SLOTS, HeaderLayout, LeafValue, MAIN_STORAGE_INDEX, NoAccount, NoRoom,
    Stem, StemContents, StemHash, StemName, account_of, account_places, chunk_code, chunk_place,
    slot_place,
};
pub use arbor_ipa::Committer;
pub use arbor_tree_verkle::{
    StemDiff, SuffixDiff, TreeError, Verified, Witness, WitnessError, WitnessSizes,
};
pub use forms::{AccountsWitness, VERIFY, VERIFY_2023, committer};
pub use stems::Stems;
