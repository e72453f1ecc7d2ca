//! State from a witness: the nodes and codes that one block needs, and nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_accounts::{
    Account, AccountChange, IntermediateRoots, ReadError, StateChanges, StateView,
};
use arbor_tree::Hash;
use arbor_tree_eip8297::{Hasher, LeafUpdate, Path, TreeError, WitnessTree, witness_tree};

use super::embedding::{Embedding, header_key, header_slots, is_code_hash, storage_of};
use super::header::{Code, FIELDS, NoAccount, account_of, fields};
use super::leaves::{code_leaves, field_updates};
use crate::kinds::{PartialState, Reached};

/// A read that a witness cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum UnreadWitness {
    /// Nodes are missing.
    #[error("witness: {what} of {address:#x}: {cause}")]
    Tree {
        /// What was read.
        what: String,
        /// Whose it is.
        address: Address,
        /// Why it failed, with the path of the missing node.
        cause: Box<TreeError>,
    },
    /// Leaves that no account has.
    #[error("witness: account {address:#x}: {cause}")]
    Account {
        /// Whose they should be.
        address: Address,
        /// What is wrong.
        cause: NoAccount,
    },
    /// An account loses its code. Whether another account has the same code, no witness shows.
    #[error(
        "witness: account {address:#x} loses code {code_hash}, which another account may have: its leaves cannot be known without the whole state"
    )]
    LostCode {
        /// The account.
        address: Address,
        /// The code's hash.
        code_hash: B256,
    },
}

/// A partial state built from a witness.
///
/// Reading what the witness lacks is an error that names the path of the missing node.
#[derive(Debug)]
pub struct WitnessState {
    embedding: Embedding,
    tree: WitnessTree,
    codes: HashMap<B256, Bytes>,
}

impl WitnessState {
    /// Builds the state under `root` from messages of nodes and codes, in any order.
    pub fn new(
        hasher: Hasher,
        root: B256,
        nodes: &[Bytes],
        codes: impl IntoIterator<Item = Bytes>,
    ) -> Self {
        let codes = codes.into_iter();
        Self {
            embedding: Embedding(hasher),
            tree: witness_tree(hasher, root.0, nodes.iter().map(|node| &node[..])),
            codes: codes.map(|code| (keccak256(&code), code)).collect(),
        }
    }
}

impl PartialState for WitnessState {
    fn pending_roots(&self) -> Box<dyn IntermediateRoots + '_> {
        Box::new(PendingRoots {
            embedding: self.embedding,
            codes: &self.codes,
            tree: self.tree.clone(),
        })
    }

    /// A node is found by its hash, so that what is not of the root is never read.
    fn check(&self) -> Result<(), ReadError> {
        Ok(())
    }

    fn reached(&self) -> Reached {
        let mut codes = HashSet::new();
        let nodes = self.tree.visit(|key, value| {
            if is_code_hash(key) {
                codes.insert(B256::from(*value));
            }
        });
        let codes = codes.iter().filter(|hash| self.codes.contains_key(*hash));
        Reached {
            nodes,
            codes: codes.count(),
        }
    }
}

fn unread(what: impl Into<String>, address: Address, cause: TreeError) -> ReadError {
    ReadError::below(UnreadWitness::Tree {
        what: what.into(),
        address,
        cause: Box::new(cause),
    })
}

/// The values of an account's fields.
fn read_fields(
    tree: &WitnessTree,
    embedding: Embedding,
    address: Address,
) -> Result<(Hash, [Hash; 3]), ReadError> {
    let account = embedding.account(address);
    let mut values = [[0; 32]; 3];
    for (value, suffix) in values.iter_mut().zip(FIELDS) {
        let found = tree.get(&header_key(&account, suffix));
        let found = found.map_err(|cause| unread("account", address, cause))?;
        *value = found.unwrap_or_default();
    }
    Ok((account, values))
}

fn named(address: Address, values: [Hash; 3]) -> Result<Option<(Account, Code)>, ReadError> {
    account_of(values).map_err(|cause| ReadError::below(UnreadWitness::Account { address, cause }))
}

impl StateView for WitnessState {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        let (_, values) = read_fields(&self.tree, self.embedding, address)?;
        Ok(named(address, values)?.map(|(account, _)| account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let account = self.embedding.account(address);
        let key = self.embedding.slots(&[(account, address, slot)])[0];
        let found = self.tree.get(&key);
        let found = found.map_err(|cause| unread(format!("slot {slot:#x}"), address, cause))?;
        Ok(found.map(U256::from_be_bytes).unwrap_or_default())
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        let account = self.embedding.account(address);
        let places = [header_slots(&account), storage_of(&account)];
        for place in places {
            let has = self.tree.has_below(&place);
            if has.map_err(|cause| unread("storage", address, cause))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        let code = self.codes.get(&code_hash).cloned();
        code.ok_or(ReadError::MissingCode(code_hash))
    }
}

/// Changes laid over a witness.
struct PendingRoots<'a> {
    embedding: Embedding,
    codes: &'a HashMap<B256, Bytes>,
    tree: WitnessTree,
}

impl IntermediateRoots for PendingRoots<'_> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        let mut updates: BTreeMap<Path, Hash> = BTreeMap::new();
        let mut put = |update: LeafUpdate| {
            updates.insert(update.key, update.value);
        };
        for (address, change) in &changes.accounts {
            let address = *address;
            let (account, before) = read_fields(&self.tree, self.embedding, address)?;
            let code = self.code_of(address, change, changes)?;
            let after = match &change.new {
                Some(new) => fields(new, Code::of(&code).map_err(ReadError::below)?)
                    .map_err(ReadError::below)?,
                None => [[0; 32]; 3],
            };
            field_updates(&account, before, after).for_each(&mut put);
            self.code_updates((address, change), named(address, before)?, &code)?
                .into_iter()
                .for_each(&mut put);
            if change.storage_cleared || change.new.is_none() {
                for key in self.slots_of(address, &account)? {
                    let value = [0; 32];
                    put(LeafUpdate { key, value });
                }
            }
            let slots = change.slots.keys().map(|slot| (account, address, *slot));
            let keys = self.embedding.slots(&slots.collect::<Vec<_>>());
            for (key, slot) in keys.into_iter().zip(change.slots.values()) {
                let value = slot.new.to_be_bytes();
                put(LeafUpdate { key, value });
            }
        }
        let updates = updates.into_iter();
        let updates: Vec<LeafUpdate> = updates
            .map(|(key, value)| LeafUpdate { key, value })
            .collect();
        let root = self.tree.apply(&updates).map_err(ReadError::below)?;
        Ok(root.into())
    }
}

impl PendingRoots<'_> {
    /// The code that an account has after a change.
    fn code_of(
        &self,
        address: Address,
        change: &AccountChange,
        changes: &StateChanges,
    ) -> Result<Bytes, ReadError> {
        let Some(hash) = change.new.map(|new| new.code_hash) else {
            return Ok(Bytes::new());
        };
        if hash == KECCAK256_EMPTY {
            return Ok(Bytes::new());
        }
        let code = changes.codes.get(&hash).or_else(|| self.codes.get(&hash));
        if let Some(code) = code {
            return Ok(code.clone());
        }
        // Code that stays need not be known: its size is in the leaf.
        let (_, values) = read_fields(&self.tree, self.embedding, address)?;
        match named(address, values)? {
            Some((old, code)) if old.code_hash == hash => Ok(match code {
                Code::Delegation(to) => super::delegation_code(to).to_vec().into(),
                code => vec![0; code.size() as usize].into(),
            }),
            _ => Err(ReadError::MissingCode(hash)),
        }
    }

    /// The updates of the leaves of an account's code. Code that is there already, for another
    /// account, shows by its first leaf.
    fn code_updates(
        &self,
        (address, change): (Address, &AccountChange),
        before: Option<(Account, Code)>,
        code: &Bytes,
    ) -> Result<Vec<LeafUpdate>, ReadError> {
        let has_leaves = |code| matches!(code, Code::Bytes(_));
        let old = before.filter(|(_, code)| has_leaves(*code));
        let old = old.map(|(account, _)| account.code_hash);
        let kind = Code::of(code).map_err(ReadError::below)?;
        let new = change
            .new
            .map(|new| new.code_hash)
            .filter(|_| has_leaves(kind));
        if old == new {
            return Ok(Vec::new());
        }
        if let Some(code_hash) = old {
            let lost = UnreadWitness::LostCode { address, code_hash };
            return Err(ReadError::below(lost));
        }
        let Some(hash) = new else {
            return Ok(Vec::new());
        };
        let leaves = code_leaves(self.embedding, hash, code);
        let Some(first) = leaves.first() else {
            return Ok(leaves);
        };
        let found = self.tree.get(&first.key);
        match found.map_err(|cause| unread("code", address, cause))? {
            Some(_) => Ok(Vec::new()),
            None => Ok(leaves),
        }
    }

    /// The keys of all slots that an account has, which a change clears.
    fn slots_of(&self, address: Address, account: &Hash) -> Result<Vec<Path>, ReadError> {
        let places = [header_slots(account), storage_of(account)];
        let keys = places.iter().map(|place| self.tree.keys_below(place));
        let keys: Result<Vec<Vec<Path>>, TreeError> = keys.collect();
        Ok(keys
            .map_err(|cause| unread("storage", address, cause))?
            .concat())
    }
}
