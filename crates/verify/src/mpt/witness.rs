//! State from a witness: the nodes and codes that one block needs, and nothing else.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{BufMut, Decodable, Encodable, Header};
use arbor_accounts::{Account, IntermediateRoots, ReadError, StateView};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, Position, ReadError as NodeError};
use arbor_tree_mpt::{TreeError, WitnessError, WitnessNodes};

use super::keys::{account_key, slot_key};
use super::leaf::AccountRecord;
use super::pending::{Base, PendingRoots};

/// A read that a witness cannot answer.
#[derive(Debug, thiserror::Error)]
#[error("witness: {what} of {address:#x}: {cause}")]
pub struct UnreadWitness {
    /// What was read.
    pub what: String,
    /// Whose it is.
    pub address: Address,
    /// Why it failed, with the path of the missing node.
    #[source]
    pub cause: TreeError,
}

/// A leaf of a witness that is not what its place promises.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "corrupt {what} record at key 0x{}: {why}",
    alloy_primitives::hex::encode(key)
)]
pub struct CorruptLeaf {
    /// What it should be.
    pub what: &'static str,
    /// Its key.
    pub key: Vec<u8>,
    /// What is wrong with it.
    pub why: &'static str,
}

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

    /// Adds nodes and codes.
    pub fn extend(
        &mut self,
        nodes: impl IntoIterator<Item = Bytes>,
        codes: impl IntoIterator<Item = Bytes>,
    ) {
        self.nodes.extend(nodes.into_iter().map(Vec::from));
        let codes = codes.into_iter().map(|code| (keccak256(&code), code));
        self.codes.extend(codes);
    }

    /// Returns the RLP of a node.
    #[must_use]
    pub fn node(&self, hash: &B256) -> Option<&[u8]> {
        self.nodes.get(hash)
    }

    /// Finds the places of the nodes that the state root leads to, those of the accounts' storage
    /// included. Tries of several accounts may share a node.
    #[must_use]
    pub fn places(&self) -> HashMap<B256, Vec<Position>> {
        let mut places: HashMap<B256, Vec<Position>> = HashMap::new();
        let mut see = |hash: &Hash, place| places.entry(hash.into()).or_default().push(place);
        let mut accounts = Vec::new();
        self.nodes
            .walk(None, self.root, &mut see, &mut |key, value| {
                let storage = AccountLeaf::decode(&mut &value[..]);
                accounts.extend(storage.map(|leaf| (key, leaf.storage_root)));
            });
        for (key, root) in accounts {
            self.nodes.walk(Some(key), root.0, &mut see, &mut |_, _| {});
        }
        places
    }

    fn record(&self, address: Address) -> Result<Option<AccountRecord>, ReadError> {
        let found = self.nodes.value(None, self.root, &account_key(address));
        if self.missing == MissingAccounts::Absent
            && found
                .as_ref()
                .is_err_and(|error| MissingNode::of(error).is_some())
        {
            return Ok(None);
        }
        let leaf = found.map_err(|cause| {
            let what = "account".into();
            ReadError::below(UnreadWitness {
                what,
                address,
                cause,
            })
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

/// A node that a witness lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingNode {
    /// Its hash.
    pub hash: B256,
    /// Where it hangs.
    pub position: Position,
}

impl MissingNode {
    /// Returns the missing node that an error comes of; `None` if it comes of something else.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(WitnessError::Missing { hash, position }) = error.downcast_ref() {
                return Some(Self {
                    hash: hash.into(),
                    position: *position,
                });
            }
            cause = error.source();
        }
        None
    }
}

/// An account leaf's fields in their order.
pub(super) struct AccountLeaf {
    pub(super) nonce: u64,
    pub(super) balance: U256,
    pub(super) storage_root: B256,
    pub(super) code_hash: B256,
}

impl Encodable for AccountLeaf {
    fn encode(&self, out: &mut dyn BufMut) {
        let fields: [&dyn Encodable; 4] = [
            &self.nonce,
            &self.balance,
            &self.storage_root,
            &self.code_hash,
        ];
        let payload_length = fields.iter().map(|field| field.length()).sum();
        let list = true;
        Header {
            list,
            payload_length,
        }
        .encode(out);
        fields.iter().for_each(|field| field.encode(out));
    }
}

impl Decodable for AccountLeaf {
    fn decode(bytes: &mut &[u8]) -> alloy_rlp::Result<Self> {
        let mut fields = Header::decode_bytes(bytes, true)?;
        let leaf = Self {
            nonce: Decodable::decode(&mut fields)?,
            balance: Decodable::decode(&mut fields)?,
            storage_root: Decodable::decode(&mut fields)?,
            code_hash: Decodable::decode(&mut fields)?,
        };
        match fields.is_empty() {
            true => Ok(leaf),
            false => Err(alloy_rlp::Error::UnexpectedLength),
        }
    }
}

fn decode_leaf(address: Address, bytes: &[u8]) -> Result<AccountRecord, ReadError> {
    let corrupt = |_| {
        ReadError::below(CorruptLeaf {
            what: "witness account",
            key: address.to_vec(),
            why: "not the RLP of nonce, balance, storage root and code hash",
        })
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
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        Ok(self.record(address)?.map(|record| record.account))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let Some(record) = self.record(address)? else {
            return Ok(U256::ZERO);
        };
        let key = account_key(address);
        let found = self
            .nodes
            .value(Some(key), record.storage_root.0, &slot_key(slot));
        let leaf = found.map_err(|cause| {
            let what = format!("slot {slot:#x}");
            ReadError::below(UnreadWitness {
                what,
                address,
                cause,
            })
        })?;
        let Some(bytes) = leaf else {
            return Ok(U256::ZERO);
        };
        U256::decode(&mut &bytes[..]).map_err(|_| {
            ReadError::below(CorruptLeaf {
                what: "witness slot",
                key: slot_key(slot).to_vec(),
                why: "not the RLP of an integer",
            })
        })
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        Ok(self
            .record(address)?
            .is_some_and(|record| record.has_storage()))
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.codes
            .get(&code_hash)
            .cloned()
            .ok_or(ReadError::MissingCode(code_hash))
    }
}

impl NodeReader for WitnessState {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, NodeError> {
        self.nodes.nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, NodeError> {
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
    ) -> Result<Option<AccountRecord>, ReadError> {
        self.record(address)
    }
}
