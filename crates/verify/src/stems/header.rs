//! The leaves of an account's own fields.

use alloy_primitives::{KECCAK256_EMPTY, U256};

use super::LeafValue;
use arbor_accounts::Account;

/// What an account has that its leaves have no room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} {value} does not fit into the basic data leaf of {specification}")]
pub struct NoRoom {
    what: &'static str,
    value: U256,
    specification: &'static str,
}

impl NoRoom {
    /// A value for which the leaf of a specification has no room.
    pub(crate) fn new(what: &'static str, value: U256, specification: &'static str) -> Self {
        Self {
            what,
            value,
            specification,
        }
    }
}

/// How an account's fields are laid into leaves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HeaderLayout {
    /// EIP-6800 since July 2024: version, code size, nonce and balance packed into one leaf, the code hash in another.
    #[default]
    BasicData,
    /// EIP-6800 before: version, balance, nonce, code hash and (with code) code size, a leaf each, numbers with the least
    /// significant byte first. The testnets up to kaustinen-6 have it.
    FiveLeaves,
}

impl HeaderLayout {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::BasicData, Self::FiveLeaves];

    /// The suffixes of all leaves that an account's fields can have.
    pub const fn suffixes(self) -> &'static [u8] {
        match self {
            Self::BasicData => &[0, 1],
            Self::FiveLeaves => &[0, 1, 2, 3, CODE_SIZE],
        }
    }

    /// The name of the field whose leaf has this suffix, one of [`suffixes`](Self::suffixes).
    pub(crate) fn field(self, suffix: u8) -> &'static str {
        let names: &[&str] = match self {
            Self::BasicData => &["basic data", "code hash"],
            Self::FiveLeaves => &["version", "balance", "nonce", "code hash", "code size"],
        };
        names[usize::from(suffix)]
    }

    /// The leaf that only accounts with code have.
    pub const fn code_size_leaf(self) -> Option<u8> {
        match self {
            Self::BasicData => None,
            Self::FiveLeaves => Some(CODE_SIZE),
        }
    }

    /// The leaves of an account, by suffix.
    ///
    /// # Errors
    /// A balance of more than 128 bits, or code of 2^24 bytes or more, for which the packed leaf has no room.
    pub fn leaves(self, account: &Account, code_size: u32) -> Result<Vec<(u8, LeafValue)>, NoRoom> {
        match self {
            Self::BasicData => {
                let code_hash = account.code_hash.0;
                Ok(vec![(0, basic_data(account, code_size)?), (1, code_hash)])
            }
            Self::FiveLeaves => {
                let mut leaves = vec![
                    (0, [0; 32]),
                    (1, account.balance.to_le_bytes()),
                    (2, U256::from(account.nonce).to_le_bytes()),
                    (3, account.code_hash.0),
                ];
                if account.code_hash != KECCAK256_EMPTY {
                    leaves.push((CODE_SIZE, U256::from(code_size).to_le_bytes()));
                }
                Ok(leaves)
            }
        }
    }

    /// The size of an account's code that its leaves say, by suffix.
    pub fn code_size(self, leaf: impl Fn(u8) -> Option<LeafValue>) -> u32 {
        let leaf = |suffix| leaf(suffix).unwrap_or_default();
        let size = match self {
            Self::BasicData => U256::from_be_bytes(leaf(0)) >> 192 & U256::from(0xff_ffff),
            Self::FiveLeaves => U256::from_le_bytes(leaf(CODE_SIZE)),
        };
        u32::try_from(size).unwrap_or(u32::MAX)
    }

    /// The account that leaves say, by suffix; none where all of them are absent or zero, as those of an account that was deleted are.
    ///
    /// # Errors
    /// Leaves that no account has in this layout: a proof of the other one, for example.
    pub fn account(
        self,
        leaf: impl Fn(u8) -> Option<LeafValue>,
    ) -> Result<Option<Account>, NoAccount> {
        let leaf = |suffix| leaf(suffix).unwrap_or_default();
        let suffixes = self.suffixes().iter();
        if suffixes.clone().all(|suffix| leaf(*suffix) == [0; 32]) {
            return Ok(None);
        }
        let low_u64 = |value: U256| value.as_limbs()[0];
        let (is_possible, account) = match self {
            Self::BasicData => {
                let basic = leaf(0);
                // The balance is the lower half, the nonce the eight bytes above it.
                let packed = U256::from_be_bytes(basic);
                let account = Account {
                    nonce: low_u64(packed >> 128),
                    balance: packed & U256::from(u128::MAX),
                    code_hash: leaf(1).into(),
                };
                let has_size = basic[5..8] != [0; 3];
                let has_code = account.code_hash != KECCAK256_EMPTY;
                // Version 0, and four bytes that are reserved.
                (basic[..5] == [0; 5] && has_size == has_code, account)
            }
            Self::FiveLeaves => {
                let nonce = U256::from_le_bytes(leaf(2));
                let account = Account {
                    nonce: low_u64(nonce),
                    balance: U256::from_le_bytes(leaf(1)),
                    code_hash: leaf(3).into(),
                };
                let is_possible = leaf(0) == [0; 32] && nonce <= U256::from(u64::MAX);
                (is_possible, account)
            }
        };
        match is_possible && !account.code_hash.is_zero() {
            true => Ok(Some(account)),
            false => Err(NoAccount),
        }
    }
}

/// Leaves that no account has in a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the leaves are those of no account")]
pub struct NoAccount;

/// The leaf of the code size among five.
const CODE_SIZE: u8 = 4;

/// Version 0 in byte 0, code size in bytes 5 to 7, nonce in 8 to 15, balance in 16 to 31, most significant byte first.
fn basic_data(account: &Account, code_size: u32) -> Result<LeafValue, NoRoom> {
    let no_room = |what, value| NoRoom::new(what, value, "EIP-6800 and EIP-7864");
    let mut leaf = [0; 32];
    let [0, size @ ..] = code_size.to_be_bytes() else {
        return Err(no_room("code size", U256::from(code_size)));
    };
    let balance =
        u128::try_from(account.balance).map_err(|_| no_room("balance", account.balance))?;
    leaf[5..8].copy_from_slice(&size);
    leaf[8..16].copy_from_slice(&account.nonce.to_be_bytes());
    leaf[16..].copy_from_slice(&balance.to_be_bytes());
    Ok(leaf)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::{B256, hex};

    use super::*;

    #[test]
    fn leaves_are_those_of_the_specification() {
        let account = Account {
            nonce: 0x0102,
            balance: U256::from(0xabcd),
            code_hash: B256::repeat_byte(7),
        };
        let leaves = HeaderLayout::BasicData.leaves(&account, 0x030405).unwrap();
        let packed = "0000000000030405000000000000010200000000000000000000000000000000";
        let packed = packed[..60].to_owned() + "abcd";
        assert_eq!(hex::encode(leaves[0].1), packed);
        assert_eq!((leaves[1], leaves.len()), ((1, [7; 32]), 2));
        let leaves = HeaderLayout::FiveLeaves.leaves(&account, 0x030405).unwrap();
        let starts: Vec<_> = leaves.iter().map(|(_, leaf)| &leaf[..3]).collect();
        let expected: [&[u8]; 5] = [
            &[0, 0, 0],
            &[0xcd, 0xab, 0],
            &[2, 1, 0],
            &[7; 3],
            &[5, 4, 3],
        ];
        assert_eq!(starts, expected);
    }

    #[test]
    fn leaves_say_their_account() {
        let account = Account {
            nonce: u64::MAX - 1,
            balance: U256::from(u128::MAX - 2),
            code_hash: B256::repeat_byte(7),
        };
        for layout in HeaderLayout::ALL {
            let leaves = layout.leaves(&account, 0xff_ffff).unwrap();
            let leaf = |suffix| {
                leaves
                    .iter()
                    .find(|(of, _)| *of == suffix)
                    .map(|leaf| leaf.1)
            };
            assert_eq!(layout.account(leaf), Ok(Some(account)));
            assert_eq!(
                (layout.code_size(leaf), layout.code_size(|_| None)),
                (0xff_ffff, 0)
            );
            assert_eq!(layout.account(|_| None), Ok(None));
            assert_eq!(layout.account(|_| Some([0; 32])), Ok(None));
            // Read in the other layout they are no account's.
            let other = HeaderLayout::ALL.into_iter().find(|of| *of != layout);
            assert_eq!(other.unwrap().account(leaf), Err(NoAccount));
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let mut account = Account {
            nonce: 0,
            balance: U256::from(u128::MAX),
            code_hash: KECCAK256_EMPTY,
        };
        let layout = HeaderLayout::BasicData;
        assert!(layout.leaves(&account, 1 << 24).is_err());
        assert!(layout.leaves(&account, (1 << 24) - 1).is_ok());
        account.balance += U256::ONE;
        assert!(layout.leaves(&account, 0).is_err());
    }
}
