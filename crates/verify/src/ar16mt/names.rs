//! The names of leaves, and their keys.

use std::fmt;

use alloy_primitives::{Address, U256};
use arbor_hashing::Blake2s;
use arbor_tree::Hash;

/// What a leaf holds. In the order in which leaves of one block and one account are numbered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LeafName {
    /// Whether the account exists, whether it has code, its nonce.
    Nonce(Address),
    /// Its balance.
    Balance(Address),
    /// Its code's hash.
    CodeHash(Address),
    /// A slot of its storage.
    Slot(Address, U256),
}

/// The system contract at a low address.
const fn system(number: u16) -> Address {
    let [high, low] = number.to_be_bytes();
    let mut address = [0; 20];
    address[18] = high;
    address[19] = low;
    Address::new(address)
}

/// What the message of an account's own leaf begins with, and that of no slot: a chain may have other contracts at these addresses.
const OWN: u8 = 1;
const CODE_HASHES: Address = system(0x8002);
const NONCES: Address = system(0x8003);
const BALANCES: Address = system(0x800a);

impl LeafName {
    /// The leaves of an account's fields.
    pub const fn fields(address: Address) -> [Self; 3] {
        [
            Self::Nonce(address),
            Self::Balance(address),
            Self::CodeHash(address),
        ]
    }

    /// The contract and the slot of its storage that the leaf is.
    fn place(self) -> (Address, [u8; 32]) {
        match self {
            Self::Nonce(address) => (NONCES, address.into_word().0),
            Self::Balance(address) => (BALANCES, address.into_word().0),
            Self::CodeHash(address) => (CODE_HASHES, address.into_word().0),
            Self::Slot(address, slot) => (address, slot.to_be_bytes()),
        }
    }

    /// The leaf's key, most significant byte first.
    #[must_use]
    pub fn key(self) -> Hash {
        Self::keys(&[self])[0]
    }

    /// The keys of many leaves, in their order.
    #[must_use]
    pub fn keys(names: &[Self]) -> Vec<Hash> {
        let messages: Vec<[u8; 64]> = names.iter().map(|name| name.message()).collect();
        let mut keys = vec![[0; 32]; names.len()];
        Blake2s::new().hash_fixed(&messages, &mut keys);
        keys.iter_mut().for_each(|key| key.reverse());
        keys
    }

    fn message(self) -> [u8; 64] {
        let (contract, slot) = self.place();
        let mut message = [0; 64];
        message[0] = match self {
            Self::Slot(..) => 0,
            Self::Nonce(_) | Self::Balance(_) | Self::CodeHash(_) => OWN,
        };
        message[12..32].copy_from_slice(contract.as_slice());
        message[32..].copy_from_slice(&slot);
        message
    }
}

/// The leaf in words.
impl fmt::Display for LeafName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nonce(address) => write!(f, "the nonce of {address:#x}"),
            Self::Balance(address) => write!(f, "the balance of {address:#x}"),
            Self::CodeHash(address) => write!(f, "the code hash of {address:#x}"),
            Self::Slot(address, slot) => write!(f, "slot {slot:#x} of {address:#x}"),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::{address, hex};

    use super::*;

    /// zkSync's key of slot 0 of a contract (zksync-era, `core/lib/merkle_tree`, tests of the domain).
    #[test]
    fn a_slot_has_the_key_of_zksync() {
        let contract = address!("4b3af74f66ab1f0da3f2e4ec7a3cb99baf1af7b2");
        let expected = "5daa965d9688be0ac629916a9920e45910c13d1fe45d257a9e17217f226dfb4d";
        let key = LeafName::Slot(contract, U256::ZERO).key();
        assert_eq!(hex::encode(key), expected);
    }

    /// An account's leaves were slots of these contracts: a genesis in which one of them had storage made accounts that are not there.
    #[test]
    fn an_account_lies_beside_the_storage_of_system_contracts() {
        let account = Address::repeat_byte(7);
        let slot = U256::from_be_bytes(account.into_word().0);
        for (name, contract) in [
            (LeafName::Nonce(account), 0x8003),
            (LeafName::Balance(account), 0x800a),
            (LeafName::CodeHash(account), 0x8002),
        ] {
            let of_contract = LeafName::Slot(system(contract), slot);
            let mut message = of_contract.message();
            assert_eq!(message[0], 0);
            message[0] = 1;
            assert_eq!(name.message(), message);
            assert_ne!(name.key(), of_contract.key());
        }
        let hex = "0x0000000000000000000000000000000000008003";
        assert_eq!(system(0x8003), hex.parse::<Address>().unwrap());
    }
}
