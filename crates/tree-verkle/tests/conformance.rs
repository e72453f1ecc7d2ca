//! The suite of `arbor_tree` over a tree in memory, in every form of records.

use crate::support::{self, COMMITTER, change, key};
use arbor_tree::Hash;
use arbor_tree::conformance::flat::{Change, Contents, Subject, run, steps};
use arbor_tree_verkle::{
    BuildLeaf, Form, MemoryTree, NodeKey, Part, Record, Settings, Stem, Value, build, build_part,
    join, whole_values,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

use crate::naive;

#[derive(Default)]
struct InMemory {
    tree: MemoryTree,
    settings: Settings,
    root: Hash,
}

fn leaves(contents: &Contents) -> Vec<BuildLeaf> {
    let mut leaves: BTreeMap<Stem, Vec<(u8, Value)>> = BTreeMap::new();
    for (bytes, value) in contents {
        let (stem, suffix) = key(*bytes);
        leaves.entry(stem).or_default().push((suffix, *value));
    }
    leaves.into_iter().collect()
}

impl Subject for InMemory {
    fn apply(&mut self, changes: &[Change]) -> Result<(), String> {
        let changes: Vec<_> = changes
            .iter()
            .map(|change| (change.key, change.new))
            .collect();
        let done = change(&mut self.tree, &self.settings, &changes);
        if !done.nodes.is_sorted_by(|a, b| a.key < b.key) {
            return Err("nodes that do not ascend".into());
        }
        self.root = done.root_hash();
        let stored = arbor_tree_verkle::root(&self.tree).map_err(|error| error.to_string())?;
        if stored != done.root {
            return Err("the stored root is another".into());
        }
        Ok(())
    }

    fn root(&self) -> Hash {
        self.root
    }

    fn naive_root(&self, contents: &Contents) -> Hash {
        naive::root(contents).to_bytes()
    }

    fn stored(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        said(support::records(&self.tree))
    }

    fn built(&self, contents: &Contents) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut records = BTreeMap::new();
        let mut last: [Option<NodeKey>; 32] = [None; 32];
        let root = build(
            &COMMITTER,
            &self.settings,
            leaves(contents),
            &mut |key, record| {
                let above = last[key.depth()].replace(key);
                assert!(above < Some(key), "a level in order");
                records.insert(key, record.to_vec());
            },
        );
        assert_eq!(root.expect("builds").to_bytes(), self.root);
        said(records)
    }
}

/// What records say: their bytes may have values or points, by what was known.
fn said(records: BTreeMap<NodeKey, Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let whole = |(key, record): (&NodeKey, &Vec<u8>)| match Record::leaf(key, record) {
        Ok(_) => format!("{:?}", whole_values(key, record)),
        Err(_) => String::new(),
    };
    let values: Vec<String> = records.iter().map(whole).collect();
    let records = support::said(records).into_iter().zip(values);
    records
        .map(|((key, record), values)| {
            (
                key.encode().to_vec(),
                format!("{record:?}{values}").into_bytes(),
            )
        })
        .collect()
}

fn forms() -> impl Strategy<Value = Settings> {
    any::<[bool; 7]>().prop_map(
        |[
            compressed,
            images,
            leaf_commitments,
            values,
            whole,
            batched_images,
            batched_affine,
        ]| Settings {
            form: Form {
                compressed,
                images,
                leaf_commitments,
                values,
                whole,
            },
            batched_images,
            batched_affine,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agrees_with_the_naive_model(settings in forms(), steps in steps()) {
        run(&mut InMemory { settings, ..InMemory::default() }, &steps)?;
    }

    /// A tree built of parts is the tree built at once.
    #[test]
    fn parts_join(steps in steps(), cut in 0u8..4) {
        let contents: Contents = steps.iter().flatten().filter_map(|(key, value)| Some((*key, (*value)?))).collect();
        let leaves = leaves(&contents);
        let settings = Settings::default();
        let (mut whole, mut parts) = (BTreeMap::new(), BTreeMap::new());
        let root = build(&COMMITTER, &settings, leaves.clone(), &mut |key, record| {
            whole.insert(key, record);
        }).expect("builds");
        let (low, high): (Vec<_>, Vec<_>) = leaves.into_iter().partition(|(stem, _)| stem[0] < cut);
        let mut sink = |key, record| {
            assert!(parts.insert(key, record).is_none());
        };
        let low = build_part(&COMMITTER, &settings, low, &mut sink).expect("builds");
        let high = build_part(&COMMITTER, &settings, high, &mut sink).expect("builds");
        // As another process would join them.
        let [low, high] = [low, high].map(|part| {
            let bytes = part.encode();
            let cut = &bytes[..bytes.len().saturating_sub(1)];
            assert!(bytes.is_empty() || Part::decode(cut).is_none());
            assert!(bytes.is_empty() || Part::decode(&[&bytes[..], &bytes].concat()).is_none());
            Part::decode(&bytes).expect("whole")
        });
        prop_assert_eq!(join(&COMMITTER, &settings, [low, high], &mut sink).expect("joins"), root);
        prop_assert_eq!(whole, parts);
    }
}
