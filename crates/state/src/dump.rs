//! The whole state, account by account, in geth's dump format.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use serde::{Deserialize, Serialize};

use crate::history::Historical;
use crate::{StateError, StateView};
use arbor_state_tree::{FullAccount, WithSlots};
use arbor_verify::mpt::{self, BY_KECCAK};

/// One account of a dump, as `geth dump --iterative` prints it on a line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DumpAccount {
    /// Balance in wei, decimal.
    pub balance: String,
    /// The account's nonce.
    pub nonce: u64,
    /// Root of the storage trie.
    pub root: B256,
    /// Keccak-256 of the code.
    pub code_hash: B256,
    /// The code, left out if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Bytes>,
    /// Slot number to value, hex without `0x` and without leading zeros on the value; left out if
    /// there is none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<B256, String>,
    /// The account's address.
    pub address: Address,
    /// Keccak-256 of the address.
    pub key: B256,
}

impl Historical<'_> {
    /// Calls `sink` with every account, in the order of the flat table: ascending by the hash of the address under
    /// Merkle-Patricia, else by the address itself.
    ///
    /// # Errors
    /// The store's errors; those of `sink`, which end the listing.
    pub fn dump<E: From<StateError>>(
        &self,
        mut sink: impl FnMut(DumpAccount) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in self.tree().records().listing(self, None)? {
            let entry = entry?;
            sink(self.dumped(entry)?)?;
        }
        Ok(())
    }

    /// Completes an account's line with its code.
    fn dumped(&self, listed: WithSlots) -> Result<DumpAccount, StateError> {
        let WithSlots {
            address,
            account,
            slots,
            storage_root,
        } = listed;
        let storage_root = match storage_root {
            Some(root) => root,
            None => {
                let account = FullAccount {
                    address,
                    account,
                    slots: slots.clone(),
                };
                mpt::storage_root(&BY_KECCAK.with_keys(vec![account])[0])?
            }
        };
        let code = match account.code_hash {
            KECCAK256_EMPTY => None,
            hash => Some(self.code(hash)?),
        };
        let slots = slots.into_iter();
        Ok(DumpAccount {
            balance: account.balance.to_string(),
            nonce: account.nonce,
            root: storage_root,
            code_hash: account.code_hash,
            code,
            storage: slots
                .map(|(slot, value)| (B256::from(slot), hex_value(value)))
                .collect(),
            address,
            key: arbor_hashing::keccak256(address.as_slice()).into(),
        })
    }
}

/// Hex of the big-endian bytes without leading zero bytes.
fn hex_value(value: U256) -> String {
    alloy_primitives::hex::encode(value.to_be_bytes_trimmed_vec())
}

/// A dump's first line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DumpHead {
    /// The Merkle-Patricia root of the state, or the root of the tree that is named.
    pub root: B256,
    /// The tree that has this root; left out for the Merkle-Patricia root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}
