//! Accounts, what a block changes of them, and how execution reads them. Nothing here knows a tree or a store.
//!
//! [`Account`] is what the state has under an address, beside slots and code; [`StateChanges`] is all that a block
//! changes; [`StateView`] reads one state by plain names.
#![forbid(unsafe_code)]

mod changes;
mod error;
mod names;
mod view;

pub use changes::{Account, AccountChange, SlotChange, StateChanges};
pub use error::ReadError;
pub use names::{AccountSlots, Reads};
pub use view::{IntermediateRoots, StateView};
