//! Execution witnesses: what a block touches of a Verkle tree, with proof, and what it makes of it.
//!
//! The forms are those of the testnets. In JSON a block (`header` with `stateRoot`, or a payload of the engine API with `state_root`) has `executionWitness`
//! with `stateDiff`, `verkleProof` and, of late, `parentStateRoot`; older files pair a block with its parent (`parent`, `execute`), and may hold
//! several such pairs by name. In the binary form the witness is alone.
//!
//! Witnesses that are made here have the block and its ancestors' headers in one more field, `execution`: with these, a block
//! is executed over its witness.

mod block;
mod state_diffs;

use alloy_primitives::{B256, Bytes};
use arbor_verify::verkle::{Committer, Witness, WitnessError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::named_tree::NamedTree;
use crate::json::{self as checked, JsonError};
use crate::rules::ChainRules;

pub(crate) use state_diffs::StateDiffs;

/// A block's witness with the state roots around it, as far as they are known.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct VerkleWitness {
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
    /// The block and what executing it takes beside leaves, if they are known.
    pub execution: Option<Execution>,
}

/// A block, and what executing it takes beside leaves. The testnets' files do not have it in this form.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Execution {
    /// The chain id of EIP-155.
    pub chain_id: u64,
    /// The tree whose leaves these are.
    pub tree: NamedTree,
    /// The block's RLP.
    pub block_rlp: Bytes,
    /// RLP of ancestors' headers, the parent first, each the parent of the one before.
    pub ancestor_headers_rlp: Vec<Bytes>,
    /// The chain's configuration in geth's form, if the chain is not a public network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// The rules of the chain's blocks beyond that, as a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<ChainRules>,
}

/// Why something is no execution witness, or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum VerkleWitnessProblem {
    /// JSON of something else.
    #[error(
        "not a witness: neither a block with its trie nodes (stateNodes) nor one with executionWitness, nor stateDiff and verkleProof alone"
    )]
    Other,
    /// JSON of something else, beside pairs of blocks and their parents.
    #[error(
        "not a witness: no block with its parent (execute and parent), as others in the file are"
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
    /// The numbers of a block and of what is given as its parent do not follow each other.
    #[error("the block's number is {block}, and that of the parent beside it {parent}")]
    ParentNumber {
        /// The block's number.
        block: u64,
        /// The number of the block given as parent.
        parent: u64,
    },
    /// The root in the witness is not that of what is given as the block's parent.
    #[error("its parentStateRoot is {own}, and the state root of the parent beside it {parent}")]
    ParentRoot {
        /// The root in the witness.
        own: B256,
        /// The state root of the block given as parent.
        parent: B256,
    },
    /// It is larger than any block's can be.
    #[error(
        "it has {keys} keys, {stems} stems and {commitments} commitments: to check them takes more than {MOST_CHECKED} bytes of memory, which no block's does"
    )]
    TooLarge {
        /// Keys in it.
        keys: usize,
        /// Stems that these are under.
        stems: usize,
        /// Commitments on the ways to them.
        commitments: usize,
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
    RootAfter(arbor_verify::verkle::TreeError),
}

/// What checking a witness gives. None of it executes anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The values before are those of the tree with the root before.
    Holds {
        /// The root after the values after: the one that the block has, where that is known.
        root_after: B256,
        /// Stems whose absence is shown only if the proof was made honestly ([`Verified::doubtful`](arbor_verify::verkle::Verified::doubtful)).
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

/// Bytes of memory that checking a witness may take: room for a million keys. Under EIP-4762 a block of 60 million gas has at most 300,000.
const MOST_CHECKED: usize = 3 << 28;
/// Bytes that checking takes for a key (two openings), a stem and a commitment on the ways (measured).
const KEY: usize = 700;
const STEM: usize = 1_000;
const COMMITMENT: usize = 600;

impl VerkleWitness {
    /// Reads the binary form, which knows of no block and no root.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VerkleWitnessProblem> {
        let witness = Witness::from_bytes(bytes).map_err(VerkleWitnessProblem::Bytes)?;
        Ok(Self {
            witness,
            ..Self::default()
        })
    }

    /// The JSON form: a block with the header's fields that are known here. Its state root is the Verkle tree's.
    pub(super) fn json(&self) -> serde_json::Result<Value> {
        let mut witness = serde_json::to_value(&self.witness)?;
        if let (Some(root), Some(fields)) = (self.root_before, witness.as_object_mut()) {
            fields.insert("parentStateRoot".into(), json!(root));
        }
        let mut block = json!({
            "header": {
                "blockNumber": self.number.map(|number| format!("{number:#x}")),
                "blockHash": self.hash,
                "parentHash": self.parent_hash,
                "stateRoot": self.root_after,
            },
            "executionWitness": witness,
        });
        if let (Some(execution), Some(fields)) = (&self.execution, block.as_object_mut()) {
            fields.insert("execution".into(), serde_json::to_value(execution)?);
        }
        Ok(block)
    }

    /// Whether this is a block beside its parent.
    pub(crate) fn is_pair(value: &Value) -> bool {
        value.get("parent").is_some() && value.get("execute").is_some()
    }

    /// One of the pairs in a file.
    pub(crate) fn of_pair(
        mut pair: Value,
        diffs: &StateDiffs<'_>,
    ) -> Result<Self, VerkleWitnessProblem> {
        if !Self::is_pair(&pair) {
            return Err(VerkleWitnessProblem::NoPair);
        }
        let mut block = Self::of_block(pair["execute"].take(), diffs)?;
        let parent = Header::of(object("parent", &pair["parent"])?)?;
        if let (Some(expected), Some(actual)) = (block.parent_hash, parent.hash)
            && expected != actual
        {
            return Err(VerkleWitnessProblem::Parent { expected, actual });
        }
        if let (Some(block), Some(parent)) = (block.number, parent.number)
            && block.checked_sub(1) != Some(parent)
        {
            return Err(VerkleWitnessProblem::ParentNumber { block, parent });
        }
        if let (Some(own), Some(parent)) = (block.root_before, parent.state_root)
            && own != parent
        {
            return Err(VerkleWitnessProblem::ParentRoot { own, parent });
        }
        block.root_before = block.root_before.or(parent.state_root);
        Ok(block)
    }

    /// The only witness in a file: of a block, beside its parent or not, or alone.
    pub(crate) fn of_file(
        file: Value,
        diffs: &StateDiffs<'_>,
    ) -> Result<Self, VerkleWitnessProblem> {
        match Self::is_pair(&file) {
            true => Self::of_pair(file, diffs),
            false => Self::of_block(file, diffs),
        }
    }

    /// A block, or a witness alone.
    fn of_block(mut block: Value, diffs: &StateDiffs<'_>) -> Result<Self, VerkleWitnessProblem> {
        let Some(fields) = block.as_object_mut() else {
            return Err(VerkleWitnessProblem::Other);
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
            let header = Header::of(fields)?;
            let execution = fields.remove("execution").map(checked::from_value);
            return Ok(Self {
                execution: execution.transpose()?,
                number: header.number,
                hash: header.hash,
                parent_hash: header.parent_hash,
                root_before,
                root_after: header.state_root,
                witness: of_fields(inner.take(), diffs)?,
            });
        }
        let alone = ["verkleProof", "verkle_proof", "stateDiff", "state_diff"];
        if !alone.iter().any(|name| fields.contains_key(*name)) {
            return Err(VerkleWitnessProblem::Other);
        }
        Ok(Self {
            witness: of_fields(block, diffs)?,
            ..Self::default()
        })
    }

    /// Checks the proof at the root before, and the root after. Only what the witness does not have itself need be known beforehand.
    ///
    /// # Errors
    /// A witness that is malformed or larger than any block's, or no root to hold it against. One that is false is no error.
    pub fn verdict(&self, committer: &Committer) -> Result<Verdict, VerkleWitnessProblem> {
        let root = self.root_before.ok_or(VerkleWitnessProblem::NoRoot)?;
        if self.witness == Witness::default() {
            // The block touches nothing: there is nothing to prove, and the root stays.
            return Ok(match self.root_after {
                Some(expected) if expected != root => Verdict::OtherRoot {
                    expected,
                    actual: root,
                },
                _ => Verdict::Holds {
                    root_after: root,
                    doubtful: 0,
                },
            });
        }
        let (keys, stems) = (self.witness.keys().count(), self.witness.state_diff.len());
        let commitments = self.witness.proof.commitments_by_path.len();
        if KEY * keys + STEM * stems + COMMITMENT * commitments > MOST_CHECKED {
            return Err(VerkleWitnessProblem::TooLarge {
                keys,
                stems,
                commitments,
            });
        }
        let verified = self.witness.verify(committer, &root.0);
        let verified = verified.map_err(|error| match error {
            WitnessError::Root(_) => VerkleWitnessProblem::Root { root, error },
            error => VerkleWitnessProblem::Malformed(error),
        })?;
        let Some(verified) = verified else {
            return Ok(Verdict::FalseProof);
        };
        let actual = verified.root_after(committer);
        let actual = B256::from(actual.map_err(VerkleWitnessProblem::RootAfter)?);
        Ok(match self.root_after {
            Some(expected) if expected != actual => Verdict::OtherRoot { expected, actual },
            _ => Verdict::Holds {
                root_after: actual,
                doubtful: verified.doubtful().count(),
            },
        })
    }
}

/// What is known of a block beside its witness.
struct Header {
    number: Option<u64>,
    hash: Option<B256>,
    parent_hash: Option<B256>,
    state_root: Option<B256>,
}

impl Header {
    /// That of a block with a header, or with the header's fields among its own.
    fn of(block: &Map<String, Value>) -> Result<Self, VerkleWitnessProblem> {
        let fields = match block.get("header") {
            Some(header) => object("header", header)?,
            None => block,
        };
        Ok(Self {
            number: number(fields)?,
            hash: hash(fields, "block_hash", "blockHash")?,
            parent_hash: hash(fields, "parent_hash", "parentHash")?,
            state_root: hash(fields, "state_root", "stateRoot")?,
        })
    }
}

/// The witness itself, with what stands for the state diff in its place.
fn of_fields(mut sent: Value, diffs: &StateDiffs<'_>) -> Result<Witness, VerkleWitnessProblem> {
    let mut state_diff = None;
    if let Some(fields) = sent.as_object_mut() {
        for name in ["stateDiff", "state_diff"] {
            if let Some(place) = fields.get_mut(name) {
                state_diff = Some(diffs.take(name, std::mem::replace(place, json!([])))?);
            }
        }
    }
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
) -> Result<&'a Map<String, Value>, VerkleWitnessProblem> {
    let fields = value.as_object();
    fields.ok_or_else(|| VerkleWitnessProblem::Field {
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
) -> Result<Option<B256>, VerkleWitnessProblem> {
    let Some((field, value)) = named(fields, &[name, other])? else {
        return Ok(None);
    };
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    parsed.map(Some).ok_or(VerkleWitnessProblem::Field {
        field,
        found: shown(value),
        wanted: "32 bytes in hexadecimal",
    })
}

/// The block's number: hexadecimal with 0x, decimal, or a JSON number.
fn number(fields: &Map<String, Value>) -> Result<Option<u64>, VerkleWitnessProblem> {
    let names = ["blockNumber", "block_number", "number"];
    let Some((field, value)) = named(fields, &names)? else {
        return Ok(None);
    };
    let parsed = match value.as_str() {
        // What Rust parses may begin with a plus.
        Some(text) if text.contains('+') => None,
        Some(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        None => value.as_u64(),
    };
    parsed.map(Some).ok_or(VerkleWitnessProblem::Field {
        field,
        found: shown(value),
        wanted: "a block's number",
    })
}

/// The one of some fields that is there and not null, with its name.
fn named<'a>(
    fields: &'a Map<String, Value>,
    names: &[&'static str],
) -> Result<Option<(&'static str, &'a Value)>, VerkleWitnessProblem> {
    let present = |name: &&'static str| Some((*name, fields.get(*name)?));
    let present = names.iter().filter_map(present);
    let mut present = present.filter(|(_, value)| !value.is_null());
    let first = present.next();
    match (first, present.next()) {
        (Some((name, _)), Some((other, _))) => Err(VerkleWitnessProblem::Twice { name, other }),
        _ => Ok(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_pair(text: &str) -> Result<VerkleWitness, String> {
        let room = checked::ValueRoom::new(1 << 20);
        let diffs = StateDiffs::new(&room);
        let seed = checked::UniqueWithin(&room, &diffs);
        let pair = checked::from_reader(text.as_bytes(), seed).expect("JSON");
        VerkleWitness::of_pair(pair, &diffs).map_err(|error| error.to_string())
    }

    /// A parent with another number or root was passed over, and one with a header not understood.
    #[test]
    fn a_block_and_its_parent_belong_together() {
        let word = |byte: &str| format!("\"0x{}\"", byte.repeat(32));
        let points = [&word("33")[..]; 8].join(",");
        let (one, two, point) = (word("01"), word("02"), word("33"));
        let witness = format!(
            "\"stateDiff\":[],\"verkleProof\":{{\"otherStems\":[],\"depthExtensionPresent\":\"0x\",\"commitmentsByPath\":[],\"d\":{point},\
             \"ipaProof\":{{\"cl\":[{points}],\"cr\":[{points}],\"finalEvaluation\":{point}}}}}"
        );
        let read = |parent: &str, own: &str| {
            let fields =
                format!("\"block_hash\":{two},\"block_number\":\"0x8\",\"state_root\":{one}");
            let parent = parent.replace("FIELDS", &fields);
            of_pair(&format!(
                "{{\"parent\":{parent},\"execute\":{{\"number\":9,\"parentHash\":{two},\"executionWitness\":{{{own}{witness}}}}}}}"
            ))
        };
        let own = format!("\"parentStateRoot\":{one},");
        for (parent, own) in [
            ("{FIELDS}", ""),
            ("{\"header\":{FIELDS}}", ""),
            ("{FIELDS}", &own),
            ("{}", &own),
        ] {
            let witness = read(parent, own).expect(parent);
            assert_eq!(witness.root_before, Some(B256::repeat_byte(1)));
        }
        for (parent, own, wanted) in [
            (
                "{FIELDS}",
                &own.replace("01", "04")[..],
                "its parentStateRoot is 0x0404",
            ),
            (
                "{\"header\":{\"state_root\":7}}",
                "",
                "state_root is 7, not",
            ),
            (
                "{\"number\":\"9\"}",
                "",
                "number is 9, and that of the parent beside it 9",
            ),
            (
                "{\"number\":\"+8\"}",
                "",
                "number is \"+8\", not a block's number",
            ),
            (
                "{\"number\":\"0x+8\"}",
                "",
                "number is \"0x+8\", not a block's number",
            ),
            (
                "{\"hash\":1,\"blockHash\":null,\"header\":7}",
                "",
                "header is 7, not an object",
            ),
        ] {
            let problem = read(parent, own).expect_err(parent);
            assert!(problem.contains(wanted), "{problem}");
        }
        let hash = read(&format!("{{\"header\":{{\"blockHash\":{one}}}}}"), "");
        assert!(
            hash.expect_err("another parent")
                .starts_with("the block's parent is 0x0202")
        );
    }

    /// Ten gigabytes were taken for a gzip of three megabytes.
    #[test]
    fn a_witness_that_takes_too_much_is_not_checked() {
        let suffixes = vec![
            arbor_verify::verkle::SuffixDiff {
                suffix: 0,
                current: None,
                new: None,
            };
            2_000_000
        ];
        let stem = [0; 31];
        let mut witness = VerkleWitness {
            root_before: Some(B256::ZERO),
            ..VerkleWitness::default()
        };
        witness.witness.state_diff = vec![arbor_verify::verkle::StemDiff { stem, suffixes }];
        let problem = witness.verdict(&Committer::within(1 << 20));
        let problem = problem.expect_err("too large").to_string();
        assert!(
            problem.starts_with("it has 2000000 keys, 1 stems"),
            "{problem}"
        );
    }

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
