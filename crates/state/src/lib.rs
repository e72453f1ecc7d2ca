//! Ethereum state over a tree: accounts, slots, code, proofs and witnesses.

mod changes;
mod view;

pub use changes::{Account, AccountChange, SlotChange, StateChanges};
pub use view::{IntermediateRoots, StateError, StateView};
