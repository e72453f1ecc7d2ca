//! State from a witness: the nodes and codes that one block needs, and nothing else.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, RlpDecodable};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, ReadError};
use arbor_tree_mpt::{Access, TreeError, WitnessError, WitnessNodes};

use super::AtVersion;
use super::embedding::{keyed, tree_updates};
use super::keys::{account_key, slot_key};
use super::pending::{Base, PendingRoots};
use super::records::AccountRecord;
use super::{MPT, MerklePatricia};
use crate::state_tree::wanted;
use crate::{Account, Historical, IntermediateRoots, StateChanges, StateError, StateView};

/// What a block read: accounts, and slots of accounts.
pub type Reads = BTreeMap<Address, BTreeSet<U256>>;

/// A partial state built from a witness.
///
/// Reading what the witness lacks is an error that names the path of the missing node.
pub struct WitnessState {
    root: Hash,
    nodes: WitnessNodes,
    codes: HashMap<B256, Bytes>,
    missing: MissingAccounts,
}

impl WitnessState {
    /// Builds the state under `root` from RLP nodes and codes, in any order.
    pub fn new(
        root: B256,
        nodes: impl IntoIterator<Item = Bytes>,
        codes: impl IntoIterator<Item = Bytes>,
    ) -> Self {
        let codes = codes
            .into_iter()
            .map(|code| (keccak256(&code), code))
            .collect();
        Self {
            root: root.0,
            nodes: WitnessNodes::new(nodes.into_iter().map(Vec::from)),
            codes,
            missing: MissingAccounts::Error,
        }
    }

    /// Roots of changes laid over this state.
    pub fn pending_roots(&self) -> impl IntermediateRoots + '_ {
        PendingRoots::new(self)
    }

    /// Sets what an account means that the witness cannot show, neither present nor absent.
    pub fn with_missing(mut self, missing: MissingAccounts) -> Self {
        self.missing = missing;
        self
    }

    fn record(&self, address: Address) -> Result<Option<AccountRecord>, StateError> {
        let found = self.nodes.value(None, self.root, &account_key(address));
        if self.missing == MissingAccounts::Absent && found.as_ref().is_err_and(is_missing) {
            return Ok(None);
        }
        let leaf = found.map_err(|cause| StateError::Witness {
            what: "account".into(),
            address,
            cause: Box::new(cause),
        })?;
        leaf.map(|bytes| decode_leaf(address, &bytes)).transpose()
    }
}

/// What an account means whose path a witness does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MissingAccounts {
    /// An error that names the missing node.
    #[default]
    Error,
    /// An account that does not exist, as geth's stateless execution has it. Roots that come out right then agree
    /// with a header, but prove nothing about a header that is not trusted: code may have been hidden.
    Absent,
}

fn is_missing(error: &TreeError) -> bool {
    match error {
        TreeError::Read(read) => {
            matches!(read.cause.downcast_ref(), Some(WitnessError::Missing(_)))
        }
        _ => false,
    }
}

/// An account leaf's fields in their order.
#[derive(RlpDecodable)]
struct AccountLeaf {
    nonce: u64,
    balance: U256,
    storage_root: B256,
    code_hash: B256,
}

fn decode_leaf(address: Address, bytes: &[u8]) -> Result<AccountRecord, StateError> {
    let corrupt = |_| StateError::Corrupt {
        table: "witness account",
        key: address.to_vec(),
        why: "not the RLP of nonce, balance, storage root and code hash",
    };
    let leaf = AccountLeaf::decode(&mut &bytes[..]).map_err(corrupt)?;
    let account = Account {
        nonce: leaf.nonce,
        balance: leaf.balance,
        code_hash: leaf.code_hash,
    };
    Ok(AccountRecord {
        address,
        account,
        storage_root: leaf.storage_root,
    })
}

impl StateView for WitnessState {
    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        Ok(self.record(address)?.map(|record| record.account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
        let Some(record) = self.record(address)? else {
            return Ok(U256::ZERO);
        };
        let key = account_key(address);
        let found = self
            .nodes
            .value(Some(key), record.storage_root.0, &slot_key(slot));
        let leaf = found.map_err(|cause| StateError::Witness {
            what: format!("slot {slot:#x}"),
            address,
            cause: Box::new(cause),
        })?;
        let Some(bytes) = leaf else {
            return Ok(U256::ZERO);
        };
        U256::decode(&mut &bytes[..]).map_err(|_| StateError::Corrupt {
            table: "witness slot",
            key: slot_key(slot).to_vec(),
            why: "not the RLP of an integer",
        })
    }

    fn has_storage(&self, address: Address) -> Result<bool, StateError> {
        Ok(self
            .record(address)?
            .is_some_and(|record| record.has_storage()))
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.codes
            .get(&code_hash)
            .cloned()
            .ok_or(StateError::MissingCode(code_hash))
    }
}

impl NodeReader for WitnessState {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        self.nodes.nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, ReadError> {
        self.nodes.leaf(request)
    }
}

impl Base for WitnessState {
    fn root(&self) -> Hash {
        self.root
    }

    fn account_record(
        &self,
        address: Address,
        _: &Hash,
    ) -> Result<Option<AccountRecord>, StateError> {
        self.record(address)
    }
}

impl Historical<'_> {
    /// The nodes that reading `reads` and applying `changes` at this version needs.
    pub fn witness(&self, reads: &Reads, changes: &StateChanges) -> Result<Vec<Bytes>, StateError> {
        wanted::<MerklePatricia>(self.tree(), &MPT)?;
        witness_nodes(&AtVersion(self), reads, changes)
    }
}

fn witness_nodes(
    base: &dyn Base,
    reads: &Reads,
    changes: &StateChanges,
) -> Result<Vec<Bytes>, StateError> {
    let changed = keyed(changes, |keys| {
        let names = changes.accounts.keys().zip(keys);
        let records = names.map(|(address, key)| base.account_record(*address, key));
        records.collect()
    })?;
    let mut accesses = Vec::with_capacity(reads.len());
    for (&address, slots) in reads {
        let key = account_key(address);
        let record = base.account_record(address, &key)?;
        let mut inner: Vec<Hash> = slots.iter().map(|&slot| slot_key(slot)).collect();
        inner.sort_unstable();
        let inner_root = record.map_or(arbor_tree_mpt::EMPTY_ROOT, |record| record.storage_root.0);
        accesses.push(Access {
            key,
            inner_root,
            inner,
        });
    }
    accesses.sort_unstable_by_key(|access| access.key);
    let nodes = arbor_tree_mpt::witness(base, base.root(), &accesses, &tree_updates(&changed))?;
    Ok(nodes.into_iter().map(Bytes::from).collect())
}
