//! The witness of a block amid the move of a state from one tree to another.
//!
//! It has one proof of all accounts and slots that the block reads and changes, in the form
//! `two-trees/1`, against the root of the version before the block. Before the first block of the
//! move that is the root of the source, and the proof is one of the source alone.
//!
//! A checker verifies the proof, executes the block over the accounts and slots in it, and checks
//! all fields of the header except the state root, which no tree of the state has. The root after
//! the block is not checked: the witness does not have what the block moves, and no proof of names
//! shows that a list of the next accounts and slots is complete.

use std::borrow::Cow;

use alloy_primitives::{B256, Bytes};
use arbor_state::AccountSlots;
use arbor_verify::Proof;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::form::{BlockWitness, BlockWitnessSize, Checked, Given, Named};
use super::verkle::Execution;
use super::{MptWitness, NamedTree, WitnessProblem, decoded_block};
use crate::rules::ChainRules;

/// The witness of a block amid the move of a state, as its JSON file has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProofWitness {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// The root of the version before the block.
    pub parent_state_root: B256,
    /// The proof of what the block reads and changes.
    pub state_proof: Value,
    /// The codes needed, in any order.
    pub codes: Vec<Bytes>,
    /// The block, and what executing it takes beside state.
    pub execution: Execution,
}

/// How many names a proof has.
#[derive(Clone, Copy, Default)]
struct Count {
    accounts: usize,
    slots: usize,
}

impl ProofWitness {
    /// The tree by which files name such a witness.
    pub(super) fn tree() -> NamedTree {
        NamedTree {
            name: arbor_verify::two_trees::VERIFY.tree.to_owned(),
            hash: "keccak256".to_owned(),
        }
    }

    /// Makes one of a proof.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub(super) fn new(
        (number, hash): (u64, B256),
        parent_state_root: B256,
        proof: &dyn Proof,
        codes: Vec<Bytes>,
        execution: Execution,
    ) -> serde_json::Result<Self> {
        let mut text = Vec::new();
        proof.write_json(&mut text, false)?;
        Ok(Self {
            number,
            hash,
            parent_state_root,
            state_proof: serde_json::from_slice(&text)?,
            codes,
            execution,
        })
    }

    fn proof_bytes(&self) -> Bytes {
        self.state_proof.to_string().into_bytes().into()
    }

    /// Counts the names in the proof. They are read without the proof: whether it holds is not
    /// asked.
    fn count(&self) -> Count {
        let names = self.state_proof.get("names").cloned();
        let names = names.and_then(|names| serde_json::from_value(names).ok());
        let names: Vec<AccountSlots> = names.unwrap_or_default();
        Count {
            accounts: names.len(),
            slots: names.iter().map(|of| of.slots.len()).sum(),
        }
    }

    /// Checks the proof, the block's hash and the chain of headers.
    fn holds(&self) -> Result<(), WitnessProblem> {
        let whole = self.whole();
        whole.decode()?;
        if self.execution.tree != Self::tree() {
            let NamedTree { name, hash } = self.execution.tree.clone();
            return Err(WitnessProblem::UnknownTree { name, hash });
        }
        match whole.partial_state()? {
            Some(state) => Ok(state.check()?),
            None => Err(WitnessProblem::NoNodes),
        }
    }

    /// The witness as one over which a block is executed. Its one node is the proof.
    fn whole(&self) -> MptWitness {
        let of = &self.execution;
        // A block that cannot be decoded is refused with its reason when the witness is used.
        let decoded = decoded_block(&of.block_rlp).ok();
        let receipts_root = decoded.map(|raw| raw.header.receipts_root);
        MptWitness {
            chain_id: of.chain_id,
            number: self.number,
            hash: self.hash,
            pre_state_root: self.parent_state_root,
            // It does not follow from the witness.
            post_state_root: B256::ZERO,
            receipts_root: receipts_root.unwrap_or_default(),
            tree: Some(of.tree.clone()),
            block_rlp: of.block_rlp.clone(),
            ancestor_headers_rlp: of.ancestor_headers_rlp.clone(),
            state_nodes: vec![self.proof_bytes()],
            codes: self.codes.clone(),
            config: of.config.clone(),
            rules: of.rules,
        }
    }
}

impl BlockWitness for ProofWitness {
    fn number(&self) -> Option<u64> {
        Some(self.number)
    }

    fn roots(&self) -> [Option<B256>; 2] {
        [Some(self.parent_state_root), None]
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
    }

    fn size(&self, _: usize) -> BlockWitnessSize {
        let Count { accounts, slots } = self.count();
        let bytes = |parts: &[Bytes]| -> u64 { parts.iter().map(|part| part.len() as u64).sum() };
        let headers = bytes(&self.execution.ancestor_headers_rlp);
        BlockWitnessSize {
            counts: Named(vec![
                ("accounts", accounts as u64),
                ("slots", slots as u64),
                ("codes", self.codes.len() as u64),
            ]),
            parts: Named(vec![
                ("proof", self.proof_bytes().len() as u64),
                ("code", bytes(&self.codes)),
            ]),
            others: Named(vec![
                ("ancestors' headers", headers),
                ("block", self.execution.block_rlp.len() as u64),
            ]),
        }
    }

    /// Checks hashes, the chain of headers and the proof. Whether the proof has all that the block
    /// needs, only its execution shows.
    fn check(&mut self, given: Given) -> Result<Checked, WitnessProblem> {
        let root = self.parent_state_root;
        match given {
            Given {
                root_after: Some(_),
                ..
            } => return Err(WitnessProblem::NoRootAfter),
            Given {
                root: Some(given), ..
            } if given != root => {
                return Err(WitnessProblem::OtherRoot {
                    flag: "--root",
                    given,
                    own: root,
                });
            }
            _ => {}
        }
        self.holds()?;
        let Count { accounts, slots } = self.count();
        let codes = self.codes.len();
        Ok(Checked {
            text: format!(
                "{accounts} accounts and {slots} slots hold at root {root} of a state that moves to another tree; the file has {codes} codes. The block was not executed: arbor replay --witness executes it. The root after the block does not follow from the witness, and nothing checks it"
            ),
            fields: Named(vec![
                ("rootBefore", json!(root)),
                ("rootAfter", Value::Null),
                ("accounts", json!(accounts)),
                ("slots", json!(slots)),
                ("codes", json!(codes)),
                ("executed", json!(false)),
            ]),
            bytes: None,
        })
    }

    /// Checks the proof. No root after the block follows.
    fn complete(&mut self) -> Result<Option<B256>, WitnessProblem> {
        self.holds()?;
        Ok(None)
    }

    fn executable(&self) -> Option<Cow<'_, MptWitness>> {
        Some(Cow::Owned(self.whole()))
    }

    fn set_rules(&mut self, config: Option<Value>, rules: Option<ChainRules>) {
        self.execution.config = config;
        self.execution.rules = rules;
    }
}
