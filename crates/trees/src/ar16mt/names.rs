//! The keys of the table of names.

use alloy_primitives::{Address, U256};
pub(super) use arbor_verify::ar16mt::LeafName;

use arbor_state_tree::StateError;
use arbor_state_tree::corrupt;

/// The key of an account or a slot in the table of names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Named {
    Account(Address),
    Slot(Address, U256),
}

impl Named {
    /// What a new leaf is entered under; nothing for leaves that an account has beside its first.
    pub(super) fn of(name: LeafName) -> Option<Self> {
        match name {
            LeafName::Nonce(address) => Some(Self::Account(address)),
            LeafName::Slot(address, slot) => Some(Self::Slot(address, slot)),
            LeafName::Balance(_) | LeafName::CodeHash(_) => None,
        }
    }

    pub(super) fn address(self) -> Address {
        match self {
            Self::Account(address) | Self::Slot(address, _) => address,
        }
    }

    pub(super) fn slot(self) -> Option<U256> {
        match self {
            Self::Account(_) => None,
            Self::Slot(_, slot) => Some(slot),
        }
    }

    pub(super) fn encode(self) -> Vec<u8> {
        match self {
            Self::Account(address) => address.to_vec(),
            Self::Slot(address, slot) => [&address[..], &slot.to_be_bytes::<32>()].concat(),
        }
    }

    /// The first leaf that is reached through the name.
    pub(super) fn leaf(self) -> LeafName {
        match self {
            Self::Account(address) => LeafName::Nonce(address),
            Self::Slot(address, slot) => LeafName::Slot(address, slot),
        }
    }

    /// Reads a key of the table; what is kept under it is for verification.
    pub(super) fn decode(key: &[u8]) -> Result<Self, StateError> {
        let split = key.split_first_chunk::<20>();
        let (address, slot) =
            split.ok_or_else(|| corrupt("names", key, "shorter than an address"))?;
        let address = Address::from(*address);
        if slot.is_empty() {
            return Ok(Self::Account(address));
        }
        let slot = <[u8; 32]>::try_from(slot);
        let slot = slot.map_err(|_| corrupt("names", key, "neither an address nor a slot's"))?;
        Ok(Self::Slot(address, U256::from_be_bytes(slot)))
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_others_do_not() {
        let address = Address::repeat_byte(7);
        for named in [Named::Account(address), Named::Slot(address, U256::from(9))] {
            assert_eq!(Named::decode(&named.encode()).unwrap(), named);
        }
        for length in [0, 19, 21, 51, 53] {
            assert!(Named::decode(&vec![1; length]).is_err(), "{length}");
        }
    }
}
