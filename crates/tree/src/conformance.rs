//! The suite that a nested trie is tested with: random changes, compared with the naive model
//! after every step. [`flat`] is the same for trees with one kind of key.
//!
//! Keys are drawn so that they share long prefixes and differ in few nibbles: splits, collapses,
//! joined extensions and inlined nodes come up all the time.

pub mod flat;

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::naive::{NaiveForest, NaiveOuter};
use crate::{Hash, Position};

/// A change of one inner key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InnerChange {
    /// The key.
    pub key: Hash,
    /// Whether it is there before (after the clearing, where the trie is cleared).
    pub existed: bool,
    /// The new value; `None` removes the key.
    pub value: Option<Vec<u8>>,
}

/// A change of one outer key and its inner trie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OuterChange {
    /// The key.
    pub key: Hash,
    /// Whether it is there before.
    pub existed: bool,
    /// Whether the inner trie is emptied first.
    pub cleared: bool,
    /// Bytes of the new leaf before and after the inner root; `None` removes the key.
    pub leaf: Option<(Vec<u8>, Vec<u8>)>,
    /// Changes of the inner trie, ascending by key.
    pub inner: Vec<InnerChange>,
}

/// A tree under test, with the state that it has built up.
pub trait Subject {
    /// Applies one step; outer keys ascend.
    ///
    /// # Errors
    /// Whatever went wrong.
    fn apply(&mut self, changes: &[OuterChange]) -> Result<(), String>;

    /// The root of the outer trie.
    fn root(&self) -> Hash;

    /// The root of the trie under an outer key.
    fn inner_root(&self, key: &Hash) -> Hash;

    /// All node records stored; `None` where the subject does not keep a whole state.
    fn stored(&self) -> Option<BTreeMap<Position, Vec<u8>>>;

    /// All node records that a bulk build of the model's contents stores.
    fn built(&self, model: &NaiveForest) -> BTreeMap<Position, Vec<u8>>;

    /// Proves a key of the outer trie or of one under an outer key.
    ///
    /// # Errors
    /// Whatever went wrong.
    fn prove(&self, trie: Option<Hash>, key: &Hash) -> Result<Vec<Vec<u8>>, String>;

    /// Whether a proof shows that a key has a value, or (`None`) that it is absent.
    fn verify(&self, root: &Hash, key: &Hash, proof: &[Vec<u8>], value: Option<&[u8]>) -> bool;
}

/// A wish for one outer key; [`run`] makes it a correct [`OuterChange`].
#[derive(Clone, Debug)]
pub struct Wish {
    outer: Hash,
    kind: Kind,
    payload: Vec<u8>,
    inner: Vec<(Hash, Option<Vec<u8>>)>,
}

#[derive(Clone, Debug)]
enum Kind {
    Change,
    Clear,
    Remove,
}

/// Draws a sequence of steps.
pub fn steps() -> impl Strategy<Value = Vec<Vec<Wish>>> {
    proptest::collection::vec(proptest::collection::vec(wish(), 0..6), 1..8)
}

/// Draws a key that shares long prefixes with the other keys drawn.
pub fn key() -> impl Strategy<Value = Hash> {
    let depth = prop::sample::select(vec![0usize, 1, 2, 3, 20, 21, 40, 58, 61, 62, 63]);
    let nibble = prop::sample::select(vec![1u8, 2, 15]);
    proptest::collection::vec((depth, nibble), 0..4).prop_map(|changes| {
        let mut key = [0; 32];
        for (depth, nibble) in changes {
            key[depth / 2] |= if depth % 2 == 0 { nibble << 4 } else { nibble };
        }
        key
    })
}

fn wish() -> impl Strategy<Value = Wish> {
    let kind = prop_oneof![
        8 => Just(Kind::Change),
        1 => Just(Kind::Clear),
        2 => Just(Kind::Remove),
    ];
    let value = prop_oneof![
        2 => Just(None),
        3 => (0u8..=255).prop_map(|byte| Some(vec![byte])),
        1 => (0u8..3).prop_map(|byte| Some(vec![byte; 33])),
    ];
    let inner = proptest::collection::vec((key(), value), 0..7);
    let payload = proptest::collection::vec(any::<u8>(), 0..4);
    (key(), kind, payload, inner).prop_map(|(outer, kind, payload, inner)| Wish {
        outer,
        kind,
        payload,
        inner,
    })
}

/// Runs the steps on the subject and on the model and compares them after each.
///
/// # Errors
/// The first difference, as a failed test case.
pub fn run(subject: &mut dyn Subject, steps: &[Vec<Wish>]) -> Result<(), TestCaseError> {
    let mut model = NaiveForest::default();
    for step in steps {
        let changes = realise(&mut model, step);
        subject
            .apply(&changes)
            .map_err(|error| TestCaseError::fail(format!("{error}\n{changes:?}")))?;
        prop_assert_eq!(subject.root(), model.root(), "root after {:?}", changes);
        for (key, outer) in &model.outer {
            prop_assert_eq!(subject.inner_root(key), outer.inner_root());
        }
        if let Some(stored) = subject.stored() {
            prop_assert_eq!(
                stored,
                subject.built(&model),
                "stored nodes and a bulk build"
            );
        }
        check_proofs(subject, &model, &changes)?;
    }
    Ok(())
}

/// Makes the wishes of a step consistent with the model and applies them to it.
fn realise(model: &mut NaiveForest, step: &[Wish]) -> Vec<OuterChange> {
    let wishes: BTreeMap<Hash, &Wish> = step.iter().map(|wish| (wish.outer, wish)).collect();
    let mut changes = Vec::new();
    for (key, wish) in wishes {
        let existed = model.outer.contains_key(&key);
        if matches!(wish.kind, Kind::Remove) {
            model.outer.remove(&key);
            changes.push(OuterChange {
                key,
                existed,
                cleared: true,
                leaf: None,
                inner: Vec::new(),
            });
            continue;
        }
        let entry: &mut NaiveOuter = model.outer.entry(key).or_default();
        let cleared = matches!(wish.kind, Kind::Clear);
        if cleared {
            entry.inner.clear();
        }
        let wanted: BTreeMap<Hash, Option<Vec<u8>>> = wish.inner.iter().cloned().collect();
        let mut inner = Vec::new();
        for (key, value) in wanted {
            let before = match &value {
                Some(value) => entry.inner.insert(key, value.clone()),
                None => entry.inner.remove(&key),
            };
            inner.push(InnerChange {
                key,
                existed: before.is_some(),
                value,
            });
        }
        entry.before.clone_from(&wish.payload);
        entry.after = vec![wish.payload.len() as u8];
        changes.push(OuterChange {
            key,
            existed,
            cleared,
            leaf: Some((entry.before.clone(), entry.after.clone())),
            inner,
        });
    }
    changes
}

/// Proves the keys touched in a step, present or not, and tampers with each proof.
fn check_proofs(
    subject: &dyn Subject,
    model: &NaiveForest,
    changes: &[OuterChange],
) -> Result<(), TestCaseError> {
    for change in changes {
        let outer = model.outer.get(&change.key);
        let leaf = outer.map(NaiveOuter::leaf);
        check_proof(subject, None, &model.root(), &change.key, leaf.as_deref())?;
        let Some(outer) = outer else { continue };
        for inner in &change.inner {
            let value = outer.inner.get(&inner.key).map(Vec::as_slice);
            let trie = Some(change.key);
            check_proof(subject, trie, &outer.inner_root(), &inner.key, value)?;
        }
    }
    Ok(())
}

fn check_proof(
    subject: &dyn Subject,
    trie: Option<Hash>,
    root: &Hash,
    key: &Hash,
    value: Option<&[u8]>,
) -> Result<(), TestCaseError> {
    let proof = subject.prove(trie, key).map_err(TestCaseError::fail)?;
    prop_assert!(
        subject.verify(root, key, &proof, value),
        "own proof of {value:?}"
    );
    let wrong: Option<&[u8]> = if value.is_some() { None } else { Some(&[1]) };
    prop_assert!(
        !subject.verify(root, key, &proof, wrong),
        "proof of the opposite"
    );
    for (index, node) in proof.iter().enumerate() {
        for at in [0, node.len() / 2, node.len() - 1] {
            let mut tampered = proof.clone();
            tampered[index][at] ^= 1;
            prop_assert!(
                !subject.verify(root, key, &tampered, value),
                "tampered proof"
            );
        }
        let mut short = proof.clone();
        short.remove(index);
        prop_assert!(
            !subject.verify(root, key, &short, value),
            "proof without node {index}"
        );
    }
    let mut long = proof.clone();
    long.push(vec![0xc0]);
    prop_assert!(
        !subject.verify(root, key, &long, value),
        "proof with a spare node"
    );
    Ok(())
}
