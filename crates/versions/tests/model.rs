//! Versions against a naive model: one whole copy of every table per version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::{
    self, ACCOUNTS, CODE, NODES, SLOTS, faulty, identity, options, tables, value,
};
use arbor_store::faulty::{Failure, FaultyStore};
use arbor_store::{Reader as _, Table, Value, Write};
use arbor_versions::{
    Change, Changes, DirLock, Meta, Options, Retain, Snapshot, Version, Versions, VersionsError,
    View,
};
use proptest::prelude::*;

type Map = BTreeMap<(Table, Vec<u8>), Value>;

const KEYS: [&[u8]; 10] = [
    b"",
    b"a",
    b"ab",
    b"ab\xff",
    b"abcdefgh1",
    b"abcdefgh2",
    b"abcdefgh2x",
    b"b",
    b"\xff",
    b"\xff\xff",
];

/// How long values are.
const LENGTHS: [usize; 3] = [0, 3, 40];

/// Few, so that metas are forgotten within a run.
const METAS_BELOW: u64 = 4;

/// A version in the model: everything, whole.
#[derive(Clone)]
struct State {
    meta: Meta,
    flat: Map,
    nodes: Map,
    blobs: Map,
}

#[derive(Clone, Debug)]
enum Op {
    /// (flat?, table or key choice, new value's first byte or deletion) and the block's step.
    Apply(Vec<(u8, u8, Option<u8>)>, u8),
    Flush,
    Reopen,
    Rollback(u8),
    Prune(u8),
    Snapshot,
    Fault(u8, bool),
    Check,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let entry = (0u8..5, 0u8..10, proptest::option::weighted(0.7, 0u8..6));
    let op = prop_oneof![
        12 => (proptest::collection::vec(entry, 0..12), 0u8..3).prop_map(|(e, s)| Op::Apply(e, s)),
        2 => Just(Op::Flush),
        1 => Just(Op::Reopen),
        1 => (0u8..12).prop_map(Op::Rollback),
        1 => (0u8..12).prop_map(Op::Prune),
        1 => Just(Op::Snapshot),
        1 => (0u8..4, any::<bool>()).prop_map(|(n, lands)| Op::Fault(n, lands)),
        1 => Just(Op::Check),
    ];
    proptest::collection::vec(op, 1..60)
}

fn settings() -> impl Strategy<Value = Options> {
    let retain = prop_oneof![
        Just(Retain::None),
        Just(Retain::Last(3)),
        Just(Retain::Last(11)),
        Just(Retain::All)
    ];
    let (dirty, cache) = (
        0usize..8000,
        prop_oneof![Just(0u64), Just(2000), Just(1 << 20)],
    );
    let ingest = prop_oneof![Just(0usize), Just(1 << 20)];
    (retain, dirty, cache, ingest, any::<bool>(), 0u8..8).prop_map(
        |(retain, dirty_bytes, cache_bytes, ingest_above, background, each)| Options {
            cache_bytes,
            dirty_bytes,
            retain,
            durable_each: each == 0,
            background,
            ingest_above,
            metas_below: METAS_BELOW,
            ..options()
        },
    )
}

struct Run {
    store: Arc<FaultyStore>,
    dir: Option<tempfile::TempDir>,
    options: Options,
    versions: Option<Versions>,
    states: Vec<State>,
    /// The lowest version that may still be readable.
    oldest: u64,
    snapshots: Vec<(Snapshot, Vec<State>, u64)>,
}

impl Run {
    fn new(options: Options, on_disk: bool) -> Self {
        let mut run = Self {
            store: faulty(),
            dir: on_disk.then(|| tempfile::tempdir().expect("a directory")),
            options: options.clone(),
            versions: None,
            states: Vec::new(),
            oldest: 0,
            snapshots: Vec::new(),
        };
        let lock = run.lock();
        let created = Versions::create(run.store.clone(), lock, &identity(), &tables(), options);
        run.versions = Some(created.expect("created"));
        run
    }

    fn lock(&self) -> Option<DirLock> {
        let dir = self.dir.as_ref()?;
        Some(DirLock::acquire(dir.path()).expect("free"))
    }

    fn versions(&mut self) -> &mut Versions {
        self.versions.as_mut().expect("open")
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Apply(entries, step) => self.apply(entries, *step),
            Op::Flush => self.flush(),
            Op::Reopen => self.reopen(),
            Op::Rollback(depth) => self.rollback(*depth),
            Op::Prune(keep) => self.prune(*keep),
            Op::Snapshot => self.snapshot(),
            Op::Fault(writes, lands) => {
                let failure = if *lands {
                    Failure::Landed
                } else {
                    Failure::Refused
                };
                self.store.fail_after(u64::from(*writes), failure);
            }
            Op::Check => self.check(),
        }
    }

    fn apply(&mut self, entries: &[(u8, u8, Option<u8>)], step: u8) {
        let mut next = match self.states.last() {
            Some(state) => state.clone(),
            None => State {
                meta: support::meta(0),
                flat: Map::new(),
                nodes: Map::new(),
                blobs: Map::new(),
            },
        };
        if let Some(last) = self.states.last() {
            next.meta = Meta {
                block_number: last.meta.block_number + u64::from(step),
                ..support::meta(last.meta.version.0 + 1)
            };
        }
        let mut changes = Changes::default();
        let mut touched = std::collections::BTreeSet::new();
        for &(choice, key, new) in entries {
            let table = [ACCOUNTS, SLOTS, SLOTS, NODES, CODE][usize::from(choice)];
            let key = KEYS[usize::from(key)];
            if !touched.insert((table, key)) {
                continue;
            }
            // Few lengths, of which one is zero: values are replaced by others that are as long.
            let fill = next.meta.version.0 as u8;
            let new = new.map(|n| value(vec![n ^ fill; LENGTHS[usize::from(n) % LENGTHS.len()]]));
            let at = (table, key.to_vec());
            match table {
                NODES => {
                    set(&mut next.nodes, at, new.clone());
                    match next.meta.version.0 % 2 {
                        0 => changes.put_node(table, key, new.as_deref()),
                        _ => changes.put_shared_node(table, key, new),
                    }
                }
                CODE => {
                    let content = value([key, b"'s code"].concat());
                    set(&mut next.blobs, at, Some(content.clone()));
                    changes.blobs.push(Write {
                        table,
                        key: key.into(),
                        value: Some(content),
                    });
                }
                _ => {
                    let old = next.flat.get(&at).cloned();
                    set(&mut next.flat, at, new.clone());
                    changes.put_flat(Change {
                        table,
                        key,
                        old: old.as_deref(),
                        new: new.as_deref(),
                    });
                }
            }
        }
        let meta = next.meta.clone();
        if let Err(error) = self.versions().apply(meta.clone(), changes.clone()) {
            self.store.heal();
            let failed = matches!(
                &error,
                VersionsError::Store { .. } | VersionsError::BackgroundFlush { .. }
            );
            assert!(failed, "apply: {error}");
            let applied = self.versions().head() == Some(&meta);
            assert!(!applied || self.options.durable_each);
            if !applied {
                self.versions()
                    .apply(meta.clone(), changes)
                    .expect("healed");
            }
        }
        assert_eq!(self.versions().head(), Some(&meta));
        self.states.push(next);
        self.retain(self.options.retain);
    }

    /// The rule of `Retain`, said once more.
    fn retain(&mut self, keep: Retain) {
        let head = self.states.len() as u64 - 1;
        self.oldest = match keep {
            Retain::None => head,
            Retain::Last(n) => self.oldest.max(head.saturating_sub(n)),
            Retain::All => self.oldest,
        };
    }

    /// Flushes, again after a fault.
    fn flush(&mut self) {
        if self.versions().flush().is_err() {
            self.store.heal();
            self.versions().flush().expect("healed");
        }
        let head = self.versions().head().map(|meta| meta.version);
        assert_eq!(self.versions().flushed(), head);
        self.check_stored();
    }

    /// The rule of pruning: undo is stored of the readable versions but the oldest, metas of those and some before, and of the epochs among
    /// them indexes.
    fn check_stored(&self) {
        let Some(head) = self.states.len().checked_sub(1) else {
            return;
        };
        let head = head as u64;
        let stored = |table: u8, prefix: &[u8]| -> BTreeSet<u64> {
            let scan = self.store.scan(Table(table), prefix, b"").expect("scans");
            let number = |key: &[u8]| u64::from_be_bytes(key[..8].try_into().expect("8 bytes"));
            scan.map(|entry| number(&entry.expect("reads").0[prefix.len()..]))
                .collect()
        };
        assert_eq!(stored(0xf2, b""), (self.oldest + 1..=head).collect());
        let first_meta = self.oldest.saturating_sub(METAS_BELOW);
        assert_eq!(stored(0xf0, b""), (first_meta..=head).collect());
        // An index may be missing after a fault: the versions are durable before it is built.
        let length = self.options.epoch;
        for epoch in stored(0xf4, b"indexed/") {
            let last = (epoch + 1) * length - 1;
            assert!(last <= head && last > self.oldest, "epoch {epoch}");
        }
    }

    fn reopen(&mut self) {
        let durable = self.versions().flushed();
        self.versions = None;
        self.store.heal();
        let (lock, options) = (self.lock(), self.options.clone());
        let opened = Versions::open(self.store.clone(), lock, &identity(), &tables(), options);
        let versions = opened.expect("opens");
        let head = versions.head().map(|meta| meta.version);
        assert!(head >= durable, "{head:?} {durable:?}");
        self.states
            .truncate(head.map_or(0, |head| head.0 as usize + 1));
        self.oldest = versions.view().oldest().map_or(0, |oldest| oldest.0);
        self.versions = Some(versions);
        self.check();
    }

    fn rollback(&mut self, depth: u8) {
        let Some(head) = self.states.len().checked_sub(1) else {
            return;
        };
        let to = head.saturating_sub(usize::from(depth));
        let undo = match self.versions().view().undo_since(Version(to as u64)) {
            Ok(undo) => undo,
            Err(VersionsError::NotRetained { .. }) => {
                assert!((to as u64) < self.oldest);
                return;
            }
            Err(error) => panic!("undo: {error}"),
        };
        assert!(undo.is_sorted_by(|a, b| (a.table, &a.key) < (b.table, &b.key)));
        let (from, target) = (&self.states[head], &self.states[to]);
        let mut undone = from.flat.clone();
        for write in &undo {
            set(
                &mut undone,
                (write.table, write.key.to_vec()),
                write.value.clone(),
            );
        }
        assert_eq!(undone, target.flat);
        let nodes = difference(&from.nodes, &target.nodes);
        let blobs = from.blobs.clone();
        let to_version = Version(to as u64);
        let mut result = self
            .versions()
            .rollback(to_version, undo.clone(), nodes.clone());
        if let Err(VersionsError::BackgroundFlush { .. }) = result {
            self.check();
            self.store.heal();
            result = self.versions().rollback(to_version, undo, nodes);
        }
        self.states.truncate(to + 1);
        self.states[to].blobs = blobs;
        if result.is_err() {
            self.check();
            self.store.heal();
            self.flush();
        }
        self.check();
    }

    fn prune(&mut self, keep: u8) {
        if self.states.is_empty() {
            return;
        }
        let keep = Retain::Last(u64::from(keep));
        if self.versions().prune(keep).is_err() {
            // Either the background flush failed before, or the flush of the pruning itself.
            self.store.heal();
            self.versions().prune(keep).expect("healed");
        }
        self.retain(keep);
        self.check();
    }

    fn snapshot(&mut self) {
        let taken = match self.versions().snapshot() {
            Ok(taken) => taken,
            Err(_) => {
                self.store.heal();
                self.versions().snapshot().expect("healed")
            }
        };
        self.snapshots
            .push((taken, self.states.clone(), self.oldest));
        if self.snapshots.len() > 3 {
            self.snapshots.remove(0);
        }
    }

    fn check(&self) {
        let versions = self.versions.as_ref().expect("open");
        check(versions.view(), &self.states, self.oldest);
        for (snapshot, states, oldest) in &self.snapshots {
            check(snapshot.view(), states, *oldest);
        }
    }
}

fn set(map: &mut Map, at: (Table, Vec<u8>), value: Option<Value>) {
    match value {
        Some(value) => map.insert(at, value),
        None => map.remove(&at),
    };
}

fn difference(from: &Map, to: &Map) -> Vec<Write> {
    let keys: std::collections::BTreeSet<_> = from.keys().chain(to.keys()).collect();
    let changed = keys.into_iter().filter(|at| from.get(at) != to.get(at));
    let write = |at: &(Table, Vec<u8>)| Write {
        table: at.0,
        key: at.1.as_slice().into(),
        value: to.get(at).cloned(),
    };
    changed.map(write).collect()
}

/// The parts of a version's undo, and of all since the version before it, are what is in it.
fn check_undo_of_parts(view: View<'_>, version: Version) {
    let before = Version(version.0 - 1);
    let of = view.undo_of(version).expect("retained");
    let since = view.undo_since(before).expect("retained");
    for table in [ACCOUNTS, SLOTS] {
        for first in [0..=u8::MAX, 0..=b'a', b'b'..=u8::MAX] {
            let begins = |key: &[u8]| key.first().is_some_and(|byte| first.contains(byte));
            let check = |part: Result<Vec<Write>, VersionsError>, whole: &[Write]| {
                let wanted = whole
                    .iter()
                    .filter(|write| write.table == table && begins(&write.key));
                assert!(
                    part.expect("retained").iter().eq(wanted),
                    "{version:?} {first:?}"
                );
            };
            check(view.undo_of_part(version, table, first.clone()), &of);
            check(view.undo_since_part(before, table, first.clone()), &since);
        }
    }
    let (changes, about) = (of.len() as u64, view.changes_of(version));
    let about = about.expect("retained");
    assert_eq!(about == 0, changes == 0, "{version:?}");
}

fn check(view: View<'_>, states: &[State], oldest: u64) {
    let head = states.last();
    assert_eq!(view.head(), head.map(|state| &state.meta));
    let Some(head) = head else { return };
    assert_eq!(view.oldest(), Some(Version(oldest)));
    for (tables, map) in [
        (&[ACCOUNTS, SLOTS][..], &head.flat),
        (&[NODES][..], &head.nodes),
        (&[CODE][..], &head.blobs),
    ] {
        for &table in tables {
            let wanted: Vec<_> = KEYS.map(|k| map.get(&(table, k.to_vec())).cloned()).into();
            let got: Vec<_> = KEYS.map(|key| view.get(table, key).expect("reads")).into();
            assert_eq!(got, wanted);
            assert_eq!(view.multi_get(table, &KEYS).expect("reads"), wanted);
            check_scans(map, table, |prefix, from| {
                let scan = view.scan(table, prefix, from).expect("scans");
                let all: Vec<_> = scan.map(|entry| entry.expect("reads")).collect();
                let unflushed = view.first_unflushed(table, prefix, from).expect("reads");
                assert!(unflushed.is_none_or(|entry| all.contains(&entry)));
                all
            });
        }
    }
    for (number, state) in states.iter().enumerate() {
        let version = Version(number as u64);
        if version.0 + METAS_BELOW >= oldest {
            assert_eq!(view.meta(version).expect("reads"), Some(state.meta.clone()));
            let block = state.meta.block_number;
            let newest = states
                .iter()
                .rev()
                .find(|other| other.meta.block_number == block);
            let wanted = newest.map(|state| state.meta.version);
            assert_eq!(view.version_of_block(block).expect("reads"), wanted);
        }
        if version.0 < oldest {
            let error = view.get_at(version, ACCOUNTS, b"a");
            assert!(matches!(error, Err(VersionsError::NotRetained { .. })));
            assert!(view.undo_since(version).is_err());
            continue;
        }
        if number + 1 < states.len() {
            check_undo_of_parts(view, Version(version.0 + 1));
        }
        for table in [ACCOUNTS, SLOTS] {
            for key in KEYS {
                let got = view.get_at(version, table, key).expect("reads");
                let wanted = state.flat.get(&(table, key.to_vec()));
                assert_eq!(got.as_ref(), wanted, "{version:?} {table:?} {key:?}");
            }
            check_scans(&state.flat, table, |prefix, from| {
                let scan = view.scan_at(version, table, prefix, from).expect("scans");
                scan.map(|entry| entry.expect("reads")).collect()
            });
        }
    }
    let above = Version(states.len() as u64);
    assert!(matches!(
        view.get_at(above, ACCOUNTS, b"a"),
        Err(VersionsError::NotRetained { .. })
    ));
    assert_eq!(view.meta(above).expect("reads"), None);
    let block = head.meta.block_number + 1;
    assert_eq!(view.version_of_block(block).expect("reads"), None);
}

fn check_scans(map: &Map, table: Table, scan: impl Fn(&[u8], &[u8]) -> Vec<(Box<[u8]>, Value)>) {
    for (prefix, from) in [
        (&b""[..], &b""[..]),
        (b"ab", b""),
        (b"abcdefgh", b"abcdefgh2"),
        (b"\xff", b""),
    ] {
        let fits = |key: &[u8]| key.starts_with(prefix) && key >= from;
        let wanted: Vec<(Box<[u8]>, Value)> = map
            .iter()
            .filter(|((t, key), _)| *t == table && fits(key))
            .map(|((_, key), value)| (key.as_slice().into(), value.clone()))
            .collect();
        assert_eq!(scan(prefix, from), wanted, "{prefix:?} {from:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn versions_agree_with_whole_copies(ops in ops(), options in settings(), on_disk in proptest::bool::weighted(0.1)) {
        let mut run = Run::new(options, on_disk);
        for op in &ops {
            run.step(op);
        }
        run.check();
        run.flush();
        run.check();
        run.reopen();
    }
}
