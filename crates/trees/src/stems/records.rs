//! Flat records: what an account's and a slot's leaves are made from.
//!
//! A record is there exactly if its leaves are: the tree cannot forget a leaf, so an account that is gone leaves a record that says so, and so does
//! a slot that is zero again. The keys are plain names: address, and address and slot number (32 bytes big-endian).
//!
//! Account: `balance_len | exists << 6 | has_code << 7`, `nonce_len`, nonce, balance; with code its hash (32) and size (3); then, if more chunks of
//! code have leaves than the code takes, their number (3). Slot: the value. Integers are big-endian, without leading zeros where no length is fixed.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_store::Value;

use arbor_state_tree::corrupt;
use arbor_state_tree::{Account, StateError};
use arbor_verify::stems::{CHUNK, HeaderLayout, LeafValue, chunk_code};

const EXISTS: u8 = 0x40;
const HAS_CODE: u8 = 0x80;
const BALANCE_LEN: u8 = 0x3f;

/// An account's flat record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AccountRecord {
    /// `None`: it existed once.
    pub(crate) account: Option<Account>,
    /// Bytes of its code.
    pub(crate) code_size: u32,
    /// Chunks of code that have leaves; those after the code's own are zero.
    pub(crate) chunks: u32,
}

fn chunks_of(code_size: u32) -> u32 {
    code_size.div_ceil(CHUNK as u32)
}

impl AccountRecord {
    /// The record of an account that follows `before`.
    pub(crate) fn following(before: Option<&Self>, account: Account, code_size: u32) -> Self {
        let chunks = before.map_or(0, |before| before.chunks);
        Self {
            account: Some(account),
            code_size,
            chunks: chunks.max(chunks_of(code_size)),
        }
    }

    /// The record once the account is gone.
    pub(crate) fn gone(&self) -> Self {
        Self {
            account: None,
            code_size: 0,
            chunks: self.chunks,
        }
    }

    /// The number of chunks that have leaves, if the code that the account has now does not need them all.
    pub(crate) fn past_chunks(&self) -> Option<u32> {
        (self.chunks > chunks_of(self.code_size)).then_some(self.chunks)
    }

    /// The hash of the code; that of none for an account that is gone.
    pub(crate) fn code_hash(&self) -> B256 {
        self.account
            .map_or(KECCAK256_EMPTY, |account| account.code_hash)
    }

    /// The leaves of the fields of the account, whose address errors name, by suffix.
    pub(crate) fn header_leaves(
        &self,
        address: Address,
        layout: HeaderLayout,
    ) -> Result<Vec<(u8, LeafValue)>, StateError> {
        let nothing = Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        };
        let account = self.account.as_ref();
        let leaves = layout.leaves(account.unwrap_or(&nothing), self.code_size);
        let mut leaves = leaves.map_err(|cause| StateError::no_room(address, cause))?;
        if account.is_none() {
            leaves.iter_mut().for_each(|(_, value)| *value = [0; 32]);
        }
        // Only code brings this leaf.
        if let Some(suffix) = layout.code_size_leaf()
            && self.chunks > 0
            && leaves.iter().all(|(present, _)| *present != suffix)
        {
            leaves.push((suffix, [0; 32]));
        }
        Ok(leaves)
    }

    /// The leaves of the code.
    pub(crate) fn code_leaves(&self, code: &[u8]) -> CodeLeaves {
        CodeLeaves {
            chunks: chunk_code(code),
            number: self.chunks,
        }
    }

    pub(crate) fn encode(&self) -> Value {
        let account = self.account.unwrap_or(Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        });
        let balance = account.balance.to_be_bytes_trimmed_vec();
        let nonce = U256::from(account.nonce).to_be_bytes_trimmed_vec();
        let has_code = account.code_hash != KECCAK256_EMPTY;
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        let mut out = Vec::with_capacity(2 + 8 + 32 + 35 + 3);
        let flags = flag(self.account.is_some(), EXISTS) | flag(has_code, HAS_CODE);
        out.push(balance.len() as u8 | flags);
        out.push(nonce.len() as u8);
        out.extend(nonce);
        out.extend(balance);
        if has_code {
            out.extend_from_slice(account.code_hash.as_slice());
            out.extend_from_slice(&self.code_size.to_be_bytes()[1..]);
        }
        if self.chunks > chunks_of(self.code_size) {
            out.extend_from_slice(&self.chunks.to_be_bytes()[1..]);
        }
        out.into()
    }

    pub(crate) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, StateError> {
        Self::read(bytes).map_err(|why| corrupt("accounts", key, why))
    }

    fn read(mut bytes: &[u8]) -> Result<Self, &'static str> {
        let input = &mut bytes;
        let [flags, nonce_len] = take(input, 2).ok_or("no lengths")? else {
            return Err("no lengths");
        };
        let (flags, nonce_len) = (*flags, usize::from(*nonce_len));
        let nonce = integer(input, nonce_len, 8).ok_or("nonce")?;
        let balance = integer(input, usize::from(flags & BALANCE_LEN), 32).ok_or("balance")?;
        let (mut code_hash, mut code_size) = (KECCAK256_EMPTY, 0);
        if flags & HAS_CODE != 0 {
            code_hash = B256::from_slice(take(input, 32).ok_or("code hash cut short")?);
            code_size = three_bytes(input).ok_or("code size cut short")?;
        }
        let own = chunks_of(code_size);
        let chunks = match input.is_empty() {
            true => own,
            false => three_bytes(input).ok_or("number of chunks")?,
        };
        if !input.is_empty() {
            return Err("trailing bytes");
        }
        let exists = flags & EXISTS != 0;
        let fields = Account {
            nonce: nonce.to(),
            balance,
            code_hash,
        };
        let record = Self {
            account: exists.then_some(fields),
            code_size,
            chunks,
        };
        // Whatever is written comes back as it was, so that a record that is read and compared is the one that was written.
        match (exists, flags, nonce_len) {
            (true, ..) | (false, 0, 0) if chunks >= own => Ok(record),
            (true, ..) => Err("fewer chunks than the code has"),
            (false, ..) => Err("fields of an account that does not exist"),
        }
    }
}

/// The leaves of an account's code: as many as it had chunks at most, zero behind the code that it has.
pub(crate) struct CodeLeaves {
    chunks: Vec<LeafValue>,
    number: u32,
}

impl CodeLeaves {
    /// How many they are.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The leaf of a chunk, if there is one.
    pub(crate) fn get(&self, chunk: u32) -> Option<LeafValue> {
        let value = self.chunks.get(chunk as usize).copied();
        (chunk < self.number).then(|| value.unwrap_or_default())
    }
}

/// A slot's record: its value, nothing for zero.
pub(crate) fn encode_slot(value: U256) -> Value {
    value.to_be_bytes_trimmed_vec().into()
}

/// A slot's value.
pub(crate) fn decode_slot(key: &[u8], mut bytes: &[u8]) -> Result<U256, StateError> {
    let length = bytes.len();
    integer(&mut bytes, length, 32).ok_or_else(|| corrupt("slots", key, "value"))
}

fn take<'a>(input: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = input.split_at_checked(length)?;
    *input = tail;
    Some(head)
}

/// An integer of `length` bytes, at most `max`, without leading zeros.
fn integer(input: &mut &[u8], length: usize, max: usize) -> Option<U256> {
    let bytes = (length <= max).then(|| take(input, length)).flatten()?;
    (bytes.first() != Some(&0)).then(|| U256::from_be_slice(bytes))
}

fn three_bytes(input: &mut &[u8]) -> Option<u32> {
    let bytes = take(input, 3)?;
    Some(
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
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
    use crate::named_records::{account_key, slot_key, slot_name};

    fn sample() -> AccountRecord {
        AccountRecord {
            account: Some(Account {
                nonce: 0x0102,
                balance: U256::from(0xabcdefu64),
                code_hash: B256::repeat_byte(0x22),
            }),
            code_size: 0x20,
            chunks: 3,
        }
    }

    #[test]
    fn stored_bytes_are_fixed() {
        let expected = ["c3020102abcdef", &"22".repeat(32), "000020", "000003"].concat();
        assert_eq!(hex::encode(sample().encode()), expected);
        assert_eq!(hex::encode(sample().gone().encode()), "0000000003");
        let gone = AccountRecord::following(None, sample().account.unwrap(), 0).gone();
        assert_eq!(hex::encode(gone.encode()), "0000");
        assert_eq!(hex::encode(encode_slot(U256::from(0x0100))), "0100");
        assert!(encode_slot(U256::ZERO).is_empty());
        let key = slot_key(Address::repeat_byte(0x11), U256::from(5));
        assert_eq!(hex::encode(key), "11".repeat(20) + &"00".repeat(31) + "05");
    }

    #[test]
    fn malformed_records_are_errors() {
        let bytes = sample().encode();
        // Without the number of chunks it is the record of an account that never had more.
        for cut in (0..bytes.len()).filter(|cut| *cut != bytes.len() - 3) {
            let cut = &bytes[..cut];
            assert!(AccountRecord::decode(b"k", cut).is_err(), "{cut:?}");
        }
        let bad: [&[u8]; 6] = [
            &[&bytes[..], &[0]].concat(),
            // Fields that do not exist, leading zeros, fewer chunks than the code takes.
            &[1, 0, 7],
            &[0, 1, 7],
            &[0x42, 0, 0, 7],
            &[0x40, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            &[&bytes[..bytes.len() - 1], &[1]].concat(),
        ];
        for bad in bad {
            assert!(AccountRecord::decode(b"k", bad).is_err(), "{bad:?}");
        }
        assert!(decode_slot(b"k", &[0]).is_err());
        assert!(decode_slot(b"k", &[1; 33]).is_err());
        assert!(slot_name(&[0; 51]).is_err() && account_key(&[0; 21]).is_err());
    }

    proptest! {
        #[test]
        fn records_come_back(
            fields: Option<(u64, [u8; 32], Option<[u8; 32]>)>, code_size in 1u32..1 << 24, more in 0u32..9,
            address: [u8; 20], slot: [u8; 32], value: u64,
        ) {
            let account = fields.map(|(nonce, balance, code)| Account {
                nonce,
                balance: U256::from_be_bytes(balance),
                code_hash: code.map_or(KECCAK256_EMPTY, B256::from),
            });
            let code_size = match fields {
                Some((_, _, Some(_))) => code_size,
                _ => 0,
            };
            let record = AccountRecord { account, code_size, chunks: chunks_of(code_size) + more };
            prop_assert_eq!(AccountRecord::decode(b"k", &record.encode()).unwrap(), record);
            let value = U256::from(value);
            prop_assert_eq!(decode_slot(b"k", &encode_slot(value)).unwrap(), value);
            let name = (Address::from(address), U256::from_be_bytes(slot));
            prop_assert_eq!(slot_name(&slot_key(name.0, name.1)).unwrap(), name);
        }
    }
}
