//! The tree beside its definition, step by step.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use arbor_tree::Position;
use arbor_tree::conformance::flat::{Change, Contents, Subject, key, run, steps};
use arbor_tree_ar16mt::{
    Blake2s, Entry, Hash, Hasher, LeafUpdate, MemoryTree, NoOp, NodeChange, Part, Path, TreeError,
    TreeUpdate, apply, apply_below, apply_unread, build, build_part, empty_root, join, naive, root,
    root_above, subtrees,
};
use proptest::prelude::*;

/// A leaf's contents: its index is made of key and value, so that it follows from the contents.
fn entry(key: &Hash, value: Hash) -> Entry {
    let index = 1 + u64::from(key[31]) + 256 * u64::from(value[31]);
    Entry { index, value }
}

fn database_key(path: &Path) -> Vec<u8> {
    Position::outer(*path).encode()
}

#[derive(Default)]
struct Tree {
    nodes: MemoryTree,
    root: Option<Hash>,
}

impl Subject for Tree {
    fn apply(&mut self, changes: &[Change]) -> Result<(), String> {
        let update = |change: &Change| LeafUpdate {
            key: change.key,
            existed: change.old.is_some(),
            new: change.new.map(|value| entry(&change.key, value)),
        };
        let updates: Vec<LeafUpdate> = changes.iter().map(update).collect();
        let done = apply(&self.nodes, Blake2s::new(), &updates).map_err(|e| e.to_string())?;
        let unread = apply_unread(&self.nodes, Blake2s::new(), &updates);
        let unread = unread.map_err(|e| e.to_string())?;
        assert_eq!((&unread.nodes, unread.root), (&done.nodes, done.root));
        self.agrees_by_parts(&done, &updates);
        let there = changes
            .iter()
            .filter_map(|change| Some((change.key, change.old?)));
        let there = there.map(|(key, value)| (key, entry(&key, value)));
        assert_eq!(unread.found, there.collect::<Vec<_>>());
        self.nodes.change(&done, &updates);
        let read = root(&self.nodes, Blake2s::new()).map_err(|e| e.to_string())?;
        assert_eq!(read, done.root);
        self.root = Some(done.root);
        Ok(())
    }

    fn root(&self) -> Hash {
        self.root.unwrap_or(empty_root(Blake2s::new()))
    }

    fn naive_root(&self, contents: &Contents) -> Hash {
        naive::root(&entries(contents))
    }

    fn stored(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let nodes = self.nodes.nodes().iter();
        nodes
            .map(|(path, record)| (database_key(path), record.to_vec()))
            .collect()
    }

    fn built(&self, contents: &Contents) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut nodes = BTreeMap::new();
        let mut sink = |path: Path, record: std::sync::Arc<[u8]>| {
            nodes.insert(database_key(&path), record.to_vec());
        };
        let built = build(Blake2s::new(), entries(contents), &mut sink).unwrap();
        assert_eq!(built, self.root());
        nodes
    }
}

impl Tree {
    /// Each sixteenth changed by itself comes to the same nodes, but for the root's, and to the same root.
    fn agrees_by_parts(&self, done: &TreeUpdate, updates: &[LeafUpdate]) {
        let nibble = |update: &LeafUpdate| update.key[0] >> 4;
        let mut tops = subtrees(&self.nodes).unwrap();
        let mut nodes = Vec::new();
        for group in updates.chunk_by(|a, b| nibble(a) == nibble(b)) {
            let top = &mut tops[usize::from(nibble(&group[0]))];
            let place = (Path::from_nibbles(&[nibble(&group[0])]), *top);
            let (changed, written) =
                apply_below(&self.nodes, Blake2s::new(), place, group).unwrap();
            *top = changed;
            nodes.extend(written);
        }
        let hashes = tops.map(|child| child.map(|child| *child.hash()));
        assert_eq!(root_above(Blake2s::new(), &hashes), done.root);
        let below = done.nodes.iter().filter(|node| !node.path.is_empty());
        let mut wanted: Vec<NodeChange> = below.cloned().collect();
        wanted.sort_by_key(|node| node.path);
        nodes.sort_by_key(|node| node.path);
        assert_eq!(nodes, wanted);
    }
}

fn entries(contents: &Contents) -> BTreeMap<Hash, Entry> {
    let leaves = contents.iter();
    leaves
        .map(|(key, value)| (*key, entry(key, *value)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_random_sequence_agrees_with_the_definition(steps in steps()) {
        run(&mut Tree::default(), &steps)?;
    }
}

/// Keys that are spread evenly.
fn spread(number: u64) -> Hash {
    let mut key = arbor_hashing::blake2s::Blake2s::new().hash(&number.to_be_bytes());
    // Some keys share all bits above the checkpoint, and more.
    if number.is_multiple_of(7) {
        key[..12].fill(0x5a);
    }
    key
}

/// So many leaves that the tree is split between threads, in steps that bring, change and remove.
#[test]
fn large_updates_agree_with_a_tree_built_at_once() {
    let mut tree = Tree::default();
    let mut contents = Contents::new();
    for step in 0..4u64 {
        let mut changes: BTreeMap<Hash, Change> = BTreeMap::new();
        for number in 5_000 * step..5_000 * step + 20_000 {
            let key = spread(number);
            let old = contents.get(&key).copied();
            let new = (number % 5 != step).then_some([number as u8; 32]);
            changes.insert(key, Change { key, old, new });
        }
        for change in changes.values() {
            match change.new {
                Some(value) => contents.insert(change.key, value),
                None => contents.remove(&change.key),
            };
        }
        let changes: Vec<Change> = changes.into_values().collect();
        tree.apply(&changes).unwrap();
        assert_eq!(tree.stored(), tree.built(&contents), "step {step}");
    }
    assert_eq!(tree.root(), naive::root(&entries(&contents)));
}

#[test]
fn without_hashing_the_same_nodes_are_written() {
    let updates: Vec<LeafUpdate> = {
        let keys: std::collections::BTreeSet<Hash> = (0..2_000).map(spread).collect();
        let update = |key: Hash| LeafUpdate {
            key,
            existed: false,
            new: Some(entry(&key, key)),
        };
        keys.into_iter().map(update).collect()
    };
    let hashed = apply(&MemoryTree::default(), Blake2s::new(), &updates).unwrap();
    let not = apply(&MemoryTree::default(), NoOp, &updates).unwrap();
    assert_eq!(not.root, empty_root(NoOp));
    assert_ne!(Blake2s::NAME, NoOp::NAME);
    let lengths = |nodes: &[arbor_tree_ar16mt::NodeChange]| -> BTreeMap<Path, usize> {
        let length = |record: &Option<std::sync::Arc<[u8]>>| record.as_ref().map_or(0, |r| r.len());
        nodes
            .iter()
            .map(|node| (node.path, length(&node.record)))
            .collect()
    };
    assert_eq!(lengths(&hashed.nodes), lengths(&not.nodes));
    let counts = |stats: arbor_tree_ar16mt::TreeStats| (stats.new_leaves, stats.new_internals);
    assert_eq!(counts(hashed.stats), counts(not.stats));
}

fn single(key: Hash, existed: bool, new: Option<Entry>) -> [LeafUpdate; 1] {
    [LeafUpdate { key, existed, new }]
}

#[test]
fn what_cannot_be_is_an_error() {
    let (one, two) = ([1; 32], [2; 32]);
    let some = Some(entry(&one, one));
    let mut tree = MemoryTree::default();
    let hasher = Blake2s::new();
    let first = single(one, false, some);
    let done = apply(&tree, hasher, &first).unwrap();
    tree.change(&done, &first);

    let zero = Some(Entry {
        index: 0,
        value: one,
    });
    let index = apply(&tree, hasher, &single(two, false, zero));
    assert!(matches!(index, Err(TreeError::Index(key)) if key == two));
    let twice = [first, first].concat();
    assert!(matches!(apply(&tree, hasher, &twice), Err(TreeError::Order(key)) if key == one));
    let missing = apply(&tree, hasher, &single(two, true, None));
    assert!(matches!(missing, Err(TreeError::Missing(key)) if key == two));
    let present = apply(&tree, hasher, &first);
    assert!(matches!(present, Err(TreeError::Present(key)) if key == one));

    // A reader that has lost a node or a leaf.
    struct Lost(MemoryTree, bool);
    impl arbor_tree_ar16mt::Reader for Lost {
        fn nodes(
            &self,
            paths: &[Path],
        ) -> Result<Vec<Option<std::sync::Arc<[u8]>>>, arbor_tree_ar16mt::ReadError> {
            let mut nodes = arbor_tree_ar16mt::Reader::nodes(&self.0, paths)?;
            if self.1 {
                nodes.iter_mut().for_each(|node| {
                    *node = node.take().map(|bytes| bytes[1..].into());
                });
            }
            Ok(nodes)
        }

        fn leaves_below(
            &self,
            paths: &[Path],
        ) -> Result<Vec<Option<arbor_tree_ar16mt::StoredLeaf>>, arbor_tree_ar16mt::ReadError>
        {
            Ok(vec![None; paths.len()])
        }
    }
    let mut near = one;
    near[31] = 2;
    let beside = single(near, false, some);
    let lost = apply(&Lost(tree.clone(), false), hasher, &beside);
    assert!(matches!(lost, Err(TreeError::MissingLeaf(_))), "{lost:?}");
    let damaged = apply(&Lost(tree, true), hasher, &beside);
    assert!(matches!(damaged, Err(TreeError::Record { .. })));

    let mut sink = |_: Path, _: std::sync::Arc<[u8]>| ();
    let leaf = |key: Hash| (key, entry(&key, key));
    let path = |key: &Hash| Path::prefix_of_key(key, 2);
    let mixed = build_part(hasher, (path(&one), [leaf(one), leaf(two)]), &mut sink);
    assert!(matches!(mixed, Err(TreeError::OtherPart(key)) if key == two));
    let parts =
        [two, one].map(|key| build_part(hasher, (path(&key), [leaf(key)]), &mut sink).unwrap());
    for part in &parts {
        let bytes = part.encode();
        let again = Part::decode(&bytes).expect("whole");
        assert_eq!(
            (again.hash(hasher), again.encode()),
            (part.hash(hasher), bytes.clone())
        );
        // Without what lies there, the bytes are those of a part without leaves.
        let cut = (0..bytes.len()).filter(|length| Part::decode(&bytes[..*length]).is_some());
        assert_eq!(cut.collect::<Vec<_>>(), [3]);
    }
    let descending = join(hasher, Path::prefix_of_key(&one, 1), &parts, &mut sink);
    assert!(matches!(descending, Err(TreeError::Parts(other)) if other == path(&one)));
    let deeper = join(hasher, Path::ROOT, &parts, &mut sink);
    assert!(matches!(deeper, Err(TreeError::Parts(other)) if other == path(&two)));
}

proptest! {
    /// The order of a batch's steps does not matter: a tree has one form.
    #[test]
    fn one_batch_is_as_good_as_many(keys in prop::collection::btree_set(key(), 1..30)) {
        let whole: Contents = keys.iter().map(|key| (*key, *key)).collect();
        let mut tree = Tree::default();
        for key in &keys {
            tree.apply(&[Change { key: *key, old: None, new: Some(*key) }]).unwrap();
        }
        prop_assert_eq!(tree.stored(), tree.built(&whole));
    }
}

/// Keys that part about the checkpoint.
fn key_about_the_checkpoint() -> impl Strategy<Value = Hash> {
    let change = (32usize..72, any::<bool>());
    prop::collection::vec(change, 0..4).prop_map(|changes| {
        let mut key = [0x5a; 32];
        for (bit, last) in changes {
            key[bit / 8] ^= 128 >> (bit % 8);
            key[31] ^= u8::from(last);
        }
        key
    })
}

proptest! {
    #[test]
    fn leaves_about_the_checkpoint_agree_with_the_definition(
        steps in prop::collection::vec(prop::collection::vec((key_about_the_checkpoint(), prop::option::of(any::<Hash>())), 1..8), 1..8),
    ) {
        run(&mut Tree::default(), &steps)?;
    }
}
