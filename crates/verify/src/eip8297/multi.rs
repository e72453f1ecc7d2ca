//! One proof of several accounts and slots.

use alloy_primitives::{B256, Bytes, U256};
use arbor_accounts::AccountSlots;
use arbor_tree_eip8297::{Hasher, Multiproof, MultiproofError, Path, Shown};
use serde::{Deserialize, Serialize};

use super::embedding::{Embedding, header_key};
use super::header::{FIELDS, account_of};
use crate::hash_name::HashName;
use crate::proof::ProvenAccount;

/// Several accounts, present or absent, and slots of them, with one proof of all their leaves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateMultiproof {
    /// The hash function of the tree.
    #[serde(default)]
    pub hash: HashName,
    /// What it proves.
    pub accounts: Vec<AccountSlots>,
    /// The proof of the leaves of the accounts' fields and of the slots, as [`Multiproof::encode`]
    /// writes it.
    pub multiproof: Bytes,
}

/// Why something is no proof of several accounts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedMultiproof {
    /// Bytes that are no multiproof.
    #[error(transparent)]
    Bytes(#[from] MultiproofError),
    /// Names without accounts.
    #[error("it names no account")]
    Nothing,
}

/// What does not hold of a well-formed proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseMultiproof {
    /// The proof leads to another root.
    #[error("its hashes lead to root {0}")]
    Root(B256),
    /// A key of which the proof says nothing.
    #[error("it says nothing of key {0}")]
    Unsaid(Path),
    /// Leaves that no account has.
    #[error("the leaves of account {0:#x} are those of no account")]
    Account(alloy_primitives::Address),
}

/// The keys of the leaves of accounts' fields, then of those of their slots, account by account.
#[must_use]
pub fn keys_of(embedding: Embedding, accounts: &[AccountSlots]) -> Vec<Path> {
    let addresses: Vec<_> = accounts.iter().map(|named| named.address).collect();
    let hashes = embedding.accounts(&addresses);
    let slots = accounts.iter().zip(&hashes).flat_map(|(named, hash)| {
        let slots = named.slots.iter();
        slots.map(|slot| (*hash, named.address, *slot))
    });
    let mut slots = embedding.slots(&slots.collect::<Vec<_>>()).into_iter();
    let mut keys = Vec::new();
    for (named, hash) in accounts.iter().zip(&hashes) {
        keys.extend(FIELDS.map(|suffix| header_key(hash, suffix)));
        keys.extend(slots.by_ref().take(named.slots.len()));
    }
    keys
}

impl StateMultiproof {
    /// What the accounts and slots hold under a root. The inner error says what is not proven.
    ///
    /// # Errors
    /// What is no proof of them.
    pub fn verify(
        &self,
        root: B256,
    ) -> Result<Result<Vec<ProvenAccount>, FalseMultiproof>, MalformedMultiproof> {
        if self.accounts.is_empty() {
            return Err(MalformedMultiproof::Nothing);
        }
        let hasher = Hasher(self.hash.function());
        let proof = Multiproof::decode(&self.multiproof)?;
        let found = proof.root(hasher);
        if found != root.0 {
            return Ok(Err(FalseMultiproof::Root(found.into())));
        }
        let keys = keys_of(Embedding(hasher), &self.accounts);
        let mut values = Vec::with_capacity(keys.len());
        for key in &keys {
            values.push(match proof.show(key) {
                Some(Shown::Value(value)) => value,
                Some(Shown::Absent) => [0; 32],
                None => return Ok(Err(FalseMultiproof::Unsaid(*key))),
            });
        }
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or_default();
        let mut accounts = Vec::with_capacity(self.accounts.len());
        for named in &self.accounts {
            let address = named.address;
            let Ok(account) = account_of([next(), next(), next()]) else {
                return Ok(Err(FalseMultiproof::Account(address)));
            };
            let slots = named.slots.iter();
            let slots = slots.map(|slot| (*slot, Some(U256::from_be_bytes(next()))));
            accounts.push(ProvenAccount {
                address,
                account: account.map(|(account, _)| account),
                slots: slots.collect(),
            });
        }
        Ok(Ok(accounts))
    }
}
