//! Execution witnesses: what a block touches of a Verkle tree, with proof, and what it makes of it.
//!
//! The forms are those of the testnets. In JSON a block (`header` with `stateRoot`, or a payload of the engine API with `state_root`) has `executionWitness`
//! with `stateDiff`, `verkleProof` and, of late, `parentStateRoot`; older files pair a block with its parent (`parent`, `execute`), and may hold
//! several such pairs by name. In the binary form the witness is alone.

mod state_diffs;

use alloy_primitives::B256;
use arbor_state::verkle::{Committer, Witness, WitnessError};
use serde_json::{Map, Value, json};

use crate::json::{self as checked, JsonError};

pub(crate) use state_diffs::StateDiffs;

/// A block's witness with the state roots around it, as far as they are known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExecutionWitness {
    /// The block's number.
    pub number: Option<u64>,
    /// The block's hash.
    pub hash: Option<B256>,
    /// Its parent's hash.
    pub parent_hash: Option<B256>,
    /// The root of the tree before the block.
    pub root_before: Option<B256>,
    /// The root after it.
    pub root_after: Option<B256>,
    /// Keys, values before and after, and the proof of the former.
    pub witness: Witness,
}

/// Why something is no execution witness, or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionWitnessProblem {
    /// JSON of something else.
    #[error(
        "not a witness: neither a block with its trie nodes (stateNodes) nor one with executionWitness, nor stateDiff and verkleProof alone"
    )]
    Other,
    /// JSON of something else, beside pairs of blocks and their parents.
    #[error(
        "not a witness: no block with its parent (execute and parent), as what is before it in the file"
    )]
    NoPair,
    /// State diff or proof are malformed in JSON.
    #[error("the execution witness: {0}")]
    Json(#[from] JsonError),
    /// Neither JSON nor the binary form.
    #[error("neither JSON nor a witness in the binary form: {0}")]
    Bytes(WitnessError),
    /// A field around the witness is malformed.
    #[error("{field} is {found}, not {wanted}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is there, or its kind if that is long.
        found: String,
        /// What should be.
        wanted: &'static str,
    },
    /// A field around the witness is there under two names.
    #[error("field `{name}` is there twice, also as `{other}`")]
    Twice {
        /// One.
        name: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A block and what is given as its parent do not belong together.
    #[error("the block's parent is {expected}, and the one beside it is {actual}")]
    Parent {
        /// The parent's hash in the block.
        expected: B256,
        /// The hash of the block given as parent.
        actual: B256,
    },
    /// Nothing says at which root the witness should hold.
    #[error("it does not have its parent's state root: give --root")]
    NoRoot,
    /// The root at which it should hold is none.
    #[error("{root} is no root of a Verkle tree: {error}")]
    Root {
        /// The root.
        root: B256,
        /// Why not.
        error: WitnessError,
    },
    /// Its parts do not fit together, or have what is no point or scalar.
    #[error("malformed witness: {0}")]
    Malformed(WitnessError),
    /// The root after it cannot be computed.
    #[error("the root after the block: {0}")]
    RootAfter(arbor_state::verkle::TreeError),
}

/// What checking a witness gives. None of it executes anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The values before are those of the tree with the root before.
    Holds {
        /// The root after the values after: the one that the block has, where that is known.
        root_after: B256,
        /// Stems whose absence is shown only if the proof was made honestly ([`Verified::doubtful`](arbor_state::verkle::Verified::doubtful)).
        doubtful: usize,
    },
    /// The proof does not hold at the root before.
    FalseProof,
    /// The proof holds, and the values after lead to another root than the block has.
    OtherRoot {
        /// The root that the block has.
        expected: B256,
        /// The root that the values after lead to.
        actual: B256,
    },
}

impl ExecutionWitness {
    /// Reads the binary form, which knows of no block and no root.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ExecutionWitnessProblem> {
        let witness = Witness::from_bytes(bytes).map_err(ExecutionWitnessProblem::Bytes)?;
        Ok(Self {
            witness,
            ..Self::default()
        })
    }

    /// The JSON form: a block with the header's fields that are known here. Its state root is the Verkle tree's.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        let mut witness = serde_json::to_value(&self.witness)?;
        if let (Some(root), Some(fields)) = (self.root_before, witness.as_object_mut()) {
            fields.insert("parentStateRoot".into(), json!(root));
        }
        Ok(json!({
            "header": {
                "blockNumber": self.number.map(|number| format!("{number:#x}")),
                "blockHash": self.hash,
                "parentHash": self.parent_hash,
                "stateRoot": self.root_after,
            },
            "executionWitness": witness,
        }))
    }

    /// Whether this is a block beside its parent.
    pub(crate) fn is_pair(value: &Value) -> bool {
        value.get("parent").is_some() && value.get("execute").is_some()
    }

    /// One of the pairs in a file.
    pub(crate) fn of_pair(
        mut pair: Value,
        diffs: &StateDiffs<'_>,
    ) -> Result<Self, ExecutionWitnessProblem> {
        if !Self::is_pair(&pair) {
            return Err(ExecutionWitnessProblem::NoPair);
        }
        let mut block = Self::of_block(pair["execute"].take(), diffs)?;
        let parent = object("parent", &pair["parent"])?;
        let hash = hash(parent, "block_hash", "blockHash")?;
        if let (Some(expected), Some(actual)) = (block.parent_hash, hash)
            && expected != actual
        {
            return Err(ExecutionWitnessProblem::Parent { expected, actual });
        }
        if block.root_before.is_none() {
            block.root_before = self::hash(parent, "state_root", "stateRoot")?;
        }
        Ok(block)
    }

    /// The only witness in a file: of a block, beside its parent or not, or alone.
    pub(crate) fn of_file(
        file: Value,
        diffs: &StateDiffs<'_>,
    ) -> Result<Self, ExecutionWitnessProblem> {
        match Self::is_pair(&file) {
            true => Self::of_pair(file, diffs),
            false => Self::of_block(file, diffs),
        }
    }

    /// A block, or a witness alone.
    fn of_block(mut block: Value, diffs: &StateDiffs<'_>) -> Result<Self, ExecutionWitnessProblem> {
        let Some(fields) = block.as_object_mut() else {
            return Err(ExecutionWitnessProblem::Other);
        };
        let mut witness = ["executionWitness", "execution_witness"]
            .into_iter()
            .find_map(|name| fields.remove(name));
        if let Some(inner) = &mut witness {
            let root_before = match inner.as_object_mut() {
                Some(inner) => {
                    let root = hash(inner, "parentStateRoot", "parent_state_root")?;
                    inner.retain(|name, _| {
                        !matches!(&name[..], "parentStateRoot" | "parent_state_root")
                    });
                    root
                }
                None => None,
            };
            let header = match fields.get("header") {
                Some(header) => object("header", header)?,
                None => fields,
            };
            return Ok(Self {
                number: number(header)?,
                hash: hash(header, "block_hash", "blockHash")?,
                parent_hash: hash(header, "parent_hash", "parentHash")?,
                root_before,
                root_after: hash(header, "state_root", "stateRoot")?,
                witness: of_fields(inner.take(), diffs)?,
            });
        }
        let alone = ["verkleProof", "verkle_proof", "stateDiff", "state_diff"];
        if !alone.iter().any(|name| fields.contains_key(*name)) {
            return Err(ExecutionWitnessProblem::Other);
        }
        Ok(Self {
            witness: of_fields(block, diffs)?,
            ..Self::default()
        })
    }

    /// Checks the proof at the root before, and the root after. Only what the witness does not have itself need be known beforehand.
    ///
    /// # Errors
    /// A witness that is malformed, or no root to hold it against. One that is false is no error.
    pub fn check(&self, committer: &Committer) -> Result<Verdict, ExecutionWitnessProblem> {
        let root = self.root_before.ok_or(ExecutionWitnessProblem::NoRoot)?;
        let verified = self.witness.verify(committer, &root.0);
        let verified = verified.map_err(|error| match error {
            WitnessError::Root(_) => ExecutionWitnessProblem::Root { root, error },
            error => ExecutionWitnessProblem::Malformed(error),
        })?;
        let Some(verified) = verified else {
            return Ok(Verdict::FalseProof);
        };
        let actual = verified.root_after(committer);
        let actual = B256::from(actual.map_err(ExecutionWitnessProblem::RootAfter)?);
        Ok(match self.root_after {
            Some(expected) if expected != actual => Verdict::OtherRoot { expected, actual },
            _ => Verdict::Holds {
                root_after: actual,
                doubtful: verified.doubtful().count(),
            },
        })
    }
}

/// The witness itself, in which the state diff has a number in its place.
fn of_fields(mut sent: Value, diffs: &StateDiffs<'_>) -> Result<Witness, ExecutionWitnessProblem> {
    let place = sent.as_object_mut().and_then(|fields| {
        let name = ["stateDiff", "state_diff"]
            .into_iter()
            .find(|name| fields.contains_key(*name))?;
        fields.get_mut(name)
    });
    let state_diff = place.map(|place| diffs.take(&std::mem::replace(place, json!([]))));
    let state_diff = state_diff.transpose()?;
    let mut witness: Witness = checked::from_value(sent)?;
    witness.state_diff = state_diff.unwrap_or_default();
    Ok(witness)
}

/// A value in an error.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 100;
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > LONGEST => {
            format!("a string of {} bytes", text.len())
        }
        value => value.to_string(),
    }
}

fn object<'a>(
    field: &'static str,
    value: &'a Value,
) -> Result<&'a Map<String, Value>, ExecutionWitnessProblem> {
    let fields = value.as_object();
    fields.ok_or_else(|| ExecutionWitnessProblem::Field {
        field,
        found: shown(value),
        wanted: "an object",
    })
}

/// A hash under either of two names.
fn hash(
    fields: &Map<String, Value>,
    name: &'static str,
    other: &'static str,
) -> Result<Option<B256>, ExecutionWitnessProblem> {
    let Some((field, value)) = named(fields, &[name, other])? else {
        return Ok(None);
    };
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.map(Some).ok_or(ExecutionWitnessProblem::Field {
        field,
        found: shown(value),
        wanted: "32 bytes in hexadecimal",
    })
}

/// The block's number: hexadecimal with 0x, decimal, or a JSON number.
fn number(fields: &Map<String, Value>) -> Result<Option<u64>, ExecutionWitnessProblem> {
    let names = ["blockNumber", "block_number", "number"];
    let Some((field, value)) = named(fields, &names)? else {
        return Ok(None);
    };
    let parsed = match value.as_str() {
        Some(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        None => value.as_u64(),
    };
    parsed.map(Some).ok_or(ExecutionWitnessProblem::Field {
        field,
        found: shown(value),
        wanted: "a block's number",
    })
}

/// The one of some fields that is there and not null, with its name.
fn named<'a>(
    fields: &'a Map<String, Value>,
    names: &[&'static str],
) -> Result<Option<(&'static str, &'a Value)>, ExecutionWitnessProblem> {
    let present = |name: &&'static str| Some((*name, fields.get(*name)?));
    let present = names.iter().filter_map(present);
    let mut present = present.filter(|(_, value)| !value.is_null());
    let first = present.next();
    match (first, present.next()) {
        (Some((name, _)), Some((other, _))) => Err(ExecutionWitnessProblem::Twice { name, other }),
        _ => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of it was there, whatever its length.
    #[test]
    fn an_error_has_no_more_of_a_value_than_can_be_read() {
        assert_eq!(shown(&json!(7)), "7");
        assert_eq!(shown(&json!("7")), "\"7\"");
        assert_eq!(shown(&json!([7])), "a list");
        assert_eq!(shown(&json!({ "a": 7 })), "an object");
        let long = "7".repeat(101);
        assert_eq!(shown(&json!(long)), "a string of 101 bytes");
    }
}
