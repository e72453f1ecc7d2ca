//! Roots of the EIP's reference implementation and of go-ethereum.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use arbor_tree_eip7864::{
    Builder, Hash, Hasher, LeafUpdate, MemoryRecords, Packing, Path, apply, root,
};
use serde_json::Value;

fn hash(text: &str) -> Hash {
    let digit = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    let bytes = text.as_bytes().chunks(2);
    let bytes: Vec<u8> = bytes
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect();
    bytes.try_into().unwrap()
}

/// Values inserted one by one, and the same values built at once, under every packing.
#[test]
fn roots_of_the_reference_implementation_and_of_geth() {
    let name = "roots_of_the_reference_implementation_and_of_geth";
    let Some(path) = arbor_testdata::find(name, "vectors/small/eip7864_roots.json") else {
        return;
    };
    let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let hasher = Hasher::named(case["hash"].as_str().unwrap()).unwrap();
        let expected = hash(case["root"].as_str().unwrap());
        let entries = case["entries"].as_object().unwrap().iter();
        let mut entries: Vec<(Path, Hash)> = entries
            .map(|(key, value)| {
                let key = Path::of_key(&hash(key)).unwrap();
                (key, hash(value.as_str().unwrap()))
            })
            .collect();
        for levels in 1..=8 {
            let packing = Packing::of_levels(levels).unwrap();
            let mut records = MemoryRecords::default();
            for (key, value) in entries.iter().rev() {
                let (key, value) = (*key, Some(*value));
                let update = [LeafUpdate { key, value }];
                records.change(apply(&records, hasher, packing, &update).unwrap().nodes);
            }
            assert_eq!(root(&records, hasher, packing).unwrap(), expected, "{case}");
            entries.sort_unstable_by_key(|(key, _)| *key);
            let (mut builder, mut sink) = (Builder::new(hasher, packing), |_, _| {});
            for (key, value) in &entries {
                builder.add(*key, Some(*value), &mut sink).unwrap();
            }
            assert_eq!(builder.finish(&mut sink).unwrap(), expected, "{case}");
        }
    }
}
