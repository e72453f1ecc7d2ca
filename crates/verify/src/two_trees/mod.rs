//! Proofs of a state on its way from one tree to another.
//!
//! The root of such a state is the Keccak-256 of the root of the tree that the state comes from
//! (the *source*), the root of the tree that it goes to (the *target*), and the hash of a log. The
//! log has the names that blocks since the beginning of the move made gone although the source has
//! them: accounts that were deleted or lost their storage, and slots that were set to zero
//! ([`Gone`]). Each block that makes something gone adds its entries, and the hash goes on with
//! them ([`chained`]).
//!
//! One rule then gives what each name is:
//!
//! 1. If the target has it (an account, or a value that is not zero), the name is as the target has
//!    it.
//! 2. If not, and the log has it or its account, it is gone.
//! 3. If neither, it is as the source has it.
//!
//! A proof has one proof of each tree for the same names, and the log. Whoever checks it computes
//! the hash of the log and the root, and applies the rule, so that nothing depends on who made the
//! proof.
//!
//! Before the first block of the move there is no target yet. A proof then has one proof of the
//! source, and its root. Only the witness of that block has such a proof.

mod forms;
mod gone;
mod kind;
mod places;
mod state;

pub use forms::{OneOfTwo, TwoTrees};
pub use gone::{Gone, Log, WrongLog, chained, decode, encode, root};
pub use kind::VERIFY;
pub use places::{Place, PlacesOfAccount, TwoPlaces};
