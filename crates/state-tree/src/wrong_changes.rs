//! Why changes are refused.

use std::fmt;

use alloy_primitives::{Address, B256, U256};

use crate::Account;

/// Why changes are refused: they cannot be those of a block on this state.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongChanges {
    /// The account was not what the changes say.
    #[error(
        "account {address:#x}: the changes say that it was {}, but the state has {}",
        Shown(said),
        Shown(found)
    )]
    OldAccount {
        /// Its address.
        address: Address,
        /// What the changes say; `None`: it did not exist.
        said: Option<Account>,
        /// What the state has.
        found: Option<Account>,
    },
    /// The slot did not have the value that the changes say.
    #[error(
        "account {address:#x}, slot {slot:#x}: the changes say that its value was {said:#x}, but the state has {found:#x}"
    )]
    OldSlot {
        /// Whose slot it is.
        address: Address,
        /// Its number.
        slot: U256,
        /// What the changes say.
        said: U256,
        /// What the state has: zero if the slot is absent, or if the changes clear the account's
        /// storage first.
        found: U256,
    },
    /// Slots are changed of an account that does not exist afterwards.
    #[error(
        "account {address:#x} does not exist after the changes, but they give it a slot ({slot:#x})"
    )]
    SlotsOfAbsentAccount {
        /// Its address.
        address: Address,
        /// Its first slot.
        slot: U256,
    },
    /// An account gets a code hash, and the code is neither among the changes nor stored.
    #[error(
        "account {address:#x} gets the code hash {code_hash}, but the code is missing: neither what is written nor the database has it"
    )]
    NoCode {
        /// The account.
        address: Address,
        /// The hash that it gets.
        code_hash: B256,
    },
    /// Bytes that do not have the hash under which they are given.
    #[error("the code given as {code_hash} has the hash {actual}")]
    CodeHash {
        /// The hash that the changes name.
        code_hash: B256,
        /// The Keccak-256 of the bytes.
        actual: B256,
    },
}

/// An account, or that there is none, in words.
struct Shown<'a>(&'a Option<Account>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("absent"),
            Some(account) => write!(
                f,
                "nonce {} balance {} code {}",
                account.nonce, account.balance, account.code_hash
            ),
        }
    }
}
