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
    /// Several together, whose nodes come with the last.
    Together(Vec<Vec<(u8, u8, Option<u8>)>>),
    /// Keep nodes from here on, or of so many versions before the first; or none any more.
    Keep(u8),
    Forget,
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
    let entries = proptest::collection::vec(entry.clone(), 0..12);
    let op = prop_oneof![
        4 => proptest::collection::vec(entries, 1..5).prop_map(Op::Together),
        2 => (0u8..5).prop_map(Op::Keep),
        1 => proptest::bool::weighted(0.2).prop_map(|all| if all { Op::Forget } else { Op::Check }),
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
    let keep = any::<bool>();
    (retain, dirty, cache, ingest, any::<bool>(), 0u8..8, keep).prop_map(
        |(retain, dirty_bytes, cache_bytes, ingest_above, background, each, keep_nodes)| Options {
            keep_nodes,
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
    kept: Kept,
    snapshots: Vec<(Snapshot, Vec<State>, u64, Kept)>,
}

/// Which nodes are kept.
#[derive(Clone, Default)]
struct Kept {
    /// From which version on, if any are.
    since: Option<u64>,
    /// Versions whose nodes came with a later one.
    not: BTreeSet<u64>,
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
            kept: Kept::default(),
            snapshots: Vec::new(),
        };
        run.kept.since = run.options.keep_nodes.then_some(0);
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
            Op::Together(versions) => self.apply_together(versions),
            Op::Keep(before) => self.keep(*before),
            Op::Forget => self.forget(),
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

    /// What entries make of the last version, and its changes.
    fn next(states: &[State], entries: &[(u8, u8, Option<u8>)], step: u8) -> (State, Changes) {
        let mut next = match states.last() {
            Some(state) => state.clone(),
            None => State {
                meta: support::meta(0),
                flat: Map::new(),
                nodes: Map::new(),
                blobs: Map::new(),
            },
        };
        if let Some(last) = states.last() {
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
                    let new = new.map(|value| mostly_the_same(&value, fill));
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
        (next, changes)
    }

    fn apply(&mut self, entries: &[(u8, u8, Option<u8>)], step: u8) {
        let (next, changes) = Self::next(&self.states, entries, step);
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

    fn apply_together(&mut self, versions: &[Vec<(u8, u8, Option<u8>)>]) {
        if self.states.is_empty() {
            return;
        }
        let mut states = self.states.clone();
        let mut together: Vec<(Meta, Changes)> = Vec::new();
        for entries in versions {
            let (next, changes) = Self::next(&states, entries, 1);
            together.push((next.meta.clone(), changes));
            states.push(next);
        }
        // The nodes of all come with the last.
        let before = &self.states[self.states.len() - 1].nodes;
        let last = together.len() - 1;
        for (place, (_, changes)) in together.iter_mut().enumerate() {
            let mut without = Changes::of_blobs(std::mem::take(&mut changes.blobs));
            changes.flat().for_each(|change| without.put_flat(change));
            if place == last {
                for write in difference(before, &states[states.len() - 1].nodes) {
                    without.put_node(write.table, &write.key, write.value.as_deref());
                }
            }
            *changes = without;
        }
        if self.versions().apply_together(together.clone()).is_err() {
            self.store.heal();
            let head = self.versions().head().map(|meta| meta.version.0);
            if head != Some(states.len() as u64 - 1) {
                let applied = self.versions().apply_together(together);
                applied.expect("healed");
            }
        }
        let first = self.states.len() as u64;
        self.states = states;
        let not = first..self.states.len() as u64 - 1;
        self.kept.not.extend(not);
        self.retain(self.options.retain);
    }

    fn keep(&mut self, before: u8) {
        let Some(head) = self.states.len().checked_sub(1) else {
            return;
        };
        self.versions().keep_nodes();
        let since = *self.kept.since.get_or_insert(head as u64);
        let first = since.max(self.oldest);
        if first > since || self.options.retain == Retain::None {
            return;
        }
        let back = (first - self.oldest).min(u64::from(before));
        let nodes = |version: u64| &self.states[version as usize].nodes;
        let way = (first - back + 1..=first).rev();
        let way = way.map(|version| difference(nodes(version), nodes(version - 1)));
        let way: Vec<Vec<Write>> = way.collect();
        let mut left = &way[..];
        while self.versions().keep_nodes_before(left.to_vec()).is_err() {
            self.store.heal();
            let done = self.versions().keeps_nodes_since().map(|since| since.0);
            left = &way[(first - done.expect("kept")) as usize..];
        }
        let since = first - back;
        self.kept.since = Some(since);
        self.kept
            .not
            .retain(|version| *version < since || *version > first);
        while self.versions().index_nodes().is_err() {
            self.store.heal();
        }
        self.check();
    }

    fn forget(&mut self) {
        while self.versions().forget_nodes().is_err() {
            self.store.heal();
        }
        self.kept.since = None;
        for table in [0xee, 0xef] {
            let mut left = self.store.scan(Table(table), b"", b"").expect("scans");
            assert!(left.next().is_none());
        }
        self.check();
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
        let stored = self.versions().snapshot().expect("taken");
        let mut fault = |what: String| panic!("{what}");
        let verified = stored.verify_records(&mut |_| Ok(()), &mut fault);
        verified.expect("reads");
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
        let since = self.kept.since.map_or(head, |since| since.max(self.oldest));
        let kept = (since + 1..=head).filter(|version| !self.kept.not.contains(version));
        let kept: BTreeSet<u64> = kept.collect();
        assert_eq!(stored(0xee, b""), kept);
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
        let last = self.states.len().saturating_sub(1) as u64;
        self.kept.not.retain(|version| *version < last);
        // Keeping is durable with a flush.
        let is_known = versions.keeps_nodes_since().is_some();
        let since = self.kept.since.map_or(last, |since| since.min(last));
        self.kept.since = is_known.then_some(since);
        assert!(is_known || !self.options.keep_nodes);
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
        let to = to as u64;
        self.kept.since = self.kept.since.map(|since| since.min(to));
        self.kept.not.retain(|version| *version < to);
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
            .push((taken, self.states.clone(), self.oldest, self.kept.clone()));
        if self.snapshots.len() > 3 {
            self.snapshots.remove(0);
        }
    }

    fn check(&self) {
        let versions = self.versions.as_ref().expect("open");
        check(versions.view(), &self.states, self.oldest);
        check_nodes(versions.view(), &self.states, self.oldest, &self.kept);
        for (snapshot, states, oldest, kept) in &self.snapshots {
            check(snapshot.view(), states, *oldest);
            check_nodes(snapshot.view(), states, *oldest, kept);
        }
    }
}

/// Bytes of which a few tell the value: so differences are short.
fn mostly_the_same(value: &Value, fill: u8) -> Value {
    let mut bytes = vec![7; value.len()];
    for place in [0, usize::from(fill) % 40] {
        if let Some(byte) = bytes.get_mut(place) {
            *byte = fill;
        }
    }
    bytes.into()
}

/// Every version whose nodes are kept is there as if it were the head.
fn check_nodes(view: View<'_>, states: &[State], oldest: u64, kept: &Kept) {
    let Some(head) = states.len().checked_sub(1) else {
        return;
    };
    for version in oldest..=head as u64 {
        let found = view.kept_from(Version(version)).expect("retained");
        let is_known = kept.since.is_some_and(|since| version >= since);
        let first = |from: u64| {
            let is_kept =
                |version: &u64| !kept.not.contains(version) || Some(*version) == kept.since;
            Version((from..head as u64).find(is_kept).unwrap_or(head as u64))
        };
        let wanted = is_known.then(|| first(version));
        // That the oldest one was kept is forgotten with the way from it to the one before.
        let wanted = match found == wanted || version != oldest {
            true => wanted,
            false => wanted.map(|_| first(version + 1)),
        };
        assert_eq!(found, wanted, "version {version} of {head}");
        let Some(found) = found else { continue };
        let state = &states[found.0 as usize];
        let then = view.as_of(&state.meta);
        assert_eq!(then.head(), Some(&state.meta));
        for (table, map) in [
            (NODES, &state.nodes),
            (ACCOUNTS, &state.flat),
            (SLOTS, &state.flat),
        ] {
            let wanted: Vec<_> = KEYS.map(|k| map.get(&(table, k.to_vec())).cloned()).into();
            assert_eq!(
                then.multi_get(table, &KEYS).expect("reads"),
                wanted,
                "{found:?}"
            );
            check_scans(map, table, |prefix, from| {
                let scan = then.scan(table, prefix, from).expect("scans");
                let all: Vec<_> = scan.map(|entry| entry.expect("reads")).collect();
                if table == NODES {
                    return all;
                }
                let at_hand = then.at_hand(table, prefix, from).expect("reads");
                assert!(at_hand.is_none_or(|entry| all.contains(&entry)));
                all
            });
        }
        let mut before = state.flat.clone();
        overwrite(
            &mut before,
            then.undo_since(Version(version)).expect("retained"),
        );
        assert_eq!(before, states[version as usize].flat);
        if let Some((before, writes)) = view.nodes_before(found).expect("retained") {
            let mut earlier = state.nodes.clone();
            let changes = |write: &Write| {
                state.nodes.get(&(write.table, write.key.to_vec())) != write.value.as_ref()
            };
            assert!(writes.iter().all(changes), "{found:?}");
            overwrite(&mut earlier, writes);
            assert_eq!(earlier, states[before.0 as usize].nodes, "{found:?}");
        }
    }
}

fn overwrite(map: &mut Map, writes: Vec<Write>) {
    for write in writes {
        set(map, (write.table, write.key.to_vec()), write.value);
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
                let unflushed = view.at_hand(table, prefix, from).expect("reads");
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
