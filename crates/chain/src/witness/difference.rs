//! How two witnesses of a block differ, node by node.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use alloy_rlp::Decodable;
use arbor_state::StateView;
use arbor_verify::mpt::{
    Position, TouchedNames, WitnessState, account_key, slot_key, witness_nodes,
};
use serde::Serialize;

use super::stateless::{Effects, StatelessError, execute_over};
use super::{ExecutionWitness, MptWitness, WitnessProblem};
use crate::executor::{Executor, Reads};
use crate::genesis::ChainSpec;

/// Which of two witnesses has something that the other lacks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// A name that a node serves: an account, or a slot of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct ServedName {
    /// The account.
    pub account: Address,
    /// The slot; `None` for the account itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<U256>,
}

/// Where a node hangs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NodePlace {
    /// The hashed key of the account whose storage trie it is in; `None`: the account trie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_of: Option<B256>,
    /// Nibbles from the root, in hex.
    pub path: String,
}

/// A node that only one witness has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDifference {
    /// The witness that has it.
    pub only_in: Side,
    /// Its hash.
    pub hash: B256,
    /// Its bytes.
    pub bytes: usize,
    /// Where it hangs; none if the state root does not lead to it.
    pub places: Vec<NodePlace>,
    /// Names of the block below it. None if the block is not known, or none leads through it, like a
    /// sibling that joins when a branch collapses.
    pub names: Vec<ServedName>,
    /// Whether the canonical witness has it; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical: Option<bool>,
}

/// A code that only one witness has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeDifference {
    /// The witness that has it.
    pub only_in: Side,
    /// Its hash.
    pub hash: B256,
    /// Its bytes.
    pub bytes: usize,
    /// Accounts of the block that have it.
    pub accounts: Vec<Address>,
    /// Whether execution loads it; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical: Option<bool>,
}

/// A header that only one witness has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderDifference {
    /// The witness that has it.
    pub only_in: Side,
    /// The hash of its block.
    pub hash: B256,
    /// The number of its block; `None` if it is malformed.
    pub number: Option<u64>,
}

/// How two witnesses of a block differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WitnessDifference {
    /// The block.
    pub block: u64,
    /// The state root before it.
    pub state_root: B256,
    /// Nodes in both.
    pub common_nodes: usize,
    /// Nodes in one, those of the first before those of the second, each by its place.
    pub nodes: Vec<NodeDifference>,
    /// Codes in one.
    pub codes: Vec<CodeDifference>,
    /// Headers in one.
    pub headers: Vec<HeaderDifference>,
    /// Why nodes have no names, if they have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unnamed: Option<String>,
}

impl WitnessDifference {
    /// Whether both have the same nodes, codes and headers.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.nodes.is_empty() && self.codes.is_empty() && self.headers.is_empty()
    }
}

/// The accounts, slots and codes that a block touches, executed over the nodes of both witnesses.
struct BlockNames {
    reads: Reads,
    /// Names by their hashed keys.
    accounts: HashMap<B256, Address>,
    slots: BTreeMap<B256, Vec<(B256, U256)>>,
    code_hashes: BTreeMap<B256, Vec<Address>>,
    /// The nodes of the canonical witness, by hash.
    canonical: HashSet<B256>,
}

impl BlockNames {
    fn of(state: &WitnessState, effects: Effects) -> Result<Self, StatelessError> {
        let Effects {
            reads,
            changes,
            transactions,
        } = effects;
        let nodes = witness_nodes(
            state,
            TouchedNames {
                reads: &reads.accounts,
                changes: &changes,
                transactions: &transactions,
            },
        );
        let nodes = nodes.map_err(WitnessProblem::State)?;
        let mut names = Self {
            accounts: HashMap::new(),
            slots: BTreeMap::new(),
            code_hashes: BTreeMap::new(),
            canonical: nodes.iter().map(keccak256).collect(),
            reads,
        };
        let changed = changes.accounts.iter();
        let changed = changed.map(|(address, change)| {
            let slots: BTreeSet<U256> = change.slots.keys().copied().collect();
            (address, slots)
        });
        let mut all = names.reads.accounts.clone();
        for (address, slots) in changed {
            all.entry(*address).or_default().extend(slots);
        }
        for (address, slots) in all {
            let key = B256::from(account_key(address));
            names.accounts.insert(key, address);
            let slots = slots.into_iter();
            let slots = slots.map(|slot| (slot_key(slot).into(), slot));
            names.slots.entry(key).or_default().extend(slots);
            let account = state.account(address).ok().flatten();
            let code = account.map(|account| account.code_hash);
            if let Some(code) = code.filter(|code| *code != KECCAK256_EMPTY) {
                names.code_hashes.entry(code).or_default().push(address);
            }
        }
        Ok(names)
    }

    /// The names whose keys lead through a place.
    fn below(&self, place: &Position) -> Vec<ServedName> {
        let leads = |key: &B256| place.path.is_prefix_of(&key.0);
        match place.trie.map(B256::from) {
            None => {
                let accounts = self.accounts.iter().filter(|(key, _)| leads(key));
                accounts
                    .map(|(_, account)| ServedName {
                        account: *account,
                        slot: None,
                    })
                    .collect()
            }
            Some(trie) => {
                let Some(account) = self.accounts.get(&trie) else {
                    return Vec::new();
                };
                let slots = self.slots.get(&trie).into_iter().flatten();
                let slots = slots.filter(|(key, _)| leads(key));
                slots
                    .map(|(_, slot)| ServedName {
                        account: *account,
                        slot: Some(*slot),
                    })
                    .collect()
            }
        }
    }
}

/// Items that only one of two lists has, each once, those of the first list first.
fn only_in_one<'a>(a: &'a [Bytes], b: &'a [Bytes]) -> Vec<(Side, &'a Bytes)> {
    let [in_a, in_b] = [a, b].map(|list| list.iter().collect::<BTreeSet<_>>());
    let only_a = in_a.difference(&in_b).map(|item| (Side::A, *item));
    let only_b = in_b.difference(&in_a).map(|item| (Side::B, *item));
    only_a.chain(only_b).collect()
}

fn union(a: &[Bytes], b: &[Bytes]) -> Vec<Bytes> {
    let all: BTreeSet<&Bytes> = a.iter().chain(b).collect();
    all.into_iter().cloned().collect()
}

/// Compares two witnesses of a block. With the block and its rules, the block is executed over the
/// nodes of both together; the names that it reads and changes are then those that nodes serve.
///
/// # Errors
/// Witnesses of different blocks; malformed headers.
pub fn compare_witnesses(
    a: &ExecutionWitness,
    b: &ExecutionWitness,
    block: Option<(&MptWitness, &ChainSpec, Executor)>,
) -> Result<WitnessDifference, WitnessProblem> {
    let (number, parent) = a.block()?;
    let (_, other) = b.block()?;
    super::same("the parent's hash in the second witness", parent, other)?;
    let root = a.state_root()?;
    let both = ExecutionWitness {
        state: union(&a.state, &b.state),
        codes: union(&a.codes, &b.codes),
        headers: union(&a.headers, &b.headers),
    };
    let state = WitnessState::new(root, both.state.iter().cloned(), both.codes.iter().cloned());
    let (names, unnamed) = match block {
        None => (None, Some("the block is not known".to_owned())),
        Some((block, spec, executor)) => {
            let whole = MptWitness {
                state_nodes: both.state.clone(),
                codes: both.codes.clone(),
                ancestor_headers_rlp: both.ancestors_rlp()?,
                ..block.clone()
            };
            let named = execute_over(&whole, &state, spec, executor)
                .and_then(|effects| BlockNames::of(&state, effects));
            match named {
                Ok(names) => (Some(names), None),
                Err(error) => (
                    None,
                    Some(format!("both witnesses together do not suffice: {error}")),
                ),
            }
        }
    };
    let places = state.places();
    let nodes = only_in_one(&a.state, &b.state);
    let common_nodes = both.state.len() - nodes.len();
    let mut nodes: Vec<NodeDifference> = nodes
        .into_iter()
        .map(|(only_in, node)| {
            let hash = keccak256(node);
            let found = places.get(&hash).map_or(&[][..], Vec::as_slice);
            let served = names
                .iter()
                .flat_map(|names| found.iter().flat_map(|place| names.below(place)));
            let mut served: Vec<ServedName> = served.collect();
            served.sort_unstable();
            NodeDifference {
                only_in,
                hash,
                bytes: node.len(),
                places: found
                    .iter()
                    .map(|place| NodePlace {
                        storage_of: place.trie.map(B256::from),
                        path: place.path.to_string(),
                    })
                    .collect(),
                names: served,
                canonical: names.as_ref().map(|names| names.canonical.contains(&hash)),
            }
        })
        .collect();
    nodes.sort_by_key(|node| {
        let place = node.places.first();
        let place = place.map(|place| (place.storage_of, place.path.clone()));
        (node.only_in, place.is_none(), place)
    });
    let codes = only_in_one(&a.codes, &b.codes).into_iter();
    let headers = only_in_one(&a.headers, &b.headers).into_iter();
    Ok(WitnessDifference {
        block: number,
        state_root: root,
        common_nodes,
        nodes,
        codes: codes
            .map(|(only_in, code)| {
                let hash = keccak256(code);
                let accounts = names
                    .as_ref()
                    .and_then(|names| names.code_hashes.get(&hash));
                CodeDifference {
                    only_in,
                    hash,
                    bytes: code.len(),
                    accounts: accounts.cloned().unwrap_or_default(),
                    canonical: names
                        .as_ref()
                        .map(|names| names.reads.codes.contains(&hash)),
                }
            })
            .collect(),
        headers: headers
            .map(|(only_in, rlp)| HeaderDifference {
                only_in,
                hash: keccak256(rlp),
                number: Header::decode(&mut &rlp[..])
                    .ok()
                    .map(|header| header.number),
            })
            .collect(),
        unnamed,
    })
}
