//! Flat records.
//!
//! Account: `balance_len | has_code << 6 | delegates << 7`, `nonce_len`, nonce, balance; with code
//! its hash (32) and, unless it is a delegation, its size (4); of a delegation the address (20).
//! Slot: the value, which is not zero. Users of a code: their number, which is not zero. Integers
//! are big-endian, without leading zeros if no length is fixed.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state_tree::{Account, StateError, corrupt};
use arbor_store::Value;
use arbor_tree::Hash;
use arbor_verify::eip8297::{Code, fields};

const HAS_CODE: u8 = 0x40;
const DELEGATES: u8 = 0x80;
const BALANCE_LEN: u8 = 0x3f;

/// An account's flat record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AccountRecord {
    pub(super) account: Account,
    pub(super) code: Code,
}

impl AccountRecord {
    /// The code whose leaves the account keeps.
    pub(super) fn code_with_leaves(&self) -> Option<B256> {
        matches!(self.code, Code::Bytes(_)).then_some(self.account.code_hash)
    }

    /// The values of the leaves of its fields; the address is for the error.
    pub(super) fn fields(&self, address: Address) -> Result<[Hash; 3], StateError> {
        let fields = fields(&self.account, self.code);
        fields.map_err(|cause| StateError::no_room(address, cause))
    }

    pub(super) fn encode(&self) -> Value {
        let balance = self.account.balance.to_be_bytes_trimmed_vec();
        let nonce = U256::from(self.account.nonce).to_be_bytes_trimmed_vec();
        let flags = match self.code {
            Code::None => 0,
            Code::Bytes(_) => HAS_CODE,
            Code::Delegation(_) => HAS_CODE | DELEGATES,
        };
        let mut out = vec![balance.len() as u8 | flags, nonce.len() as u8];
        out.extend(nonce);
        out.extend(balance);
        match self.code {
            Code::None => {}
            Code::Bytes(size) => {
                out.extend_from_slice(self.account.code_hash.as_slice());
                out.extend(size.to_be_bytes());
            }
            Code::Delegation(to) => {
                out.extend_from_slice(self.account.code_hash.as_slice());
                out.extend_from_slice(to.as_slice());
            }
        }
        out.into()
    }

    pub(super) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, StateError> {
        Self::read(bytes).map_err(|why| corrupt("accounts", key, why))
    }

    fn read(mut bytes: &[u8]) -> Result<Self, &'static str> {
        let input = &mut bytes;
        let [flags, nonce_len] = *take::<2>(input).ok_or("no lengths")?;
        let nonce = integer(input, usize::from(nonce_len), 8).ok_or("nonce")?;
        let balance = integer(input, usize::from(flags & BALANCE_LEN), 32).ok_or("balance")?;
        let (mut code_hash, mut code) = (KECCAK256_EMPTY, Code::None);
        if flags & HAS_CODE != 0 {
            code_hash = take::<32>(input).ok_or("code hash cut short")?.into();
            code = match flags & DELEGATES {
                0 => {
                    let size = take::<4>(input).ok_or("code size cut short")?;
                    Code::Bytes(u32::from_be_bytes(*size))
                }
                _ => Code::Delegation(take::<20>(input).ok_or("delegation cut short")?.into()),
            };
        } else if flags & DELEGATES != 0 {
            return Err("a delegation without code");
        }
        if !input.is_empty() {
            return Err("trailing bytes");
        }
        // What is written comes back as it was, so that a record that is read and compared is the
        // one that was written.
        if code == Code::Bytes(0) || (code_hash == KECCAK256_EMPTY) != (code == Code::None) {
            return Err("code without bytes");
        }
        let account = Account {
            nonce: nonce.to(),
            balance,
            code_hash,
        };
        Ok(Self { account, code })
    }
}

/// A slot's record.
pub(super) fn encode_slot(value: U256) -> Option<Value> {
    (!value.is_zero()).then(|| value.to_be_bytes_trimmed_vec().into())
}

/// A slot's value, not zero.
pub(super) fn decode_slot(key: &[u8], bytes: &[u8]) -> Result<U256, StateError> {
    number(bytes, 32).ok_or_else(|| corrupt("slots", key, "value"))
}

/// The record of a code's users.
pub(super) fn encode_users(users: u64) -> Option<Value> {
    (users > 0).then(|| U256::from(users).to_be_bytes_trimmed_vec().into())
}

/// The number of a code's users, not zero.
pub(super) fn decode_users(key: &[u8], bytes: &[u8]) -> Result<u64, StateError> {
    let users = number(bytes, 8).ok_or_else(|| corrupt("code users", key, "number"))?;
    Ok(users.to())
}

/// The hash of a code that has users.
pub(super) fn code_key(key: &[u8]) -> Result<B256, StateError> {
    let hash = <[u8; 32]>::try_from(key);
    let hash = hash.map_err(|_| corrupt("code users", key, "key of another length than a hash"))?;
    Ok(hash.into())
}

fn number(mut bytes: &[u8], max: usize) -> Option<U256> {
    let length = bytes.len();
    let number = integer(&mut bytes, length, max)?;
    (!number.is_zero()).then_some(number)
}

fn take<'a, const N: usize>(input: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, tail) = input.split_first_chunk()?;
    *input = tail;
    Some(head)
}

/// An integer of `length` bytes, at most `max`, without leading zeros.
fn integer(input: &mut &[u8], length: usize, max: usize) -> Option<U256> {
    let (bytes, tail) = (length <= max).then(|| input.split_at_checked(length))??;
    *input = tail;
    (bytes.first() != Some(&0)).then(|| U256::from_be_slice(bytes))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::hex;
    use proptest::prelude::*;

    use super::*;

    fn sample(code: Code) -> AccountRecord {
        AccountRecord {
            account: Account {
                nonce: 0x0102,
                balance: U256::from(0xabcdefu64),
                code_hash: match code {
                    Code::None => KECCAK256_EMPTY,
                    _ => B256::repeat_byte(0x22),
                },
            },
            code,
        }
    }

    #[test]
    fn stored_bytes_are_fixed() {
        let hash = "22".repeat(32);
        let encoded = |code| hex::encode(sample(code).encode());
        assert_eq!(encoded(Code::None), "03020102abcdef");
        let expected = ["43020102abcdef", &hash, "00000020"].concat();
        assert_eq!(encoded(Code::Bytes(0x20)), expected);
        let expected = ["c3020102abcdef", &hash, &"11".repeat(20)].concat();
        assert_eq!(
            encoded(Code::Delegation(Address::repeat_byte(0x11))),
            expected
        );
        let slot = encode_slot(U256::from(0x0100)).unwrap();
        assert_eq!(hex::encode(slot), "0100");
        assert_eq!(encode_slot(U256::ZERO), None);
        assert_eq!(hex::encode(encode_users(258).unwrap()), "0102");
        assert_eq!(encode_users(0), None);
    }

    #[test]
    fn malformed_records_are_errors() {
        for code in [Code::None, Code::Bytes(7), Code::Delegation(Address::ZERO)] {
            let bytes = sample(code).encode();
            for cut in 0..bytes.len() {
                assert!(AccountRecord::decode(b"k", &bytes[..cut]).is_err(), "{cut}");
            }
            assert!(AccountRecord::decode(b"k", &[&bytes[..], &[0]].concat()).is_err());
        }
        let bad: [&[u8]; 5] = [
            &[0x80, 0],
            &[0x21, 0],
            &[0, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[1, 0, 0],
            &[&[0x40, 0][..], &[1; 32], &[0; 4]].concat(),
        ];
        for bad in bad {
            assert!(AccountRecord::decode(b"k", bad).is_err(), "{bad:?}");
        }
        for bad in [&[][..], &[0], &[0, 1], &[1; 33]] {
            assert!(decode_slot(b"k", bad).is_err());
            assert!(decode_users(b"k", bad).is_err());
        }
        assert!(decode_users(b"k", &[1; 9]).is_err() && code_key(&[1; 31]).is_err());
    }

    proptest! {
        #[test]
        fn records_come_back(nonce: u64, balance: [u8; 32], hash: [u8; 32], size in 1u32.., to: [u8; 20], kind in 0..3, users in 1u64..) {
            let code = match kind {
                0 => Code::None,
                1 => Code::Bytes(size),
                _ => Code::Delegation(to.into()),
            };
            let code_hash = if kind == 0 { KECCAK256_EMPTY } else { hash.into() };
            let account = Account { nonce, balance: U256::from_be_bytes(balance), code_hash };
            let record = AccountRecord { account, code };
            prop_assert_eq!(AccountRecord::decode(b"k", &record.encode()).unwrap(), record);
            let value = U256::from_be_bytes(balance);
            if let Some(bytes) = encode_slot(value) {
                prop_assert_eq!(decode_slot(b"k", &bytes).unwrap(), value);
            }
            prop_assert_eq!(decode_users(b"k", &encode_users(users).unwrap()).unwrap(), users);
        }
    }
}
