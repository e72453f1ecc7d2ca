//! Roots of the EIP's reference implementation and of go-ethereum.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use arbor_tree_eip8297::{
    Builder, Hash, Hasher, LeafUpdate, MemoryRecords, Packing, Path, apply, root, write_leaf,
};
use serde_json::Value;

fn json(test: &str, path: &str) -> Option<Value> {
    let bytes = std::fs::read(arbor_testdata::find(test, path)?).unwrap();
    Some(serde_json::from_slice(&bytes).unwrap())
}

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    let digits = text.trim_start_matches("0x").as_bytes();
    let digit = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn hash(value: &Value) -> Hash {
    bytes(value).try_into().unwrap()
}

fn packings() -> impl Iterator<Item = Packing> {
    (1..=8).flat_map(|levels| {
        [false, true].map(|inner_hashes| Packing {
            levels,
            inner_hashes,
        })
    })
}

/// The root of leaves that are inserted one by one, and of the same leaves built at once.
fn check(name: &str, leaves: &[(Vec<u8>, Hash)], expected: Hash) {
    let hasher = Hasher::blake3();
    for packing in packings() {
        let mut records = MemoryRecords::default();
        for (key, value) in leaves {
            let update = LeafUpdate {
                key: Path::of_key(key).unwrap(),
                value: *value,
            };
            records.change(apply(&records, hasher, packing, &[update]).unwrap().nodes);
        }
        assert_eq!(
            root(&records, hasher, packing).unwrap(),
            expected,
            "{name}, {packing:?}"
        );
        let mut sorted = leaves.to_vec();
        sorted.sort();
        let mut builder = Builder::new(hasher, packing);
        let mut sink = |_, _| {};
        for (key, value) in sorted {
            builder
                .add(Path::of_key(&key).unwrap(), value, &mut sink)
                .unwrap();
        }
        assert_eq!(
            builder.finish(&mut sink).unwrap(),
            expected,
            "{name}, {packing:?}"
        );
    }
}

#[test]
fn roots_of_the_reference_implementation() {
    let Some(vectors) = json(
        "roots_of_the_reference_implementation",
        "vectors/small/eip8297_small.json",
    ) else {
        return;
    };
    let cases = vectors["cases"].as_array().unwrap();
    for case in cases {
        let entries = case["entries"].as_object().unwrap();
        let entries = entries.iter();
        let leaves: Vec<_> = entries
            .map(|(key, value)| (bytes(&Value::from(key.as_str())), hash(value)))
            .collect();
        check(case["name"].as_str().unwrap(), &leaves, hash(&case["root"]));
    }
    assert_eq!(cases.len(), 8);
}

#[test]
fn roots_of_go_ethereum() {
    let Some(vectors) = json(
        "roots_of_go_ethereum",
        "vectors/eip8297_pbt/geth_pr35436_eip8297_vectors.json",
    ) else {
        return;
    };
    let cases = vectors["trie_vectors"].as_array().unwrap();
    for case in cases {
        let entries = case["entries"].as_array().unwrap().iter();
        let leaves: Vec<_> = entries
            .map(|entry| (bytes(&entry["key"]), hash(&entry["value"])))
            .collect();
        if let [(key, value @ [0, ..])] = &leaves[..]
            && *value == [0; 32]
        {
            // The reference implementation's tree stores zeros, which its embedding never gives it.
            // Ours does not; the hash of such a leaf is the same.
            assert_eq!(case["name"], "zero_value_present");
            let mut message = Vec::new();
            write_leaf(&Path::of_key(key).unwrap(), value, &mut message);
            assert_eq!(Hasher::blake3().hash(&message), hash(&case["root"]));
            check("zeros", &leaves, [0; 32]);
            continue;
        }
        check(case["name"].as_str().unwrap(), &leaves, hash(&case["root"]));
    }
    assert_eq!(cases.len(), 8);
    assert_eq!(hash(&vectors["empty_root"]), [0; 32]);
}

#[test]
fn roots_after_each_operation() {
    let Some(vectors) = json(
        "roots_after_each_operation",
        "vectors/eip8297_pbt/geth_pr35436_eip8297_vectors.json",
    ) else {
        return;
    };
    let hasher = Hasher::blake3();
    let mut operations = 0;
    for packing in packings() {
        for sequence in vectors["sequence_vectors"].as_array().unwrap() {
            let mut records = MemoryRecords::default();
            let steps = sequence["ops"].as_array().unwrap().iter();
            for (step, expected) in steps.zip(sequence["roots_after"].as_array().unwrap()) {
                let value = match step["op"].as_str().unwrap() {
                    "set" => hash(&step["value"]),
                    "delete" => [0; 32],
                    other => panic!("operation {other}"),
                };
                let key = Path::of_key(&bytes(&step["key"])).unwrap();
                let update =
                    apply(&records, hasher, packing, &[LeafUpdate { key, value }]).unwrap();
                assert_eq!(update.root, hash(expected), "{step}");
                records.change(update.nodes);
                operations += 1;
            }
        }
    }
    assert_eq!(operations, 16 * 3 * 120);
}
