//! The state before a block, read through proofs that are fetched when they are asked for.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_state::{Account, AccountSlots, ReadError, StateView};
use arbor_verify::mpt::{AccountProof, MissingNode, WitnessState};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::Node;
use crate::error::RemoteError;

/// The state after a block of a node. Every node of a trie comes from `eth_getProof` and is found by
/// its hash, from the state root on.
pub(crate) struct ProvenState<'a> {
    node: &'a Node,
    /// The hash of the block.
    block: B256,
    root: B256,
    /// The nodes and codes so far.
    witness: RefCell<WitnessState>,
    /// The names whose proofs were fetched.
    proven: RefCell<BTreeMap<Address, BTreeSet<U256>>>,
    /// An account with each code.
    owners: RefCell<HashMap<B256, Address>>,
}

impl<'a> ProvenState<'a> {
    pub(crate) fn new(node: &'a Node, block: B256, root: B256) -> Self {
        Self {
            node,
            block,
            root,
            witness: RefCell::new(WitnessState::new(root, [], [])),
            proven: RefCell::default(),
            owners: RefCell::default(),
        }
    }

    pub(crate) fn root(&self) -> B256 {
        self.root
    }

    /// The nodes and codes that were fetched.
    pub(crate) fn witness(&self) -> Ref<'_, WitnessState> {
        self.witness.borrow()
    }

    /// Adds a node of the trie that did not come in a proof.
    pub(crate) fn add(&self, node: Bytes) {
        self.witness.borrow_mut().extend([node], []);
    }

    /// Fetches the proofs of names that are not proven yet.
    pub(crate) fn prove(&self, names: &[AccountSlots]) -> Result<(), RemoteError> {
        let mut proven = self.proven.borrow_mut();
        let mut wanted = Vec::new();
        for AccountSlots { address, slots } in names {
            let is_new = !proven.contains_key(address);
            let known = proven.entry(*address).or_default();
            let slots: Vec<U256> = slots
                .iter()
                .copied()
                .filter(|slot| known.insert(*slot))
                .collect();
            if is_new || !slots.is_empty() {
                wanted.push(AccountSlots {
                    address: *address,
                    slots,
                });
            }
        }
        drop(proven);
        let proofs = proofs(self.node, self.block, &wanted)?;
        let nodes = proofs.into_iter().flat_map(all_nodes);
        self.witness.borrow_mut().extend(nodes, []);
        Ok(())
    }

    fn prove_one(&self, address: Address, slot: Option<U256>) -> Result<(), ReadError> {
        let slots = slot.into_iter().collect();
        let proven = self.prove(&[AccountSlots { address, slots }]);
        proven.map_err(ReadError::below)
    }

    /// Explains an error of a read whose proof was fetched.
    fn read<T>(&self, address: Address, read: Result<T, ReadError>) -> Result<T, ReadError> {
        read.map_err(|error| match MissingNode::of(&error) {
            Some(_) => ReadError::below(RemoteError::Proof {
                address,
                root: self.root,
                error,
            }),
            None => error,
        })
    }
}

/// All nodes of a proof.
fn all_nodes(proof: AccountProof) -> impl Iterator<Item = Bytes> {
    let slots = proof.storage_proof.into_iter();
    let slots = slots.flat_map(|slot| slot.proof);
    proof.account_proof.into_iter().chain(slots)
}

/// Fetches the proofs of accounts and slots after a block.
pub(crate) fn proofs(
    node: &Node,
    block: B256,
    names: &[AccountSlots],
) -> Result<Vec<AccountProof>, RemoteError> {
    let params: Vec<Value> = names
        .iter()
        .map(|AccountSlots { address, slots }| {
            let keys: Vec<B256> = slots.iter().map(|slot| (*slot).into()).collect();
            json!([address, keys, {"blockHash": block}])
        })
        .collect();
    const METHOD: &str = "eth_getProof";
    let answers: Vec<Box<RawValue>> = match &params[..] {
        [] => return Ok(Vec::new()),
        params => node.call_each(METHOD, params)?,
    };
    let answers = answers.iter();
    let proofs = answers.map(|answer| {
        let proof = node.read(METHOD, answer);
        proof.map_err(|error| match serde_json::from_str::<OfTree>(answer.get()) {
            Ok(OfTree { tree }) => RemoteError::OtherTree {
                url: node.url().to_owned(),
                tree,
            },
            Err(_) => error,
        })
    });
    proofs.collect()
}

/// A proof in the form of another tree, which says so.
#[derive(Deserialize)]
struct OfTree {
    tree: String,
}

impl StateView for ProvenState<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        self.prove_one(address, None)?;
        let account = self.read(address, self.witness().account(address))?;
        if let Some(account) = &account {
            self.owners.borrow_mut().insert(account.code_hash, address);
        }
        Ok(account)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        self.prove_one(address, Some(slot))?;
        self.read(address, self.witness().storage(address, slot))
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        self.prove_one(address, None)?;
        self.read(address, self.witness().has_storage(address))
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        if let Ok(code) = self.witness().code(code_hash) {
            return Ok(code);
        }
        let owner = self.owners.borrow().get(&code_hash).copied();
        let owner = owner.ok_or(ReadError::MissingCode(code_hash))?;
        let params = json!([owner, {"blockHash": self.block}]);
        let code: Bytes = self
            .node
            .call("eth_getCode", &params)
            .map_err(ReadError::below)?;
        if keccak256(&code) != code_hash {
            return Err(ReadError::MissingCode(code_hash));
        }
        self.witness.borrow_mut().extend([], [code.clone()]);
        Ok(code)
    }
}
