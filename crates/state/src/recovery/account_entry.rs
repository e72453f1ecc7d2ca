//! Accounts as entries of a list.
//!
//! An entry is an address (20 bytes), a kind (1), the account, the number of slots (4), and the slots. A number is its
//! length (1) and its bytes without leading zeros.
//!
//! | kind | account |
//! |---|---|
//! | 0 | none: it is gone, and has no slots |
//! | 1 | nonce and balance |
//! | 2 | nonce, balance and code hash (32) |
//!
//! A slot is its number and its value.

use std::borrow::Cow;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};

use crate::Account;

/// An account, or some of its slots, as a list sets them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountEntry {
    /// The account's address.
    pub address: Address,
    /// The account; `None` if it is removed with all its slots.
    pub account: Option<Account>,
    /// Slots to set, each once. Other entries may set other slots of the same account.
    pub slots: Vec<(U256, U256)>,
}

const GONE: u8 = 0;
const WITHOUT_CODE: u8 = 1;
const WITH_CODE: u8 = 2;

type Why = Cow<'static, str>;

impl AccountEntry {
    /// What the entry counts for in the size of a chunk: its slots, but at least one.
    pub(super) fn weight(&self) -> usize {
        self.slots.len().max(1)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.address.as_slice());
        match self.account {
            None => out.push(GONE),
            Some(account) => {
                let has_code = account.code_hash != KECCAK256_EMPTY;
                out.push(if has_code { WITH_CODE } else { WITHOUT_CODE });
                put_number(out, U256::from(account.nonce));
                put_number(out, account.balance);
                if has_code {
                    out.extend_from_slice(account.code_hash.as_slice());
                }
            }
        }
        out.extend((self.slots.len() as u32).to_be_bytes());
        for (slot, value) in &self.slots {
            put_number(out, *slot);
            put_number(out, *value);
        }
    }

    pub(super) fn decode(rest: &mut &[u8]) -> Result<Self, Why> {
        let address = Address::from_slice(take(rest, 20)?);
        let account = match take(rest, 1)?[0] {
            GONE => None,
            kind @ (WITHOUT_CODE | WITH_CODE) => {
                let nonce = u64::try_from(number(rest)?);
                let nonce = nonce.map_err(|_| "a nonce of more than 8 bytes")?;
                let balance = number(rest)?;
                let code_hash = match kind {
                    WITH_CODE => B256::from_slice(take(rest, 32)?),
                    _ => KECCAK256_EMPTY,
                };
                if kind == WITH_CODE && code_hash == KECCAK256_EMPTY {
                    return Err("an account with code that has no bytes".into());
                }
                Some(Account {
                    nonce,
                    balance,
                    code_hash,
                })
            }
            kind => return Err(format!("an account of unknown kind {kind}").into()),
        };
        let count = take(rest, 4)?.iter();
        let count = count.fold(0, |count, byte| count << 8 | usize::from(*byte));
        if account.is_none() && count > 0 {
            return Err("slots of an account that is gone".into());
        }
        // A slot takes two bytes or more, so that a wrong number asks for little memory.
        let mut slots = Vec::with_capacity(count.min(rest.len() / 2 + 1));
        for _ in 0..count {
            slots.push((number(rest)?, number(rest)?));
        }
        Ok(Self {
            address,
            account,
            slots,
        })
    }
}

fn put_number(out: &mut Vec<u8>, number: U256) {
    let bytes = number.to_be_bytes_trimmed_vec();
    out.push(bytes.len() as u8);
    out.extend(bytes);
}

fn number(rest: &mut &[u8]) -> Result<U256, Why> {
    let length = usize::from(take(rest, 1)?[0]);
    let bytes = take(rest, length)?;
    match bytes {
        [0, ..] => Err("a number with leading zeros".into()),
        bytes if bytes.len() > 32 => Err("a number of more than 32 bytes".into()),
        bytes => Ok(U256::from_be_slice(bytes)),
    }
}

/// The next bytes, which are moved past.
pub(super) fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Cow<'static, str>> {
    let split = rest.split_at_checked(length);
    let (taken, behind) = split.ok_or("an entry that is cut short")?;
    *rest = behind;
    Ok(taken)
}
