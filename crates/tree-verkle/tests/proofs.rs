//! Witnesses: the testnets' blocks, proofs of trees in memory, the root after them, and everything that is wrong with forged ones.

mod support;

use arbor_tree_verkle::{MemoryTree, Settings, Stem, Witness, WitnessError, prove};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value as Json;
use std::path::Path;
use support::{COMMITTER, change, key, vectors, word};

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
    let Some(folder) = vectors("blocks_of_kaustinen_6") else {
        return;
    };
    // The roots before are not in the files: that of block 71 is published with rust-verkle's test of block 72.
    let block_71 = word("64e1a647f42e5c2e3c434531ccf529e1b3e93363a40db9fc8eec81f492123510");
    for (file, valid) in [("valid_block_72", true), ("invalid_block_72", false)] {
        let block = json(&folder.join(format!("kaustinen_blocks/{file}.json")));
        let witness = witness(&block["executionWitness"]);
        let after = root(&block["header"]["stateRoot"]);
        assert_eq!(check(&witness, block_71, Some(after)), valid, "{file}");
        assert!(!check(&witness, after, None), "{file} at the root after it");
    }

    // Block 1 follows the genesis state. The file's state root is not the one that its one write leads to; it is held against the whole tree's.
    let block = json(&folder.join("kaustinen_blocks/valid_block_1.json"));
    let witness = witness(&block["executionWitness"]);
    let mut tree = MemoryTree::new();
    let genesis = support::csv(&folder.join("kaustinen7_besu/gen-devnet-6.csv"));
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
    let Some(folder) = vectors("blocks_of_kaustinen_2_and_4") else {
        return;
    };
    let mut blocks = 0;
    for testnet in [2, 4] {
        let file =
            format!("ethereumjs_kaustinen/client_test_testdata_blocks_kaustinen{testnet}.json");
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
