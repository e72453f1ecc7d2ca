//! One proof of several accounts and slots under AR16MT, and what a version writes in the form of zkSync's prover.

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_tree::Hash;
use arbor_tree_ar16mt::{
    Blake2s, Entry, Multiproof, MultiproofError, Operation, StorageLogs, apply_with_proofs,
};
use serde::{Deserialize, Serialize};

use super::compute::next_index;
use super::names::LeafName;
use super::nodes::{AtHead, Standing};
use super::parts::Ways;
use super::prove::what;
use super::reader::Header;
use super::records::{decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, LEAVES};
use crate::state_tree::Then;
use crate::{Account, StateError};

/// An account and slots of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSlots {
    /// Whose they are.
    pub address: Address,
    /// The slots' numbers.
    pub slots: Vec<U256>,
}

/// Several accounts, present or absent, and slots of them, with one proof of all their leaves. What they hold is in the proof.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateMultiproof {
    /// What it proves.
    pub accounts: Vec<AccountSlots>,
    /// The proof of the leaves of the accounts' fields and of the slots, as [`Multiproof::encode`] writes it.
    pub multiproof: Bytes,
}

/// An account that is proven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvenAccount {
    /// Whose it is.
    pub address: Address,
    /// Its fields; `None` if it does not exist.
    pub account: Option<Account>,
    /// Slots and values; zero for those that are absent.
    pub slots: Vec<(U256, U256)>,
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
    #[error("the leaves of account {0} are not an account's")]
    Account(Address),
}

/// The leaves of an account's fields, then those of its slots.
fn names(accounts: &[AccountSlots]) -> Vec<LeafName> {
    let names = accounts.iter().flat_map(|account| {
        let address = account.address;
        let own = [
            LeafName::Nonce(address),
            LeafName::Balance(address),
            LeafName::CodeHash(address),
        ];
        let slots = account.slots.iter();
        own.into_iter()
            .chain(slots.map(move |slot| LeafName::Slot(address, *slot)))
    });
    names.collect()
}

impl StateMultiproof {
    /// What the accounts and slots hold under a root; `None` if the proof does not lead to it.
    ///
    /// # Errors
    /// What is no proof of them.
    pub fn verify(&self, root: B256) -> Result<Option<Vec<ProvenAccount>>, MalformedMultiproof> {
        let proof = Multiproof::decode(&self.multiproof)?;
        let names = names(&self.accounts);
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
                    Some(at) => format!("{} is not there", what(names[at])),
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
            let account = account([next(), next(), next()]);
            let account = account.ok_or(MalformedMultiproof::Account(address))?;
            let slots = named.slots.iter();
            let slots = slots.map(|slot| (*slot, U256::from_be_bytes(next())));
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

/// The account whose leaves hold nonce, balance and code hash so; the outer `None` if none can.
fn account([nonce, balance, code_hash]: [Hash; 3]) -> Option<Option<Account>> {
    let header = Header::decode(&[0; 32], &nonce).ok()?;
    let Some(header) = header else {
        return (balance == [0; 32] && code_hash == [0; 32]).then_some(None);
    };
    if !header.has_code && code_hash != [0; 32] {
        return None;
    }
    Some(Some(Account {
        nonce: header.nonce,
        balance: U256::from_be_bytes(balance),
        code_hash: match header.has_code {
            true => code_hash.into(),
            false => KECCAK256_EMPTY,
        },
    }))
}

/// Proves accounts and slots together.
pub(crate) fn prove_many(
    ar16mt: Ar16mt,
    state: &dyn Then,
    accounts: &[AccountSlots],
) -> Result<StateMultiproof, StateError> {
    let keys = LeafName::keys(&names(accounts));
    let ways = Ways::of(ar16mt, state, &keys)?;
    let view = state.view();
    let standing = Standing {
        head: AtHead { view, ar16mt },
        undone: &ways,
        now: &|table, key| state.value(table, key),
    };
    let proof = with_hasher!(ar16mt, hasher => Multiproof::new(&standing, hasher, &keys))?;
    Ok(StateMultiproof {
        accounts: accounts.to_vec(),
        multiproof: proof.encode().into(),
    })
}

/// What a version writes on top of the one before it.
pub(crate) fn storage_logs(
    ar16mt: Ar16mt,
    (before, after): (&dyn Then, &dyn Then),
) -> Result<StorageLogs, StateError> {
    let view = after.view();
    let undo = view.undo_of_part(after.meta().version, LEAVES, 0..=u8::MAX)?;
    let mut operations = Vec::with_capacity(undo.len());
    for write in undo {
        let key = leaf_key(&write.key)?;
        let record = after.value(LEAVES, &key)?;
        let new = record.map(|bytes| decode_leaf(&key, &bytes)).transpose()?;
        // No version takes a leaf away.
        let new = Some(new.ok_or(arbor_tree_ar16mt::TreeError::MissingLeaf(
            arbor_tree::Path::from_key(&key),
        ))?);
        operations.push(((write.value.is_none(), new), Operation { key, new }));
    }
    operations.sort_unstable_by_key(|((is_new, new), operation)| {
        (*is_new, new.map(|entry| entry.index), operation.key)
    });
    let operations: Vec<Operation> = operations.into_iter().map(|(_, one)| one).collect();
    let keys: Vec<Hash> = operations.iter().map(|one| one.key).collect();
    let ways = Ways::of(ar16mt, before, &keys)?;
    let view = before.view();
    let standing = Standing {
        head: AtHead { view, ar16mt },
        undone: &ways,
        now: &|table, key| before.value(table, key),
    };
    let leaves = next_index(before)? - 1;
    Ok(with_hasher!(ar16mt, hasher => {
        let (_, proofs) = apply_with_proofs(&standing, hasher, &operations)?;
        StorageLogs::new(hasher, leaves, &operations, &proofs)
    }))
}
