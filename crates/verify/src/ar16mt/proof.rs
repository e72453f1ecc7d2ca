//! A proof of an account and its slots, with a path for each leaf.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_accounts::Account;
use arbor_tree::Hash;
use arbor_tree_ar16mt::{Blake2s, Entry, LeafProof as KeyProof};
use serde::{Deserialize, Serialize};

use super::fields::fields;
use super::names::LeafName;

/// A leaf's index and path; what it holds is beside it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeafProof {
    /// Its index; `None`, which has to be said, where there is no leaf.
    #[serde(deserialize_with = "Option::deserialize")]
    pub index: Option<u64>,
    /// The hashes beside the way to the root, from the bottom up, without the first ones that are those of empty subtrees.
    pub path: Vec<B256>,
}

/// A slot and its proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotProof {
    /// The slot's number.
    pub slot: U256,
    /// Its value; zero if it is absent.
    pub value: U256,
    /// The proof.
    pub leaf: LeafProof,
}

/// An account and some of its slots, present or absent, with the paths of their leaves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StateProof {
    /// Whose it is.
    pub address: Address,
    /// Whether the account exists.
    pub exists: bool,
    /// Its nonce; 0 if it does not exist.
    pub nonce: u64,
    /// Its balance; 0 if it does not exist.
    pub balance: U256,
    /// The hash of its code; zero if it does not exist.
    pub code_hash: B256,
    /// The leaf of existence and nonce.
    pub nonce_leaf: LeafProof,
    /// The leaf of the balance.
    pub balance_leaf: LeafProof,
    /// The leaf of the code's hash.
    pub code_hash_leaf: LeafProof,
    /// The slots.
    pub slots: Vec<SlotProof>,
}

/// Why something is not a proof at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedProof {
    /// Fields of an account that is said not to exist.
    #[error("the account does not exist, but has a nonce, a balance or code")]
    Fields,
    /// A value where there is no leaf.
    #[error("{0}: a value, but no leaf to hold it")]
    NoLeaf(String),
    /// An index that no leaf can have.
    #[error("{0}: index 0 is no leaf's")]
    Index(String),
    /// More hashes than levels.
    #[error("{0}: a path of {1} hashes, but the tree has 256 levels")]
    Path(String, usize),
}

/// What does not hold of a well-formed proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} lies under root {actual}")]
pub struct FalseLeaf {
    /// Which leaf.
    pub what: String,
    /// The root that its path leads to.
    pub actual: B256,
}

impl StateProof {
    /// Checks every leaf against a root, and returns the account: `None` if the proof shows that it does not
    /// exist.
    ///
    /// # Errors
    /// The outer one if this is no proof, the inner one for the first leaf that is not under the root.
    pub fn verify(&self, root: B256) -> Result<Result<Option<Account>, FalseLeaf>, MalformedProof> {
        let fields_said = Account {
            nonce: self.nonce,
            balance: self.balance,
            code_hash: self.code_hash,
        };
        // Proofs made by earlier versions have the hash of the empty code.
        let empty = Account {
            code_hash: KECCAK256_EMPTY,
            ..ABSENT
        };
        if !self.exists && fields_said != ABSENT && fields_said != empty {
            return Err(MalformedProof::Fields);
        }
        let account = self.exists.then_some(fields_said);
        let [nonce, balance, code_hash] = fields(account);
        let address = self.address;
        let own = [
            (LeafName::Nonce(address), nonce, &self.nonce_leaf),
            (LeafName::Balance(address), balance, &self.balance_leaf),
            (LeafName::CodeHash(address), code_hash, &self.code_hash_leaf),
        ];
        let slots = self.slots.iter().map(|slot| {
            let name = LeafName::Slot(address, slot.slot);
            (name, slot.value.to_be_bytes(), &slot.leaf)
        });
        for (name, value, leaf) in own.into_iter().chain(slots) {
            let actual = leaf.root(name, value)?;
            if actual != root {
                let what = name.to_string();
                return Ok(Err(FalseLeaf { what, actual }));
            }
        }
        Ok(Ok(account))
    }
}

/// The fields that a proof has of an account that does not exist.
pub const ABSENT: Account = Account {
    nonce: 0,
    balance: U256::ZERO,
    code_hash: B256::ZERO,
};

impl LeafProof {
    /// The root under which the named leaf holds a value.
    fn root(&self, name: LeafName, value: Hash) -> Result<B256, MalformedProof> {
        let entry = match self.index {
            Some(0) => return Err(MalformedProof::Index(name.to_string())),
            Some(index) => Some(Entry { index, value }),
            None if value == [0; 32] => None,
            None => return Err(MalformedProof::NoLeaf(name.to_string())),
        };
        let path = self.path.iter().map(|hash| hash.0).collect();
        let root = KeyProof { entry, path }.root(Blake2s::new(), &name.key());
        let too_long = || MalformedProof::Path(name.to_string(), self.path.len());
        Ok(root.ok_or_else(too_long)?.into())
    }
}
