//! The forms of proofs, and how a file is known to have one of them.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, B256, U256};
use arbor_accounts::{AccountSlots, IntermediateRoots, ReadError, StateView};
use serde_json::Value;

use crate::compact::{CompactForm, CompactWitness, ExpandedWitness, IsChunk, NotCompact};
use crate::named_leaves::NamedLeaves;
use crate::proof::{Malformed, Proof, ProofForm, ProvenAccount, ProvenLeaf, WrongField};
use crate::witness_parts::WitnessParts;

#[cfg(feature = "ar16mt")]
use crate::ar16mt;
#[cfg(feature = "eip7864")]
use crate::eip7864;
#[cfg(feature = "eip8297")]
use crate::eip8297;
use crate::mpt;
use crate::two_trees;
#[cfg(feature = "verkle")]
use crate::verkle;

/// What proven leaves show of an account.
pub type AccountOf = fn(&[ProvenLeaf], &AccountSlots) -> Result<ProvenAccount, NotProven>;

/// A tree as whoever checks its proofs knows it.
#[derive(Debug)]
pub struct VerifyKind {
    /// The name of the tree.
    pub tree: &'static str,
    /// The forms of its proofs.
    pub forms: &'static [ProofForm],
    /// The tree that hashes the same leaves to the same root, and in which accounts lie elsewhere. A root does not show which of the two it is of.
    pub twin: Option<&'static str>,
    /// Says what proven leaves, which have keys and no names, show of an account. A tree that has it proves keys alone: what
    /// accounts they are depends on the tree that the root is of, which neither the root nor the file shows, and whoever
    /// checks has to say. `None` if proofs show accounts by themselves, or leaves are nobody's.
    pub account_of: Option<AccountOf>,
    /// Makes a state of the nodes in a witness of a block, of a tree whose roots no header has; `None` if blocks are not executed over its nodes.
    pub partial_state: Option<PartialStateOf>,
    /// The compact form of the tree's witnesses, if it has witnesses.
    pub compact: Option<CompactForm>,
    /// The leaves of whole states with their names, if the tree has leaves that follow from accounts alone.
    pub leaves: Option<NamedLeaves>,
}

/// Makes a state of a witness; `None` for a hash function that the tree does not have.
pub type PartialStateOf = fn(WitnessParts<'_>) -> Option<Box<dyn PartialState>>;

impl VerifyKind {
    fn compact_form(&self) -> Result<CompactForm, NotCompact> {
        self.compact.ok_or(NotCompact::Tree(self.tree))
    }

    /// Writes the nodes and codes of a witness in [compact form](CompactForm::write).
    ///
    /// # Errors
    /// A tree without such a form; nodes that no witness of the tree has.
    pub fn compact(
        &self,
        parts: &WitnessParts<'_>,
        is_chunk: IsChunk<'_>,
    ) -> Result<CompactWitness, NotCompact> {
        self.compact_form()?.write(parts, is_chunk)
    }

    /// Reads a [compact witness](CompactForm::read) at a root.
    ///
    /// # Errors
    /// Bytes that are no compact witness of the tree, or one of another root.
    pub fn expand(
        &self,
        hash: &str,
        root: B256,
        bytes: &[u8],
    ) -> Result<ExpandedWitness, NotCompact> {
        self.compact_form()?.read(hash, root, bytes)
    }
}

/// The part of a state that a witness has.
pub trait PartialState: StateView {
    /// Roots of changes laid over this state.
    fn pending_roots(&self) -> Box<dyn IntermediateRoots + '_>;

    /// Checks that the nodes are those of the root, as far as that shows before one of them is
    /// read.
    ///
    /// # Errors
    /// A malformed witness, or one that leads to another root.
    fn check(&self) -> Result<(), ReadError>;

    /// Whether the root after changes can be computed. If not,
    /// [`pending_roots`](Self::pending_roots) gives errors.
    fn has_roots(&self) -> bool {
        true
    }

    /// Counts the nodes that the root leads to, and the codes that accounts among them have.
    fn reached(&self) -> Reached;

    /// Whether codes are among the leaves, in chunks. Then [`code_of`](StateView::code_of) returns a code with zeros in place
    /// of chunks that the witness lacks, and execution over it is compared with [`check_chunks`](Self::check_chunks).
    fn has_chunks(&self) -> bool {
        false
    }

    /// Checks that the witness has these chunks of accounts' codes, by account and number, as far as an account has code
    /// before the block.
    ///
    /// # Errors
    /// The first chunk that is missing, by name.
    fn check_chunks(&self, _chunks: &BTreeMap<Address, BTreeSet<u32>>) -> Result<(), ReadError> {
        Ok(())
    }

    /// Counts the absent leaves whose absence holds only if whoever made the witness was honest.
    fn doubtful(&self) -> usize {
        0
    }
}

/// What of a witness its root leads to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reached {
    /// Nodes.
    pub nodes: usize,
    /// Codes.
    pub codes: usize,
}

/// What a proof has no key of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotProven {
    /// The leaf of an account's field, by its suffix.
    #[error("it says nothing of leaf {suffix} of account {address:#x}")]
    Field {
        /// The account.
        address: Address,
        /// The suffix of the field's leaf.
        suffix: u8,
    },
    /// Leaves that no account has in this tree.
    #[error("the leaves of account {address:#x} are those of no account in this tree")]
    NoAccount {
        /// The account.
        address: Address,
    },
    /// A slot.
    #[error("it says nothing of slot {slot:#x} of account {address:#x}")]
    Slot {
        /// The account.
        address: Address,
        /// The slot.
        slot: U256,
    },
}

/// Why a file is read as no proof.
#[derive(Debug, thiserror::Error)]
pub enum NotRead {
    /// It names no form, and has none that other programs write.
    #[error(
        "it names no form (\"form\"), and has none of the fields that tell forms without a name: {}",
        .marks.join(", ")
    )]
    NoForm {
        /// The fields that would tell.
        marks: Vec<&'static str>,
    },
    /// It names a form that no tree here has.
    #[error("its form {form:?} is not known; known are {}", .known.join(", "))]
    UnknownForm {
        /// The name, cut where it is long.
        form: String,
        /// The known ones.
        known: Vec<&'static str>,
    },
    /// It has fields of several forms.
    #[error("it has the fields of several forms: {}", .forms.join(", "))]
    Several {
        /// Their names.
        forms: Vec<&'static str>,
    },
    /// It names one form, and has a field that only another form has.
    #[error(
        "it names the form {form}, and has the field {field:?} of the form {other}: one of the two is wrong"
    )]
    AnotherForm {
        /// The form that it names.
        form: &'static str,
        /// The field.
        field: &'static str,
        /// The form that has the field.
        other: &'static str,
    },
    /// It names a tree that has no proofs of its form.
    #[error(
        "it is of the form {form}, and names the tree {tree:?} (\"tree\"), which has no proofs of that form"
    )]
    OtherTree {
        /// The form.
        form: &'static str,
        /// The name of the tree, cut if it is long.
        tree: String,
    },
    /// It names a form beside the `result` of a JSON-RPC answer.
    #[error(
        "it names a form (\"form\") beside \"result\", in which the proof is: the name belongs into the proof"
    )]
    FormBesideResult,
    /// It is a JSON-RPC answer with a result and an error.
    #[error(
        "it is an answer with both a \"result\" and an \"error\": only one of the two can be true"
    )]
    ErrorAndResult,
    /// It is a JSON-RPC answer with an error.
    #[error("the node answered with an error instead of a proof: {message:?}")]
    NodeError {
        /// The error's message, cut where it is long.
        message: String,
    },
    /// Its accounts lie where its form says, and another tree with the same roots has them elsewhere.
    #[error(
        "it is of the form {form}, and a root does not show whether it is of the tree {tree} or {twin}: whoever checks has to know, and say, which"
    )]
    WhichTree {
        /// The form.
        form: &'static str,
        /// The tree that has it.
        tree: &'static str,
        /// The tree with the same roots.
        twin: &'static str,
    },
    /// A field is not what the form promises.
    #[error("it is no proof of the form {form}")]
    Field {
        /// The form.
        form: &'static str,
        /// Which field, and what is wrong with it.
        #[source]
        error: Box<WrongField>,
    },
}

/// The trees whose proofs a program checks: a value, so that tests and embedders can add their own.
#[derive(Clone, Debug)]
pub struct Kinds {
    rows: Vec<&'static VerifyKind>,
}

/// All trees of this project that the crate is built with.
pub fn standard() -> Kinds {
    Kinds::new([
        &mpt::VERIFY,
        #[cfg(feature = "verkle")]
        &verkle::VERIFY,
        #[cfg(feature = "verkle")]
        &verkle::VERIFY_2023,
        #[cfg(feature = "ar16mt")]
        &ar16mt::VERIFY,
        #[cfg(feature = "eip8297")]
        &eip8297::VERIFY,
        #[cfg(feature = "eip7864")]
        &eip7864::VERIFY,
        #[cfg(feature = "eip7864")]
        &eip7864::VERIFY_A,
        &two_trees::VERIFY,
    ])
}

impl Kinds {
    /// Some trees.
    pub fn new(rows: impl IntoIterator<Item = &'static VerifyKind>) -> Self {
        let rows = rows.into_iter().collect();
        Self { rows }
    }

    /// The tree with this name.
    pub fn find(&self, tree: &str) -> Option<&'static VerifyKind> {
        self.rows.iter().find(|row| row.tree == tree).copied()
    }

    /// The tree with this name alone, if it is among these: the tree is as much a part of what is trusted as the root is.
    pub fn only(&self, tree: &str) -> Option<Self> {
        Some(Self::new([self.find(tree)?]))
    }

    /// All forms of all trees.
    pub fn forms(&self) -> impl Iterator<Item = &'static ProofForm> + '_ {
        self.rows.iter().flat_map(|row| row.forms)
    }

    /// Reads a proof of any form from JSON. If a node answered with it, [`answered`] takes it out
    /// of the answer.
    ///
    /// A file may name its tree next to its form, as `arbor serve` does. The name must be that of a
    /// tree with such proofs. Nothing else follows from it, because a file may name any tree.
    ///
    /// Of trees with the same roots ([`VerifyKind::twin`]) there may be only [one](Self::only): otherwise a file could say that an
    /// account lies where another one does.
    ///
    /// # Errors
    /// [`NotRead`]: no form, or one that is not known; fields of another form; what is not of its
    /// form; accounts of one of two trees with the same roots.
    pub fn read(&self, file: Value) -> Result<Box<dyn Proof>, NotRead> {
        self.read_by(file, |form| self.check_twin(form))
    }

    /// As [`read`](Self::read), but believes a file which of two trees with the same roots it is of: if the proof holds, its keys are proven, and its accounts
    /// are as the file says.
    ///
    /// # Errors
    /// As [`read`](Self::read), but for those accounts.
    pub fn read_as_told(&self, file: Value) -> Result<Box<dyn Proof>, NotRead> {
        self.read_by(file, |_| Ok(()))
    }

    /// Checks that no other tree has the same roots as the one tree with this form.
    fn check_twin(&self, form: &'static ProofForm) -> Result<(), NotRead> {
        let has = |row: &VerifyKind| row.forms.iter().any(|of| of.name == form.name);
        for row in self.rows().filter(|row| has(row)) {
            if let Some(twin) = row.twin.and_then(|twin| self.find(twin))
                && !has(twin)
            {
                return Err(NotRead::WhichTree {
                    form: form.name,
                    tree: row.tree,
                    twin: twin.tree,
                });
            }
        }
        Ok(())
    }

    fn read_by(
        &self,
        mut file: Value,
        check: impl FnOnce(&'static ProofForm) -> Result<(), NotRead>,
    ) -> Result<Box<dyn Proof>, NotRead> {
        let form = self.recognise(&mut file)?;
        check(form)?;
        (form.decode)(file).map_err(|error| NotRead::Field {
            form: form.name,
            error: Box::new(error),
        })
    }

    /// Reads a proof in the one binary form that the bytes have; `None` if no tree here has a binary form.
    ///
    /// # Errors
    /// Bytes that are no proof of any form, or can be read as several.
    pub fn read_bytes(&self, bytes: &[u8]) -> Option<Result<Box<dyn Proof>, Malformed>> {
        let forms = self
            .forms()
            .filter_map(|form| Some((form, form.from_bytes?)));
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for (form, from_bytes) in forms {
            match from_bytes(bytes) {
                Ok(proof) => found.push(proof),
                Err(error) => failed.push((form.name, error)),
            }
        }
        if found.len() > 1 {
            let names: Vec<&str> = found.iter().map(|proof| proof.form().name).collect();
            let why = format!("it can be read as several forms: {}", names.join(", "));
            return Some(Err(Malformed::new(why)));
        }
        if let Some(proof) = found.pop() {
            return Some(Ok(proof));
        }
        if failed.len() > 1 {
            let each = failed
                .iter()
                .map(|(form, error)| format!("{form}: {error}"));
            let each: Vec<String> = each.collect();
            let why = format!("it has none of the binary forms ({})", each.join("; "));
            return Some(Err(Malformed::new(why)));
        }
        failed.pop().map(|(_, error)| Err(error))
    }

    /// All trees.
    pub fn rows(&self) -> impl Iterator<Item = &'static VerifyKind> + '_ {
        self.rows.iter().copied()
    }

    /// Checks that a file that names a form has no field that is the mark of another one alone.
    fn check_marks(&self, form: &'static ProofForm, file: &Value) -> Result<(), NotRead> {
        for other in self.forms().filter(|other| other.name != form.name) {
            for &field in other.marks {
                if file.get(field).is_some() && !form.shared.contains(&field) {
                    return Err(NotRead::AnotherForm {
                        form: form.name,
                        field,
                        other: other.name,
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks that the tree that a file names has proofs of its form, and takes the name from the
    /// file.
    fn check_tree(&self, form: &'static ProofForm, file: &mut Value) -> Result<(), NotRead> {
        let named = file
            .as_object_mut()
            .and_then(|fields| fields.remove("tree"));
        let Some(named) = named else {
            return Ok(());
        };
        let name = named
            .as_str()
            .map_or_else(|| named.to_string(), str::to_owned);
        let has = |row: &VerifyKind| row.forms.iter().any(|of| of.name == form.name);
        match self.find(&name) {
            Some(row) if has(row) => Ok(()),
            _ => Err(NotRead::OtherTree {
                form: form.name,
                tree: name.chars().take(80).collect(),
            }),
        }
    }

    /// The one form that a file has; its name is taken from the file.
    fn recognise(&self, file: &mut Value) -> Result<&'static ProofForm, NotRead> {
        let named = file
            .as_object_mut()
            .and_then(|fields| fields.remove("form"));
        if let Some(named) = named {
            let name = named
                .as_str()
                .map_or_else(|| named.to_string(), str::to_owned);
            let form = self.forms().find(|form| form.name == name);
            let form = form.ok_or_else(|| NotRead::UnknownForm {
                form: name.chars().take(80).collect(),
                known: self.forms().map(|form| form.name).collect(),
            })?;
            self.check_marks(form, file)?;
            self.check_tree(form, file)?;
            return Ok(form);
        }
        let has = |form: &&ProofForm| form.marks.iter().any(|field| file.get(field).is_some());
        let found: Vec<&'static ProofForm> = self.forms().filter(has).collect();
        // A form that has all marks of another one is more than the other.
        let is_less = |form: &&ProofForm, than: &ProofForm| {
            form.marks.iter().all(|mark| than.shared.contains(mark))
        };
        let found: Vec<&'static ProofForm> = found
            .iter()
            .copied()
            .filter(|form| !found.iter().any(|other| is_less(form, other)))
            .collect();
        match found[..] {
            [form] => Ok(form),
            [] => Err(NotRead::NoForm {
                marks: self.forms().flat_map(|form| form.marks).copied().collect(),
            }),
            _ => Err(NotRead::Several {
                forms: found.iter().map(|form| form.name).collect(),
            }),
        }
    }
}

/// Returns the proof within a node's JSON-RPC answer; JSON that is no answer as it is.
///
/// # Errors
/// An answer with an error, or with more than a result.
pub fn answered(mut file: Value) -> Result<Value, NotRead> {
    let has = |field: &str| file.get(field).is_some_and(|value| !value.is_null());
    match (has("error"), has("result")) {
        (true, true) => return Err(NotRead::ErrorAndResult),
        (true, false) => {
            let error = &file["error"];
            let message = error.get("message").and_then(Value::as_str);
            let message = message.map_or_else(|| error.to_string(), str::to_owned);
            return Err(NotRead::NodeError {
                message: message.chars().take(500).collect(),
            });
        }
        (false, _) => {}
    }
    if file.get("result").is_some() && file.get("form").is_some() {
        return Err(NotRead::FormBesideResult);
    }
    Ok(file.get_mut("result").map(Value::take).unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_form_has_a_name_and_a_mark_of_its_own() {
        let kinds = standard();
        let names: BTreeSet<_> = kinds.forms().map(|form| form.name).collect();
        assert_eq!(names.len(), kinds.forms().count());
        let marks: Vec<_> = kinds.forms().flat_map(|form| form.marks).collect();
        let distinct: BTreeSet<_> = marks.iter().collect();
        assert_eq!(distinct.len(), marks.len());
    }

    #[test]
    fn a_file_of_no_form_or_of_two_is_refused_by_name() {
        let kinds = standard();
        let error = |file| kinds.read(file).expect_err("no proof").to_string();
        assert!(error(json!({})).contains("names no form"));
        assert!(error(json!([1])).contains("names no form"));
        assert!(error(json!({"form": "mpt/2"})).contains("\"mpt/2\" is not known"));
        assert!(error(json!({"form": 7})).contains("\"7\" is not known"));
        let both = json!({"accountProof": [], "verkleProof": {}});
        assert!(error(both).contains("several forms: mpt/1, verkle-witness/1"));
        for form in ["mpt-accounts/1", "verkle/1", "ar16mt/1"] {
            let named = json!({"form": form, "accountProof": []});
            let why = format!(
                "names the form {form}, and has the field \"accountProof\" of the form mpt/1"
            );
            assert!(error(named).contains(&why));
        }
        let named = json!({"form": "mpt/1", "accountProof": [], "verkle_proof": {}});
        assert!(error(named).contains("\"verkle_proof\" of the form verkle-witness/1"));
        // go-ethereum's answers under EIP-8297 have the field of Merkle-Patricia's, too.
        let answer = json!({"accountProof": [], "proofFormat": "eip8297"});
        assert!(error(answer).contains("no proof of the form eip8297/1"));
        // Two trees have proofs of this form: only who says which one is read further. It has the testnets' field, too.
        let of_two = json!({"form": "verkle/1", "stateDiff": []});
        assert!(matches!(kinds.read(of_two), Err(NotRead::WhichTree { .. })));
        let error = |file| kinds.read_as_told(file).expect_err("no proof").to_string();
        let shared = json!({"form": "verkle/1", "verkleProof": 1, "stateDiff": []});
        assert!(error(shared).contains("no proof of the form verkle/1"));
        for tree in [json!("mpt"), json!("oak"), json!(7)] {
            let named = json!({"form": "verkle/1", "tree": tree, "stateDiff": []});
            assert!(error(named).contains("which has no proofs of that form"));
        }
        // Of the right tree, only the fields are wrong.
        let named = json!({"form": "verkle/1", "tree": "verkle", "stateDiff": []});
        assert!(error(named).contains("no proof of the form verkle/1"));
        let cut = kinds.read(json!({"form": "mpt/1"})).expect_err("no fields");
        assert!(cut.to_string().contains("no proof of the form mpt/1"));
    }

    /// The first binary form was taken for that of all bytes.
    #[test]
    fn bytes_of_several_binary_forms_are_refused_by_name() {
        static OTHER: [ProofForm; 1] = [ProofForm {
            name: "other/1",
            marks: &[],
            shared: &[],
            decode: |_| unreachable!("no JSON is read"),
            from_bytes: Some(|bytes| match bytes {
                [] => Err(Malformed::new("it is empty")),
                _ => Ok(Box::new(verkle::Witness::default())),
            }),
        }];
        static KIND: VerifyKind = VerifyKind {
            tree: "other",
            forms: &OTHER,
            twin: None,
            account_of: None,
            partial_state: None,
            compact: None,
            leaves: None,
        };
        let kinds = Kinds::new([&verkle::VERIFY, &KIND]);
        let error = |bytes: &[u8]| {
            let read = kinds.read_bytes(bytes).expect("two binary forms");
            read.expect_err("no proof").to_string()
        };
        let none = error(&[]);
        assert!(none.contains("verkle-witness/1: "), "{none}");
        assert!(none.contains("other/1: it is empty"), "{none}");
        let both = error(&verkle::Witness::default().to_bytes());
        assert!(both.contains("several forms: verkle-witness/1"), "{both}");
        assert!(kinds.read_bytes(&[7]).expect("two binary forms").is_ok());
        assert!(Kinds::new([&mpt::VERIFY]).read_bytes(&[]).is_none());
    }

    #[test]
    fn a_nodes_answer_has_a_result_or_an_error() {
        let error = |file| answered(file).expect_err("no proof").to_string();
        let failed = json!({"id": 1, "error": {"code": -32000, "message": "gone"}, "result": null});
        assert!(error(failed).contains("error instead of a proof: \"gone\""));
        assert!(error(json!({"error": "gone"})).contains("instead of a proof"));
        let both = json!({"error": {"message": "gone"}, "result": {"accountProof": []}});
        assert!(error(both).contains("both a \"result\" and an \"error\""));
        let outside = json!({"form": "mpt/1", "result": {"accountProof": []}});
        assert!(error(outside).contains("beside \"result\""));
        // An error of null is none, and whatever is no answer stays as it is.
        let proof = json!({"form": "mpt/1"});
        for file in [json!({"error": null, "result": proof}), proof.clone()] {
            assert_eq!(answered(file).expect("no error"), proof);
        }
    }
}
