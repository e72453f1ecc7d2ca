//! What changes must agree with before anything is computed from them. The same rules apply under every tree.
//!
//! [`check_consistent`] needs no state but the stored code. Old values are compared by each tree at the place where
//! it reads the records of what changes, with [`check_old_account`] and [`check_old_slot`]: a second read would cost
//! time, and the tree must not write over a record that it has not seen.

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_hashing::keccak256_batch;
use arbor_versions::View;

use crate::tables::CODE;
use crate::{Account, StateChanges, StateError, WrongChanges};

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
