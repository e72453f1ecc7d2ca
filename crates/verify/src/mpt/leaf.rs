//! An account and a slot as tries commit to them.

use alloy_primitives::{Address, B256, U256};
use alloy_rlp::Encodable;
use arbor_accounts::Account;
use arbor_tree_mpt::{EMPTY_ROOT, InnerValue, LeafTemplate};

/// An account with the root of its storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountRecord {
    /// Whose it is.
    pub address: Address,
    /// Nonce, balance, code.
    pub account: Account,
    /// The root of its storage trie.
    pub storage_root: B256,
}

/// A slot that is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotRecord {
    /// Its number.
    pub slot: U256,
    /// Its value.
    pub value: U256,
}

impl AccountRecord {
    /// Whether a slot is not zero.
    pub fn has_storage(&self) -> bool {
        self.storage_root != EMPTY_ROOT
    }

    /// The account as the trie's leaf, RLP `[nonce, balance, storage root, code hash]` (Yellow Paper
    /// 4.1), with the storage root as the hole.
    pub fn leaf(account: &Account) -> LeafTemplate {
        let (nonce, balance) = (U256::from(account.nonce), account.balance);
        let payload = nonce.length() + balance.length() + 66;
        let mut bytes = Vec::with_capacity(payload + 2);
        // Two hashes alone exceed 55 bytes, and the whole stays below 256.
        bytes.extend_from_slice(&[0xf8, payload as u8]);
        nonce.encode(&mut bytes);
        balance.encode(&mut bytes);
        bytes.push(0xa0);
        let hole = bytes.len();
        bytes.extend_from_slice(&EMPTY_ROOT);
        bytes.push(0xa0);
        bytes.extend_from_slice(account.code_hash.as_slice());
        LeafTemplate { bytes, hole }
    }

    /// The leaf with its storage root filled in.
    pub fn filled_leaf(&self) -> Vec<u8> {
        let LeafTemplate { mut bytes, hole } = Self::leaf(&self.account);
        bytes[hole..hole + 32].copy_from_slice(self.storage_root.as_slice());
        bytes
    }
}

impl SlotRecord {
    /// The slot as the storage trie's leaf: RLP of the value without leading zeros.
    pub fn leaf(value: U256) -> InnerValue {
        let bytes = value.to_be_bytes::<32>();
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let bytes = &bytes[zeros..];
        let mut leaf = InnerValue::new();
        if !matches!(bytes, [byte] if *byte < 0x80) {
            leaf.push(0x80 + bytes.len() as u8);
        }
        leaf.extend_from_slice(bytes);
        leaf
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn leaves_of_slots_are_rlp(bytes: [u8; 32], zeros in 0usize..33) {
            let value = U256::from_be_bytes(bytes) >> (8 * zeros);
            prop_assert_eq!(SlotRecord::leaf(value).to_vec(), alloy_rlp::encode(value));
        }
    }
}
