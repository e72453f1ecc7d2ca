//! A witness of a Verkle tree's leaves as one of the forms.

use std::borrow::Cow;

use alloy_primitives::B256;
use arbor_verify::verkle::{Witness, committer};
use serde_json::{Value, json};

use super::{Verdict, VerkleWitness, VerkleWitnessProblem};
use crate::rules::ChainRules;
use crate::witness::form::{BlockWitness, BlockWitnessSize, Checked, Given, Named};
use crate::witness::{MptWitness, WitnessProblem, decoded_block};

impl VerkleWitness {
    fn keys(&self) -> usize {
        self.witness.keys().count()
    }

    fn new_values(&self) -> usize {
        let keys = self.witness.keys();
        keys.filter(|(_, diff)| diff.new.is_some()).count()
    }

    /// Takes roots that the witness lacks from what is given; those that it has must be the same.
    fn take(&mut self, given: Given) -> Result<(), WitnessProblem> {
        for (flag, given, own) in [
            ("--root", given.root, &mut self.root_before),
            ("--root-after", given.root_after, &mut self.root_after),
        ] {
            match (given, *own) {
                (Some(given), Some(own)) if given != own => {
                    return Err(WitnessProblem::OtherRoot { flag, given, own });
                }
                _ => *own = own.or(given),
            }
        }
        Ok(())
    }

    fn holds(&self) -> Result<(B256, usize), WitnessProblem> {
        let before = self.root_before.unwrap_or_default();
        match self.verdict(committer())? {
            Verdict::Holds {
                root_after,
                doubtful,
            } => Ok((root_after, doubtful)),
            Verdict::FalseProof => Err(WitnessProblem::FalseProof(before)),
            Verdict::OtherRoot { expected, actual } => Err(WitnessProblem::WrongRootAfter {
                keys: self.keys(),
                before,
                new_values: self.new_values(),
                actual,
                expected,
            }),
        }
    }
}

impl BlockWitness for VerkleWitness {
    fn number(&self) -> Option<u64> {
        self.number
    }

    fn roots(&self) -> [Option<B256>; 2] {
        [self.root_before, self.root_after]
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&self.json()?)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        Some(self.witness.to_bytes())
    }

    fn size(&self, chunks: usize) -> BlockWitnessSize {
        let sizes = self.witness.sizes();
        // All chunks read are there: a value is 32 bytes after the byte that says so.
        let code = 33 * chunks;
        let parts = [
            ("stems", sizes.stems),
            ("suffixes", sizes.suffixes),
            ("code chunks", code),
            ("other values before", sizes.current - code),
            ("values after", sizes.new),
            ("ways", sizes.ways),
            ("commitments", sizes.commitments),
            ("multiproof", sizes.multiproof),
            ("offsets", sizes.offsets),
        ];
        let counts = [
            ("keys", self.keys()),
            ("stems", self.witness.state_diff.len()),
            ("changed", self.new_values()),
            ("chunks", chunks),
        ];
        BlockWitnessSize {
            counts: Named(counts.map(|(name, count)| (name, count as u64)).to_vec()),
            parts: Named(parts.map(|(name, bytes)| (name, bytes as u64)).to_vec()),
            others: Named(Vec::new()),
        }
    }

    /// Checks the proof at the root before, and computes the root after. The block is not executed.
    fn check(&mut self, given: Given) -> Result<Checked, WitnessProblem> {
        let is_own = self.root_after.is_some();
        self.take(given)?;
        let found = self.holds();
        let (root_after, doubtful) = found.map_err(|problem| match problem {
            WitnessProblem::VerkleWitness(error @ VerkleWitnessProblem::Root { .. })
                if given.root == self.root_before =>
            {
                WitnessProblem::GivenRoot(error)
            }
            problem => problem,
        })?;
        let before = self.root_before.unwrap_or_default();
        let (keys, new_values) = (self.keys(), self.new_values());
        let stems = self.witness.state_diff.len();
        if given.guarded && doubtful > 0 {
            return Err(WitnessProblem::Doubtful {
                keys,
                before,
                doubtful,
            });
        }
        let compared = self
            .root_after
            .map(|_| if is_own { "block" } else { "rootAfter" });
        let doubt = match doubtful {
            0 => String::new(),
            stems => format!(", {stems} of them absent if the proof was made honestly"),
        };
        let whose = match compared {
            None => " (no root is given that it should be)",
            Some(_) if is_own => ", which is the block's",
            Some(_) => ", which is that of --root-after",
        };
        let bytes = self.witness.sizes().total();
        Ok(Checked {
            text: format!(
                "{keys} keys under {stems} stems hold at root {before}{doubt}; {new_values} new values lead to root {root_after}{whose}"
            ),
            fields: Named(vec![
                ("rootBefore", json!(before)),
                ("rootAfter", json!(root_after)),
                ("comparedWith", json!(compared)),
                ("keys", json!(keys)),
                ("stems", json!(stems)),
                ("doubtfulStems", json!(doubtful)),
                ("newValues", json!(new_values)),
                ("bytes", json!(bytes)),
            ]),
            bytes: Some(bytes as u64),
        })
    }

    /// Its one node is the witness in the binary form.
    fn executable(&self) -> Option<Cow<'_, MptWitness>> {
        let of = self.execution.as_ref()?;
        // A block that cannot be decoded is refused with its reason when the witness is used.
        let decoded = decoded_block(&of.block_rlp).ok();
        let decoded = decoded.map(|raw| (raw.header.number, raw.hash, raw.header.receipts_root));
        let (number, hash, receipts_root) = decoded.unwrap_or_default();
        let is_empty = self.witness == Witness::default();
        let node = (!is_empty).then(|| self.witness.to_bytes().into());
        Some(Cow::Owned(MptWitness {
            chain_id: of.chain_id,
            number: self.number.unwrap_or(number),
            hash: self.hash.unwrap_or(hash),
            pre_state_root: self.root_before.unwrap_or_default(),
            post_state_root: self.root_after.unwrap_or_default(),
            receipts_root,
            tree: Some(of.tree.clone()),
            block_rlp: of.block_rlp.clone(),
            ancestor_headers_rlp: of.ancestor_headers_rlp.clone(),
            state_nodes: node.into_iter().collect(),
            codes: Vec::new(),
            config: of.config.clone(),
            rules: of.rules,
        }))
    }

    fn set_rules(&mut self, config: Option<Value>, rules: Option<ChainRules>) {
        if let Some(of) = &mut self.execution {
            of.config = config;
            of.rules = rules;
        }
    }

    fn complete(&mut self) -> Result<Option<B256>, WitnessProblem> {
        let (root_after, _) = self.holds()?;
        self.root_after = Some(root_after);
        Ok(Some(root_after))
    }
}
