//! Account and storage proofs in the form in which go-ethereum answers `eth_getProof` with
//! `proofFormat` "eip8297" (pull request 35436).

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U64, U256};
use arbor_accounts::Account;
use arbor_tree_eip8297::{Hasher, Messages, Path, Shown};
use serde::{Deserialize, Serialize};

use super::embedding::{Embedding, header_key};
use super::header::{FIELDS, account_of};
use crate::hash_name::HashName;
use crate::quantity::{nonce, quantity};

/// An account with the nodes that prove it and some of its slots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountProof {
    /// The words "eip8297", by which an answer without the name of a form is told from
    /// Merkle-Patricia's.
    pub proof_format: ProofFormat,
    /// The hash function of the tree; BLAKE3 if it is not named, like in go-ethereum's answers.
    #[serde(default)]
    pub hash: HashName,
    /// The account's address.
    pub address: Address,
    /// Messages of the nodes on the ways to the leaves of the fields: basic data, code hash,
    /// delegation. Each once, in any order.
    pub account_proof: Vec<Bytes>,
    /// Balance in wei; zero if the account does not exist.
    #[serde(deserialize_with = "quantity")]
    pub balance: U256,
    /// Keccak-256 of the code; zero, or that of no code, if the account does not exist.
    pub code_hash: B256,
    /// The account's nonce.
    #[serde(deserialize_with = "nonce")]
    pub nonce: U64,
    /// Zero: accounts have no storage root.
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
    /// The value; zero if absent.
    #[serde(deserialize_with = "quantity")]
    pub value: U256,
    /// Messages of the nodes from the state's root towards the slot.
    pub proof: Vec<Bytes>,
}

/// The name of the form of proofs within an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ProofFormat {
    /// That of EIP-8297.
    #[serde(rename = "eip8297")]
    Eip8297,
}

/// What does not hold in a well-formed proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseProof {
    /// The nodes show another account, or none, or something if the proof says none.
    #[error("account {0:#x}: the nodes do not prove what the proof says")]
    Account(Address),
    /// The nodes show another value of a slot.
    #[error("account {0:#x}, slot {1:#x}: the nodes do not prove what the proof says")]
    Slot(Address, U256),
    /// A node on the way is missing, or is none that can be there.
    #[error("account {address:#x}: the node with hash {hash} is missing, or cannot be where it is")]
    Node {
        /// Whose proof it is.
        address: Address,
        /// Its hash.
        hash: B256,
    },
    /// A node that is on no way, so that the proof is not the one that was made.
    #[error("account {0:#x}: the proof has nodes that prove nothing")]
    Spare(Address),
}

/// The value that messages show of a key; zeros if it is absent.
pub(super) fn value(messages: &Messages<'_>, root: B256, key: &Path) -> Result<[u8; 32], B256> {
    match messages.show(&root.0, key) {
        Ok(Shown::Value(value)) => Ok(value),
        Ok(Shown::Absent) => Ok([0; 32]),
        Err(hash) => Err(hash.into()),
    }
}

impl AccountProof {
    /// Checks every node and value against a state root, and returns the account: `None` if the
    /// proof shows that it does not exist.
    ///
    /// # Errors
    /// What is not proven.
    pub fn verify(&self, root: B256) -> Result<Option<Account>, FalseProof> {
        let (address, hasher) = (self.address, Hasher(self.hash.function()));
        let embedding = Embedding(hasher);
        let account = embedding.account(address);
        let node = |hash| FalseProof::Node { address, hash };
        let messages = Messages::new(hasher, self.account_proof.iter().map(|bytes| &bytes[..]));
        let mut values = [[0; 32]; 3];
        for (value, suffix) in values.iter_mut().zip(FIELDS) {
            let key = header_key(&account, suffix);
            *value = self::value(&messages, root, &key).map_err(node)?;
        }
        if messages.shown() != self.account_proof.len() {
            return Err(FalseProof::Spare(address));
        }
        let found = account_of(values).map_err(|_| FalseProof::Account(address))?;
        let found = found.map(|(account, _)| account);
        if !self.says(found) {
            return Err(FalseProof::Account(address));
        }
        for slot in &self.storage_proof {
            let messages = Messages::new(hasher, slot.proof.iter().map(|bytes| &bytes[..]));
            let key = embedding.slots(&[(account, address, slot.key)])[0];
            let value = self::value(&messages, root, &key).map_err(node)?;
            if messages.shown() != slot.proof.len() {
                return Err(FalseProof::Spare(address));
            }
            if U256::from_be_bytes(value) != slot.value {
                return Err(FalseProof::Slot(address, slot.key));
            }
        }
        Ok(found)
    }

    /// Whether the fields are those of an account.
    fn says(&self, account: Option<Account>) -> bool {
        let said = Account {
            nonce: self.nonce.to(),
            balance: self.balance,
            code_hash: self.code_hash,
        };
        let is_nothing = said.nonce == 0
            && said.balance.is_zero()
            && (said.code_hash.is_zero() || said.code_hash == KECCAK256_EMPTY);
        self.storage_hash.is_zero() && account.map_or(is_nothing, |account| account == said)
    }
}
