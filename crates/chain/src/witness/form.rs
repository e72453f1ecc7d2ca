//! What every witness of a block can tell, whatever form it has.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use alloy_primitives::B256;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{MptWitness, WitnessProblem};
use crate::rules::ChainRules;

/// A witness of a block.
pub trait BlockWitness: Any + fmt::Debug {
    /// The block's number, if it is known.
    fn number(&self) -> Option<u64>;

    /// The state roots before and after the block, as far as they are known.
    fn roots(&self) -> [Option<B256>; 2];

    /// Writes the JSON form.
    ///
    /// # Errors
    /// The errors of the serializer.
    fn to_json(&self) -> serde_json::Result<Vec<u8>>;

    /// Writes the binary form; `None` if there is none.
    fn to_bytes(&self) -> Option<Vec<u8>>;

    /// Counts what the witness has, and its bytes. `chunks`: how many of its keys are chunks of code that are read, which
    /// whoever made the witness knows.
    fn size(&self, chunks: usize) -> BlockWitnessSize;

    /// Checks all that can be checked without executing the block. A witness that lacks roots is checked at those that are
    /// given.
    ///
    /// # Errors
    /// A witness that is malformed or does not hold; roots that differ from its own.
    fn check(&mut self, given: Given) -> Result<Checked, WitnessProblem>;

    /// Checks a witness that was just made, and returns the root after it; `None` if that root does
    /// not follow from the witness, because the block is amid the move of a state to another tree.
    ///
    /// # Errors
    /// Those of [`check`](Self::check).
    fn complete(&mut self) -> Result<Option<B256>, WitnessProblem>;

    /// The witness as one over which the block can be executed; `None` if it does not have the block.
    fn executable(&self) -> Option<Cow<'_, MptWitness>>;

    /// Notes the chain's configuration, and its rules beyond that.
    fn set_rules(&mut self, config: Option<Value>, rules: Option<ChainRules>);

    /// The witness as one of nodes, to be changed; `None` if it is one of leaves.
    fn nodes_mut(&mut self) -> Option<&mut MptWitness> {
        None
    }
}

impl dyn BlockWitness {
    /// Returns this witness as one of a given type; `None` if it is another.
    pub fn into<T: BlockWitness>(self: Box<Self>) -> Option<T> {
        let witness: Box<dyn Any> = self;
        Some(*witness.downcast().ok()?)
    }
}

/// What is known of a block beside its witness.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Given {
    /// The state root before it.
    pub root: Option<B256>,
    /// The state root after it.
    pub root_after: Option<B256>,
    /// Whether no absence may be in doubt.
    pub guarded: bool,
}

/// What a witness that holds shows.
#[derive(Clone, PartialEq, Debug)]
pub struct Checked {
    /// In a sentence.
    pub text: String,
    /// In fields, by their names.
    pub fields: Named<Value>,
    /// The size in bytes, if the form tells it.
    pub bytes: Option<u64>,
}

/// Values by their names, in their order. They are written as a JSON object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named<T>(pub Vec<(&'static str, T)>);

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// What a witness has, and its bytes by part: in the binary form if there is one, otherwise before they are made
/// hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BlockWitnessSize {
    /// How many there are of each thing.
    pub counts: Named<u64>,
    /// Bytes of parts that the state makes.
    pub parts: Named<u64>,
    /// Bytes of other parts, which are the same under any tree: the block, and headers.
    pub others: Named<u64>,
}

impl BlockWitnessSize {
    /// Adds the size of another witness. It may have another form, whose counts and parts come
    /// behind those that are there: a chain that changes its tree has witnesses of several forms.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.counts, &other.counts),
            (&mut self.parts, &other.parts),
            (&mut self.others, &other.others),
        ] {
            for (name, more) in &more.0 {
                match sum.0.iter_mut().find(|(known, _)| known == name) {
                    Some((_, sum)) => *sum += more,
                    None => sum.0.push((name, *more)),
                }
            }
        }
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        let parts = self.parts.0.iter().chain(&self.others.0);
        parts.map(|(_, bytes)| bytes).sum()
    }
}
