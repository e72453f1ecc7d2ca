//! Keys and values without accounts agree with plain maps, through rollback, pruning, reopening and
//! crashes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arbor_database::primitives::B256;
use arbor_database::{
    Account, BlockRef, DatabaseError, KeyValueEntry, KeyValueError, KeyValueTree, KeyValueVersion,
    KeyValueWrite, OpenOptions, Proof, ProvenLeaf, Registry, Retain, StateChanges, StateError,
    StateView, Verdict, Version,
};
use arbor_state::Tree;
use arbor_store::faulty::{Failure, FaultyStore};
use arbor_store::{MemoryStore, Table};
use arbor_versions::{DirLock, Options};
use serde_json::Value;

const TREES: [&str; 2] = ["ar16mt", "eip8297"];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Keys of which many share their first bytes, and some all but their last bit.
fn key(number: u64) -> B256 {
    let mut key = [0; 32];
    key[0] = (number % 3) as u8;
    key[12] = (number / 3 % 5) as u8;
    key[31] = number as u8;
    key.into()
}

const KEYS: u64 = 120;

type Entries = BTreeMap<B256, KeyValueEntry>;

/// The entries of every version, and the oldest that is retained.
struct Model {
    deletes: bool,
    versions: Vec<Entries>,
    oldest: usize,
    retain: usize,
}

impl Model {
    fn of(tree: &str, retain: usize) -> Self {
        let deletes = tree == "eip8297";
        Self {
            deletes,
            versions: Vec::new(),
            oldest: 0,
            retain,
        }
    }

    fn head(&self) -> Entries {
        self.versions.last().cloned().unwrap_or_default()
    }

    /// Applies a batch to the model of the head.
    fn after(&self, batch: &[KeyValueWrite]) -> Entries {
        let mut entries = self.head();
        for write in batch {
            let next = (!self.deletes).then_some(entries.len() as u64 + 1);
            match write.value {
                Some(value) if !(self.deletes && value.is_zero()) => {
                    let index = entries.get(&write.key).map_or(next, |entry| entry.index);
                    entries.insert(write.key, KeyValueEntry { index, value });
                }
                _ => drop(entries.remove(&write.key)),
            }
        }
        entries
    }

    fn forget(&mut self) {
        self.oldest = self
            .oldest
            .max(self.versions.len().saturating_sub(self.retain + 1));
    }
}

fn batch(random: &mut Random, deletes: bool) -> Vec<KeyValueWrite> {
    let mut batch: Vec<KeyValueWrite> = Vec::new();
    for _ in 0..random.below(30) {
        let key = key(random.below(KEYS));
        if batch.iter().any(|write| write.key == key) {
            continue;
        }
        let value = match random.below(8) {
            0 => B256::ZERO,
            number => B256::from([number as u8 + random.below(200) as u8; 32]),
        };
        batch.push(match deletes && random.below(3) == 0 {
            true => KeyValueWrite::delete(key),
            false => KeyValueWrite::put(key, value),
        });
    }
    batch
}

/// A version has what the model has: by key, listed, and proven, present and absent.
fn assert_version(version: &KeyValueVersion<'_>, entries: &Entries, random: &mut Random) {
    let listed: Result<Vec<_>, KeyValueError> =
        version.entries(B256::ZERO).expect("listed").collect();
    let wanted: Vec<_> = entries.iter().map(|(key, entry)| (*key, *entry)).collect();
    assert_eq!(listed.expect("listed"), wanted);
    let from = key(random.below(KEYS));
    let listed = version.entries(from).expect("listed").count();
    assert_eq!(listed, entries.range(from..).count());
    let mut asked: Vec<B256> = (0..6).map(|_| key(random.below(KEYS + 40))).collect();
    asked.sort_unstable();
    asked.dedup();
    let wanted: Vec<_> = asked.iter().map(|key| entries.get(key).copied()).collect();
    assert_eq!(version.get_many(&asked).expect("read"), wanted);
    let proof = version.prove(&asked).expect("proven");
    let claimed = claimed(&*proof, version.root());
    let claimed: Vec<_> = claimed
        .iter()
        .map(|leaf| (leaf.key, leaf.index, leaf.value))
        .collect();
    let wanted = asked.iter().zip(wanted).map(|(key, entry)| {
        let index = entry.and_then(|entry| entry.index);
        (*key, index, entry.map(|entry| entry.value))
    });
    assert_eq!(claimed, wanted.collect::<Vec<_>>());
}

fn claimed(proof: &dyn Proof, root: B256) -> Vec<ProvenLeaf> {
    match proof.verify(root).expect("well-formed") {
        Verdict::True(claims) => claims.leaves,
        Verdict::False(why) => panic!("a proof that does not hold: {why}"),
    }
}

/// The root of the entries, written in one batch to an empty tree.
fn root_of(tree: &str, entries: &Entries) -> B256 {
    let mut fresh = OpenOptions::new()
        .tree(tree)
        .key_value_in_memory()
        .expect("made");
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|(_, entry)| entry.index);
    let writes = entries
        .iter()
        .map(|(key, entry)| KeyValueWrite::put(**key, entry.value));
    fresh.extend(&writes.collect::<Vec<_>>()).expect("written")
}

fn assert_whole(tree: &mut KeyValueTree, model: &Model, random: &mut Random) {
    let versions = model.versions.len();
    assert_eq!(
        tree.version()
            .map(|version| version.0 as usize + 1)
            .unwrap_or_default(),
        versions
    );
    for (number, entries) in model.versions.iter().enumerate() {
        let version = tree.at(Version(number as u64));
        match number < model.oldest {
            true => assert!(version.is_err(), "version {number} is not retained"),
            false => assert_version(&version.expect("retained"), entries, random),
        }
    }
    let report = tree.verify().expect("read");
    assert!(report.is_ok(), "{:?}", report.faults);
    assert_eq!(report.entries as usize, model.head().len());
    assert_eq!(
        report.versions as usize + 1,
        (versions - model.oldest).max(1)
    );
    if versions > 0 {
        assert_eq!(tree.root(), root_of(tree.tree().kind().name, &model.head()));
    }
}

#[test]
fn random_batches_agree_with_a_map() {
    for (seed, name) in (0..).zip(TREES) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut random = Random(seed);
        let mut model = Model::of(name, 6);
        let options = OpenOptions::new().memory(64 << 20).retain(Retain::Last(6));
        let mut tree = options
            .clone()
            .tree(name)
            .open_key_value(dir.path())
            .expect("made");
        assert_eq!(tree.get(key(0)).expect("read"), None);
        assert!(matches!(
            tree.prove(&[key(0)]),
            Err(KeyValueError::NoVersion)
        ));
        for step in 0..60 {
            match random.below(10) {
                0..6 => {
                    let batch = batch(&mut random, model.deletes);
                    let root = tree.extend(&batch).expect("extended");
                    model.versions.push(model.after(&batch));
                    model.forget();
                    assert_eq!(root, tree.root());
                }
                6 => tree.flush().expect("flushed"),
                7 if !model.versions.is_empty() => {
                    let retained = model.versions.len() - model.oldest;
                    let to = model.oldest + random.below(retained as u64) as usize;
                    tree.rollback(Version(to as u64)).expect("rolled back");
                    model.versions.truncate(to + 1);
                }
                8 => {
                    let keep = random.below(6);
                    tree.prune(Retain::Last(keep)).expect("pruned");
                    let oldest = model.versions.len().saturating_sub(keep as usize + 1);
                    model.oldest = model.oldest.max(oldest);
                }
                _ => {
                    tree.flush().expect("flushed");
                    drop(tree);
                    tree = options.open_key_value(dir.path()).expect("opened again");
                }
            }
            if step % 6 == 0 {
                assert_whole(&mut tree, &model, &mut random);
                if let Some(version) = tree.version() {
                    let found = tree.at_root(tree.root()).expect("the head has it");
                    assert_eq!(found.version(), version);
                }
            }
        }
        assert_whole(&mut tree, &model, &mut random);
        tree.flush().expect("flushed");
        let read = OpenOptions::new()
            .open_key_value_to_read(dir.path())
            .expect("beside it");
        assert_version(
            &read.latest().expect("a version"),
            &model.head(),
            &mut random,
        );
        assert_eq!(read.root(), tree.root());
        let frozen = tree.snapshot().expect("frozen");
        tree.extend(&[KeyValueWrite::put(key(0), B256::repeat_byte(0xee))])
            .expect("extended");
        assert_version(
            &frozen.latest().expect("a version"),
            &model.head(),
            &mut random,
        );
        assert!(frozen.verify().expect("read").is_ok());
    }
}

/// The database of a tree in a store that fails when told to.
struct Crashing<'a> {
    name: &'a str,
    store: Arc<FaultyStore>,
    dir: &'a Path,
}

impl Crashing<'_> {
    fn open(&self) -> KeyValueTree {
        let tree: Tree = arbor_trees::standard()
            .find(self.name)
            .expect("a tree")
            .tree();
        let options = Options {
            retain: Retain::Last(6),
            // Every version is flushed with the one after it.
            dirty_bytes: 1,
            background: false,
            ..Options::default()
        };
        let lock = DirLock::acquire(self.dir).expect("locked");
        KeyValueTree::open(self.store.clone(), Some(lock), tree, options).expect("opened")
    }
}

/// A crash at any write of the store leaves a whole version that was applied, not before the last
/// durable one.
#[test]
fn a_crash_between_commits_leaves_a_whole_version() {
    for (seed, name) in (10..).zip(TREES) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = FaultyStore::new(Arc::new(MemoryStore::default()));
        let dir = dir.path();
        let crashing = Crashing { name, store, dir };
        let mut random = Random(seed);
        let mut model = Model::of(name, 6);
        for _ in 0..40 {
            let mut tree = crashing.open();
            // What was durable at the crash before is the head now.
            let head = tree.version().map_or(0, |version| version.0 as usize + 1);
            assert!(head <= model.versions.len());
            model.versions.truncate(head);
            // What was pruned with versions that are lost is still there.
            let mut versions = 0..head;
            let retained = versions.find(|number| tree.at(Version(*number as u64)).is_ok());
            model.oldest = retained.unwrap_or(0);
            assert!(head - model.oldest <= 7);
            assert_whole(&mut tree, &model, &mut random);
            let failure = [Failure::Refused, Failure::Landed, Failure::Unsynced];
            let failure = failure[random.below(3) as usize];
            crashing.store.fail_after(random.below(6), failure);
            let mut durable = head;
            loop {
                if model.versions.len() > model.oldest && random.below(8) == 0 {
                    let retained = model.versions.len() - model.oldest;
                    let to = model.oldest + random.below(retained as u64) as usize;
                    if tree.rollback(Version(to as u64)).is_err() {
                        durable = durable.min(to + 1);
                        break;
                    }
                    model.versions.truncate(to + 1);
                    durable = to + 1;
                }
                let batch = batch(&mut random, model.deletes);
                if tree.extend(&batch).is_err() {
                    break;
                }
                model.versions.push(model.after(&batch));
                model.forget();
                if random.below(3) == 0 {
                    if tree.flush().is_err() {
                        break;
                    }
                    durable = model.versions.len();
                }
            }
            drop(tree);
            crashing.store.reopen();
            let tree = crashing.open();
            let head = tree.version().map_or(0, |version| version.0 as usize + 1);
            assert!(head >= durable, "{head} after {durable} were durable");
        }
    }
}

fn refused(opened: Result<impl Sized, DatabaseError>) -> String {
    let mut error: &dyn std::error::Error = &opened.err().expect("refused");
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        text = format!("{text}: {source}");
        error = source;
    }
    text
}

#[test]
fn wrong_batches_and_wrong_folders_are_errors() {
    let write = KeyValueWrite::put(key(1), B256::repeat_byte(1));
    let delete = KeyValueWrite::delete(key(1));
    let mut tree = OpenOptions::new().key_value_in_memory().expect("made");
    assert_eq!(tree.tree().kind().name, "ar16mt");
    tree.extend(&[write]).expect("extended");
    let error = tree.extend(&[delete]).expect_err("no deletion");
    let said = error.to_string();
    assert!(said.contains("the tree ar16mt keeps every leaf"), "{said}");
    let error = tree.extend(&[write, write]).expect_err("twice");
    assert!(error.to_string().contains("occurs twice"), "{error}");
    assert!(matches!(tree.prove(&[]), Err(KeyValueError::NoKeys)));
    let stale = tree.compute(&[]).expect("computed");
    tree.extend(&[]).expect("a version that changes nothing");
    let error = tree.commit(stale).expect_err("another head");
    assert!(
        matches!(error, KeyValueError::State(StateError::Stale { .. })),
        "{error}"
    );
    assert_eq!(tree.version(), Some(Version(1)));
    let mut other = OpenOptions::new().key_value_in_memory().expect("made");
    let elsewhere = tree.compute(&[write]).expect("computed");
    let error = other.commit(elsewhere).expect_err("another database");
    assert!(
        matches!(error, KeyValueError::State(StateError::OtherDatabase)),
        "{error}"
    );
    assert_eq!(other.version(), None);

    let said = refused(OpenOptions::new().tree("mpt").key_value_in_memory());
    assert!(
        said.contains("the tree mpt has no keys and values"),
        "{said}"
    );
    let accounts_alone = OpenOptions::new().trees(Registry::new([&arbor_trees::MPT]));
    let said = refused(accounts_alone.key_value_in_memory());
    assert!(
        said.contains("enable the cargo feature `ar16mt` or `eip8297`"),
        "{said}"
    );
    let dir = tempfile::tempdir().expect("a temporary folder");
    let said = refused(accounts_alone.open_key_value(dir.path().join("none")));
    assert!(said.contains("enable the cargo feature"), "{said}");
    let (entries, accounts) = (dir.path().join("entries"), dir.path().join("accounts"));
    let mut tree = OpenOptions::new()
        .tree("eip8297")
        .open_key_value(&entries)
        .expect("made");
    tree.extend(&[write]).expect("extended");
    tree.flush().expect("flushed");
    let said = refused(OpenOptions::new().open_key_value(&entries));
    assert!(said.contains("already open for writing"), "{said}");
    drop(tree);
    for opened in [None, Some("mpt"), Some("eip8297")] {
        let mut options = OpenOptions::new();
        if let Some(name) = opened {
            options = options.tree(name);
        }
        let said = refused(options.open(&entries));
        assert!(said.contains("keys and values without accounts"), "{said}");
        let said = refused(options.open_to_read(&entries));
        assert!(said.contains("keys and values without accounts"), "{said}");
    }
    let said = refused(OpenOptions::new().tree("ar16mt").open_key_value(&entries));
    assert!(said.contains("its tree is eip8297"), "{said}");
    let said = refused(OpenOptions::new().open_key_value_to_read(dir.path().join("none")));
    assert!(said.contains("there is no database"), "{said}");
    let mut state = OpenOptions::new()
        .tree("ar16mt")
        .open(&accounts)
        .expect("made");
    let mut changes = StateChanges::default();
    let account = Some(Account::default());
    changes
        .set_account(&state, Default::default(), account)
        .expect("read");
    let computed = state.compute(&changes).expect("computed");
    state
        .commit(&BlockRef::new(0, B256::ZERO), computed)
        .expect("committed");
    state.flush().expect("flushed");
    drop(state);
    let said = refused(OpenOptions::new().open_key_value(&accounts));
    assert!(said.contains("revision"), "{said}");
    let state = OpenOptions::new().open(&accounts).expect("untouched");
    assert_eq!(state.account(Default::default()).expect("read"), account);
}

/// A proof is read without a database. Whatever is changed in it, it shows nothing else under the
/// root.
#[test]
fn forged_proofs_do_not_hold() {
    for name in TREES {
        let mut tree = OpenOptions::new()
            .tree(name)
            .key_value_in_memory()
            .expect("made");
        let writes = (0..40).map(|number| KeyValueWrite::put(key(number), B256::repeat_byte(9)));
        let root = tree.extend(&writes.collect::<Vec<_>>()).expect("extended");
        let keys = [key(3), key(17), key(100)];
        let proof = tree.prove(&keys).expect("proven");
        let honest = claimed(&*proof, root);
        assert_eq!(honest.iter().filter(|leaf| leaf.value.is_some()).count(), 2);
        let other = proof.verify(B256::repeat_byte(1)).expect("well-formed");
        assert!(matches!(other, Verdict::False(_)), "{other:?}");
        let mut text = Vec::new();
        proof.write_json(&mut text, false).expect("written");
        let file: Value = serde_json::from_slice(&text).expect("its own JSON");
        assert_eq!(file["form"], format!("{name}-keys/1"));
        let kinds = arbor_verify::standard();
        let again = kinds.read(file.clone()).expect("its own form");
        assert_eq!(claimed(&*again, root), honest);
        let hex = file["multiproof"].as_str().expect("bytes").to_owned();
        for place in 2..hex.len() {
            let mut forged = hex.clone().into_bytes();
            forged[place] = if forged[place] == b'0' { b'1' } else { b'0' };
            let mut file = file.clone();
            file["multiproof"] = String::from_utf8(forged).expect("digits").into();
            let proof = kinds.read(file).expect("well-formed JSON");
            if let Ok(Verdict::True(claims)) = proof.verify(root) {
                for leaf in claims.leaves {
                    let entry = tree.get(leaf.key).expect("read");
                    assert_eq!(leaf.value, entry.map(|entry| entry.value), "byte {place}");
                    assert_eq!(
                        leaf.index,
                        entry.and_then(|entry| entry.index),
                        "byte {place}"
                    );
                }
            }
        }
    }
}

/// zkSync's own tree has this root (zksync-era 3e29e4a, `core/lib/merkle_tree/tests`).
#[test]
fn a_single_entry_has_the_root_of_zksyncs_tree() {
    let mut tree = OpenOptions::new()
        .tree("ar16mt")
        .key_value_in_memory()
        .expect("made");
    let number = |hex: &str| hex.parse::<B256>().expect("32 bytes");
    let key = number("5daa965d9688be0ac629916a9920e45910c13d1fe45d257a9e17217f226dfb4d");
    let root = tree
        .extend(&[KeyValueWrite::put(key, B256::repeat_byte(1))])
        .expect("extended");
    let expected = "7f00a6b2eede960857703c8cb9e96f28b910e6693412cea4b006f24239b681e0";
    assert_eq!(root, number(expected));
    let entry = tree.get(key).expect("read").expect("present");
    assert_eq!(entry.index, Some(1));
}

/// The roots are those of the formulas of EIP-8297 with SHA-256: `H(00 || key || value)` for one
/// entry, and for keys that differ in their first bit `H(01 || 0000 || left || right)`.
#[test]
fn entries_have_the_roots_of_eip_8297() {
    let options = OpenOptions::new().tree("eip8297").hash("sha256");
    let mut tree = options.key_value_in_memory().expect("made");
    let mut extend = |write| tree.extend(&[write]).expect("extended").to_string();
    let [left, right] = [0x01, 0x81].map(B256::repeat_byte);
    let [seven, nine] = [7, 9].map(B256::repeat_byte);
    let one = "0x001a9695b1b7593725c0bd73b63e13879523823d91b85b80b38ec67de6e618dc";
    let two = "0xb9479b1fdd17358a505e45b31394703fb63deef9fddf940d73b281d94b170275";
    assert_eq!(extend(KeyValueWrite::put(left, seven)), one);
    assert_eq!(extend(KeyValueWrite::put(right, nine)), two);
    assert_eq!(extend(KeyValueWrite::delete(right)), one);
    assert_eq!(extend(KeyValueWrite::put(right, nine)), two);
    assert_eq!(extend(KeyValueWrite::put(right, B256::ZERO)), one);
    assert_eq!(extend(KeyValueWrite::delete(left)), B256::ZERO.to_string());
}

#[test]
fn verification_finds_a_flipped_bit() {
    for (name, entries) in [("ar16mt", Table(1)), ("eip8297", Table(7))] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = FaultyStore::new(Arc::new(MemoryStore::default()));
        let dir = dir.path();
        let crashing = Crashing { name, store, dir };
        let mut tree = crashing.open();
        let writes = (0..40).map(|number| KeyValueWrite::put(key(number), B256::repeat_byte(9)));
        tree.extend(&writes.collect::<Vec<_>>()).expect("extended");
        tree.flush().expect("flushed");
        assert!(tree.verify().expect("read").is_ok());
        drop(tree);
        crashing.store.flip(entries, key(5).as_slice(), 60);
        let store = crashing.store.clone();
        let tree: Tree = arbor_trees::standard().find(name).expect("a tree").tree();
        let read = arbor_database::KeyValueSnapshot::open(store, None, tree).expect("opened");
        let report = read.verify().expect("read");
        assert!(!report.is_ok());
        assert!(
            report.faults.iter().any(|fault| fault.contains("root")),
            "{:?}",
            report.faults
        );
    }
}

/// Keys and values are copied like states, with their history, while they are written.
#[test]
fn keys_and_values_are_backed_up() {
    for name in TREES {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let options = OpenOptions::new().tree(name);
        let mut tree = options.open_key_value(&from).expect("made");
        let mut random = Random(7);
        let mut model = Model::of(name, 100);
        for _ in 0..8 {
            let batch = batch(&mut random, model.deletes);
            tree.extend(&batch).expect("extended");
            model.versions.push(model.after(&batch));
        }
        tree.flush().expect("flushed");
        // It is not flushed, so the copy does not have it.
        tree.extend(&[KeyValueWrite::put(key(0), B256::repeat_byte(0xee))])
            .expect("extended");
        let made = OpenOptions::new().backup(&from, &to).expect("backed up");
        assert_eq!(made.version, Some(Version(7)));
        let mut copy = OpenOptions::new().open_key_value(&to).expect("opened");
        assert_eq!(copy.root(), made.root);
        assert_whole(&mut copy, &model, &mut random);
        copy.extend(&[]).expect("it goes on");
    }
}
