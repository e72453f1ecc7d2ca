//! The suite for a tree from keys of 32 bytes to values of 32 bytes, in which a stored zero is not
//! an absent value.
//!
//! Keys are drawn so that their first 31 bytes share long prefixes, and so that some differ in the last byte
//! only: leaves of many values, splits at any depth and collapses over many levels come up all the time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::Hash;

/// The contents of a tree.
pub type Contents = BTreeMap<Hash, Hash>;

/// A change of one key: its value before and after, `None` where it is absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// The key.
    pub key: Hash,
    /// The value before.
    pub old: Option<Hash>,
    /// The value after.
    pub new: Option<Hash>,
}

/// A tree under test, with the state that it has built up.
pub trait Subject {
    /// Applies one step; keys ascend.
    ///
    /// # Errors
    /// Whatever went wrong.
    fn apply(&mut self, changes: &[Change]) -> Result<(), String>;

    /// The root.
    fn root(&self) -> Hash;

    /// The root of a tree with these contents, computed from its definition: whole nodes, one at a time.
    fn naive_root(&self, contents: &Contents) -> Hash;

    /// All node records stored, by their database keys.
    fn stored(&self) -> BTreeMap<Vec<u8>, Vec<u8>>;

    /// All node records that a bulk build of these contents stores.
    fn built(&self, contents: &Contents) -> BTreeMap<Vec<u8>, Vec<u8>>;
}

/// A wish for one key: its new value.
pub type Wish = (Hash, Option<Hash>);

/// Draws a sequence of steps.
pub fn steps() -> impl Strategy<Value = Vec<Vec<Wish>>> {
    let wish = (key(), value());
    proptest::collection::vec(proptest::collection::vec(wish, 0..12), 1..8)
}

/// Draws a key that shares long prefixes with the other keys drawn.
pub fn key() -> impl Strategy<Value = Hash> {
    let at = prop::sample::select(vec![0usize, 1, 2, 3, 15, 28, 29, 30]);
    let byte = prop::sample::select(vec![1u8, 2, 255]);
    let last = prop::sample::select(vec![0u8, 1, 2, 63, 64, 127, 128, 129, 255]);
    (proptest::collection::vec((at, byte), 0..4), last).prop_map(|(changes, last)| {
        let mut key = [0; 32];
        for (at, byte) in changes {
            key[at] = byte;
        }
        key[31] = last;
        key
    })
}

fn value() -> impl Strategy<Value = Option<Hash>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some([0; 32])),
        2 => (0u8..=255).prop_map(|byte| Some([byte; 32])),
        2 => any::<Hash>().prop_map(Some),
    ]
}

/// Runs the steps on the subject and on the model and compares them after each.
///
/// # Errors
/// The first difference, as a failed test case.
pub fn run(subject: &mut dyn Subject, steps: &[Vec<Wish>]) -> Result<(), TestCaseError> {
    let mut contents = Contents::new();
    for step in steps {
        let changes = realise(&mut contents, step);
        subject
            .apply(&changes)
            .map_err(|error| TestCaseError::fail(format!("{error}\n{changes:?}")))?;
        let expected = subject.naive_root(&contents);
        prop_assert_eq!(subject.root(), expected, "root after {:?}", changes);
        let built = subject.built(&contents);
        prop_assert_eq!(subject.stored(), built, "stored nodes and a bulk build");
    }
    Ok(())
}

/// Makes the wishes of a step consistent with the contents and applies them to those.
fn realise(contents: &mut Contents, step: &[Wish]) -> Vec<Change> {
    let wishes: BTreeMap<Hash, Option<Hash>> = step.iter().copied().collect();
    let change = |(key, new): (Hash, Option<Hash>)| {
        let old = match new {
            Some(value) => contents.insert(key, value),
            None => contents.remove(&key),
        };
        Change { key, old, new }
    };
    wishes.into_iter().map(change).collect()
}
