//! The leaves of an account's own fields.

use alloy_primitives::{Address, KECCAK256_EMPTY, U256, keccak256};
use arbor_accounts::Account;
use arbor_tree::Hash;

pub use crate::stems::NoRoom;

/// The suffix of version, code size, nonce and balance.
pub const BASIC_DATA: u8 = 0;
/// The suffix of the code's hash.
pub const CODE_HASH: u8 = 1;
/// The suffix of a delegation.
pub const DELEGATION: u8 = 2;
/// The suffixes of all fields.
pub const FIELDS: [u8; 3] = [BASIC_DATA, CODE_HASH, DELEGATION];

/// What a delegation's code begins with (EIP-7702), before the address.
const DESIGNATOR: [u8; 3] = [0xef, 0x01, 0x00];
/// Bytes of a delegation's code.
const DELEGATION_SIZE: usize = 23;
const SPECIFICATION: &str = "EIP-8297";

/// What an account has for code.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Code {
    /// None.
    #[default]
    None,
    /// Code of so many bytes.
    Bytes(u32),
    /// A delegation to an address.
    Delegation(Address),
}

impl Code {
    /// Returns what bytes of code are.
    ///
    /// # Errors
    /// Code of 2^32 bytes or more.
    pub fn of(code: &[u8]) -> Result<Self, NoRoom> {
        if let Some(address) = code.strip_prefix(&DESIGNATOR)
            && code.len() == DELEGATION_SIZE
        {
            return Ok(Self::Delegation(Address::from_slice(address)));
        }
        match u32::try_from(code.len()) {
            Ok(0) => Ok(Self::None),
            Ok(size) => Ok(Self::Bytes(size)),
            Err(_) => Err(NoRoom::new(
                "code size",
                U256::from(code.len()),
                SPECIFICATION,
            )),
        }
    }

    /// Bytes of the code.
    #[must_use]
    pub fn size(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Bytes(size) => size,
            Self::Delegation(_) => DELEGATION_SIZE as u32,
        }
    }
}

/// The code of a delegation.
#[must_use]
pub fn delegation_code(to: Address) -> [u8; DELEGATION_SIZE] {
    let mut code = [0; DELEGATION_SIZE];
    code[..3].copy_from_slice(&DESIGNATOR);
    code[3..].copy_from_slice(to.as_slice());
    code
}

/// The values of an account's fields, in the order of [`FIELDS`]; zeros for a leaf that it does not
/// have.
///
/// # Errors
/// A balance of 2^128 or more.
pub fn fields(account: &Account, code: Code) -> Result<[Hash; 3], NoRoom> {
    let balance = u128::try_from(account.balance);
    let balance = balance.map_err(|_| NoRoom::new("balance", account.balance, SPECIFICATION))?;
    let mut basic = [0; 32];
    basic[4..8].copy_from_slice(&code.size().to_be_bytes());
    basic[8..16].copy_from_slice(&account.nonce.to_be_bytes());
    basic[16..].copy_from_slice(&balance.to_be_bytes());
    Ok(match code {
        Code::Delegation(to) => {
            let mut value = [0; 32];
            value[..DELEGATION_SIZE].copy_from_slice(&delegation_code(to));
            [basic, [0; 32], value]
        }
        _ => [basic, account.code_hash.0, [0; 32]],
    })
}

/// The account that the values of fields are, and its code; `None` if all are absent.
///
/// # Errors
/// Values that no account has.
pub fn account_of(
    [basic, code_hash, delegation]: [Hash; 3],
) -> Result<Option<(Account, Code)>, NoAccount> {
    const ABSENT: Hash = [0; 32];
    if [basic, code_hash, delegation] == [ABSENT; 3] {
        return Ok(None);
    }
    let packed = U256::from_be_bytes(basic);
    let low_u64 = |value: U256| value.as_limbs()[0];
    let size = low_u64(packed >> 192);
    let mut account = Account {
        nonce: low_u64(packed >> 128),
        balance: packed & U256::from(u128::MAX),
        code_hash: code_hash.into(),
    };
    // Version 0, and three bytes that are reserved.
    let size = u32::try_from(size).map_err(|_| NoAccount)?;
    let (bytes, zeros) = delegation.split_at(DELEGATION_SIZE);
    let code = match (code_hash == ABSENT, delegation == ABSENT) {
        (false, true) if size == 0 => Code::None,
        (false, true) => Code::Bytes(size),
        (true, false) if zeros.iter().all(|byte| *byte == 0) => {
            account.code_hash = keccak256(bytes);
            Code::of(bytes).map_err(|_| NoAccount)?
        }
        _ => return Err(NoAccount),
    };
    let is_possible = code.size() == size
        && (code == Code::None) == (account.code_hash == KECCAK256_EMPTY)
        && matches!(code, Code::Delegation(_)) == (delegation != ABSENT);
    match is_possible {
        true => Ok(Some((account, code))),
        false => Err(NoAccount),
    }
}

/// Leaves that no account has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the leaves of the fields are those of no account")]
pub struct NoAccount;

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::{B256, hex};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_those_of_the_specification() {
        let account = Account {
            nonce: 0x0102,
            balance: U256::from(0xabcd),
            code_hash: B256::repeat_byte(7),
        };
        let [basic, code_hash, delegation] = fields(&account, Code::Bytes(0x0304_0506)).unwrap();
        let packed = "000000000304050600000000000001020000000000000000000000000000abcd";
        assert_eq!(hex::encode(basic), packed);
        assert_eq!((code_hash, delegation), ([7; 32], [0; 32]));
        let to = Address::repeat_byte(9);
        let [basic, code_hash, delegation] = fields(&account, Code::Delegation(to)).unwrap();
        assert_eq!(basic[4..8], [0, 0, 0, 23]);
        assert_eq!(code_hash, [0; 32]);
        let expected = ["ef0100", &"09".repeat(20), &"00".repeat(9)].concat();
        assert_eq!(hex::encode(delegation), expected);
    }

    #[test]
    fn code_is_a_delegation_only_as_a_whole() {
        let to = Address::repeat_byte(9);
        let code = delegation_code(to);
        assert_eq!(Code::of(&code), Ok(Code::Delegation(to)));
        assert_eq!(Code::of(&code[..22]), Ok(Code::Bytes(22)));
        assert_eq!(Code::of(&[&code[..], &[0]].concat()), Ok(Code::Bytes(24)));
        assert_eq!(Code::of(&[0; 23]), Ok(Code::Bytes(23)));
        assert_eq!(Code::of(&[]), Ok(Code::None));
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut account = Account {
            nonce: 0,
            balance: U256::from(u128::MAX),
            code_hash: KECCAK256_EMPTY,
        };
        assert!(fields(&account, Code::None).is_ok());
        account.balance += U256::ONE;
        let error = fields(&account, Code::None).unwrap_err().to_string();
        assert!(
            error.contains("EIP-8297") && error.contains("balance"),
            "{error}"
        );
    }

    /// An empty account has one leaf, the hash of no code, and comes back as an account.
    #[test]
    fn an_empty_account_is_not_an_absent_one() {
        let empty = Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        };
        let leaves = fields(&empty, Code::None).unwrap();
        assert_eq!(leaves, [[0; 32], KECCAK256_EMPTY.0, [0; 32]]);
        assert_eq!(account_of(leaves), Ok(Some((empty, Code::None))));
        assert_eq!(account_of([[0; 32]; 3]), Ok(None));
    }

    proptest! {
        #[test]
        fn leaves_say_their_account(nonce: u64, balance: u128, hash: [u8; 32], size in 1u32.., to: [u8; 20], kind in 0..3, at in 0usize..3, byte in 0usize..32) {
            let (code, code_hash) = match kind {
                0 => (Code::None, KECCAK256_EMPTY),
                1 => (Code::Bytes(size), B256::from(hash)),
                _ => {
                    let to = Address::from(to);
                    (Code::Delegation(to), keccak256(delegation_code(to)))
                }
            };
            let account = Account { nonce, balance: U256::from(balance), code_hash };
            let leaves = fields(&account, code).unwrap();
            prop_assert_eq!(account_of(leaves), Ok(Some((account, code))));
            // Whatever else the leaves say is another account, or none.
            let mut other = leaves;
            other[at][byte] ^= 1;
            if let Ok(Some((found, code))) = account_of(other) {
                prop_assert_eq!(fields(&found, code), Ok(other));
            }
        }
    }
}
