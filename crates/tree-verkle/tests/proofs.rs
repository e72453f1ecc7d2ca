//! Witnesses: the testnets' blocks, proofs of trees in memory, the root after them, and everything that is wrong with forged ones.

use crate::support::{self, COMMITTER, change, key, vectors, word};
use arbor_ipa::{Fr, Multiproof, Point, SparseOpening, Transcript, stem_scalar, value_scalars};
use arbor_tree_verkle::{
    MemoryTree, Proof, Settings, Stem, StemDiff, SuffixDiff, Witness, WitnessError, prove,
    prove_guarded,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value as Json;
use std::path::Path;

fn json(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

fn root(value: &Json) -> [u8; 32] {
    word(value.as_str().expect("a root"))
}

/// Whether a block's witness holds at the root before and leads to the one after. `None`: it does not hold.
fn check(witness: &Witness, before: [u8; 32], after: Option<[u8; 32]>) -> bool {
    let verified = witness.verify(&COMMITTER, &before).expect("well formed");
    let Some(verified) = verified else {
        return false;
    };
    let found = verified
        .root_after(&COMMITTER)
        .expect("all nodes are there");
    after.is_none_or(|after| found == after)
}

/// Reads a witness, and writes and reads it again in both forms.
fn witness(value: &Json) -> Witness {
    let witness: Witness = serde_json::from_value(value.clone()).expect("a witness");
    let again = serde_json::to_string(&witness).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Witness>(&again).expect("JSON"),
        witness
    );
    assert_eq!(
        Witness::from_bytes(&witness.to_bytes()).as_ref(),
        Ok(&witness)
    );
    let sizes = witness.sizes();
    let parts = [
        sizes.stems,
        sizes.suffixes,
        sizes.current,
        sizes.new,
        sizes.ways,
        sizes.commitments,
        sizes.multiproof,
        sizes.offsets,
    ];
    assert_eq!(parts.iter().sum::<usize>(), witness.to_bytes().len());
    witness
}

#[test]
fn blocks_of_kaustinen_6() {
    let test = "blocks_of_kaustinen_6";
    let (Some(blocks), Some(genesis)) = (
        vectors(test, "kaustinen_blocks"),
        vectors(test, "kaustinen7_besu/gen-devnet-6.csv"),
    ) else {
        return;
    };
    // The roots before are not in the files: that of block 71 is published with rust-verkle's test of block 72.
    let block_71 = word("64e1a647f42e5c2e3c434531ccf529e1b3e93363a40db9fc8eec81f492123510");
    for (file, valid) in [("valid_block_72", true), ("invalid_block_72", false)] {
        let block = json(&blocks.join(format!("{file}.json")));
        let witness = witness(&block["executionWitness"]);
        let after = root(&block["header"]["stateRoot"]);
        assert_eq!(check(&witness, block_71, Some(after)), valid, "{file}");
        assert!(!check(&witness, after, None), "{file} at the root after it");
    }

    // Block 1 follows the genesis state. The file's state root is not the one that its one write leads to; it is held against the whole tree's.
    let block = json(&blocks.join("valid_block_1.json"));
    let witness = witness(&block["executionWitness"]);
    let mut tree = MemoryTree::new();
    let genesis = support::csv(&genesis);
    let before = change(&mut tree, &Settings::default(), &genesis).root_hash();
    let writes: Vec<_> = witness
        .keys()
        .map(|(stem, diff)| (support::join(stem, diff.suffix), diff.new))
        .collect();
    let after = change(&mut tree, &Settings::default(), &writes).root_hash();
    assert!(check(&witness, before, Some(after)));
    assert!(!check(&witness, after, None));
}

#[test]
fn blocks_of_kaustinen_2_and_4() {
    let Some(folder) = vectors("blocks_of_kaustinen_2_and_4", "ethereumjs_kaustinen") else {
        return;
    };
    let mut blocks = 0;
    for testnet in [2, 4] {
        let file = format!("client_test_testdata_blocks_kaustinen{testnet}.json");
        let file = json(&folder.join(file));
        for (name, pair) in file.as_object().expect("blocks") {
            let (parent, block) = (&pair["parent"], &pair["execute"]);
            let witness = witness(&block["execution_witness"]);
            let (before, after) = (root(&parent["state_root"]), root(&block["state_root"]));
            assert!(
                check(&witness, before, Some(after)),
                "{name} of kaustinen {testnet}"
            );
            assert!(!check(&witness, after, None), "{name} at the root after it");
            blocks += 1;
        }
    }
    assert_eq!(blocks, 7);
}

/// Keys that share stems and long prefixes, some of them in the tree and some not.
fn random_keys(random: &mut StdRng, count: usize) -> Vec<[u8; 32]> {
    let mut keys: Vec<[u8; 32]> = Vec::new();
    for _ in 0..count {
        let mut key: [u8; 32] = random.random();
        if random.random_ratio(2, 3) && !keys.is_empty() {
            let other = keys[random.random_range(0..keys.len())];
            let shared = [1, 2, 3, 30, 31][random.random_range(0..5)];
            key[..shared].copy_from_slice(&other[..shared]);
        }
        keys.push(key);
    }
    keys
}

fn tree_of(random: &mut StdRng, keys: &[[u8; 32]], settings: &Settings) -> (MemoryTree, [u8; 32]) {
    let mut tree = MemoryTree::new();
    let values: Vec<_> = keys
        .iter()
        .map(|key| (*key, Some(random.random())))
        .collect();
    let root = change(&mut tree, settings, &values).root_hash();
    (tree, root)
}

fn split(keys: &[[u8; 32]]) -> Vec<(Stem, u8)> {
    keys.iter().map(|bytes| key(*bytes)).collect()
}

/// Levels that are read in several groups: of some 250 nodes with 14 children each, of which some are not asked for.
#[test]
fn proofs_of_many_keys_do_not_depend_on_threads() {
    let mut random = StdRng::seed_from_u64(1);
    let settings = Settings::default();
    let all: Vec<[u8; 32]> = (0..4_500).map(|_| random.random()).collect();
    let (tree, root) = tree_of(&mut random, &all[..3_500], &settings);
    // Nothing between these first bytes, so that groups do not stand side by side.
    let far_apart = |bytes: &&[u8; 32]| !(64..96).contains(&bytes[0]);
    let asked: Vec<[u8; 32]> = all[500..].iter().filter(far_apart).copied().collect();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().expect("threads");
        pool.install(|| prove(&tree, &COMMITTER, &split(&asked)).expect("proves"))
    };
    let witness = on(1);
    assert_eq!(on(4), witness);
    let verified = witness.verify(&COMMITTER, &root).expect("well formed");
    let verified = verified.expect("holds");
    let mut expected: Vec<_> = asked
        .iter()
        .map(|bytes| {
            let (stem, suffix) = key(*bytes);
            (*bytes, tree.value(&stem, suffix))
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(verified.values().collect::<Vec<_>>(), expected);
    assert_eq!(verified.root_after(&COMMITTER).expect("computes"), root);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A proof of keys, present or not, verifies, gives their values, and leads to the root that the changed tree has.
    #[test]
    fn proofs_and_the_roots_after(seed: u64, count in 0usize..60, asked in 1usize..40, images: bool) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut settings = Settings::default();
        settings.form.images = images;
        let all = random_keys(&mut random, count + asked);
        let (tree, root) = tree_of(&mut random, &all[..count], &settings);
        let asked: Vec<_> = (0..asked).map(|_| all[random.random_range(0..all.len())]).collect();
        let mut witness = prove(&tree, &COMMITTER, &split(&asked)).expect("proves");
        prop_assert_eq!(&Witness::from_bytes(&witness.to_bytes()).expect("reads"), &witness);
        {
            let verified = witness.verify(&COMMITTER, &root).expect("well formed").expect("holds");
            let mut expected: Vec<_> = asked.clone();
            expected.sort_unstable();
            expected.dedup();
            let expected: Vec<_> = expected.into_iter().map(|bytes| {
                let (stem, suffix) = key(bytes);
                (bytes, tree.value(&stem, suffix))
            }).collect();
            prop_assert_eq!(verified.values().collect::<Vec<_>>(), expected);
            prop_assert_eq!(verified.root_after(&COMMITTER).expect("computes"), root);
        }
        let guarded = prove_guarded(&tree, &COMMITTER, &split(&asked)).expect("proves");
        {
            let verified = guarded.verify(&COMMITTER, &root).expect("well formed").expect("holds");
            prop_assert_eq!(verified.doubtful().count(), 0);
            let proven: std::collections::BTreeMap<_, _> = verified.values().collect();
            for (key, value) in &proven {
                let (stem, suffix) = support::key(*key);
                prop_assert_eq!(*value, tree.value(&stem, suffix));
            }
            prop_assert!(asked.iter().all(|key| proven.contains_key(key)));
            prop_assert_eq!(verified.root_after(&COMMITTER).expect("computes"), root);
            let doubtful = witness.verify(&COMMITTER, &root).expect("well formed").expect("holds").doubtful().count();
            prop_assert_eq!(doubtful > 0, guarded != witness);
        }
        let mut changes = Vec::new();
        for diff in &mut witness.state_diff {
            for suffix in &mut diff.suffixes {
                if random.random() {
                    suffix.new = Some(random.random());
                    changes.push((support::join(&diff.stem, suffix.suffix), suffix.new));
                }
            }
        }
        let mut changed = tree.clone();
        let after = change(&mut changed, &settings, &changes).root_hash();
        let verified = witness.verify(&COMMITTER, &root).expect("well formed").expect("holds");
        prop_assert_eq!(verified.root_after(&COMMITTER).expect("computes"), after);
    }
}

/// A witness that has everything: present, absent in a leaf, absent in nothing, absent with other stems, and new values.
fn rich() -> (Witness, [u8; 32], [u8; 32]) {
    let mut random = StdRng::seed_from_u64(3);
    let all = random_keys(&mut random, 24);
    let (mut tree, root) = tree_of(&mut random, &all[..16], &Settings::default());
    let mut asked = split(&all[12..]);
    asked.push((asked[0].0, asked[0].1 ^ 1));
    let mut witness = prove(&tree, &COMMITTER, &asked).expect("proves");
    let ends: std::collections::BTreeSet<_> = witness
        .proof
        .depth_extension_present
        .iter()
        .map(|byte| byte & 7)
        .collect();
    assert_eq!(ends.len(), 3, "ways of all kinds");
    assert!(!witness.proof.other_stems.is_empty());
    let mut changes = Vec::new();
    for diff in witness.state_diff.iter_mut().step_by(2) {
        diff.suffixes[0].new = Some([7; 32]);
        changes.push((
            support::join(&diff.stem, diff.suffixes[0].suffix),
            Some([7; 32]),
        ));
    }
    let after = change(&mut tree, &Settings::default(), &changes).root_hash();
    (witness, root, after)
}

/// Whether bytes are a witness of these keys that holds at the roots before and after.
///
/// Which keys a witness is about must be compared by whoever asked for them: what proves that a key is absent proves it for others, too.
fn accepted(bytes: &[u8], keys: &[[u8; 32]], before: [u8; 32], after: [u8; 32]) -> bool {
    let Ok(witness) = Witness::from_bytes(bytes) else {
        return false;
    };
    match witness.verify(&COMMITTER, &before) {
        Ok(Some(verified)) => {
            let root = verified.root_after(&COMMITTER);
            verified
                .values()
                .map(|(key, _)| key)
                .eq(keys.iter().copied())
                && root.is_ok_and(|root| root == after)
        }
        Ok(None) | Err(_) => false,
    }
}

#[test]
fn no_byte_can_be_another() {
    let (witness, before, after) = rich();
    let bytes = witness.to_bytes();
    let keys: Vec<_> = witness
        .keys()
        .map(|(stem, diff)| support::join(stem, diff.suffix))
        .collect();
    let accepted = |bytes: &[u8]| accepted(bytes, &keys, before, after);
    assert!(accepted(&bytes));
    let mut random = StdRng::seed_from_u64(4);
    for at in 0..bytes.len() {
        // Most bytes with one flip; the first bits of every part are in the tests of single parts.
        let mut forged = bytes.clone();
        forged[at] ^= 1u8 << random.random_range(0..8);
        assert!(!accepted(&forged), "byte {at} of {}", bytes.len());
    }
    for end in (0..bytes.len()).step_by(7) {
        assert!(!accepted(&bytes[..end]), "cut at {end}");
    }
    assert!(!accepted(&[&bytes[..], &[0]].concat()));
}

#[test]
fn parts_that_do_not_fit() {
    let (good, before, _) = rich();
    let error = |forge: &dyn Fn(&mut Witness)| {
        let mut witness = good.clone();
        forge(&mut witness);
        match witness.verify(&COMMITTER, &before) {
            Err(error) => error.to_string(),
            Ok(verified) => panic!("no error; holds: {}", verified.is_some()),
        }
    };
    let present = |wanted: u8| {
        let ways = good.proof.depth_extension_present.iter();
        ways.clone()
            .position(|way| way & 7 == wanted)
            .expect("such a way")
    };
    assert_eq!(
        error(&|witness| witness.state_diff.clear()),
        "a witness without keys"
    );
    assert!(error(&|witness| witness.state_diff.swap(0, 1)).contains("must ascend"));
    assert!(error(&|witness| witness.state_diff[2].suffixes.clear()).contains("not so at stem 2"));
    assert!(
        error(&|witness| witness.proof.depth_extension_present.truncate(3))
            .contains("ways of stems")
    );
    assert!(
        error(&|witness| witness.proof.depth_extension_present[1] = 0)
            .contains("the way to stem 1")
    );
    assert!(
        error(&|witness| witness.proof.depth_extension_present[1] = 15)
            .contains("the way to stem 1")
    );
    assert!(
        error(&|witness| witness.proof.commitments_by_path.truncate(1))
            .contains("commitments by path")
    );
    assert!(
        error(&|witness| witness.proof.commitments_by_path[1] = [255; 32])
            .starts_with("commitment 1: a coordinate")
    );
    assert!(error(&|witness| witness.proof.other_stems.push([255; 31])).contains("other stems"));
    assert!(error(&|witness| witness.proof.other_stems.clear()).contains("other stems"));
    assert!(error(&|witness| witness.proof.other_stems[0][0] ^= 1).contains("other stem 0"));
    assert!(error(&|witness| witness.proof.multiproof[544..].fill(255)).contains("the multiproof"));
    let absent = present(0);
    let with_value =
        error(&|witness| witness.state_diff[absent].suffixes[0].current = Some([0; 32]));
    assert_eq!(
        with_value,
        format!("stem {absent} is said to be absent, and to have a value")
    );
    let root = good.verify(&COMMITTER, &[255; 32]).err();
    assert!(matches!(root, Some(WitnessError::Root(_))));
    assert!(prove(&MemoryTree::new(), &COMMITTER, &[]).is_err());
}

#[test]
fn an_empty_tree_proves_absence_and_takes_values() {
    let mut witness = prove(
        &MemoryTree::new(),
        &COMMITTER,
        &[([1; 31], 1), ([2; 31], 200)],
    )
    .expect("proves");
    witness.state_diff[1].suffixes[0].new = Some([0; 32]);
    let verified = witness
        .verify(&COMMITTER, &[0; 32])
        .expect("well formed")
        .expect("holds");
    let mut tree = MemoryTree::new();
    let after = change(
        &mut tree,
        &Settings::default(),
        &[(support::join(&[2; 31], 200), Some([0; 32]))],
    );
    assert_eq!(
        verified.root_after(&COMMITTER).expect("computes"),
        after.root_hash()
    );
}

/// A polynomial that a forger commits to, and its commitment.
struct Committed {
    values: Vec<(u8, Fr)>,
    point: Point,
}

impl Committed {
    fn to(values: Vec<(u8, Fr)>) -> Self {
        let mut dense = [Fr::ZERO; 256];
        for (at, value) in &values {
            dense[usize::from(*at)] = *value;
        }
        let point = COMMITTER.commit(&dense);
        Self { values, point }
    }

    fn image(&self) -> Fr {
        self.point.map_to_field()
    }
}

/// A tree of one leaf with one value of the lower half, as its polynomials.
fn lone_leaf(stem: &Stem, suffix: u8, value: [u8; 32]) -> [Committed; 2] {
    let [low, high] = value_scalars(Some(&value));
    let half = Committed::to(vec![(2 * suffix, low), (2 * suffix + 1, high)]);
    let leaf = vec![(0, Fr::ONE), (1, stem_scalar(stem)), (2, half.image())];
    let leaf = Committed::to(leaf);
    let root = Committed::to(vec![(stem[0], leaf.image())]);
    [root, leaf]
}

/// A witness that one key is absent, its way `depth` bytes long, made of openings: polynomials, a point of each and its value there.
fn forged(stem: Stem, suffix: u8, depth: u8, openings: &[(&Committed, u8)]) -> Witness {
    let encoded: Vec<_> = openings
        .iter()
        .map(|(committed, _)| committed.point.to_bytes())
        .collect();
    let openings = openings.iter().zip(&encoded);
    let openings: Vec<_> = openings
        .map(|((committed, point), commitment)| {
            let value = committed.values.iter().find(|(at, _)| at == point);
            SparseOpening {
                commitment,
                values: &committed.values,
                point: *point,
                value: value.map_or(Fr::ZERO, |(_, value)| *value),
            }
        })
        .collect();
    let multiproof =
        Multiproof::prove_sparse(&COMMITTER, &mut Transcript::new(b"vt"), &openings).to_bytes();
    let diff = SuffixDiff {
        suffix,
        current: None,
        new: Some([3; 32]),
    };
    Witness {
        state_diff: vec![StemDiff {
            stem,
            suffixes: vec![diff],
        }],
        proof: Proof {
            other_stems: Vec::new(),
            depth_extension_present: vec![depth << 3],
            commitments_by_path: encoded[1..].to_vec(),
            multiproof: multiproof.try_into().expect("a multiproof's length"),
        },
    }
}

/// Of a leaf it is said that it is an internal node, and one of its zeros passes for a place without a child. The format cannot tell; what is told is that it is doubtful.
#[test]
fn a_leaf_that_passes_for_an_internal_node_is_doubtful() {
    let (stem, suffix, value) = ([9; 31], 5, [7; 32]);
    let mut tree = MemoryTree::new();
    let there = [(support::join(&stem, suffix), Some(value))];
    let before = change(&mut tree, &Settings::default(), &there).root_hash();
    let [root, leaf] = lone_leaf(&stem, suffix, value);
    assert_eq!(root.point.to_bytes(), before);
    let witness = forged(stem, suffix, 2, &[(&root, stem[0]), (&leaf, stem[1])]);
    let verified = witness
        .verify(&COMMITTER, &before)
        .expect("well formed")
        .expect("holds");
    assert_eq!(verified.doubtful().collect::<Vec<_>>(), [&stem]);

    // The root is no leaf: what is absent right below it is.
    let other = [8; 31];
    for make in [prove, prove_guarded] {
        let witness = make(&tree, &COMMITTER, &[(other, 0)]).expect("proves");
        assert_eq!(witness.keys().count(), 1);
        let verified = witness
            .verify(&COMMITTER, &before)
            .expect("well formed")
            .expect("holds");
        assert_eq!(verified.doubtful().count(), 0);
    }
}

/// What is absent below internal nodes is so without doubt only with a key that opens index 0 of each, or beside a child that a leaf has no place for.
#[test]
fn absences_are_guarded_where_they_must_be() {
    let stem = |bytes: &[u8]| {
        let mut stem = [200; 31];
        stem[..bytes.len()].copy_from_slice(bytes);
        stem
    };
    let mut tree = MemoryTree::new();
    let there = [
        [1, 2, 3, 4],
        [1, 2, 3, 5],
        [1, 2, 9, 9],
        [6, 3, 0, 0],
        [6, 2, 0, 0],
    ];
    let there = there.map(|bytes| (support::join(&stem(&bytes), 0), Some([1; 32])));
    let root = change(&mut tree, &Settings::default(), &there).root_hash();
    let asked = |stems: &[&[u8]]| -> Vec<(Stem, u8)> {
        stems.iter().map(|bytes| (stem(bytes), 0)).collect()
    };
    // Keys, how many of them are doubtful, and how many guards they need.
    let cases: [(&[&[u8]], usize, usize); 6] = [
        (&[&[1, 7]], 1, 1),
        // A child at 9 of the node 1 2, but none of the node 1 that a leaf could not have.
        (&[&[1, 2, 7], &[1, 2, 9, 9]], 1, 1),
        (&[&[1, 2, 3, 7]], 1, 3),
        (&[&[1, 0]], 0, 0),
        (&[&[6, 3, 0, 0], &[6, 2, 0, 0], &[6, 5]], 1, 1),
        (&[&[1, 2, 3, 4], &[9]], 0, 0),
    ];
    for (stems, doubtful, guards) in cases {
        let keys = asked(stems);
        let plain = prove(&tree, &COMMITTER, &keys).expect("proves");
        let verified = plain.verify(&COMMITTER, &root).expect("well formed");
        assert_eq!(
            verified.expect("holds").doubtful().count(),
            doubtful,
            "{stems:?}"
        );
        let guarded = prove_guarded(&tree, &COMMITTER, &keys).expect("proves");
        assert_eq!(guarded.keys().count(), keys.len() + guards, "{stems:?}");
        let verified = guarded.verify(&COMMITTER, &root).expect("well formed");
        assert_eq!(verified.expect("holds").doubtful().count(), 0, "{stems:?}");
    }
}

/// A node without children, invented where there is none, has the image of nothing: whatever hangs below it would lead to a root that no tree has.
#[test]
fn no_node_is_without_children() {
    let (stem, value) = ([9; 31], [7; 32]);
    let [root, _] = lone_leaf(&stem, 5, value);
    let nothing = Committed::to(Vec::new());
    for depth in 2..5 {
        let mut openings = vec![(&root, 8)];
        openings.resize(usize::from(depth), (&nothing, 8));
        let witness = forged([8; 31], 0, depth, &openings);
        let error = witness.verify(&COMMITTER, &root.point.to_bytes()).err();
        assert_eq!(error, Some(WitnessError::Childless { index: 0 }), "{depth}");
    }
}

proptest! {
    #[test]
    fn bytes_that_are_no_witness(bytes in proptest::collection::vec(any::<u8>(), 0..900)) {
        // Nothing panics; what is read is what was written.
        if let Ok(witness) = Witness::from_bytes(&bytes) {
            prop_assert_eq!(witness.to_bytes(), bytes);
        }
    }
}

#[test]
fn json_that_is_no_witness() {
    let (witness, ..) = rich();
    let good = serde_json::to_value(&witness).expect("JSON");
    let error = |pointer: &str, value: Json| {
        let mut json = good.clone();
        *json.pointer_mut(pointer).expect("a part") = value;
        serde_json::from_value::<Witness>(json)
            .expect_err("an error")
            .to_string()
    };
    assert!(error("/stateDiff/0/stem", "0x12".into()).contains("31 bytes are due, not 1"));
    assert!(error("/stateDiff/0/stem", "12".into()).contains("begin with 0x"));
    assert!(error("/stateDiff/0/suffixDiffs/0/suffix", 256.into()).contains("from 0 to 255"));
    assert!(error("/verkleProof/d", "0x1g".into()).contains("g"));
    assert!(error("/verkleProof/ipaProof/cl", Json::Array(Vec::new())).contains("8"));
    assert!(error("/verkleProof", Json::Null).contains("null"));
    assert!(error("/stateDiff/0/suffixDiffs/0/suffix", "+1".into()).contains("from 0 to 255"));
}

/// They were read in the order in which the code has them, which no other reader knows.
#[test]
fn objects_are_not_lists_of_their_values() {
    let (witness, ..) = rich();
    let good = serde_json::to_value(&witness).expect("JSON");
    for (pointer, wanted) in [
        ("", "an object with stateDiff and verkleProof"),
        ("/stateDiff/0", "an object with stem and suffixDiffs"),
        (
            "/stateDiff/0/suffixDiffs/0",
            "an object with suffix, currentValue and newValue",
        ),
        ("/verkleProof", "an object, the proof"),
        (
            "/verkleProof/ipaProof",
            "an object with cl, cr and finalEvaluation",
        ),
    ] {
        let mut json = good.clone();
        let object = json.pointer_mut(pointer).expect("a part");
        let values = object.as_object().expect("an object").values();
        *object = values.cloned().collect();
        let error = serde_json::from_value::<Witness>(json).expect_err(pointer);
        let wanted = format!("invalid type: sequence, expected {wanted}");
        assert!(error.to_string().starts_with(&wanted), "{error}");
    }
}

/// A misspelt value passed for none: its key then had no new value, and the root after was another.
#[test]
fn fields_are_there_and_no_others() {
    let (witness, ..) = rich();
    let good = serde_json::to_string(&witness).expect("JSON");
    for (from, to, why) in [
        ("newValue", "newvalue", "newvalue"),
        ("currentValue", "current", "current"),
        ("\"suffix\":", "\"newValues\":null,\"suffix\":", "newValues"),
        ("otherStems", "others", "others"),
        (",\"newValue\":null", "", "newValue"),
    ] {
        let forged = good.replacen(from, to, 1);
        assert_ne!(forged, good, "{from}");
        let error = serde_json::from_str::<Witness>(&forged).expect_err(from);
        assert!(error.to_string().contains(why), "{error}");
    }
    let noted = good.replacen("\"stem\":", "\"comment\":\"as published\",\"stem\":", 1);
    assert_eq!(
        serde_json::from_str::<Witness>(&noted).expect("a comment"),
        witness
    );
}
