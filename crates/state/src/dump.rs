//! The whole state, account by account, in geth's dump format.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_store::Value;
use serde::{Deserialize, Serialize};

use crate::history::Historical;
use crate::keys::{ACCOUNTS, SLOTS};
use crate::records::{AccountRecord, SlotRecord};
use crate::{StateError, StateView};

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
    /// Calls `sink` with every account, ascending by the hash of its address.
    pub fn dump<E: From<StateError>>(
        &self,
        mut sink: impl FnMut(DumpAccount) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in self.scan(ACCOUNTS, &[])? {
            let (key, bytes) = entry?;
            let record = AccountRecord::decode(&key, &bytes)?;
            sink(self.dump_account(&key, &record)?)?;
        }
        Ok(())
    }

    fn dump_account(&self, key: &[u8], record: &AccountRecord) -> Result<DumpAccount, StateError> {
        let account = record.account;
        let code = match account.code_hash {
            KECCAK256_EMPTY => None,
            hash => Some(self.code(hash)?),
        };
        let mut storage = BTreeMap::new();
        for entry in self.scan(SLOTS, key)? {
            let (key, bytes): (Box<[u8]>, Value) = entry?;
            let slot = SlotRecord::decode(&key, &bytes)?;
            storage.insert(B256::from(slot.slot), hex_value(slot.value));
        }
        Ok(DumpAccount {
            balance: account.balance.to_string(),
            nonce: account.nonce,
            root: record.storage_root,
            code_hash: account.code_hash,
            code,
            storage,
            address: record.address,
            key: B256::from_slice(key),
        })
    }
}

/// Hex of the big-endian bytes without leading zero bytes.
fn hex_value(value: U256) -> String {
    alloy_primitives::hex::encode(value.to_be_bytes_trimmed_vec())
}

/// The state root that a dump's first line names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DumpHead {
    /// The state root.
    pub root: B256,
}
