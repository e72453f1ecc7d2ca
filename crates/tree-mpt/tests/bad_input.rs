//! Wrong updates and states that lack what is needed: an error that names it, never a wrong root.

use arbor_tree::{Hash, MemoryNodes, NodeChange, Path, Position};
use arbor_tree_mpt::{
    EMPTY_ROOT, InnerUpdate, LeafTemplate, OuterUpdate, Record, TreeError, WitnessNodes, apply,
    prove, witness,
};

fn outer(key: Hash, existed: bool) -> OuterUpdate {
    OuterUpdate {
        key,
        existed,
        inner_root: EMPTY_ROOT,
        leaf: Some(LeafTemplate {
            bytes: vec![1; 40],
            hole: 4,
        }),
        inner: Vec::new(),
    }
}

fn key(first: u8, rest: u8) -> Hash {
    let mut key = [rest; 32];
    key[0] = first;
    key
}

/// Three outer keys: 1111..., 1122... and 2233...
fn state() -> (MemoryNodes, Hash) {
    let mut nodes = MemoryNodes::new();
    let updates = [
        outer(key(0x11, 0x11), false),
        outer(key(0x11, 0x22), false),
        outer(key(0x22, 0x33), false),
    ];
    let update = apply(&nodes, EMPTY_ROOT, &updates).expect("applies");
    nodes.change_nodes(&update.nodes);
    for outer in &updates {
        let leaf = outer.leaf.as_ref().map(|leaf| leaf.fill(&EMPTY_ROOT));
        nodes.set_leaf(None, outer.key, leaf);
    }
    (nodes, update.root)
}

#[test]
fn updates_out_of_order() {
    let (nodes, root) = state();
    let updates = [outer([2; 32], false), outer([2; 32], false)];
    let error = apply(&nodes, root, &updates).expect_err("a key twice");
    assert!(
        matches!(error, TreeError::UnsortedOuter { index: 1 }),
        "{error}"
    );
    let mut one = outer([2; 32], false);
    let inner = |key| InnerUpdate {
        key,
        existed: false,
        value: Some(vec![1].into()),
    };
    one.inner = vec![inner([1; 32]), inner([3; 32]), inner([2; 32])];
    let error = apply(&nodes, root, &[one]).expect_err("inner keys out of order");
    assert!(
        matches!(error, TreeError::UnsortedInner { outer: 0, index: 2 }),
        "{error}"
    );
}

#[test]
fn malformed_updates() {
    let (nodes, root) = state();
    let mut hole = outer([2; 32], false);
    hole.leaf = Some(LeafTemplate {
        bytes: vec![1; 40],
        hole: 9,
    });
    let mut removed = outer([2; 32], false);
    removed.leaf = None;
    removed.inner = vec![InnerUpdate {
        key: [1; 32],
        existed: false,
        value: None,
    }];
    let mut empty = outer([2; 32], false);
    empty.inner = vec![InnerUpdate {
        key: [1; 32],
        existed: false,
        value: Some(Vec::new().into()),
    }];
    for update in [hole, removed, empty] {
        let error = apply(&nodes, root, &[update]).expect_err("malformed");
        assert!(
            matches!(error, TreeError::BadValue { outer: 0, .. }),
            "{error}"
        );
    }
}

#[test]
fn a_key_that_did_not_exist() {
    let (nodes, root) = state();
    // An empty slot at the root; one below; a place within an extension.
    for absent in [key(0x55, 0x11), key(0x11, 0x55), key(0x12, 0x11)] {
        let error = apply(&nodes, root, &[outer(absent, true)]).expect_err("not there");
        assert!(
            matches!(error, TreeError::NotThere { key, .. } if key == absent),
            "{error}"
        );
        let mut removal = outer(absent, false);
        removal.leaf = None;
        let update = apply(&nodes, root, &[removal]).expect("nothing to remove");
        assert_eq!((update.root, update.nodes), (root, Vec::new()));
    }
}

/// The search for a key that is said to be new ends at its leaf, which is read: nothing is written over it.
#[test]
fn a_key_that_did_exist() {
    let (nodes, root) = state();
    let present = key(0x11, 0x22);
    for leaf in [
        None,
        Some(LeafTemplate {
            bytes: vec![9; 33],
            hole: 1,
        }),
    ] {
        let update = |existed| OuterUpdate {
            leaf: leaf.clone(),
            ..outer(present, existed)
        };
        apply(&nodes, root, &[update(true)]).expect("applies");
        let error = apply(&nodes, root, &[update(false)]).expect_err("it is there");
        assert!(
            matches!(error, TreeError::There { key, .. } if key == present),
            "{error}"
        );
    }
}

#[test]
fn missing_and_malformed_nodes_are_named() {
    let (mut nodes, root) = state();
    let below = Position::outer(Path::from_nibbles(&[1]));
    nodes.change_nodes(&[NodeChange {
        position: below,
        record: None,
    }]);
    let error = apply(&nodes, root, &[outer(key(0x11, 0x55), false)]).expect_err("missing");
    assert!(
        matches!(error, TreeError::MissingNode { position } if position == below),
        "{error}"
    );
    nodes.put_node(below, vec![1, 2, 3].into());
    let error = apply(&nodes, root, &[outer(key(0x11, 0x55), false)]).expect_err("malformed");
    assert!(
        matches!(error, TreeError::Record { position, .. } if position == below),
        "{error}"
    );
}

/// A proof checks every hash on its way, so it does not come out of a damaged store.
#[test]
fn proofs_of_damaged_nodes_are_refused() {
    let (mut nodes, root) = state();
    let at = Position::outer(Path::ROOT);
    let mut record = nodes.records()[&at].to_vec();
    let last = record.len() - 1;
    record[last] ^= 1;
    assert!(Record::decode(&record).is_ok());
    nodes.put_node(at, record.into());
    let error = prove(&nodes, None, root, &key(0x11, 0x11)).expect_err("damaged");
    assert!(
        matches!(error, TreeError::WrongHash { position } if position == at),
        "{error}"
    );
}

/// Removing 2233... leaves its sibling alone in the root, so the sibling is part of the witness;
/// without it the error says what is missing and where.
#[test]
fn a_witness_that_lacks_a_node_is_named_with_the_path() {
    let (nodes, root) = state();
    let removal = OuterUpdate {
        leaf: None,
        ..outer(key(0x22, 0x33), true)
    };
    let bag = witness(&nodes, root, &[], std::slice::from_ref(&removal)).expect("a witness");
    let whole = WitnessNodes::new(bag.clone());
    let expected = apply(&nodes, root, std::slice::from_ref(&removal))
        .expect("applies")
        .root;
    let update = apply(&whole, root, std::slice::from_ref(&removal)).expect("applies");
    assert_eq!(update.root, expected);
    let record = Record::decode(&nodes.records()[&Position::outer(Path::ROOT)]).expect("own");
    let sibling = record.child_hash(1).expect("hashed");
    let fewer = bag
        .into_iter()
        .filter(|node| arbor_hashing::keccak256(node) != sibling);
    let error = apply(&WitnessNodes::new(fewer), root, &[removal]).expect_err("missing");
    let text = error.to_string();
    assert!(text.contains("path 1 of the outer trie"), "{text}");
    assert!(text.contains(&hex::encode(sibling)), "{text}");
}
