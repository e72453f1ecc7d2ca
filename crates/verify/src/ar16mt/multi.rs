//! One proof of several accounts and slots.

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_accounts::AccountSlots;
use arbor_tree::Hash;
use arbor_tree_ar16mt::{Blake2s, Entry, Multiproof, MultiproofError};
use serde::{Deserialize, Serialize};

use super::fields::account_of;
use super::names::LeafName;
use crate::proof::ProvenAccount;

/// Several accounts, present or absent, and slots of them, with one proof of all their leaves. What they hold is in the proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateMultiproof {
    /// What it proves.
    pub accounts: Vec<AccountSlots>,
    /// The proof of the leaves of the accounts' fields and of the slots, as [`Multiproof::encode`] writes it.
    pub multiproof: Bytes,
}

/// Why something is no proof of several accounts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedMultiproof {
    /// Bytes that are no multiproof.
    #[error(transparent)]
    Bytes(#[from] MultiproofError),
    /// Leaves other than those of the accounts and slots.
    #[error(
        "the multiproof has {found} leaves, which are not the {expected} of the accounts and slots beside it: {differs}"
    )]
    Leaves {
        /// Those that it has.
        found: usize,
        /// Those that are named.
        expected: usize,
        /// One that is missing or too much.
        differs: String,
    },
    /// What no account can hold.
    #[error("the leaves of account {0:#x} are not an account's")]
    Account(Address),
}

impl StateMultiproof {
    /// What the accounts and slots hold under a root; `None` if the proof does not lead to it.
    ///
    /// # Errors
    /// What is no proof of them.
    pub fn verify(&self, root: B256) -> Result<Option<Vec<ProvenAccount>>, MalformedMultiproof> {
        let proof = Multiproof::decode(&self.multiproof)?;
        let names = leaves_of(&self.accounts);
        let keys = LeafName::keys(&names);
        let mut expected = keys.clone();
        expected.sort_unstable();
        expected.dedup();
        let found: Vec<(Hash, Option<Entry>)> =
            proof.entries().map(|(key, entry)| (*key, entry)).collect();
        if !found.iter().map(|(key, _)| key).eq(&expected) {
            let is_found = |key: &Hash| found.binary_search_by_key(key, |(key, _)| *key).is_ok();
            let missing = keys.iter().position(|key| !is_found(key));
            let mut other = found.iter().map(|(key, _)| key);
            let other = other.find(|key| expected.binary_search(key).is_err());
            return Err(MalformedMultiproof::Leaves {
                found: found.len(),
                expected: expected.len(),
                differs: match missing {
                    Some(at) => format!("{} is not there", names[at]),
                    None => format!("key {} is of none", B256::from(*other.unwrap_or(&[0; 32]))),
                },
            });
        }
        if !proof.verify(Blake2s::new(), &root.0)? {
            return Ok(None);
        }
        let value = |key: &Hash| {
            let at = found.binary_search_by_key(key, |(key, _)| *key).ok();
            let entry = at.and_then(|at| found[at].1);
            entry.map_or([0; 32], |entry| entry.value)
        };
        let mut values = keys.iter().map(value);
        let mut next = || values.next().unwrap_or_default();
        let accounts = self.accounts.iter().map(|named| {
            let address = named.address;
            let account = account_of([next(), next(), next()]);
            let account = account.ok_or(MalformedMultiproof::Account(address))?;
            let slots = named.slots.iter();
            let slots = slots.map(|slot| (*slot, Some(U256::from_be_bytes(next()))));
            Ok(ProvenAccount {
                address,
                account,
                slots: slots.collect(),
            })
        });
        let accounts: Result<Vec<_>, MalformedMultiproof> = accounts.collect();
        accounts.map(Some)
    }
}

/// The leaves of an account's fields, then those of its slots.
pub fn leaves_of(accounts: &[AccountSlots]) -> Vec<LeafName> {
    let names = accounts.iter().flat_map(|account| {
        let address = account.address;
        let slots = account.slots.iter();
        LeafName::fields(address)
            .into_iter()
            .chain(slots.map(move |slot| LeafName::Slot(address, *slot)))
    });
    names.collect()
}
