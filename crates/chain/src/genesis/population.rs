//! Accounts of a genesis that are so many that they are counted instead of listed.

use alloy_primitives::{Address, B256, Bytes, U256, b256, hex};
use arbor_state::Account;
use serde::{Deserialize, Serialize};

/// Follows the first 8 bytes of every address of a population; the account's number follows, 8 bytes big-endian.
const TAG: [u8; 4] = *b"inh\0";

/// Writes the second word of its call data to the slot that the first names (EIP-3855 and later).
const CODE: [u8; 7] = hex!("6020355f355500");
const CODE_HASH: B256 = b256!("ef613fc8fa345da46293bb42b4735cb954ed87fa27affaceb84c190480bf0c72");

/// Contracts numbered from 0, each with ether, the same code and two slots: a large state for measurements, which a genesis
/// names by its size.
///
/// The code writes the second word of a call's data to the slot that the first one numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// How many; 1 to 2^32 - 1.
    pub accounts: u32,
    /// Slots of account 0, so that it is one large contract; 0 if it has as many as each other one. At most
    /// [`MOST_SLOTS`](Self::MOST_SLOTS).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub contract: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Population {
    /// Slots of each account, numbered from 0.
    pub const SLOTS: u64 = 2;

    /// The most slots that [`contract`](Self::contract) may name: they are in memory together when a tree is loaded.
    pub const MOST_SLOTS: u64 = 20_000_000;

    /// The slots of an account.
    pub fn slots(self, number: u32) -> u64 {
        match number {
            0 => self.contract.max(Self::SLOTS),
            _ => Self::SLOTS,
        }
    }

    /// The address of an account, whether or not the population is large enough to have it. Addresses are spread evenly,
    /// like those of a real chain, which are parts of hashes.
    pub fn address(number: u32) -> Address {
        let mut address = [0; 20];
        address[..8].copy_from_slice(&mixed(u64::from(number)).to_be_bytes());
        address[8..12].copy_from_slice(&TAG);
        address[12..].copy_from_slice(&u64::from(number).to_be_bytes());
        address.into()
    }

    /// Whether an account with this address is of the population.
    pub fn contains(self, address: Address) -> bool {
        let number = address.last_chunk().copied().map(u64::from_be_bytes);
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.is_some_and(|number| number < self.accounts && Self::address(number) == address)
    }

    /// An account as it is in the genesis: more than an ether, and the nonce of a contract (EIP-161).
    pub fn account(number: u32) -> Account {
        Account {
            nonce: 1,
            balance: U256::from(1_000_000_000_000_000_000 + u64::from(number)),
            code_hash: CODE_HASH,
        }
    }

    /// A slot's value in the genesis: 1 to 64 bits, all alike likely.
    pub fn value(number: u32, slot: u64) -> U256 {
        // One in 2^64 is zero, which a slot cannot have.
        U256::from(mixed(u64::from(number) * Self::SLOTS + slot).max(1))
    }

    /// The code of all accounts, with its hash.
    pub fn code() -> (B256, Bytes) {
        (CODE_HASH, Bytes::from_static(&CODE))
    }
}

/// Returns the output of SplitMix64 (Steele, Lea, Flood 2014) with this number. Outputs of different numbers differ.
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::keccak256;

    use super::*;

    #[test]
    fn the_code_has_its_hash() {
        assert_eq!(keccak256(CODE), CODE_HASH);
    }

    #[test]
    fn addresses_are_told_apart() {
        let population = Population {
            accounts: 1_000,
            contract: 0,
        };
        assert!(population.contains(Population::address(0)));
        assert!(population.contains(Population::address(999)));
        assert!(!population.contains(Population::address(1_000)));
        assert!(!population.contains(Population::address(u32::MAX)));
        assert!(!population.contains(Address::with_last_byte(1)));
        let mut other = Population::address(7);
        other[0] ^= 1;
        assert!(!population.contains(other));
        assert_ne!(Population::value(1, 0), Population::value(0, 1));
    }

    #[test]
    fn the_first_account_may_have_more_slots() {
        let slots = |contract| {
            let population = Population {
                accounts: 3,
                contract,
            };
            [0, 1, 2].map(|number| population.slots(number))
        };
        assert_eq!(slots(0), [2, 2, 2]);
        assert_eq!(slots(1), [2, 2, 2]);
        assert_eq!(slots(5_000), [5_000, 2, 2]);
    }

    #[test]
    fn addresses_are_spread_evenly() {
        let mut by_first = [0; 256];
        for number in 0..25_600 {
            by_first[usize::from(Population::address(number)[0])] += 1;
        }
        assert!(
            by_first.iter().all(|count| (50..150).contains(count)),
            "{by_first:?}"
        );
    }
}
