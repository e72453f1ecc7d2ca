//! EIP-7864: stored records of nodes, multiproofs.

use arbor_tree_eip7864::{
    Hash, Hasher, LeafUpdate, MemoryRecords, Multiproof, Packing, Path, Shown, WitnessTree, apply,
    key, rewrite, select_for_updates,
};

/// A stored record, after a byte with the packing and a byte with the length of its database key.
pub(super) fn eip7864_record(bytes: &[u8]) {
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

/// A multiproof; whatever leads to the tree's root shows what the tree has, and only its own root
/// comes after the updates.
pub(super) fn eip7864_multiproof(bytes: &[u8]) {
    let Ok(proof) = Multiproof::decode(bytes) else {
        return;
    };
    assert_eq!(proof.encode(), bytes, "a multiproof has two forms");
    TREE.with(|(_, root)| {
        let mut tree = WitnessTree::of_proof(Hasher::default(), &proof);
        if tree.root() != *root {
            return;
        }
        for (key, value) in leaves().into_iter().chain([(absent(), None)]) {
            let expected = value.map_or(Shown::Absent, Shown::Value);
            assert!(
                proof.show(&key).is_none_or(|shown| shown == expected),
                "a proof forged"
            );
        }
        if let Ok(after) = tree.apply(&updates()) {
            assert_eq!(after, AFTER.with(|after| *after), "a root forged");
        }
    });
}

/// Values under three stems, two of which share 20 bytes.
fn leaves() -> Vec<(Path, Option<Hash>)> {
    let (one, mut near, far) = ([1; 31], [1; 31], [7; 31]);
    near[20] = 9;
    vec![
        (key(&one, 0), Some([1; 32])),
        (key(&one, 1), Some([0; 32])),
        (key(&near, 64), Some([3; 32])),
        (key(&far, 255), Some([4; 32])),
    ]
}

fn absent() -> Path {
    key(&[9; 31], 3)
}

fn updates() -> Vec<LeafUpdate> {
    let value = Some([8; 32]);
    let keys = [leaves()[0].0, absent()];
    keys.map(|key| LeafUpdate { key, value }).to_vec()
}

thread_local! {
    static TREE: (MemoryRecords, Hash) = {
        let mut records = MemoryRecords::default();
        let updates: Vec<LeafUpdate> =
            leaves().into_iter().map(|(key, value)| LeafUpdate { key, value }).collect();
        let update = apply(&records, Hasher::default(), Packing::default(), &updates).expect("applies");
        records.change(update.nodes);
        (records, update.root)
    };
    /// The root after the updates.
    static AFTER: Hash = TREE.with(|(records, _)| {
        apply(records, Hasher::default(), Packing::default(), &updates()).expect("applies").root
    });
}

/// Well-formed inputs.
pub(crate) fn eip7864_seeds() -> Vec<(&'static str, Vec<u8>)> {
    TREE.with(|(records, _)| {
        let (hasher, packing) = (Hasher::default(), Packing::default());
        let mut seeds = Vec::new();
        for (path, record) in records.records() {
            let key = path.database_key();
            let bytes = [&[packing.levels, key.len() as u8], &key[..], record].concat();
            seeds.push(("eip7864_record", bytes));
        }
        let touched = [leaves()[1].0];
        let selection = select_for_updates(records, hasher, packing, &touched, &updates());
        let proof = selection.expect("selected").multiproof();
        seeds.push(("eip7864_multiproof", proof.encode()));
        seeds
    })
}
