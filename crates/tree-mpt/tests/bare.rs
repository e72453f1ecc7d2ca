//! Extensions whose branch a witness leaves out, because every key parts within the extension.

use std::collections::BTreeMap;

use arbor_hashing::keccak256;
use arbor_tree::{Hash, MemoryNodes, NodeReader, NodeRequest, Path, Position};
use arbor_tree_mpt::{
    EMPTY_ROOT, InnerUpdate, LeafTemplate, OuterUpdate, Overlay, Record, RecordError, TreeError,
    Verdict, WitnessNodes, apply, build, prove, trie_root, verify, witness,
};

type Leaves = BTreeMap<Hash, Vec<u8>>;

/// The key of a few nibbles, and then nibbles of 7.
fn key(nibbles: &[u8]) -> Hash {
    let mut key = [0x77; 32];
    for (at, nibble) in nibbles.iter().enumerate() {
        let byte = &mut key[at / 2];
        *byte = if at % 2 == 0 {
            nibble << 4 | 7
        } else {
            *byte & 0xf0 | nibble
        };
    }
    key
}

fn leaves(keys: &[&[u8]]) -> Leaves {
    keys.iter()
        .map(|nibbles| (key(nibbles), vec![nibbles.len() as u8; 40]))
        .collect()
}

/// All nodes of a trie, by hash.
fn all_nodes(leaves: &Leaves) -> (Hash, BTreeMap<Hash, Vec<u8>>) {
    let mut store = MemoryNodes::new();
    let list = leaves.iter().map(|(key, value)| (*key, value.clone()));
    let root = build(None, list, &mut |at, record| store.put_node(at, record)).expect("sorted");
    for (key, value) in leaves {
        store.set_leaf(None, *key, Some(value.clone()));
    }
    let proofs = leaves.keys().flat_map(|key| {
        let proof = prove(&store, None, root, key);
        proof.expect("whole trie")
    });
    (root, proofs.map(|node| (keccak256(&node), node)).collect())
}

/// The branch at a path below an extension, which the bag gives up.
fn take_branch(
    bag: &mut BTreeMap<Hash, Vec<u8>>,
    reader: &WitnessNodes,
    request: &NodeRequest,
) -> Hash {
    let record = reader
        .nodes(&[*request])
        .expect("there")
        .remove(0)
        .expect("no leaf");
    let record = Record::decode(&record).expect("own record");
    assert!(!record.prefix().is_empty());
    let mut branch = Vec::new();
    record.write_branch(&mut branch);
    let hash = keccak256(&branch);
    assert!(bag.remove(&hash).is_some());
    hash
}

fn request(path: Path, hash: Hash) -> NodeRequest {
    NodeRequest {
        position: Position { trie: None, path },
        expected: Some(hash),
    }
}

/// A trie of two keys that share the nibbles 1 2 3 4, as a witness that lacks its only branch.
fn bare_root() -> (Leaves, Hash, WitnessNodes, Hash) {
    let leaves = leaves(&[&[1, 2, 3, 4, 1], &[1, 2, 3, 4, 2]]);
    let (root, mut bag) = all_nodes(&leaves);
    let whole = WitnessNodes::new(bag.values().cloned());
    let branch = take_branch(&mut bag, &whole, &request(Path::ROOT, root));
    (leaves, root, WitnessNodes::new(bag.into_values()), branch)
}

/// Leaf templates whose hole is the tail, so that a value is any bytes and then the empty root.
fn set(key: Hash, existed: bool, value: Option<Vec<u8>>) -> OuterUpdate {
    OuterUpdate {
        key,
        existed,
        inner_root: EMPTY_ROOT,
        leaf: value.map(|mut bytes| {
            let hole = bytes.len();
            bytes.extend_from_slice(&[0; 32]);
            LeafTemplate { bytes, hole }
        }),
        inner: Vec::new(),
    }
}

/// Applies updates to both the leaves and what the reader gives; the roots must agree.
fn check(
    leaves: &mut Leaves,
    reader: &mut Overlay<WitnessNodes>,
    root: &mut Hash,
    updates: &[OuterUpdate],
) {
    let update = apply(reader, *root, updates).expect("the witness suffices");
    for outer in updates {
        match &outer.leaf {
            Some(leaf) => leaves.insert(outer.key, leaf.fill(&EMPTY_ROOT)),
            None => leaves.remove(&outer.key),
        };
    }
    let list: Vec<(&Hash, &Vec<u8>)> = leaves.iter().collect();
    assert_eq!(update.root, trie_root(&list).expect("sorted"));
    reader.push(&update);
    *root = update.root;
}

#[test]
fn stored_bytes_of_a_bare_record() {
    let (_, root, nodes, branch) = bare_root();
    let record = nodes.nodes(&[request(Path::ROOT, root)]).expect("there");
    let bytes = record[0].as_deref().expect("no leaf");
    let expected = format!("041234{}{}", "00".repeat(6), hex::encode(branch));
    assert_eq!(hex::encode(bytes), expected);
    let read = Record::decode(bytes).expect("own record");
    assert_eq!((read.bare_branch(), read.children()), (Some(branch), 0));
    let error = |bytes: &[u8]| Record::decode(bytes).expect_err("malformed");
    assert_eq!(error(&bytes[..bytes.len() - 1]), RecordError::Truncated);
    assert_eq!(error(&[bytes, &[0]].concat()), RecordError::Trailing(1));
    let no_prefix = [&[0], &bytes[3..]].concat();
    assert_eq!(error(&no_prefix), RecordError::Childless);
    let mut leaf = bytes.to_vec();
    leaf[6] = 1;
    assert!(matches!(error(&leaf), RecordError::Masks { .. }));
}

#[test]
fn an_absent_key_parts_within_a_bare_extension() {
    let (_, root, nodes, branch) = bare_root();
    let absent = key(&[1, 2, 9]);
    assert_eq!(nodes.value(None, root, &absent).expect("absent"), None);
    let proof = prove(&nodes, None, root, &absent).expect("the extension suffices");
    assert_eq!(proof.len(), 1);
    assert_eq!(verify(&root, &absent, &proof), Ok(Verdict::Absent));
    let removed = apply(&nodes, root, &[set(absent, false, None)]).expect("no change");
    assert_eq!((removed.root, removed.nodes.len()), (root, 0));
    // A key that passes the extension needs the branch, and the errors say where and which.
    let below = key(&[1, 2, 3, 4, 9]);
    let errors = [
        nodes
            .value(None, root, &below)
            .expect_err("needs the branch"),
        prove(&nodes, None, root, &below).expect_err("needs the branch"),
        apply(&nodes, root, &[set(below, false, Some(vec![1]))]).expect_err("needs the branch"),
    ];
    for error in errors {
        let text = format!("{error:?} {error}");
        assert!(matches!(error, TreeError::Read(_)), "{text}");
        assert!(
            text.contains("1234") && text.contains(&hex::encode(branch)),
            "{text}"
        );
    }
}

/// The key parts so that 3, 2, 1 and no nibbles of the extension are left below the new branch.
#[test]
fn a_new_key_splits_a_bare_extension() {
    for parts_at in 0..4 {
        let mut nibbles = [1, 2, 3, 4];
        nibbles[parts_at] = 9;
        let (mut leaves, mut root, nodes, branch) = bare_root();
        let mut reader = Overlay::new(nodes);
        let new = key(&nibbles[..=parts_at]);
        check(
            &mut leaves,
            &mut reader,
            &mut root,
            &[set(new, false, Some(vec![8]))],
        );
        // Over the result: another key beside it, and what a key below finds.
        nibbles[parts_at] = 8;
        let beside = key(&nibbles[..=parts_at]);
        check(
            &mut leaves,
            &mut reader,
            &mut root,
            &[set(beside, false, Some(vec![9]))],
        );
        let proof = prove(&reader, None, root, &new).expect("proves");
        assert!(matches!(
            verify(&root, &new, &proof),
            Ok(Verdict::Present(_))
        ));
        let below = key(&[1, 2, 3, 4, 1]);
        let error = prove(&reader, None, root, &below).expect_err("needs the branch");
        assert!(error.to_string().contains(&hex::encode(branch)), "{error}");
    }
}

#[test]
fn two_keys_split_one_bare_extension() {
    let (mut leaves, mut root, nodes, _) = bare_root();
    let mut reader = Overlay::new(nodes);
    let updates = [
        set(key(&[1, 2, 3, 5]), false, Some(vec![1])),
        set(key(&[1, 3]), false, Some(vec![2])),
        set(key(&[2]), false, Some(vec![3])),
    ];
    check(&mut leaves, &mut reader, &mut root, &updates);
}

/// The split is undone, so that the rest of the extension grows whole again, and is split anew.
#[test]
fn splitting_and_joining_alternate() {
    let (mut leaves, mut root, nodes, _) = bare_root();
    let mut reader = Overlay::new(nodes);
    for nibbles in [&[1, 2, 9], &[1, 9, 9], &[1, 2, 8]] {
        let new = key(nibbles);
        check(
            &mut leaves,
            &mut reader,
            &mut root,
            &[set(new, false, Some(vec![8]))],
        );
        check(&mut leaves, &mut reader, &mut root, &[set(new, true, None)]);
    }
}

/// A branch loses all children but an extension whose branch is not known.
#[test]
fn a_branch_joins_with_a_bare_extension() {
    for prefix in [&[][..], &[5], &[5, 6]] {
        let at = |below: &[u8]| [prefix, below].concat();
        let keys = [at(&[1, 2, 3, 1]), at(&[1, 2, 3, 2]), at(&[2])];
        let mut leaves = leaves(&[&keys[0], &keys[1], &keys[2]]);
        let (mut root, mut bag) = all_nodes(&leaves);
        let whole = WitnessNodes::new(bag.values().cloned());
        let top = whole.nodes(&[request(Path::ROOT, root)]).expect("there");
        let top = Record::decode(top[0].as_deref().expect("no leaf")).expect("own record");
        let hash = top.child_hash(1).expect("not inlined");
        let extension = request(Path::from_nibbles(&at(&[1])), hash);
        take_branch(&mut bag, &whole, &extension);
        let mut reader = Overlay::new(WitnessNodes::new(bag.into_values()));
        let removal = set(key(&keys[2]), true, None);
        check(&mut leaves, &mut reader, &mut root, &[removal]);
        // The joined extension is bare as well, and can be split as one.
        let new = set(key(&at(&[1, 9])), false, Some(vec![1]));
        check(&mut leaves, &mut reader, &mut root, &[new]);
    }
}

/// A joined and a split extension at once, in an inner trie.
#[test]
fn a_witness_leaves_out_branches_in_which_no_key_is_looked_up() {
    let owner = [0xab; 32];
    let mut state = MemoryNodes::new();
    let keys: [&[u8]; 5] = [
        &[1, 2, 3, 4, 1],
        &[1, 2, 3, 4, 2],
        &[2, 5, 5, 1],
        &[2, 5, 5, 2],
        &[3],
    ];
    let inner = leaves(&keys);
    let list = inner.iter().map(|(key, value)| (*key, value.clone()));
    let inner_root = build(Some(owner), list, &mut |at, record| {
        state.put_node(at, record);
    });
    let inner_root = inner_root.expect("sorted");
    for (key, value) in &inner {
        state.set_leaf(Some(owner), *key, Some(value.clone()));
    }
    let mut update = set(owner, true, Some(vec![1]));
    let leaf = update.leaf.as_ref().expect("set").fill(&inner_root);
    let root = trie_root(&[(owner, &leaf)]).expect("one leaf");
    state.set_leaf(None, owner, Some(leaf));
    update.inner_root = inner_root;
    update.inner = vec![
        InnerUpdate {
            key: key(&[1, 2, 9]),
            existed: false,
            value: Some(vec![1; 40].into()),
        },
        InnerUpdate {
            key: key(&[2, 6]),
            existed: false,
            value: Some(vec![2; 40].into()),
        },
    ];
    let updates = [update];
    let whole = apply(&state, root, &updates).expect("applies");
    let bag = witness(&state, root, &[], &updates).expect("collects");
    // The outer leaf, the inner root, and the two extensions.
    assert_eq!(bag.len(), 4);
    let over_witness = apply(&WitnessNodes::new(bag), root, &updates).expect("applies");
    assert_eq!(over_witness.root, whole.root);
}

/// A store of whole tries never holds a bare record; if it does, no key can pass it.
#[test]
fn a_store_with_a_bare_record_lacks_a_node() {
    let (_, root, nodes, _) = bare_root();
    let record = nodes
        .nodes(&[request(Path::ROOT, root)])
        .expect("there")
        .remove(0);
    let mut store = MemoryNodes::new();
    let at = Position {
        trie: None,
        path: Path::ROOT,
    };
    store.put_node(at, record.expect("no leaf"));
    let below = set(key(&[1, 2, 3, 4, 9]), false, Some(vec![1]));
    let error = apply(&store, root, &[below]).expect_err("needs the branch");
    let TreeError::MissingNode { position } = error else {
        panic!("{error}");
    };
    assert_eq!(position.path, Path::from_nibbles(&[1, 2, 3, 4]));
}
