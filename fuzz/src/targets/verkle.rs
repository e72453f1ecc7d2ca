//! The Verkle tree: stored nodes and witnesses.

use arbor_ipa::Committer;
use arbor_tree_verkle::{
    MemoryTree, NodeKey, Settings as VerkleSettings, StemUpdate, ValueChange,
    Witness as VerkleWitness,
};

/// A stored node of a Verkle tree, after its database key.
pub(super) fn verkle_record(bytes: &[u8]) {
    let length = bytes.first().map_or(0, |&depth| 1 + usize::from(depth));
    let Some((key, record)) = bytes.split_at_checked(length) else {
        return;
    };
    if let Ok(key) = NodeKey::decode(key) {
        assert_eq!(key.encode(), &bytes[..length], "a key has two forms");
        let _ = arbor_tree_verkle::Record::decode(&key, record);
    }
}

/// A witness of a Verkle tree in compact form, verified at one root; only a tree's own proof holds.
pub(super) fn verkle_compact(bytes: &[u8]) {
    let Ok(witness) = VerkleWitness::from_compact(bytes) else {
        return;
    };
    let (again, _) = witness
        .to_compact(&|_, _| false)
        .expect("as many ways as stems");
    assert_eq!(again, bytes, "a compact witness has two forms");
    VERKLE.with(|(committer, own, root)| {
        if let Ok(Some(_)) = witness.verify(committer, root) {
            assert!(own.proof == witness.proof, "a proof forged");
        }
    });
}

/// A witness of a Verkle tree, as SSZ and as JSON, verified at one root; only a tree's own proof holds.
pub(super) fn verkle_witness(bytes: &[u8]) {
    let read = VerkleWitness::from_bytes(bytes);
    if let Ok(witness) = &read {
        assert_eq!(witness.to_bytes(), bytes, "a witness has two forms");
    }
    let Ok(witness) = read.or_else(|_| serde_json::from_slice(bytes)) else {
        return;
    };
    let again = serde_json::to_value(&witness).and_then(serde_json::from_value::<VerkleWitness>);
    assert_eq!(again.expect("its own JSON"), witness);
    VERKLE.with(|(committer, own, root)| {
        if let Ok(Some(verified)) = witness.verify(committer, root) {
            assert!(own.proof == witness.proof, "a proof forged");
            verified
                .root_after(committer)
                .expect("all nodes are proven");
        }
    });
}

thread_local! {
    static VERKLE: (Committer, VerkleWitness, [u8; 32]) = {
        let committer = Committer::within(6_000_000);
        let (witness, root) = proven(&committer);
        (committer, witness, root)
    };
}

/// A witness of some keys, absent and present, and the root that it holds at.
fn proven(committer: &Committer) -> (VerkleWitness, [u8; 32]) {
    let changes = |suffixes: &[u8]| -> Vec<ValueChange> {
        let change = |&suffix| ValueChange {
            suffix,
            old: None,
            new: Some([suffix; 32]),
        };
        suffixes.iter().map(change).collect()
    };
    let mut near = [1; 31];
    near[5] = 2;
    let updates = [([1; 31], &[0, 200][..]), (near, &[1]), ([9; 31], &[2])];
    let updates = updates.map(|(stem, suffixes)| StemUpdate {
        stem,
        changes: changes(suffixes),
    });
    let mut tree = MemoryTree::new();
    let done = arbor_tree_verkle::apply(&tree, committer, &updates, &VerkleSettings::default())
        .expect("applies");
    tree.change_nodes(&done.nodes);
    for update in &updates {
        for change in &update.changes {
            tree.set_value(update.stem, change.suffix, change.new);
        }
    }
    let keys = [
        ([1; 31], 0),
        ([1; 31], 5),
        (near, 1),
        ([3; 31], 0),
        ([9; 31], 1),
        ([9; 31], 130),
    ];
    let mut other = near;
    other[30] = 7;
    let keys = [&keys[..], &[(other, 3)]].concat();
    let mut witness = arbor_tree_verkle::prove(&tree, committer, &keys).expect("proves");
    for diff in &mut witness.state_diff {
        diff.suffixes[0].new = Some([5; 32]);
    }
    (witness, done.root_hash())
}

/// Seeds of the Verkle tree's targets.
pub(crate) fn verkle_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let witness = VERKLE.with(|(_, witness, _)| witness.clone());
    let json = serde_json::to_vec(&witness).expect("JSON");
    let (compact, _) = witness
        .to_compact(&|_, _| false)
        .expect("as many ways as stems");
    let pair = |name: &str| {
        let witness = str::from_utf8(&json).expect("text");
        format!(
            "\"{name}\":{{\"parent\":{{}},\"execute\":{{\"header\":{{}},\"executionWitness\":{witness}}}}}"
        )
    };
    let pairs = format!("{{{},{}}}", pair("a"), pair("codes"));
    let root = [&[0, 5, 1, 9][..], &[0; 65]].concat();
    let leaf = [&[1, 7, 1][..], &[3; 30], &[1, 4], &[0; 64]].concat();
    vec![
        ("verkle_witness", witness.to_bytes()),
        ("verkle_compact", compact),
        ("witness", witness.to_bytes()),
        ("witness", pairs.into_bytes()),
        ("verkle_witness", json),
        ("verkle_record", root),
        ("verkle_record", leaf),
    ]
}
