//! A witness of nodes as one of the forms.

use std::borrow::Cow;

use alloy_primitives::{B256, Bytes};
use serde_json::{Value, json};

use super::form::{BlockWitness, BlockWitnessSize, Checked, Given, Named};
use super::{MptWitness, WitnessProblem};
use crate::rules::ChainRules;

fn bytes_of(parts: &[Bytes]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

impl BlockWitness for MptWitness {
    fn number(&self) -> Option<u64> {
        Some(self.number)
    }

    fn roots(&self) -> [Option<B256>; 2] {
        [Some(self.pre_state_root), Some(self.post_state_root)]
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
    }

    fn size(&self, _: usize) -> BlockWitnessSize {
        BlockWitnessSize {
            counts: Named(vec![
                ("nodes", self.state_nodes.len() as u64),
                ("codes", self.codes.len() as u64),
            ]),
            parts: Named(vec![
                ("nodes", bytes_of(&self.state_nodes)),
                ("code", bytes_of(&self.codes)),
            ]),
            others: Named(vec![
                ("ancestors' headers", bytes_of(&self.ancestor_headers_rlp)),
                ("block", self.block_rlp.len() as u64),
            ]),
        }
    }

    /// Checks hashes, the chain of headers, and which nodes and codes the state root leads to. Whether these are all that
    /// the block needs, only its execution shows.
    fn check(&mut self, given: Given) -> Result<Checked, WitnessProblem> {
        if given.root.is_some() || given.root_after.is_some() {
            return Err(WitnessProblem::OwnRoots);
        }
        let reach = self.reach()?;
        let root = self.pre_state_root;
        Ok(Checked {
            text: format!(
                "state root {root} leads to {} nodes and {} codes; the file has {} other nodes and {} other codes. The block was not executed: arbor replay --witness checks that it holds, and that the nodes and codes suffice",
                reach.nodes, reach.codes, reach.other_nodes, reach.other_codes
            ),
            fields: Named(vec![
                ("stateRoot", json!(root)),
                ("nodes", json!(reach.nodes)),
                ("codes", json!(reach.codes)),
                ("otherNodes", json!(reach.other_nodes)),
                ("otherCodes", json!(reach.other_codes)),
                ("executed", json!(false)),
            ]),
            bytes: None,
        })
    }

    fn complete(&mut self) -> Result<Option<B256>, WitnessProblem> {
        Ok(Some(self.post_state_root))
    }

    fn executable(&self) -> Option<Cow<'_, MptWitness>> {
        Some(Cow::Borrowed(self))
    }

    fn set_rules(&mut self, config: Option<Value>, rules: Option<ChainRules>) {
        self.config = config;
        self.rules = rules;
    }

    fn nodes_mut(&mut self) -> Option<&mut MptWitness> {
        Some(self)
    }
}
