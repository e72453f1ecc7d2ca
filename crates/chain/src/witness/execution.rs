//! The execution witness: nodes, codes and headers without the block (`debug_executionWitness`).

use std::borrow::Cow;
use std::collections::HashSet;

use alloy_consensus::{EMPTY_ROOT_HASH, Header};
use alloy_primitives::{B256, Bytes, keccak256};
use serde::Serialize;
use serde_json::{Value, json};

use super::form::{BlockWitness, BlockWitnessSize, Checked, Given, Named};
use super::{MptWitness, WitnessProblem, decode_whole, reach_of, same};
use crate::rules::ChainRules;
use crate::source::SourceBlock;

/// A witness of a block under Merkle-Patricia, without the block.
///
/// Its canonical form (execution-apis 845 and 847, EIP-8025) has each list ascending by its bytes,
/// without duplicates. Lists in any order and entries that nothing needs are read too.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ExecutionWitness {
    /// RLP of trie nodes of the state before the block.
    pub state: Vec<Bytes>,
    /// Codes that execution loads.
    pub codes: Vec<Bytes>,
    /// RLP of the headers of the parent and of its ancestors as far as `BLOCKHASH` reaches.
    pub headers: Vec<Bytes>,
}

/// The headers of a witness in the order of their numbers, the parent of the block first.
struct Ancestors(Vec<(B256, Header, Bytes)>);

impl ExecutionWitness {
    /// Takes the nodes, codes and headers of a whole witness, in the canonical form.
    #[must_use]
    pub fn canonical(witness: MptWitness) -> Self {
        Self {
            state: sorted(witness.state_nodes),
            codes: sorted(witness.codes),
            headers: sorted(witness.ancestor_headers_rlp),
        }
    }

    /// Decodes the headers and checks that each is the parent of the one before.
    fn ancestors(&self) -> Result<Ancestors, WitnessProblem> {
        let mut headers = Vec::with_capacity(self.headers.len());
        for (index, rlp) in sorted(self.headers.clone()).into_iter().enumerate() {
            let header: Header = decode_whole(&format!("header {index}"), &rlp)?;
            headers.push((keccak256(&rlp), header, rlp));
        }
        headers.sort_by_key(|(_, header, _)| std::cmp::Reverse(header.number));
        for pair in headers.windows(2) {
            same("an ancestor's hash", pair[0].1.parent_hash, pair[1].0)?;
        }
        match headers.is_empty() {
            true => Err(WitnessProblem::NoParent),
            false => Ok(Ancestors(headers)),
        }
    }

    /// The number of the block, and its parent's hash.
    ///
    /// # Errors
    /// Headers that are malformed, or no chain; none at all.
    pub fn block(&self) -> Result<(u64, B256), WitnessProblem> {
        let Ancestors(headers) = self.ancestors()?;
        let (hash, parent, _) = &headers[0];
        Ok((parent.number.saturating_add(1), *hash))
    }

    /// The state root before the block.
    ///
    /// # Errors
    /// The same errors as [`block`](Self::block).
    pub fn state_root(&self) -> Result<B256, WitnessProblem> {
        Ok(self.ancestors()?.0[0].1.state_root)
    }

    /// RLP of the headers, the parent's first.
    pub(super) fn ancestors_rlp(&self) -> Result<Vec<Bytes>, WitnessProblem> {
        let Ancestors(headers) = self.ancestors()?;
        Ok(headers.into_iter().map(|(_, _, rlp)| rlp).collect())
    }

    /// Adds the block. The chain's id is one that the caller knows.
    ///
    /// # Errors
    /// A block that is no child of the witness's latest header; those of [`block`](Self::block).
    pub fn with_block(
        self,
        source: &SourceBlock,
        chain_id: u64,
    ) -> Result<MptWitness, WitnessProblem> {
        let Ancestors(headers) = self.ancestors()?;
        let (hash, parent, _) = &headers[0];
        let header = &source.block.header;
        same("the parent's hash", header.parent_hash, *hash)?;
        Ok(MptWitness {
            chain_id,
            number: header.number,
            hash: source.hash,
            pre_state_root: parent.state_root,
            post_state_root: header.state_root,
            receipts_root: header.receipts_root,
            tree: None,
            block_rlp: alloy_rlp::encode(&source.block).into(),
            ancestor_headers_rlp: headers.into_iter().map(|(_, _, rlp)| rlp).collect(),
            state_nodes: unique(self.state),
            codes: unique(self.codes),
            config: None,
            rules: None,
        })
    }
}

/// Sorts a list by its bytes and drops duplicates.
fn sorted(mut list: Vec<Bytes>) -> Vec<Bytes> {
    list.sort_unstable();
    list.dedup();
    list
}

/// Drops duplicates.
fn unique(mut list: Vec<Bytes>) -> Vec<Bytes> {
    let mut seen = HashSet::new();
    list.retain(|item| seen.insert(item.clone()));
    list
}

impl BlockWitness for ExecutionWitness {
    fn number(&self) -> Option<u64> {
        Some(self.block().ok()?.0)
    }

    fn roots(&self) -> [Option<B256>; 2] {
        let root = self.ancestors().ok();
        [root.map(|ancestors| ancestors.0[0].1.state_root), None]
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
    }

    fn size(&self, _: usize) -> BlockWitnessSize {
        let bytes = |list: &[Bytes]| list.iter().map(|item| item.len() as u64).sum();
        BlockWitnessSize {
            counts: Named(vec![
                ("nodes", self.state.len() as u64),
                ("codes", self.codes.len() as u64),
            ]),
            parts: Named(vec![
                ("nodes", bytes(&self.state)),
                ("code", bytes(&self.codes)),
            ]),
            others: Named(vec![("ancestors' headers", bytes(&self.headers))]),
        }
    }

    /// Checks the chain of headers, and which nodes and codes the parent's state root leads to.
    fn check(&mut self, given: Given) -> Result<Checked, WitnessProblem> {
        if given.root.is_some() || given.root_after.is_some() {
            return Err(WitnessProblem::OwnRoots);
        }
        let Ancestors(headers) = self.ancestors()?;
        let root = headers[0].1.state_root;
        let nodes = unique(std::mem::take(&mut self.state));
        let codes = unique(std::mem::take(&mut self.codes));
        let reach = reach_of(root, &nodes, &codes)?;
        if reach.nodes == 0 && root != EMPTY_ROOT_HASH && !nodes.is_empty() {
            return Err(WitnessProblem::NoRootNode(root));
        }
        let count = headers.len();
        Ok(Checked {
            text: format!(
                "state root {root}, of the latest of its {count} headers, leads to {} nodes and {} codes; the file has {} other nodes and {} other codes. It has no block: arbor replay --witness executes the block of --witness-chain over it",
                reach.nodes, reach.codes, reach.other_nodes, reach.other_codes
            ),
            fields: Named(vec![
                ("stateRoot", json!(root)),
                ("headers", json!(count)),
                ("nodes", json!(reach.nodes)),
                ("codes", json!(reach.codes)),
                ("otherNodes", json!(reach.other_nodes)),
                ("otherCodes", json!(reach.other_codes)),
                ("executed", json!(false)),
            ]),
            bytes: None,
        })
    }

    fn executable(&self) -> Option<Cow<'_, MptWitness>> {
        None
    }

    /// This form has no place for them.
    fn set_rules(&mut self, _: Option<Value>, _: Option<ChainRules>) {}

    /// The root after the block is in the block, which this form lacks.
    fn complete(&mut self) -> Result<Option<B256>, WitnessProblem> {
        Err(WitnessProblem::NoBlock)
    }
}
