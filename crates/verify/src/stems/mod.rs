//! Accounts in a tree of stems: where fields, code and slots lie, whatever hash makes the stems.
//!
//! The embedding gives every field of an account, every 31 bytes of its code and every slot a leaf:
//! 32 bytes under a key of 32. The first 31 bytes of the key are its *stem*, which 256 leaves
//! share. The stem is computed of the address and an index, by a hash in which the trees of stems
//! differ ([`StemHash`]). EIP-6800 has this embedding, and EIP-7864 took it over:
//!
//! ```text
//! position      basic data 0, code hash 1, slot s < 64 at 64 + s, code chunk c at 128 + c, other slots at 256^31 + s
//! stem          hash(address, position / 256)
//! suffix        position mod 256
//! ```
//!
//! - [`StemName`] is the plain name behind a stem; [`slot_place`], [`chunk_place`] and
//!   [`HeaderLayout`] say where things sit.
//! - [`chunk_code`] cuts code.
//! - [`account_of`] reads an account from proven leaves.
//! - [`WitnessState`] executes over the leaves of a witness.

mod account;
mod chunks;
mod hash;
mod header;
mod named;
mod places;
mod witness;

pub use account::{account_of, account_places};
pub use chunks::{CHUNK, chunk_code};
pub use hash::{Stem, StemHash};
pub use header::{HeaderLayout, NoAccount, NoRoom};
pub(crate) use named::named_leaves;
pub use places::{
    CODE, HEADER_SLOTS, MAIN_STORAGE_INDEX, StemContents, StemName, chunk_place, slot_place,
};
pub use witness::{KeyedLeaf, UnreadLeaf, WitnessLeaves, WitnessState};

/// The value of a leaf.
pub type LeafValue = [u8; 32];
