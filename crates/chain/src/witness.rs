//! Witness files: a block with the nodes and codes that executing it needs.

mod accesses;
mod authority;
mod compact;
mod difference;
mod execution;
mod form;
mod lists;
mod make;
mod named_tree;
mod nodes;
mod parts;
mod proof_witness;
mod reading;
pub mod stateless;
pub mod verkle;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use alloy_consensus::{EMPTY_ROOT_HASH, Header};
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rlp::Decodable;
use arbor_verify::mpt::References;
use arbor_verify::{NotCompact, PartialState, Reached, WitnessParts};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::{self, JsonError};
use crate::rules::ChainRules;
use crate::source::{Position, RawBlock, SourceBlock, SourceError};
use crate::witness::verkle::VerkleWitnessProblem;

pub use accesses::{Access, AccessCounts, AccountAccesses, BlockAccesses, PaidLeaves};
pub use authority::{Authority, JudgedBy};
pub use difference::{
    CodeDifference, HeaderDifference, NodeDifference, NodePlace, ServedName, Side,
    WitnessDifference, compare_witnesses,
};
pub use execution::ExecutionWitness;
pub use form::{BlockWitness, BlockWitnessSize, Checked, Given, Named};
pub use make::{AccessedBlock, MadeWitness, block_accesses, make_witness};
pub use named_tree::NamedTree;
pub use proof_witness::ProofWitness;

/// A witness as its JSON file has it; bytes are hex with `0x`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MptWitness {
    /// The chain id of EIP-155.
    pub chain_id: u64,
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// The state root before the block.
    pub pre_state_root: B256,
    /// The state root after it.
    pub post_state_root: B256,
    /// The root of its receipts.
    pub receipts_root: B256,
    /// The tree whose roots and nodes these are, if it is not the one whose roots are in headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<NamedTree>,
    /// The block's RLP.
    pub block_rlp: Bytes,
    /// RLP of ancestors' headers, the parent first, each the parent of the one before. A file has none of them twice.
    pub ancestor_headers_rlp: Vec<Bytes>,
    /// RLP of the trie nodes needed, in any order; of those that a file has twice one is kept. Under Verkle the one node is the
    /// witness of leaves in the binary form.
    pub state_nodes: Vec<Bytes>,
    /// The codes needed, likewise.
    pub codes: Vec<Bytes>,
    /// The chain's configuration in geth's form, where the chain is not a public network.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json::unique"
    )]
    pub config: Option<Value>,
    /// The rules of the chain's blocks beyond that. It is a note: a witness does not choose the rules that it is judged by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<ChainRules>,
}

/// Why a witness file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct WitnessError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub problem: WitnessProblem,
}

/// What is wrong with a witness.
#[derive(Debug, thiserror::Error)]
pub enum WitnessProblem {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file is too long.
    #[error(transparent)]
    Input(crate::bounded_input::InputFault),
    /// It is a gzip that cannot be unpacked to its end.
    #[error("its gzip, or what is behind its end: {0}")]
    Gzip(std::io::Error),
    /// The file is not a witness in JSON.
    #[error("not a witness: {0}")]
    Json(#[from] JsonError),
    /// The block cannot be decoded.
    #[error(transparent)]
    Block(#[from] SourceError),
    /// RLP in it cannot be decoded.
    #[error("{what}: {error}")]
    Rlp {
        /// Which part.
        what: String,
        /// Why.
        error: alloy_rlp::Error,
    },
    /// The number beside the block is not the block's.
    #[error("the block's number is {actual}, expected {expected}")]
    Number {
        /// What the witness says.
        expected: u64,
        /// What the block's header says.
        actual: u64,
    },
    /// A part contradicts another.
    #[error("{what} is {actual}, expected {expected}")]
    Mismatch {
        /// Which part.
        what: &'static str,
        /// What the rest of the witness demands.
        expected: B256,
        /// What it is.
        actual: B256,
    },
    /// Neither a public network's chain id nor a configuration.
    #[error("chain {0} is no public network and the witness has no configuration: give --genesis")]
    UnknownChain(u64),
    /// The chain id beside the configuration is not the one in it.
    #[error("its configuration is of chain {actual}, expected {expected}")]
    ChainId {
        /// What the witness says.
        expected: u64,
        /// What the configuration says.
        actual: u64,
    },
    /// It has the chain id of a public network and another configuration, by which an invalid block could hold.
    #[error(
        "it has the chain id of {network}, but a configuration in which {difference}. If it is of another chain, give that chain's genesis file with --genesis"
    )]
    OtherRules {
        /// The network's name.
        network: &'static str,
        /// The first field that differs.
        difference: String,
    },
    /// Its configuration is not that of the genesis given.
    #[error("it has a configuration in which {0} in the genesis given: it is of another chain")]
    NotOfGenesis(String),
    /// It is of another chain than the genesis given.
    #[error("it is of chain {actual}, the genesis given of chain {expected}")]
    OtherChain {
        /// The chain id in the genesis.
        expected: u64,
        /// The one in the witness.
        actual: u64,
    },
    /// It is of a tree over whose nodes no blocks are executed here.
    #[error(
        "it is of the tree {name:?} with the hash {hash:?}, over whose nodes no block can be executed"
    )]
    UnknownTree {
        /// The name of the tree.
        name: String,
        /// The name of the hash function.
        hash: String,
    },
    /// Nodes without a compact form, or bytes that are none.
    #[error(transparent)]
    NotCompact(#[from] NotCompact),
    /// It has leaves, and not the block that is to be executed.
    #[error(
        "it has leaves and no block to execute: verify-witness checks it. A JSON file of arbor witness has the block, too"
    )]
    NoNodes,
    /// It has no block.
    #[error(
        "it has nodes, codes and headers, but no block (the form of debug_executionWitness): name the chain with the block by --witness-chain"
    )]
    NoBlock,
    /// Its fields are those of several forms.
    #[error("it has the fields of several forms of witnesses: {}", .forms.join(", "))]
    SeveralForms {
        /// Their names.
        forms: Vec<&'static str>,
    },
    /// Roots are given for a witness that has its own.
    #[error(
        "--root and --root-after are for witnesses that may lack their roots, as those of Verkle trees; this one has its own"
    )]
    OwnRoots,
    /// A root after a block amid the move of a state is given.
    #[error(
        "--root-after: the root after a block amid a move to another tree does not follow from its witness"
    )]
    NoRootAfter,
    /// A root that is given is not the witness's own.
    #[error("{flag} is {given}, but the witness has {own}")]
    OtherRoot {
        /// The flag that gives it.
        flag: &'static str,
        /// The root given.
        given: B256,
        /// The witness's own.
        own: B256,
    },
    /// The root that is given as that before the block is none.
    #[error("--root: {0}")]
    GivenRoot(VerkleWitnessProblem),
    /// The proof of leaves is false.
    #[error("false proof against root {0}")]
    FalseProof(B256),
    /// The proof of leaves holds, and the values after lead to another root than the block has.
    #[error(
        "{keys} keys hold at root {before}, but {new_values} new values lead to root {actual}, and the block has {expected}"
    )]
    WrongRootAfter {
        /// Keys in it.
        keys: usize,
        /// The root before.
        before: B256,
        /// Values that it changes.
        new_values: usize,
        /// The root that these lead to.
        actual: B256,
        /// The root that the block has.
        expected: B256,
    },
    /// Absences are in doubt, where none may be.
    #[error(
        "{keys} keys hold at root {before}, but of {doubtful} stems nothing shows that they are absent: their ways end below nodes that may be leaves"
    )]
    Doubtful {
        /// Keys in it.
        keys: usize,
        /// The root before.
        before: B256,
        /// Stems in doubt.
        doubtful: usize,
    },
    /// The nodes that it has are not those of its root.
    #[error(transparent)]
    State(#[from] arbor_state::ReadError),
    /// It is JSON, but not what a witness can be.
    #[error(
        "not a witness: a JSON {0}, where one object is wanted: a block with its trie nodes (stateNodes) or with executionWitness, or stateDiff and verkleProof alone"
    )]
    NoObject(&'static str),
    /// It is neither JSON nor the binary form.
    #[error("not a witness: {0}")]
    NoForm(&'static str),
    /// It is malformed as a witness of a Verkle tree.
    #[error(transparent)]
    VerkleWitness(#[from] VerkleWitnessProblem),
    /// It is longer than any block's can be.
    #[error("it has more than {0} bytes when unpacked, which no block's witness has")]
    TooLong(u64),
    /// The configuration in it is not in geth's form.
    #[error("its configuration: {0}")]
    Config(#[from] crate::genesis::GenesisError),
    /// No ancestor header is given.
    #[error("it holds no parent header")]
    NoParent,
    /// The node of the state root is not there.
    #[error("it lacks the root node of the state, {0}")]
    NoRootNode(B256),
}

/// A block with its ancestors, decoded from a witness and checked to belong together.
#[derive(Clone, Debug)]
pub struct WitnessBlock {
    /// The block.
    pub block: SourceBlock,
    /// Ancestors' headers with their hashes, the parent first.
    pub ancestors: Vec<(B256, Header)>,
}

impl MptWitness {
    /// Reads a file, gzipped or not.
    pub fn from_file(file: &Path) -> Result<Self, WitnessError> {
        match NodesFile::read(file)? {
            NodesFile::WithBlock(witness) => Ok(*witness),
            NodesFile::WithoutBlock(_) => Err(WitnessError {
                file: file.to_path_buf(),
                problem: WitnessProblem::NoBlock,
            }),
        }
    }

    /// Decodes block and ancestors and checks what can be checked without executing: hashes, the chain of parents,
    /// and the root node of the state.
    pub fn decode(&self) -> Result<WitnessBlock, WitnessProblem> {
        let raw = decoded_block(&self.block_rlp)?;
        same("the block's hash", self.hash, raw.hash)?;
        if raw.header.number != self.number {
            return Err(WitnessProblem::Number {
                expected: self.number,
                actual: raw.header.number,
            });
        }
        if self.tree.is_none() {
            same(
                "the block's state root",
                self.post_state_root,
                raw.header.state_root,
            )?;
        }
        same(
            "the block's receipts root",
            self.receipts_root,
            raw.header.receipts_root,
        )?;
        let mut ancestors = Vec::with_capacity(self.ancestor_headers_rlp.len());
        let mut expected = raw.header.parent_hash;
        for (index, rlp) in self.ancestor_headers_rlp.iter().enumerate() {
            let header = decode_whole::<Header>(&format!("ancestor {index}"), rlp)?;
            let hash = header.hash_slow();
            same("an ancestor's hash", expected, hash)?;
            expected = header.parent_hash;
            ancestors.push((hash, header));
        }
        let parent = ancestors.first().ok_or(WitnessProblem::NoParent)?;
        let block = raw.after_gas_limit(Some(parent.1.gas_limit)).decode()?;
        if self.tree.is_some() {
            // Whether the witness has what the block needs, only its execution shows.
            return Ok(WitnessBlock { block, ancestors });
        }
        same(
            "the parent's state root",
            self.pre_state_root,
            parent.1.state_root,
        )?;
        // A block that changes nothing may read nothing, and what is empty needs no node.
        let (before, after) = (self.pre_state_root, self.post_state_root);
        let unneeded = before == after || before == EMPTY_ROOT_HASH;
        let mut nodes = self.state_nodes.iter();
        if !unneeded && !nodes.any(|node| keccak256(node) == before) {
            return Err(WitnessProblem::NoRootNode(self.pre_state_root));
        }
        Ok(WitnessBlock { block, ancestors })
    }
}

impl MptWitness {
    /// Nodes and codes, for a tree's verifier.
    fn parts<'a>(&'a self, hash: &'a str) -> WitnessParts<'a> {
        WitnessParts {
            hash,
            root: self.pre_state_root,
            nodes: &self.state_nodes,
            codes: &self.codes,
        }
    }

    /// The state that the witness has, of a tree whose roots no header has; `None` for the tree of the headers.
    ///
    /// # Errors
    /// A tree over whose nodes no block is executed.
    pub fn partial_state(&self) -> Result<Option<Box<dyn PartialState>>, WitnessProblem> {
        let Some(NamedTree { name, hash }) = &self.tree else {
            return Ok(None);
        };
        let kind = arbor_verify::standard().find(name);
        let state = kind.and_then(|kind| kind.partial_state);
        let state = state.and_then(|state| state(self.parts(hash)));
        match state {
            Some(state) => Ok(Some(state)),
            None => Err(WitnessProblem::UnknownTree {
                name: name.clone(),
                hash: hash.clone(),
            }),
        }
    }
}

/// The block of a witness.
fn decoded_block(rlp: &Bytes) -> Result<RawBlock, SourceError> {
    let position = Position {
        file: Path::new("blockRlp").into(),
        offset: 0,
        ordinal: 0,
    };
    RawBlock::from_export(position, rlp)
}

/// The first witness of a file, which must be one over which a block can be executed.
#[derive(Debug)]
pub enum NodesFile {
    /// With its block, as one of nodes.
    WithBlock(Box<MptWitness>),
    /// As nodes answer `debug_executionWitness`.
    WithoutBlock(ExecutionWitness),
}

impl NodesFile {
    /// Reads a file, or standard input for `-`, gzipped or not.
    ///
    /// # Errors
    /// The file cannot be read or has no witness, or its witness has leaves and no block.
    pub fn read(file: &Path) -> Result<Self, WitnessError> {
        let mut found = None;
        read_witnesses(file, &mut |witness| {
            found = Some(witness);
            ControlFlow::Break(())
        })?;
        Self::of(found).map_err(|problem| WitnessError {
            file: file.to_path_buf(),
            problem,
        })
    }

    /// Reads the JSON of a witness, for example that of a node's answer.
    ///
    /// # Errors
    /// The JSON is no witness, or the witness has leaves and no block.
    pub fn parse(json: &[u8]) -> Result<Self, WitnessProblem> {
        let mut found = None;
        reading::parse(json, &mut |witness| {
            found = Some(witness);
            ControlFlow::Break(())
        })?;
        Self::of(found)
    }

    fn of(found: Option<FoundWitness>) -> Result<Self, WitnessProblem> {
        let witness = match found {
            Some(found) => found.witness?,
            None => return Err(WitnessProblem::NoNodes),
        };
        if let Some(witness) = witness.executable() {
            return Ok(Self::WithBlock(Box::new(witness.into_owned())));
        }
        let witness = witness.into::<ExecutionWitness>();
        witness
            .map(Self::WithoutBlock)
            .ok_or(WitnessProblem::NoNodes)
    }
}

/// What a witness's nodes and codes are for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WitnessReach {
    /// Nodes that the state root leads to.
    pub nodes: usize,
    /// Nodes that it does not lead to: what collapsing branches will need, or spare.
    pub other_nodes: usize,
    /// Codes that an account in the witness has.
    pub codes: usize,
    /// Codes that none has.
    pub other_codes: usize,
}

impl MptWitness {
    /// Checks everything that needs no execution: what [`decode`](Self::decode) does, and which nodes and codes the
    /// state root leads to.
    ///
    /// # Errors
    /// As `decode`; a node that is not RLP, or longer than a state's can be.
    pub fn reach(&self) -> Result<WitnessReach, WitnessProblem> {
        self.decode()?;
        if let Some(state) = self.partial_state()? {
            state.check()?;
            let Reached { nodes, codes } = state.reached();
            return Ok(WitnessReach {
                nodes,
                other_nodes: self.state_nodes.len().saturating_sub(nodes),
                codes,
                other_codes: self.codes.len().saturating_sub(codes),
            });
        }
        reach_of(self.pre_state_root, &self.state_nodes, &self.codes)
    }
}

/// Counts the nodes and codes that a root leads to, and the others.
///
/// # Errors
/// A node that is not RLP, or longer than a state's can be.
fn reach_of(root: B256, nodes: &[Bytes], codes: &[Bytes]) -> Result<WitnessReach, WitnessProblem> {
    let mut waiting: HashMap<B256, &[u8]> = nodes
        .iter()
        .map(|node| (keccak256(node), &node[..]))
        .collect();
    let mut reach = WitnessReach::default();
    let mut seen: HashSet<B256> = HashSet::from([root]);
    let mut code_hashes = HashSet::new();
    let mut next = vec![root];
    while let Some(hash) = next.pop() {
        let Some(node) = waiting.remove(&hash) else {
            continue;
        };
        reach.nodes += 1;
        let found = References::of_node(node).map_err(|error| WitnessProblem::Rlp {
            what: format!("node {hash}"),
            error,
        })?;
        next.extend(found.nodes.into_iter().filter(|hash| seen.insert(*hash)));
        code_hashes.extend(found.codes);
    }
    reach.other_nodes = waiting.len();
    reach.codes = codes
        .iter()
        .filter(|code| code_hashes.contains(&keccak256(code)))
        .count();
    reach.other_codes = codes.len() - reach.codes;
    Ok(reach)
}

/// A witness in a file, of any form.
#[derive(Debug)]
pub struct FoundWitness {
    /// Its name in the file, if that has several.
    pub name: Option<String>,
    /// The witness, or why there is none.
    pub witness: Result<Box<dyn BlockWitness>, WitnessProblem>,
}

impl FoundWitness {
    /// One without a name.
    fn alone(witness: impl BlockWitness) -> Self {
        Self {
            name: None,
            witness: Ok(Box::new(witness)),
        }
    }
}

/// Who is told of a witness; breaks off when no more is wanted.
pub type TakeWitness<'a> = &'a mut dyn FnMut(FoundWitness) -> ControlFlow<()>;

/// Reads a file, or standard input for `-`, gzipped or not, and hands each witness to `take` before it reads the next. A malformed block does not keep those beside
/// it from being read.
///
/// # Errors
/// What is no witness file. Where there are many witnesses in one, those before the place that is malformed were handed on.
pub fn read_witnesses(file: &Path, take: TakeWitness<'_>) -> Result<(), WitnessError> {
    reading::read(file, take).map_err(|problem| WitnessError {
        file: file.to_path_buf(),
        problem,
    })
}

fn decode_whole<T: Decodable>(what: &str, bytes: &[u8]) -> Result<T, WitnessProblem> {
    let rlp = |error| WitnessProblem::Rlp {
        what: what.to_owned(),
        error,
    };
    let mut rest = bytes;
    let value = T::decode(&mut rest).map_err(rlp)?;
    match rest.is_empty() {
        true => Ok(value),
        false => Err(rlp(alloy_rlp::Error::UnexpectedLength)),
    }
}

fn same(what: &'static str, expected: B256, actual: B256) -> Result<(), WitnessProblem> {
    match expected == actual {
        true => Ok(()),
        false => Err(WitnessProblem::Mismatch {
            what,
            expected,
            actual,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A witness that says "mainnet, but without forks" was believed.
    #[test]
    fn a_public_network_has_its_own_rules() {
        let witness = |chain_id: u64, config: Option<Value>| MptWitness {
            chain_id,
            number: 1,
            hash: B256::ZERO,
            pre_state_root: B256::ZERO,
            post_state_root: B256::ZERO,
            receipts_root: B256::ZERO,
            tree: None,
            block_rlp: Bytes::new(),
            ancestor_headers_rlp: Vec::new(),
            state_nodes: Vec::new(),
            codes: Vec::new(),
            config,
            rules: None,
        };
        let config = |chain_id: u64| Some(serde_json::json!({ "chainId": chain_id }));
        assert!(witness(1, None).spec().is_ok());
        assert!(witness(77, config(77)).spec().is_ok());
        let error = witness(77, config(78)).spec().expect_err("another chain");
        assert!(
            error.to_string().contains("chain 78, expected 77"),
            "{error}"
        );
        let error = witness(1, config(1)).spec().expect_err("other rules");
        assert!(
            error
                .to_string()
                .contains("mainnet, but a configuration in which Homestead"),
            "{error}"
        );
    }
}
