//! Proofs of an account and its slots under AR16MT.

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_tree::Hash;
use arbor_tree_ar16mt::{Blake2s, Entry, LeafProof as KeyProof, prove};
use serde::{Deserialize, Serialize};

use super::compute::fields;
use super::names::LeafName;
use super::nodes::{AtHead, Standing};
use super::parts::Ways;
use super::settings::with_hasher;
use super::{Ar16mt, reader};
use crate::state_tree::Then;
use crate::{Account, StateError};

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
                let what = what(name);
                return Ok(Err(FalseLeaf { what, actual }));
            }
        }
        Ok(Ok(account))
    }
}

/// The fields that a proof has of an account that does not exist.
const ABSENT: Account = Account {
    nonce: 0,
    balance: U256::ZERO,
    code_hash: B256::ZERO,
};

/// A leaf in words.
pub(super) fn what(name: LeafName) -> String {
    match name {
        LeafName::Nonce(address) => format!("the nonce of {address}"),
        LeafName::Balance(address) => format!("the balance of {address}"),
        LeafName::CodeHash(address) => format!("the code hash of {address}"),
        LeafName::Slot(address, slot) => format!("slot {slot} of {address}"),
    }
}

impl LeafProof {
    /// The root under which the named leaf holds a value.
    fn root(&self, name: LeafName, value: Hash) -> Result<B256, MalformedProof> {
        let entry = match self.index {
            Some(0) => return Err(MalformedProof::Index(what(name))),
            Some(index) => Some(Entry { index, value }),
            None if value == [0; 32] => None,
            None => return Err(MalformedProof::NoLeaf(what(name))),
        };
        let path = self.path.iter().map(|hash| hash.0).collect();
        let root = KeyProof { entry, path }.root(Blake2s::new(), &name.key());
        let too_long = || MalformedProof::Path(what(name), self.path.len());
        Ok(root.ok_or_else(too_long)?.into())
    }
}

/// Proves an account and some of its slots.
pub(crate) fn prove_account(
    ar16mt: Ar16mt,
    state: &dyn Then,
    address: Address,
    slots: &[U256],
) -> Result<StateProof, StateError> {
    let own = [
        LeafName::Nonce(address),
        LeafName::Balance(address),
        LeafName::CodeHash(address),
    ];
    let names = own.into_iter();
    let names: Vec<LeafName> = names
        .chain(slots.iter().map(|slot| LeafName::Slot(address, *slot)))
        .collect();
    let keys = LeafName::keys(&names);
    let ways = Ways::of(ar16mt, state, &keys)?;
    let view = state.view();
    let standing = Standing {
        head: AtHead { view, ar16mt },
        undone: &ways,
        now: &|table, key| state.value(table, key),
    };
    let proofs = with_hasher!(ar16mt, hasher => prove(&standing, hasher, &keys))?;
    let mut leaves = proofs.into_iter().map(|KeyProof { entry, path }| {
        let path = path.into_iter().map(B256::from).collect();
        let index = entry.map(|entry| entry.index);
        let value = entry.map_or(U256::ZERO, |entry| U256::from_be_bytes(entry.value));
        (value, LeafProof { index, path })
    });
    let account = reader::account(state, address)?;
    let fields = account.unwrap_or(ABSENT);
    let mut next = || leaves.next().map(|(_, leaf)| leaf);
    let (Some(nonce_leaf), Some(balance_leaf), Some(code_hash_leaf)) = (next(), next(), next())
    else {
        unreachable!("a leaf for each name");
    };
    let slots = slots.iter().zip(leaves).map(|(slot, (value, leaf))| {
        let slot = *slot;
        SlotProof { slot, value, leaf }
    });
    Ok(StateProof {
        address,
        exists: account.is_some(),
        nonce: fields.nonce,
        balance: fields.balance,
        code_hash: fields.code_hash,
        nonce_leaf,
        balance_leaf,
        code_hash_leaf,
        slots: slots.collect(),
    })
}
