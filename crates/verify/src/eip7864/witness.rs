//! State from a witness: a multiproof of the leaves that a block needs, and codes.

use std::collections::HashMap;

use alloy_primitives::B256;
use arbor_accounts::ReadError;
use arbor_tree_eip7864::{HashFunction, Hasher, LeafUpdate, Multiproof, WitnessTree, key};

use super::stems::{Revision, Stems};
use crate::kinds::PartialState;
use crate::stems::{HeaderLayout, KeyedLeaf, LeafValue, Stem, WitnessLeaves, WitnessState};
use crate::witness_parts::WitnessParts;

/// Makes the state of a witness, whose one node is a multiproof. `None` for a hash function that the
/// tree does not have. A witness that is no multiproof, or leads to another root, has no leaf.
pub(super) fn partial_state(
    revision: Revision,
    parts: WitnessParts<'_>,
) -> Option<Box<dyn PartialState>> {
    let function = HashFunction::named(parts.hash)?;
    let leaves = Leaves::of(Hasher(function), &parts);
    let stems = Box::new(Stems { revision, function });
    let codes = parts.codes.iter().cloned();
    let state = WitnessState::new(HeaderLayout::BasicData, stems, leaves, codes);
    Some(Box::new(state))
}

/// Why a witness has no leaves.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum NoLeaves {
    /// Its nodes are not one multiproof.
    #[error("witness: it has {0} nodes, and one multiproof is wanted")]
    Count(usize),
    /// It is none.
    #[error("witness: {0}")]
    Malformed(String),
    /// It leads to another root.
    #[error("witness: its multiproof leads to root {actual}, expected {expected}")]
    Root {
        /// The root before the block.
        expected: B256,
        /// Where it leads.
        actual: B256,
    },
}

/// The leaves of a multiproof.
#[derive(Clone)]
struct Leaves(Result<WitnessTree, NoLeaves>);

impl Leaves {
    fn of(hasher: Hasher, parts: &WitnessParts<'_>) -> Self {
        let read = || {
            let empty = arbor_tree_eip7864::Multiproof::decode(&[]);
            let proof = match parts.nodes {
                // A tree without leaves, or a block that touches nothing.
                [] if parts.root.is_zero() => empty,
                [node] => Multiproof::decode(node),
                nodes => return Err(NoLeaves::Count(nodes.len())),
            };
            let proof = proof.map_err(|error| NoLeaves::Malformed(error.to_string()))?;
            let tree = WitnessTree::of_proof(hasher, &proof);
            let (expected, actual) = (parts.root, B256::from(tree.root()));
            match expected == actual {
                true => Ok(tree),
                false => Err(NoLeaves::Root { expected, actual }),
            }
        };
        Self(read())
    }

    fn tree(&self) -> Result<&WitnessTree, ReadError> {
        let tree = self.0.as_ref();
        tree.map_err(|error| ReadError::below(error.clone()))
    }
}

impl WitnessLeaves for Leaves {
    const HAS_CHUNKS: bool = false;

    fn check(&self) -> Result<(), ReadError> {
        self.tree().map(|_| ())
    }

    fn leaf(&self, stem: &Stem, suffix: u8) -> Result<Option<LeafValue>, ReadError> {
        let value = self.tree()?.get(&key(stem, suffix));
        value.map_err(ReadError::below)
    }

    fn set(&mut self, leaves: &[KeyedLeaf]) -> Result<B256, ReadError> {
        let updates = leaves.iter().map(|((stem, suffix), value)| LeafUpdate {
            key: key(stem, *suffix),
            value: Some(*value),
        });
        let updates: Vec<LeafUpdate> = updates.collect();
        let tree = self.0.as_mut();
        let tree = tree.map_err(|error| ReadError::below(error.clone()))?;
        let root = tree.apply(&updates).map_err(ReadError::below)?;
        Ok(root.into())
    }

    fn present(&self) -> (Vec<KeyedLeaf>, usize) {
        let (mut leaves, mut nodes) = (HashMap::new(), 0);
        if let Ok(tree) = &self.0 {
            nodes = tree.visit(|key, value| {
                let key = key.packed().split_first_chunk();
                if let Some((stem, [suffix])) = key {
                    leaves.insert((*stem, *suffix), *value);
                }
            });
        }
        let count = leaves.len();
        (leaves.into_iter().collect(), nodes - count)
    }
}
