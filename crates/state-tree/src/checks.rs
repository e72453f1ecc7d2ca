//! What changes must agree with before anything is computed from them. The same rules apply under every tree.
//!
//! [`check_consistent`] needs no state but the stored code. Old values are compared by each tree at the place where
//! it reads the records of what changes, with [`check_old_account`] and [`check_old_slot`]: a second read would cost
//! time, and the tree must not write over a record that it has not seen.

use std::fmt;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_hashing::keccak256_batch;
use arbor_versions::View;

use crate::tables::CODE;
use crate::{Account, StateChanges, StateError};

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
        /// What the state has: zero if the slot is absent, or if the changes clear the account's storage first.
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

impl From<WrongChanges> for StateError {
    fn from(error: WrongChanges) -> Self {
        Self::WrongChanges(Box::new(error))
    }
}

/// Checks the changes of consecutive blocks: absent accounts have no slots, all code has its hash, and every code
/// hash that an account gets has its code among the changes so far or in the database.
pub fn check_consistent(view: View<'_>, blocks: &[&StateChanges]) -> Result<(), StateError> {
    for (place, changes) in blocks.iter().enumerate() {
        check_code_hashes(changes.codes.iter())?;
        for (address, change) in &changes.accounts {
            let Some(new) = change.new else {
                if let Some((slot, _)) = change.slots.first_key_value() {
                    let (address, slot) = (*address, *slot);
                    return Err(WrongChanges::SlotsOfAbsentAccount { address, slot }.into());
                }
                continue;
            };
            let code_hash = new.code_hash;
            let is_kept = change.old.is_some_and(|old| old.code_hash == code_hash);
            if is_kept || code_hash == KECCAK256_EMPTY {
                continue;
            }
            let mut so_far = blocks[..=place].iter().rev();
            if !so_far.any(|changes| changes.codes.contains_key(&code_hash))
                && view.get(CODE, code_hash.as_slice())?.is_none()
            {
                let address = *address;
                return Err(WrongChanges::NoCode { address, code_hash }.into());
            }
        }
    }
    Ok(())
}

/// Checks that all code has the hash under which it is given.
pub fn check_code_hashes<'a>(
    codes: impl Iterator<Item = (&'a B256, &'a Bytes)>,
) -> Result<(), StateError> {
    let (code_hashes, codes): (Vec<&B256>, Vec<&Bytes>) = codes.unzip();
    let mut hashes = vec![[0; 32]; codes.len()];
    keccak256_batch(&codes, &mut hashes);
    for (code_hash, actual) in code_hashes.into_iter().zip(hashes) {
        if code_hash.0 != actual {
            let (code_hash, actual) = (*code_hash, actual.into());
            return Err(WrongChanges::CodeHash { code_hash, actual }.into());
        }
    }
    Ok(())
}

/// Compares an account as the changes say that it was with the one that the state has.
pub fn check_old_account(
    address: Address,
    said: Option<Account>,
    found: Option<Account>,
) -> Result<(), StateError> {
    match said == found {
        true => Ok(()),
        false => Err(WrongChanges::OldAccount {
            address,
            said,
            found,
        }
        .into()),
    }
}

/// Compares a slot's value as the changes say that it was with the one that the state has; zero in storage that the
/// changes clear.
pub fn check_old_slot(
    (address, slot): (Address, U256),
    said: U256,
    found: U256,
) -> Result<(), StateError> {
    match said == found {
        true => Ok(()),
        false => Err(WrongChanges::OldSlot {
            address,
            slot,
            said,
            found,
        }
        .into()),
    }
}
