//! Roots that zkSync's own tree gives (zksync-era 3e29e4a, `core/lib/merkle_tree/tests`).

use arbor_hashing::blake2s::Blake2s as Hash2s;
use arbor_tree_ar16mt::{Blake2s, Entry, Hash, Hasher, build, empty_root};

const CONTRACT: &str = "4b3af74f66ab1f0da3f2e4ec7a3cb99baf1af7b2";

fn bytes<const N: usize>(hex: &str) -> [u8; N] {
    let bytes = hex::decode(hex).expect("hex digits");
    bytes.try_into().expect("as many bytes")
}

fn number(number: u64) -> Hash {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    word
}

/// zkSync's key of a slot: the hash is a number with the least significant byte first.
fn slot_key(contract: [u8; 20], slot: u64) -> Hash {
    let mut message = [0; 64];
    message[12..32].copy_from_slice(&contract);
    message[32..].copy_from_slice(&number(slot));
    let mut key = Hash2s::new().hash(&message);
    key.reverse();
    key
}

fn root(mut leaves: Vec<(Hash, Entry)>) -> String {
    leaves.sort_unstable_by_key(|(key, _)| *key);
    let root = build(Blake2s::new(), leaves, &mut |_, _| ());
    hex::encode(root.expect("leaves"))
}

#[test]
fn empty_subtrees_have_the_published_hashes() {
    let empty = Blake2s::new().empty();
    for (height, hash) in [
        (
            0,
            "94bb15542026f4f607416f019dffe21bb39bbb32cc92085ab615660a6b5fbef4",
        ),
        (
            1,
            "7952661ab5d63534c5ea72f81887d8dd6bf514b14c8e9fb714b6feb02efb96a0",
        ),
        (
            252,
            "6ff1a8f2e1ba2de7cc48ca8f6006a9401699a07032cc1168e2e7f06dd0d0fc22",
        ),
        (
            256,
            "98a48e4ed1736188384ae8a79dd21c4d6687e5fd22ca18148906d78736c0d86a",
        ),
    ] {
        assert_eq!(hex::encode(empty[height]), hash, "height {height}");
    }
    assert_eq!(empty_root(Blake2s::new()), empty[256]);
    assert_eq!(root(Vec::new()), hex::encode(empty[256]));
}

#[test]
fn a_single_leaf_has_the_published_root() {
    let key = slot_key(bytes(CONTRACT), 0);
    let expected = "5daa965d9688be0ac629916a9920e45910c13d1fe45d257a9e17217f226dfb4d";
    assert_eq!(hex::encode(key), expected);
    let (index, value) = (1, [1; 32]);
    let expected = "7f00a6b2eede960857703c8cb9e96f28b910e6693412cea4b006f24239b681e0";
    assert_eq!(root(vec![(key, Entry { index, value })]), expected);
}

#[test]
fn slots_of_a_contract_have_the_published_roots() {
    for (slots, expected) in [
        (
            1,
            "125bbc1330629d9945f73e51c96589b797c52b2abc44f74f433ff6b3074c37aa",
        ),
        (
            2,
            "31978ee8b0ea0e07dc2e2d64197a1a33d7795be3aeede45df802927512483139",
        ),
        (
            3,
            "d676bafb1d69826f71ed5624df6157001b366b09d8e8062ba3cee4960cdc818b",
        ),
        (
            5,
            "3e8d537bf5ea2b210e8ba895f24beaab6a381ffbbbfd156a55ec2c0200b8d627",
        ),
        (
            8,
            "764ef876bd37aa054ca15b0fd44250fbaa442872cd111726ce543e52b5776e34",
        ),
        (
            13,
            "fff51855b71e47fa5247007499b85343f81adf55f16e1b5e97de2d5485345b0d",
        ),
        (
            21,
            "16822d0d764f0e72a6cff8404e9c150575ecfbe31b16cdfe0353a2d32b923c59",
        ),
        (
            100,
            "d9ef27a3e6e1a0c8fd7abc35ea5229f6dc94814b7d580225f1c9e94161fa3ff5",
        ),
    ] {
        let leaves = (0..slots).map(|slot| {
            let (index, value) = (slot + 1, number(slot + 1));
            (slot_key(bytes(CONTRACT), slot), Entry { index, value })
        });
        assert_eq!(root(leaves.collect()), expected, "{slots} slots");
    }
}

/// Leaves whose keys come from addresses and slots at both ends (`root_hash_compatibility`; specs/AR16MT.md, section 6).
#[test]
fn six_leaves_have_the_published_root() {
    let key = |contract: [u8; 20], slot: Hash| {
        let mut message = [0; 64];
        message[12..32].copy_from_slice(&contract);
        message[32..].copy_from_slice(&slot);
        let mut key = Hash2s::new().hash(&message);
        key.reverse();
        key
    };
    let account_code_storage = "0000000000000000000000000000000000008002";
    let value = [1; 32];
    let first = Entry { index: 1, value };
    let mut leaves = vec![(key(bytes(account_code_storage), [0; 32]), first)];
    for i in 1..6 {
        let mut contract = [0; 20];
        contract[12..].copy_from_slice(&((1 << 63) + u64::from(i) - 1).to_be_bytes());
        let mut value = [255; 32];
        value[31] -= i;
        let index = u64::from(i) + 1;
        leaves.push((key(contract, [255 - i; 32]), Entry { index, value }));
    }
    let expected = "23bfeb3211df8fa0f0268b6fdd9c2a1d485ac4c6480ddb583bfa5e70dd032cab";
    assert_eq!(root(leaves), expected);
}

/// The leaves of zkSync's load test as it is today, whose indices are their values; roots computed from the definition.
#[test]
fn leaves_of_the_load_test_have_the_derived_roots() {
    for (blocks, writes, expected) in [
        (
            1,
            10,
            "6bef472115f9be2a8ee9ed01a3844d39a71b01a41f569965f54e0316c8a28782",
        ),
        (
            3,
            100,
            "daa26700164ac163d28011b6d2c47f46fc8061c1ad4b15a07e8d2b4d7f3829b0",
        ),
        (
            5,
            1000,
            "255ed459b3a5d09bdfe5fe7f71fd34ad3f8282256179010081b8dd1c398daebe",
        ),
    ] {
        let leaves = (0..blocks * writes).map(|slot| {
            let (index, value) = (slot + writes, number(slot + writes));
            (slot_key(bytes(CONTRACT), slot), Entry { index, value })
        });
        assert_eq!(root(leaves.collect()), expected, "{blocks} blocks");
    }
}
