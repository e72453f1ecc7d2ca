//! Flat records: the value of an account or slot, with its plain name.
//!
//! Account: `balance_len | has_root << 6 | has_code << 7`, `nonce_len`, address (20), nonce,
//! balance, then the storage root and the code hash where the flags say so (32 each).
//! Slot: `slot_len`, slot, value. Integers are big-endian without leading zeros.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_store::Value;
use arbor_tree_mpt::EMPTY_ROOT;
pub(crate) use arbor_verify::mpt::{AccountRecord, SlotRecord};

use arbor_state_tree::{Account, StateError};

const HAS_ROOT: u8 = 0x40;
const HAS_CODE: u8 = 0x80;
const BALANCE_LEN: u8 = 0x3f;

/// A record as it is stored.
pub(crate) trait FlatRecord: Sized {
    /// Appends the stored form.
    fn encode_into(&self, out: &mut Vec<u8>);

    /// Reads the stored form; the key is for errors.
    fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, StateError>;

    /// The stored form.
    fn encode(&self) -> Value {
        let mut out = Vec::with_capacity(MOST);
        self.encode_into(&mut out);
        out.into()
    }
}

/// Bytes of the longest stored form.
const MOST: usize = 22 + 8 + 32 + 64;

/// Big-endian bytes without leading zeros.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    &bytes[zeros..]
}

impl FlatRecord for AccountRecord {
    fn encode_into(&self, out: &mut Vec<u8>) {
        let balance = self.account.balance.to_be_bytes::<32>();
        let nonce = self.account.nonce.to_be_bytes();
        let (balance, nonce) = (trimmed(&balance), trimmed(&nonce));
        let root = (self.storage_root != EMPTY_ROOT).then_some(self.storage_root);
        let code = (self.account.code_hash != KECCAK256_EMPTY).then_some(self.account.code_hash);
        let flags =
            if root.is_some() { HAS_ROOT } else { 0 } | if code.is_some() { HAS_CODE } else { 0 };
        out.push(balance.len() as u8 | flags);
        out.push(nonce.len() as u8);
        out.extend_from_slice(self.address.as_slice());
        out.extend_from_slice(nonce);
        out.extend_from_slice(balance);
        for hash in [root, code].into_iter().flatten() {
            out.extend_from_slice(hash.as_slice());
        }
    }

    fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, StateError> {
        let corrupt = |why| StateError::Corrupt {
            table: "accounts",
            key: key.to_vec(),
            why,
        };
        let mut input = Input(bytes);
        let flags = input.take(1).ok_or_else(|| corrupt("empty record"))?[0];
        let nonce_len = input.take(1).ok_or_else(|| corrupt("no nonce length"))?[0] as usize;
        let address =
            Address::from_slice(input.take(20).ok_or_else(|| corrupt("address cut short"))?);
        let nonce = input
            .integer(nonce_len, 8)
            .ok_or_else(|| corrupt("nonce"))?
            .to::<u64>();
        let balance = input
            .integer((flags & BALANCE_LEN) as usize, 32)
            .ok_or_else(|| corrupt("balance"))?;
        let mut hash = |flag: u8, absent: B256| match flags & flag {
            0 => Some(absent),
            _ => input.take(32).map(B256::from_slice),
        };
        let storage_root =
            hash(HAS_ROOT, EMPTY_ROOT.into()).ok_or_else(|| corrupt("storage root cut short"))?;
        let code_hash =
            hash(HAS_CODE, KECCAK256_EMPTY).ok_or_else(|| corrupt("code hash cut short"))?;
        if !input.0.is_empty() {
            return Err(corrupt("trailing bytes"));
        }
        Ok(Self {
            address,
            account: Account {
                nonce,
                balance,
                code_hash,
            },
            storage_root,
        })
    }
}

impl FlatRecord for SlotRecord {
    fn encode_into(&self, out: &mut Vec<u8>) {
        let (slot, value) = (
            self.slot.to_be_bytes::<32>(),
            self.value.to_be_bytes::<32>(),
        );
        let (slot, value) = (trimmed(&slot), trimmed(&value));
        out.push(slot.len() as u8);
        out.extend_from_slice(slot);
        out.extend_from_slice(value);
    }

    fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, StateError> {
        let corrupt = |why| StateError::Corrupt {
            table: "slots",
            key: key.to_vec(),
            why,
        };
        let mut input = Input(bytes);
        let slot_len = input.take(1).ok_or_else(|| corrupt("empty record"))?[0] as usize;
        let slot = input
            .integer(slot_len, 32)
            .ok_or_else(|| corrupt("slot number"))?;
        let value = input
            .integer(input.0.len(), 32)
            .ok_or_else(|| corrupt("value"))?;
        if value.is_zero() {
            return Err(corrupt("zero value stored"));
        }
        Ok(Self { slot, value })
    }
}

/// Bytes being taken from the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len)?;
        self.0 = tail;
        Some(head)
    }

    /// An integer of `len` bytes, at most `max`, without leading zeros.
    fn integer(&mut self, len: usize, max: usize) -> Option<U256> {
        let bytes = (len <= max).then(|| self.take(len)).flatten()?;
        (bytes.first() != Some(&0)).then(|| U256::from_be_slice(bytes))
    }
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

    fn sample() -> AccountRecord {
        AccountRecord {
            address: Address::repeat_byte(0x11),
            account: Account {
                nonce: 0x0102,
                balance: U256::from(0xabcdefu64),
                code_hash: B256::repeat_byte(0x22),
            },
            storage_root: B256::repeat_byte(0x33),
        }
    }

    #[test]
    fn stored_bytes_are_fixed() {
        let expected = [
            "c302",
            &"11".repeat(20),
            "0102abcdef",
            &"33".repeat(32),
            &"22".repeat(32),
        ]
        .concat();
        assert_eq!(hex::encode(sample().encode()), expected);
        let slot = SlotRecord {
            slot: U256::from(0x0100),
            value: U256::from(7),
        };
        assert_eq!(hex::encode(slot.encode()), "02010007");
    }

    #[test]
    fn malformed_records_are_errors() {
        let bytes = sample().encode();
        for cut in 0..bytes.len() {
            assert!(
                AccountRecord::decode(b"k", &bytes[..cut]).is_err(),
                "cut at {cut}"
            );
        }
        assert!(AccountRecord::decode(b"k", &[&bytes[..], &[0]].concat()).is_err());
        for bad in [&[][..], &[1], &[33], &[0], &[1, 0, 7], &[1, 1, 0]] {
            assert!(SlotRecord::decode(b"k", bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn records_come_back(
            address: [u8; 20], nonce: u64, balance: [u8; 32], code: Option<[u8; 32]>, root: Option<[u8; 32]>,
            slot: [u8; 32], value in 1u64..,
        ) {
            let record = AccountRecord {
                address: address.into(),
                account: Account {
                    nonce,
                    balance: U256::from_be_bytes(balance),
                    code_hash: code.map_or(KECCAK256_EMPTY, B256::from),
                },
                storage_root: root.map_or(EMPTY_ROOT.into(), B256::from),
            };
            prop_assert_eq!(AccountRecord::decode(b"k", &record.encode()).unwrap(), record);
            let record = SlotRecord { slot: U256::from_be_bytes(slot), value: U256::from(value) };
            prop_assert_eq!(SlotRecord::decode(b"k", &record.encode()).unwrap(), record);
        }
    }
}
