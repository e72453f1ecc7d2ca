//! EIP-8297: stored records of nodes, multiproofs, witnesses.

use arbor_tree_eip8297::{
    Hash, Hasher, LeafUpdate, MemoryRecords, Multiproof, Packing, Path, Shown, apply, prove_many,
    rewrite, witness, witness_tree,
};

/// A stored record, after a byte with the packing and a byte with the length of its database key.
pub(super) fn eip8297_record(bytes: &[u8]) {
    let [packing, length, rest @ ..] = bytes else {
        return;
    };
    let Some((key, record)) = rest.split_at_checked(usize::from(*length)) else {
        return;
    };
    let (Some(packing), Ok(path)) = (Packing::of_root(&[*packing]), Path::of_database_key(key))
    else {
        return;
    };
    if let Ok(again) = rewrite(packing, &path, record) {
        assert_eq!(again, record, "a record has two forms");
    }
}

/// A multiproof; whatever leads to the tree's root shows what the tree has.
pub(super) fn eip8297_multiproof(bytes: &[u8]) {
    let Ok(proof) = Multiproof::decode(bytes) else {
        return;
    };
    assert_eq!(proof.encode(), bytes, "a multiproof has two forms");
    TREE.with(|(_, root)| {
        if proof.root(Hasher::blake3()) == *root {
            for (key, value) in leaves().into_iter().chain([(absent(), [0; 32])]) {
                let expected = match value == [0; 32] {
                    true => Shown::Absent,
                    false => Shown::Value(value),
                };
                assert!(
                    proof.show(&key).is_none_or(|shown| shown == expected),
                    "a proof forged"
                );
            }
        }
    });
}

/// The nodes of a witness, each after a byte with its length; whatever they show is what the tree
/// has.
pub(super) fn eip8297_witness(bytes: &[u8]) {
    let (mut nodes, mut rest) = (Vec::new(), bytes);
    while let [length, after @ ..] = rest {
        let Some((node, after)) = after.split_at_checked(usize::from(*length)) else {
            break;
        };
        nodes.push(node);
        rest = after;
    }
    TREE.with(|(_, root)| {
        let mut tree = witness_tree(Hasher::blake3(), *root, nodes);
        for (key, value) in leaves().into_iter().chain([(absent(), [0; 32])]) {
            if let Ok(found) = tree.get(&key) {
                assert_eq!(found.unwrap_or_default(), value, "a witness forged");
            }
        }
        if let Ok(after) = tree.apply(&updates()) {
            assert_eq!(after, AFTER.with(|after| *after), "a root forged");
        }
    });
}

fn key(bytes: &[u8]) -> Path {
    Path::of_key(bytes).expect("of at most 66 bytes")
}

/// Leaves that part at several depths, of both lengths.
fn leaves() -> Vec<(Path, Hash)> {
    let mut near = [1; 34];
    near[33] = 2;
    let mut apart = [1; 34];
    apart[20] = 9;
    let mut slot = [7; 66];
    slot[0] = 255;
    let mut leaves = vec![
        (key(&[1; 34]), [1; 32]),
        (key(&near), [2; 32]),
        (key(&apart), [3; 32]),
        (key(&slot), [4; 32]),
    ];
    leaves.sort_unstable();
    leaves
}

fn absent() -> Path {
    key(&[1; 33].iter().copied().chain([77]).collect::<Vec<u8>>())
}

/// A leaf goes, so that its neighbour moves up; another changes, and one comes.
fn updates() -> Vec<LeafUpdate> {
    let leaves = leaves();
    let mut updates = vec![
        LeafUpdate {
            key: leaves[0].0,
            value: [0; 32],
        },
        LeafUpdate {
            key: leaves[3].0,
            value: [9; 32],
        },
        LeafUpdate {
            key: absent(),
            value: [8; 32],
        },
    ];
    updates.sort_unstable_by_key(|update| update.key);
    updates
}

thread_local! {
    static TREE: (MemoryRecords, Hash) = {
        let mut records = MemoryRecords::default();
        let updates: Vec<LeafUpdate> =
            leaves().into_iter().map(|(key, value)| LeafUpdate { key, value }).collect();
        let update = apply(&records, Hasher::blake3(), Packing::default(), &updates).expect("applies");
        records.change(update.nodes);
        (records, update.root)
    };
    /// The root after the updates.
    static AFTER: Hash = TREE.with(|(records, _)| {
        apply(records, Hasher::blake3(), Packing::default(), &updates()).expect("applies").root
    });
}

/// Well-formed inputs.
pub(crate) fn eip8297_seeds() -> Vec<(&'static str, Vec<u8>)> {
    TREE.with(|(records, _)| {
        let (hasher, packing) = (Hasher::blake3(), Packing::default());
        let mut seeds = Vec::new();
        for (path, record) in records.records() {
            let key = path.database_key();
            let bytes = [&[packing.levels, key.len() as u8], &key[..], record].concat();
            seeds.push(("eip8297_record", bytes));
        }
        let keys = [leaves()[1].0, absent()];
        let (_, proof) = prove_many(records, hasher, packing, &keys).expect("proven");
        seeds.push(("eip8297_multiproof", proof.encode()));
        let (_, nodes) = witness(records, hasher, packing, &keys, &updates()).expect("made");
        let nodes = nodes
            .iter()
            .flat_map(|node| [&[node.len() as u8], &node[..]].concat());
        seeds.push(("eip8297_witness", nodes.collect()));
        seeds
    })
}
