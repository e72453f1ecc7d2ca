//! Ethereum state in a Verkle tree, after EIP-6800: where accounts lie, and the proofs of what lies there.
//!
//! The embedding gives every field of an account, every 31 bytes of its code and every slot a leaf: 32 bytes under a key
//! of 32. The first 31 bytes of the key are its *stem*, a Pedersen hash of the address and an index, which 256 leaves
//! share:
//!
//! ```text
//! position      basic data 0, code hash 1, slot s < 64 at 64 + s, code chunk c at 128 + c, other slots at 256^31 + s
//! stem          first 31 bytes of pedersen_hash(address, position / 256)
//! suffix        position mod 256
//! ```
//!
//! - [`StemName`] is the plain name behind a stem; [`slot_place`], [`chunk_place`] and [`HeaderLayout`] say where things sit.
//! - [`Stems`] turns names into stems, in batches, and remembers what is asked for again.
//! - [`chunk_code`] cuts code.

mod account;
mod chunks;
mod forms;
mod header;
mod places;
mod stems;

pub use account::{account_of, account_places};
pub use arbor_ipa::Committer;
pub use arbor_tree_verkle::{
    StemDiff, SuffixDiff, TreeError, Verified, Witness, WitnessError, WitnessSizes,
};
pub use chunks::{CHUNK, chunk_code};
pub use forms::{AccountsWitness, VERIFY, VERIFY_2023, committer};
pub use header::{HeaderLayout, NoAccount, NoRoom};
pub use places::{
    CODE, HEADER_SLOTS, MAIN_STORAGE_INDEX, StemContents, StemName, chunk_place, slot_place,
};
pub use stems::{Stem, Stems};

/// The value of a leaf.
pub type LeafValue = [u8; 32];
