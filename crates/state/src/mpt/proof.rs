//! Account and storage proofs in the form of `eth_getProof` (EIP-1186).

use std::borrow::Cow;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U64, U256};
use arbor_tree::Hash;
use arbor_tree_mpt::{EMPTY_ROOT, ProofError, Verdict, prove, verify, verify_value};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::keys::{account_key, slot_key};
use super::pending::Base;
use super::records::{AccountRecord, SlotRecord};
use super::{AtHead, AtVersion};
use super::{MPT, MerklePatricia};
use crate::state_tree::wanted;
use crate::{Account, Head, Historical, State, StateError};

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

/// Reads a number as `0x` and at least one hex digit; some clients pad them, none leaves the digits out.
fn quantity<'de, D: Deserializer<'de>>(from: D) -> Result<U256, D::Error> {
    let text = Cow::<'de, str>::deserialize(from)?;
    text.strip_prefix("0x")
        .filter(|digits| !digits.is_empty())
        .and_then(|digits| U256::from_str_radix(digits, 16).ok())
        .ok_or_else(|| {
            D::Error::custom(format!(
                "'{text}' is not a number of 256 bits as 0x and hex digits"
            ))
        })
}

/// What does not hold in a well-formed proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseProof {
    /// The nodes prove another account, or none, or something where the proof says none.
    #[error("account {0}: the nodes do not prove what the proof says")]
    Account(Address),
    /// The nodes prove another value for a slot.
    #[error("account {0}, slot {1:#x}: the nodes do not prove what the proof says")]
    Slot(Address, U256),
}

impl State {
    /// Proves an account and some of its slots at the head, present or absent.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<AccountProof, StateError> {
        self.reader().prove(address, slots)
    }
}

impl Head<'_> {
    /// Proves an account and some of its slots, present or absent.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<AccountProof, StateError> {
        wanted::<MerklePatricia>(self.tree(), &MPT)?;
        prove_account(&AtHead(self.view()), address, slots)
    }
}

impl Historical<'_> {
    /// Proves an account and some of its slots at this version, present or absent.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<AccountProof, StateError> {
        wanted::<MerklePatricia>(self.tree(), &MPT)?;
        prove_account(&AtVersion(self), address, slots)
    }
}

/// A state whose slots can be read by the account's tree key, and proven.
pub(crate) trait Provable: Base {
    /// The value of a slot of the account with this tree key, zero if absent.
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError>;
}

fn prove_account(
    state: &dyn Provable,
    address: Address,
    slots: &[U256],
) -> Result<AccountProof, StateError> {
    let key = account_key(address);
    let account_proof = prove(state, None, state.root(), &key)?;
    let record = state.account_record(address, &key)?;
    let storage_root = record.map_or(EMPTY_ROOT, |record| record.storage_root.0);
    let mut storage_proof = Vec::with_capacity(slots.len());
    for &slot in slots {
        let nodes = prove(state, Some(key), storage_root, &slot_key(slot))?;
        let value = state.slot_value(&key, slot)?;
        storage_proof.push(SlotProof {
            key: slot,
            proof: nodes.into_iter().map(Bytes::from).collect(),
            value,
        });
    }
    let account = record.map(|record| record.account);
    Ok(AccountProof {
        address,
        account_proof: account_proof.into_iter().map(Bytes::from).collect(),
        balance: account.map_or(U256::ZERO, |account| account.balance),
        code_hash: account.map_or(B256::ZERO, |account| account.code_hash),
        nonce: U64::from(account.map_or(0, |account| account.nonce)),
        storage_hash: record.map_or(B256::ZERO, |record| record.storage_root),
        storage_proof,
    })
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
