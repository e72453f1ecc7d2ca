//! Account and storage proofs in the form of `eth_getProof` (EIP-1186).

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U64, U256};
use arbor_accounts::Account;
use arbor_tree_mpt::{EMPTY_ROOT, ProofError, Verdict, verify, verify_value};
use serde::{Deserialize, Serialize};

use super::keys::{account_key, slot_key};
use super::leaf::{AccountRecord, SlotRecord};
use crate::quantity::{nonce, quantity};

/// An account with the nodes that prove it and some of its slots, root first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountProof {
    /// The account's address.
    pub address: Address,
    /// RLP of the nodes from the state root towards the account.
    pub account_proof: Vec<Bytes>,
    /// Balance in wei; zero if the account does not exist.
    #[serde(deserialize_with = "quantity")]
    pub balance: U256,
    /// Keccak-256 of the code. Zero if the account does not exist, as in geth; proofs of other clients
    /// then have the hash of the empty code.
    pub code_hash: B256,
    /// The account's nonce.
    #[serde(deserialize_with = "nonce")]
    pub nonce: U64,
    /// Root of the account's storage trie. Zero if the account does not exist, as in geth; proofs of other
    /// clients then have the root of the empty trie.
    pub storage_hash: B256,
    /// One proof for each slot asked for.
    pub storage_proof: Vec<SlotProof>,
}

/// A slot with the nodes that prove it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SlotProof {
    /// The slot's number.
    #[serde(deserialize_with = "quantity")]
    pub key: U256,
    /// RLP of the nodes from the storage root towards the slot.
    pub proof: Vec<Bytes>,
    /// The value; zero if absent.
    #[serde(deserialize_with = "quantity")]
    pub value: U256,
}

/// What does not hold in a well-formed proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseProof {
    /// The nodes prove another account, or none, or something where the proof says none.
    #[error("account {0:#x}: the nodes do not prove what the proof says")]
    Account(Address),
    /// The nodes prove another value for a slot.
    #[error("account {0:#x}, slot {1:#x}: the nodes do not prove what the proof says")]
    Slot(Address, U256),
}

fn bytes_of(nodes: &[Bytes]) -> Vec<Vec<u8>> {
    nodes.iter().map(|node| node.to_vec()).collect()
}

impl AccountProof {
    /// Checks every node and value against a state root, and returns the account: `None` if the proof shows
    /// that it does not exist. An account that exists and is empty is `Some`. `Ok(Err(_))` says what is not
    /// proven.
    ///
    /// # Errors
    /// A proof whose nodes are malformed.
    pub fn verify(&self, root: B256) -> Result<Result<Option<Account>, FalseProof>, ProofError> {
        let account = match verify(
            &root.0,
            &account_key(self.address),
            &bytes_of(&self.account_proof),
        )? {
            Verdict::Present(leaf) if leaf == self.leaf() => Some(self.account()),
            Verdict::Absent if self.claims_absence() => None,
            _ => return Ok(Err(FalseProof::Account(self.address))),
        };
        let storage_root = if self.storage_hash.is_zero() {
            EMPTY_ROOT
        } else {
            self.storage_hash.0
        };
        for slot in &self.storage_proof {
            let claimed = (!slot.value.is_zero()).then(|| SlotRecord::leaf(slot.value).into_vec());
            let key = slot_key(slot.key);
            if !verify_value(
                &storage_root,
                &key,
                &bytes_of(&slot.proof),
                claimed.as_deref(),
            )? {
                return Ok(Err(FalseProof::Slot(self.address, slot.key)));
            }
        }
        Ok(Ok(account))
    }

    /// The account that the fields describe.
    fn account(&self) -> Account {
        Account {
            nonce: self.nonce.to(),
            balance: self.balance,
            code_hash: self.code_hash,
        }
    }

    /// The leaf that the fields describe.
    fn leaf(&self) -> Vec<u8> {
        AccountRecord {
            address: self.address,
            account: self.account(),
            storage_root: self.storage_hash,
        }
        .filled_leaf()
    }

    /// Whether the fields are those of an account that does not exist.
    fn claims_absence(&self) -> bool {
        self.nonce.is_zero()
            && self.balance.is_zero()
            && (self.code_hash == KECCAK256_EMPTY || self.code_hash.is_zero())
            && (self.storage_hash == EMPTY_ROOT || self.storage_hash.is_zero())
    }
}
