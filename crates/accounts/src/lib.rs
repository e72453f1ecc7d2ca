//! Accounts, what a block changes of them, and how execution reads them. Nothing here knows a tree or a store.
//!
//! [`Account`] is what the state has under an address, beside slots and code; [`StateChanges`] is
//! all that a block changes; [`StateView`] reads one state by plain names. [`AccountSource`] is a
//! whole state as a stream of accounts, in the [order](AccountOrder) that a tree loads them in.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod batch;
mod changes;
mod error;
mod full;
mod names;
mod order;
mod sorted;
mod source;
mod view;

pub use changes::{Account, AccountChange, SlotChange, StateChanges};
pub use error::ReadError;
pub use full::{FullAccount, FullAccounts, KeyedAccount, KeyedAccounts, KeyedSlot, SortKey};
pub use names::{AccountSlots, Reads};
pub use order::{AccountOrder, BY_NAME};
pub use sorted::{SortedAccounts, check_listed_once};
pub use source::{AccountSource, check_order};
pub use view::{IntermediateRoots, StateView};
