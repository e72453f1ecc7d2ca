//! Updates that are wrong, and nodes that are missing, misplaced or malformed.

use crate::support::{COMMITTER, change};
use arbor_tree::ReadError;
use arbor_tree_verkle::{
    Form, MemoryTree, NodeChange, NodeKey, NodeReader, Record, Settings, Stem, StemUpdate,
    TreeError, Value, ValueChange, ValueReader, apply, build, prove, whole_values,
};
use proptest::prelude::*;
use std::sync::Arc;

fn update(stem: u8, suffix: u8, old: Option<u8>, new: Option<u8>) -> StemUpdate {
    let value = |byte: Option<u8>| byte.map(|byte| [byte; 32]);
    StemUpdate {
        stem: [stem; 31],
        changes: vec![ValueChange {
            suffix,
            old: value(old),
            new: value(new),
        }],
    }
}

fn error(tree: &impl NodeReader, updates: &[StemUpdate]) -> String {
    let done = apply(tree, &COMMITTER, updates, &Settings::default());
    done.expect_err("an error").to_string()
}

/// Two leaves below one internal node, and one beside it.
fn tree() -> MemoryTree {
    let mut tree = MemoryTree::new();
    let mut near = [3; 32];
    near[1] = 4;
    let changes = [
        ([3; 32], Some([1; 32])),
        (near, Some([1; 32])),
        ([5; 32], Some([1; 32])),
    ];
    change(&mut tree, &Settings::default(), &changes);
    assert_eq!(tree.records().len(), 5);
    tree
}

#[test]
fn order() {
    let tree = MemoryTree::new();
    let updates = [update(2, 0, None, Some(1)), update(1, 0, None, Some(1))];
    assert!(error(&tree, &updates).contains("do not ascend at stem 0101"));
    let mut twice = update(1, 0, None, Some(1));
    twice.changes.push(twice.changes[0]);
    assert!(error(&tree, &[twice]).contains("do not ascend"));
    let leaves = |leaves: Vec<(u8, Vec<u8>)>| {
        let leaves = leaves.into_iter().map(|(stem, suffixes)| {
            (
                [stem; 31],
                suffixes
                    .into_iter()
                    .map(|suffix| (suffix, [1; 32]))
                    .collect(),
            )
        });
        build(
            &COMMITTER,
            &Settings::default(),
            leaves.collect::<Vec<_>>(),
            &mut |_, _| {},
        )
    };
    assert!(leaves(vec![(1, vec![0, 3]), (2, vec![0])]).is_ok());
    for wrong in [
        vec![(2, vec![0]), (1, vec![0])],
        vec![(1, vec![0]), (1, vec![1])],
        vec![(1, vec![])],
        vec![(1, vec![3, 3])],
    ] {
        assert!(matches!(leaves(wrong), Err(TreeError::Order(_))));
    }
}

#[test]
fn old_values_that_the_tree_has_otherwise() {
    let tree = tree();
    let said = |updates: &[StemUpdate]| error(&tree, updates);
    assert!(said(&[update(3, 3, None, Some(2))]).contains("suffix 3 under stem 0303"));
    assert!(said(&[update(3, 4, Some(1), Some(2))]).contains("said to be present"));
    assert!(said(&[update(9, 0, Some(1), None)]).contains("said to be present"));
    // A removal of nothing, or a value that stays, is no change.
    let nothing = [update(3, 3, Some(1), Some(1)), update(9, 0, None, None)];
    let done = apply(&tree, &COMMITTER, &nothing, &Settings::default()).expect("applies");
    assert!(done.nodes.is_empty());
    assert_eq!(done.root, arbor_tree_verkle::root(&tree).expect("a root"));
}

/// A reader that fails.
struct Broken;

impl NodeReader for Broken {
    fn nodes(&self, _: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        Err(ReadError {
            what: "a node".into(),
            cause: "the disk is gone".into(),
        })
    }
}

impl ValueReader for Broken {
    fn values(&self, _: &[Stem]) -> Result<Vec<Vec<(u8, Value)>>, ReadError> {
        Ok(Vec::new())
    }
}

#[test]
fn proofs_over_nodes_missing_malformed_or_unreadable() {
    fn proven(tree: &impl ValueReader) -> Result<(), TreeError> {
        prove(tree, &COMMITTER, &[([5; 31], 5)]).map(|_| ())
    }
    let error = |tree: &MemoryTree| proven(tree).expect_err("an error").to_string();
    let unreadable = proven(&Broken).expect_err("an error").to_string();
    assert!(unreadable.contains("the disk is gone"));
    let good = tree();
    proven(&good).expect("proves");
    // The way's leaf, and a sibling of which only the image is needed.
    for (stem, path) in [([5; 31], "05"), ([3; 31], "03")] {
        let key = NodeKey::on_way(&stem, 1);
        let with = |record: Option<Arc<[u8]>>| {
            let mut tree = good.clone();
            tree.change_nodes(&[NodeChange { key, record }]);
            tree
        };
        let missing = format!("the node at path {path} is missing");
        assert_eq!(error(&with(None)), missing);
        let whole = &good.records()[&key];
        for length in 0..whole.len() {
            let cut = with(Some(whole[..length].into()));
            assert!(error(&cut).contains(path), "{length} bytes of {path}");
        }
    }
}

#[test]
fn nodes_missing_misplaced_or_unreadable() {
    assert!(error(&Broken, &[update(1, 0, None, Some(1))]).contains("the disk is gone"));
    let leaf = NodeKey::on_way(&[5; 31], 1);
    let internal = NodeKey::on_way(&[3; 31], 1);
    let with = |key: NodeKey, record: Option<Arc<[u8]>>| {
        let mut tree = tree();
        tree.change_nodes(&[NodeChange { key, record }]);
        tree
    };
    let change = [update(5, 5, Some(1), Some(2))];
    assert_eq!(
        error(&with(leaf, None), &change),
        "the node at path 05 is missing"
    );
    let good = tree();
    let other = |key: &NodeKey| good.records().get(key).cloned();
    assert!(error(&with(leaf, other(&internal)), &change).contains("not what its parent says"));
    assert!(
        error(&with(NodeKey::ROOT, other(&leaf)), &change).contains("the root: its first byte")
    );
    // The removal of one of two siblings reads the other one, which is not there.
    let remaining = NodeKey::on_way(&[3; 31], 2);
    let mut near = update(3, 3, Some(1), None);
    near.stem[1] = 4;
    assert_eq!(
        error(&with(remaining, None), &[near]),
        "the node at path 0303 is missing"
    );
}

proptest! {
    /// Bytes that are no record are an error; a record that decodes is written again as it was, by an update that changes nothing near it.
    #[test]
    fn damaged_records(flip in any::<prop::sample::Index>(), bit in 0..8, cut in any::<prop::sample::Index>(), images: bool, compressed: bool, leaf_commitments: bool, values: bool, whole: bool) {
        let settings = Settings { form: Form { compressed, images, leaf_commitments, values, whole }, ..Settings::default() };
        let mut tree = MemoryTree::new();
        change(&mut tree, &settings, &[([3; 32], Some([1; 32])), ([4; 32], Some([1; 32]))]);
        for (key, record) in tree.records() {
            prop_assert!(Record::decode(key, record).is_ok());
            prop_assert!(Record::decode(key, &record[..cut.index(record.len())]).is_err());
            prop_assert!(Record::decode(key, &[&record[..], &[0]].concat()).is_err());
            let mut damaged = record.to_vec();
            damaged[flip.index(record.len())] ^= 1u8 << bit;
            // Whatever comes out, nothing panics, and it is not what was written.
            let read = |bytes: &[u8]| (Record::decode(key, bytes).ok(), whole_values(key, bytes).ok().flatten().map(<[_]>::to_vec));
            prop_assert_ne!(read(&damaged), read(record));
        }
    }
}

#[test]
fn keys() {
    let key = NodeKey::on_way(&[7; 31], 3);
    assert_eq!(key.encode(), [3, 7, 7, 7]);
    assert_eq!(NodeKey::decode(key.encode()), Ok(key));
    assert_eq!(key.parent().map(|parent| parent.child(7)), Some(key));
    assert_eq!(NodeKey::ROOT.parent(), None);
    for wrong in [&[][..], &[1], &[0, 1], &[32; 33]] {
        assert!(NodeKey::decode(wrong).is_err());
    }
    let text = NodeKey::decode(&[5]).expect_err("too short").to_string();
    assert!(text.contains("5"), "{text}");
}
