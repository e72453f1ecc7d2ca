//! What blocks wrote since a move began, by the names' keys in the source's order.
//!
//! An account: a byte of flags, the address (20), and if it exists its nonce (8), balance (32) and
//! code hash (32). A slot: a byte of flags, its number (32) and its value (32), which is zero for
//! one that is gone. Numbers are big-endian.

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{Account, AccountOrder, Flat, StateError, corrupt};
use arbor_store::Value;

use super::units::{account_key, slot_key};
use super::{SINCE_ACCOUNTS, SINCE_SLOTS};

const EXISTS: u8 = 1;
const CLEARED: u8 = 2;

/// The flag of a slot.
const LOGGED: u8 = 1;

/// An account that was written since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SinceAccount {
    pub(super) address: Address,
    /// None if it is gone.
    pub(super) account: Option<Account>,
    /// Whether it was deleted or its storage cleared at some time since, so that no slot of the
    /// source counts any more. If the source has the account, the log of what is gone has it.
    pub(super) cleared: bool,
}

impl SinceAccount {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.account.is_some()) | u8::from(self.cleared) << 1];
        bytes.extend(self.address);
        if let Some(account) = self.account {
            bytes.extend(account.nonce.to_be_bytes());
            bytes.extend(account.balance.to_be_bytes::<32>());
            bytes.extend(account.code_hash);
        }
        bytes
    }

    pub(super) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, StateError> {
        let read = || {
            let (flags, rest) = bytes.split_first()?;
            let (address, rest) = rest.split_first_chunk::<20>()?;
            let account = match flags & EXISTS {
                0 if rest.is_empty() => None,
                0 => return None,
                _ => {
                    let (nonce, rest) = rest.split_first_chunk()?;
                    let (balance, rest) = rest.split_first_chunk::<32>()?;
                    Some(Account {
                        nonce: u64::from_be_bytes(*nonce),
                        balance: U256::from_be_bytes(*balance),
                        code_hash: B256::from(<[u8; 32]>::try_from(rest).ok()?),
                    })
                }
            };
            (*flags <= EXISTS | CLEARED).then_some(Self {
                address: address.into(),
                account,
                cleared: flags & CLEARED != 0,
            })
        };
        read().ok_or_else(|| corrupt("accounts since", key, "not an account"))
    }
}

/// A slot that was written since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SinceSlot {
    /// Its number.
    pub(super) slot: U256,
    /// Zero if it is gone.
    pub(super) value: U256,
    /// Whether the log of what is gone has the slot itself: it has been zero once, also if it has a
    /// value again.
    pub(super) is_logged: bool,
}

impl SinceSlot {
    pub(super) fn encode(&self) -> [u8; 65] {
        let mut bytes = [0; 65];
        bytes[0] = u8::from(self.is_logged);
        bytes[1..33].copy_from_slice(&self.slot.to_be_bytes::<32>());
        bytes[33..].copy_from_slice(&self.value.to_be_bytes::<32>());
        bytes
    }

    pub(super) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, StateError> {
        match bytes {
            [flags @ ..=LOGGED, words @ ..] if words.len() == 64 => Ok(Self {
                slot: U256::from_be_slice(&words[..32]),
                value: U256::from_be_slice(&words[32..]),
                is_logged: *flags == LOGGED,
            }),
            _ => Err(corrupt("slots since", key, "not a slot")),
        }
    }
}

/// The key of a slot: its account's, then its own.
pub(super) fn since_slot_key(order: &AccountOrder, address: Address, slot: U256) -> [u8; 64] {
    let mut key = [0; 64];
    key[..32].copy_from_slice(&account_key(order, address));
    key[32..].copy_from_slice(&slot_key(order, slot));
    key
}

/// The account as it was written since, if it was.
pub(super) fn account(
    flat: &dyn Flat,
    order: &AccountOrder,
    address: Address,
) -> Result<Option<SinceAccount>, StateError> {
    let key = account_key(order, address);
    let record = flat.value(SINCE_ACCOUNTS, &key)?;
    decoded(&key, record)
}

pub(super) fn decoded(
    key: &[u8],
    record: Option<Value>,
) -> Result<Option<SinceAccount>, StateError> {
    let record = record.map(|bytes| SinceAccount::decode(key, &bytes));
    record.transpose()
}

/// The slot as it was written since, if it was.
pub(super) fn slot(
    flat: &dyn Flat,
    order: &AccountOrder,
    address: Address,
    slot: U256,
) -> Result<Option<SinceSlot>, StateError> {
    let key = since_slot_key(order, address, slot);
    let record = flat.value(SINCE_SLOTS, &key)?;
    let record = record.map(|bytes| SinceSlot::decode(&key, &bytes));
    record.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_others_are_refused() {
        let account = Account {
            nonce: 5,
            balance: U256::from(1 << 20),
            code_hash: B256::repeat_byte(9),
        };
        for account in [None, Some(account)] {
            for cleared in [false, true] {
                let since = SinceAccount {
                    address: Address::repeat_byte(1),
                    account,
                    cleared,
                };
                let bytes = since.encode();
                assert_eq!(SinceAccount::decode(b"", &bytes).expect("a record"), since);
                for cut in 0..bytes.len() {
                    assert!(SinceAccount::decode(b"", &bytes[..cut]).is_err(), "{cut}");
                }
                assert!(SinceAccount::decode(b"", &[&bytes[..], &[0]].concat()).is_err());
                let other = [&[bytes[0] | 4], &bytes[1..]].concat();
                assert!(SinceAccount::decode(b"", &other).is_err());
            }
        }
        for is_logged in [false, true] {
            let slot = SinceSlot {
                slot: U256::from(7),
                value: U256::MAX,
                is_logged,
            };
            let bytes = slot.encode();
            assert_eq!(SinceSlot::decode(b"", &bytes).expect("a record"), slot);
            for cut in 0..bytes.len() {
                assert!(SinceSlot::decode(b"", &bytes[..cut]).is_err(), "{cut}");
            }
            assert!(SinceSlot::decode(b"", &[&bytes[..], &[0]].concat()).is_err());
            let other = [&[2], &bytes[1..]].concat();
            assert!(SinceSlot::decode(b"", &other).is_err());
        }
    }
}
