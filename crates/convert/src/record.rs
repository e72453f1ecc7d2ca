//! Accounts as a conversion keeps them on disk.
//!
//! address (20 bytes), nonce, balance, number of slots, code hash (32 bytes, left out without code),
//! then for each slot its number and its value. A number is one byte with its length in bytes, then its
//! significant bytes, most significant first; the length of the nonce has bit 7 set if a code hash follows.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state::{Account, FullAccount};

/// Marks an account with code.
const HAS_CODE: u8 = 0x80;

/// Appends an account.
pub(crate) fn encode(account: &FullAccount, out: &mut Vec<u8>) {
    let FullAccount {
        address,
        account,
        slots,
    } = account;
    out.extend_from_slice(address.as_slice());
    let head = out.len();
    put(U256::from(account.nonce), out);
    put(account.balance, out);
    put(U256::from(slots.len()), out);
    if account.code_hash != KECCAK256_EMPTY {
        out[head] |= HAS_CODE;
        out.extend_from_slice(account.code_hash.as_slice());
    }
    for (slot, value) in slots {
        put(*slot, out);
        put(*value, out);
    }
}

/// Appends a number.
pub(crate) fn put(number: U256, out: &mut Vec<u8>) {
    let bytes = number.to_be_bytes::<32>();
    let bytes = &bytes[number.leading_zeros() / 8..];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// Reads the next account and moves past it; `None` for bytes that are none.
pub(crate) fn decode(bytes: &mut &[u8]) -> Option<FullAccount> {
    let address = Address::from_slice(take(bytes, 20)?);
    let has_code = bytes.first()? & HAS_CODE != 0;
    let (nonce, balance) = (number(bytes)?, number(bytes)?);
    let slots = usize::try_from(number(bytes)?).ok()?;
    let code_hash = match has_code {
        true => B256::from_slice(take(bytes, 32)?),
        false => KECCAK256_EMPTY,
    };
    // A slot takes four bytes or more, so that a wrong number asks for little memory.
    let mut listed = Vec::with_capacity(slots.min(bytes.len() / 4 + 1));
    for _ in 0..slots {
        listed.push((number(bytes)?, number(bytes)?));
    }
    Some(FullAccount {
        address,
        account: Account {
            nonce: u64::try_from(nonce).ok()?,
            balance,
            code_hash,
        },
        slots: listed,
    })
}

/// Reads the next number and moves past it.
pub(crate) fn number(bytes: &mut &[u8]) -> Option<U256> {
    let length = usize::from(take(bytes, 1)?[0] & !HAS_CODE);
    U256::try_from_be_slice(take(bytes, length)?)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    bytes.split_off(..count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn account() -> impl Strategy<Value = FullAccount> {
        let number = (any::<[u8; 32]>(), 0..=256usize).prop_map(|(bytes, shift)| {
            U256::from_be_bytes(bytes)
                .checked_shr(shift)
                .unwrap_or_default()
        });
        let slots = proptest::collection::vec((number.clone(), number.clone()), 0..4);
        let fields = (
            any::<[u8; 20]>(),
            any::<u64>(),
            number,
            any::<Option<[u8; 32]>>(),
            slots,
        );
        fields.prop_map(|(address, nonce, balance, code, slots)| FullAccount {
            address: address.into(),
            account: Account {
                nonce,
                balance,
                code_hash: code.map_or(KECCAK256_EMPTY, B256::from),
            },
            slots,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn accounts_are_read_as_they_were_written(accounts in proptest::collection::vec(account(), 0..4)) {
            let mut bytes = Vec::new();
            accounts.iter().for_each(|account| encode(account, &mut bytes));
            let mut rest = &bytes[..];
            for account in &accounts {
                prop_assert_eq!(decode(&mut rest), Some(account.clone()));
            }
            prop_assert!(rest.is_empty());
            for length in 0..bytes.len().min(200) {
                let mut cut = &bytes[..length];
                while decode(&mut cut).is_some() {}
            }
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let account = FullAccount {
            address: Address::repeat_byte(0xaa),
            account: Account {
                nonce: 258,
                balance: U256::ZERO,
                code_hash: B256::repeat_byte(0xcc),
            },
            slots: vec![(U256::ZERO, U256::from(7))],
        };
        let mut bytes = Vec::new();
        encode(&account, &mut bytes);
        let fixed = format!(
            "{}82010200{}{}00{}",
            "aa".repeat(20),
            "0101",
            "cc".repeat(32),
            "0107"
        );
        assert_eq!(alloy_primitives::hex::encode(bytes), fixed);
    }
}
