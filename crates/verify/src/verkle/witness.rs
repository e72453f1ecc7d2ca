//! State from a witness: the leaves that a block touches, with their proof.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{B256, hex};
use arbor_accounts::ReadError;
use arbor_ipa::Committer;
use arbor_tree_verkle::{Verified, Witness};

use super::named::HASH;
use super::stems::Stems;
use crate::kinds::PartialState;
use crate::stems::{HeaderLayout, KeyedLeaf, LeafValue, Stem, WitnessLeaves, WitnessState};
use crate::witness_parts::WitnessParts;

/// Makes the state of a witness, whose one node is the witness in its binary form; codes are among the leaves. `None` for a
/// hash function that the tree does not have. A witness that is malformed or false has no leaf.
pub(super) fn partial_state(
    layout: HeaderLayout,
    committer: &'static Arc<Committer>,
    parts: WitnessParts<'_>,
) -> Option<Box<dyn PartialState>> {
    if parts.hash != HASH {
        return None;
    }
    let leaves = Leaves {
        committer,
        proven: Arc::new(proven(committer, &parts)),
        set: BTreeMap::new(),
    };
    let stems = Box::new(Stems::new(Arc::clone(committer), MEMORY));
    Some(Box::new(WitnessState::new(layout, stems, leaves, [])))
}

/// Bytes for stems that are asked for again.
const MEMORY: usize = 1 << 20;

/// Why a witness has no leaves.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum NoLeaves {
    /// Its nodes are not one witness.
    #[error("witness: it has {0} nodes, and one witness in the binary form is wanted")]
    Count(usize),
    /// It is none.
    #[error("witness: {0}")]
    Malformed(String),
    /// It does not hold.
    #[error("witness: its proof is false at root {0}")]
    False(B256),
    /// A leaf that it does not have.
    #[error("it does not have the leaf with the suffix {suffix} under the stem 0x{}", hex::encode(.stem))]
    Leaf {
        /// The stem.
        stem: Stem,
        /// The suffix.
        suffix: u8,
    },
}

/// The proven leaves; `None` for the witness of a block that touches nothing.
fn proven(
    committer: &Committer,
    parts: &WitnessParts<'_>,
) -> Result<Option<Verified<'static>>, NoLeaves> {
    let node = match parts.nodes {
        [] => return Ok(None),
        [node] => node,
        nodes => return Err(NoLeaves::Count(nodes.len())),
    };
    let malformed = |error: &dyn std::fmt::Display| NoLeaves::Malformed(error.to_string());
    let witness = Witness::from_bytes(node).map_err(|error| malformed(&error))?;
    let verified = witness.verify(committer, &parts.root.0);
    let verified = verified.map_err(|error| malformed(&error))?;
    let verified = verified.ok_or(NoLeaves::False(parts.root))?;
    Ok(Some(verified.into_owned()))
}

/// The leaves of a witness, and those that were set since.
#[derive(Clone)]
struct Leaves {
    committer: &'static Arc<Committer>,
    proven: Arc<Result<Option<Verified<'static>>, NoLeaves>>,
    set: BTreeMap<(Stem, u8), LeafValue>,
}

impl Leaves {
    fn verified(&self) -> Result<Option<&Verified<'static>>, ReadError> {
        let proven = self.proven.as_ref().as_ref();
        let proven = proven.map_err(|error| ReadError::below(error.clone()))?;
        Ok(proven.as_ref())
    }

    /// The value before the block.
    fn before(&self, stem: &Stem, suffix: u8) -> Result<Option<LeafValue>, ReadError> {
        let verified = self.verified()?;
        let value = verified.and_then(|verified| verified.value(stem, suffix));
        let stem = *stem;
        value.ok_or_else(|| ReadError::below(NoLeaves::Leaf { stem, suffix }))
    }
}

impl WitnessLeaves for Leaves {
    const HAS_CHUNKS: bool = true;

    fn check(&self) -> Result<(), ReadError> {
        self.verified().map(|_| ())
    }

    fn leaf(&self, stem: &Stem, suffix: u8) -> Result<Option<LeafValue>, ReadError> {
        match self.set.get(&(*stem, suffix)) {
            Some(value) => Ok(Some(*value)),
            None => self.before(stem, suffix),
        }
    }

    /// Commitments are sums: those along the way to a changed leaf change by the differences of values, and the nodes
    /// beside the way are not needed.
    fn set(&mut self, leaves: &[KeyedLeaf]) -> Result<B256, ReadError> {
        for ((stem, suffix), value) in leaves {
            self.before(stem, *suffix)?;
            self.set.insert((*stem, *suffix), *value);
        }
        let Some(verified) = self.verified()? else {
            return Err(ReadError::new("witness: it is empty".to_owned()));
        };
        let root = verified.root_with(self.committer, |stem, diff| {
            self.set.get(&(*stem, diff.suffix)).copied()
        });
        Ok(root.map_err(ReadError::below)?.into())
    }

    fn present(&self) -> (Vec<KeyedLeaf>, usize) {
        let Ok(Some(verified)) = self.verified() else {
            return (Vec::new(), 0);
        };
        let leaves = verified.values().filter_map(|(key, value)| {
            let (stem, [suffix]) = key.split_first_chunk()? else {
                return None;
            };
            Some(((*stem, *suffix), value?))
        });
        (leaves.collect(), 0)
    }

    fn doubtful(&self) -> usize {
        let verified = self.verified().ok().flatten();
        verified.map_or(0, |verified| verified.doubtful().count())
    }
}
