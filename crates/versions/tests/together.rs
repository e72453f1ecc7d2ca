//! Runs of versions applied together: retention within them, borders of index epochs, flushes of each run, and flushes that fail.

use std::error::Error;
use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::support::{
    ACCOUNTS, NODES, account, change, faulty, identity, meta, options, tables, value,
};
use arbor_store::faulty::{Failure, FaultyStore};
use arbor_store::{Reader, Table, Write};
use arbor_versions::{Changes, Meta, Options, Retain, Version, Versions, VersionsError};

const UNDO: Table = Table(0xf2);
const SYSTEM: Table = Table(0xf4);

/// No flush but those that are asked for.
fn quiet(retain: Retain) -> Options {
    Options {
        dirty_bytes: usize::MAX,
        retain,
        ..options()
    }
}

fn create(store: &Arc<FaultyStore>, options: &Options) -> Versions {
    let options = options.clone();
    Versions::create(store.clone(), None, &identity(), &tables(), options).expect("created")
}

fn open(store: &Arc<FaultyStore>, options: &Options) -> Versions {
    let options = options.clone();
    Versions::open(store.clone(), None, &identity(), &tables(), options).expect("opens")
}

/// In version `n` key `k` is `n`, and of the keys `v0`, `v1` ... only `v<n>` is there.
fn changes(number: u64) -> Changes {
    let (before, new) = (number.checked_sub(1), number.to_string());
    let old = before.map(|before| before.to_string());
    let mut changes = change("k", old.as_deref(), Some(&new));
    changes.put_flat(account(&format!("v{number}"), None, Some("is")));
    if let Some(before) = before {
        changes.put_flat(account(&format!("v{before}"), Some("is"), None));
    }
    changes
}

/// Consecutive versions, whose nodes come with the last.
fn run(numbers: RangeInclusive<u64>) -> Vec<(Meta, Changes)> {
    let last = *numbers.end();
    let of = |number| {
        let mut changes = changes(number);
        if number == last {
            changes.put_node(NODES, b"root", Some(number.to_string().as_bytes()));
        }
        (meta(number), changes)
    };
    numbers.map(of).collect()
}

fn head(versions: &Versions) -> Option<u64> {
    versions.head().map(|head| head.version.0)
}

/// The versions from `oldest` to `head` are all there and the only ones.
fn check(versions: &Versions, oldest: u64, head: u64) {
    let view = versions.view();
    assert_eq!(view.head(), Some(&meta(head)));
    assert_eq!(view.oldest(), Some(Version(oldest)));
    let root = view.get(NODES, b"root").expect("reads");
    assert_eq!(root, Some(value(head.to_string())));
    for number in 0..=head {
        let version = Version(number);
        assert_eq!(view.meta(version).expect("reads"), Some(meta(number)));
        assert_eq!(view.version_of_block(number).expect("reads"), Some(version));
        let read = view.get_at(version, ACCOUNTS, b"k");
        if number < oldest {
            assert!(matches!(read, Err(VersionsError::NotRetained { .. })));
            assert!(view.undo_since(version).is_err());
            continue;
        }
        assert_eq!(read.expect("reads"), Some(value(number.to_string())));
        let scan = view.scan_at(version, ACCOUNTS, b"", b"").expect("scans");
        let all: Vec<_> = scan.map(|entry| entry.expect("reads")).collect();
        let key = |key: &str| Box::from(key.as_bytes());
        let wanted = [
            (key("k"), value(number.to_string())),
            (key(&format!("v{number}")), value("is")),
        ];
        assert_eq!(all, wanted, "version {number} under {head}");
    }
}

/// What is stored holds together.
fn check_records(versions: &mut Versions) {
    let mut faults = Vec::new();
    let snapshot = versions.snapshot().expect("frozen");
    snapshot
        .verify_records(&mut |_| Ok(()), &mut |fault| faults.push(fault))
        .expect("reads");
    assert_eq!(faults, [""; 0]);
}

fn roll_back(versions: &mut Versions, to: u64) {
    let undo = versions.view().undo_since(Version(to)).expect("retained");
    let node = Write {
        table: NODES,
        key: b"root"[..].into(),
        value: Some(value(to.to_string())),
    };
    versions
        .rollback(Version(to), undo, vec![node])
        .expect("rolls back");
}

fn stored(store: &FaultyStore, table: Table, prefix: &[u8]) -> usize {
    store.scan(table, prefix, b"").expect("scans").count()
}

#[test]
fn of_a_run_longer_than_what_is_retained_the_last_versions_are_read() {
    for (retain, behind) in [
        (Retain::None, 0),
        (Retain::Last(0), 0),
        (Retain::Last(1), 1),
        (Retain::Last(3), 3),
    ] {
        for flush in [false, true] {
            let (store, options) = (faulty(), quiet(retain));
            let mut versions = create(&store, &options);
            for number in 0..=2 {
                versions
                    .apply_together(run(number..=number))
                    .expect("applies");
            }
            if flush {
                versions.flush().expect("flushes");
            }
            versions.apply_together(run(3..=11)).expect("applies");
            check(&versions, 11 - behind, 11);
            if behind == 0 {
                assert_eq!(versions.stats().pending_undo_bytes, 0);
            }
            versions.flush().expect("flushes");
            check(&versions, 11 - behind, 11);
            check_records(&mut versions);
            let undo = stored(&store, UNDO, b"") as u64;
            assert_eq!(undo, behind, "{retain:?}, flushed before: {flush}");
            drop(versions);

            let mut versions = open(&store, &options);
            check(&versions, 11 - behind, 11);
            roll_back(&mut versions, 11 - behind);
            check(&versions, 11 - behind, 11 - behind);
            versions
                .apply_together(run(12 - behind..=12))
                .expect("applies");
            check(&versions, 12 - behind, 12);
        }
    }
}

#[test]
fn a_run_across_borders_of_epochs_is_read_and_rolled_back() {
    let epoch = options().epoch;
    assert_eq!(epoch, 4, "the borders lie within the run, at 4 and 8");
    for (flush_before, flush_after) in [(false, false), (true, false), (false, true), (true, true)]
    {
        for to in 0..=9 {
            let (store, options) = (faulty(), quiet(Retain::All));
            let mut versions = create(&store, &options);
            versions.apply_together(run(0..=1)).expect("applies");
            if flush_before {
                versions.flush().expect("flushes");
            }
            versions.apply_together(run(2..=9)).expect("applies");
            check(&versions, 0, 9);
            if flush_after {
                versions.flush().expect("flushes");
                assert_eq!(stored(&store, SYSTEM, b"indexed/"), 2);
                check(&versions, 0, 9);
                check_records(&mut versions);
            }
            roll_back(&mut versions, to);
            check(&versions, 0, to);
            check_records(&mut versions);
            versions.apply_together(run(to + 1..=13)).expect("applies");
            check(&versions, 0, 13);
            versions.flush().expect("flushes");
            drop(versions);
            let mut versions = open(&store, &options);
            check(&versions, 0, 13);
            check_records(&mut versions);
        }
    }
}

#[test]
fn a_durable_run_is_one_flush() {
    for background in [false, true] {
        let options = Options {
            durable_each: true,
            background,
            ..quiet(Retain::All)
        };
        let store = faulty();
        let mut versions = create(&store, &options);
        versions.apply_together(run(0..=1)).expect("applies");
        versions.apply_together(run(2..=9)).expect("applies");
        assert_eq!(versions.flushed(), Some(Version(9)));
        let stats = versions.stats().flush;
        assert_eq!((stats.flushes, stats.versions), (2, 10));
        drop(versions);

        let mut versions = open(&store, &options);
        check(&versions, 0, 9);
        // The run's own flush fails after it was applied.
        store.fail_after(0, Failure::Refused);
        let error = versions.apply_together(run(10..=12)).expect_err("fails");
        assert_eq!(error.to_string(), "store failed while flushing");
        check(&versions, 0, 12);
        assert_eq!(versions.flushed(), Some(Version(9)));
        drop(versions);
        store.reopen();
        let mut versions = open(&store, &options);
        check(&versions, 0, 9);
        versions.apply_together(run(10..=12)).expect("applies");
        drop(versions);
        let mut versions = open(&store, &options);
        check(&versions, 0, 12);
        check_records(&mut versions);
    }
}

/// The flush that makes room for a run fails: nothing of the run is applied, nothing before it lost.
#[test]
fn a_run_whose_room_cannot_be_made_may_be_applied_again() {
    let failures = [Failure::Refused, Failure::Landed, Failure::Unsynced];
    for (failure, background) in failures.into_iter().flat_map(|f| [(f, false), (f, true)]) {
        let options = Options {
            dirty_bytes: 1,
            background,
            ..quiet(Retain::All)
        };
        let store = faulty();
        let mut versions = create(&store, &options);
        versions.apply_together(run(0..=5)).expect("applies");
        versions.flush().expect("flushes");
        store.fail_after(0, failure);
        versions.apply_together(run(6..=9)).expect("has room");
        let error = match versions.apply_together(run(10..=12)) {
            Err(error) => error,
            // Its flush goes on in the background, and the next one hears of it.
            Ok(()) => {
                assert!(background);
                versions.flush().expect_err("fails")
            }
        };
        let cause = match &error {
            VersionsError::BackgroundFlush { version, source } => {
                assert_eq!(*version, Version(9));
                &**source
            }
            error => error,
        };
        assert_eq!(background, !std::ptr::eq(cause, &error), "{error}");
        assert_eq!(cause.to_string(), "store failed while flushing");
        let of_store = cause.source().expect("the store's").to_string();
        assert!(of_store.contains("a fault was asked for"), "{of_store}");
        let applied = if background { 12 } else { 9 };
        check(&versions, 0, applied);
        store.heal();
        versions
            .apply_together(run(applied + 1..=15))
            .expect("healed");
        check(&versions, 0, 15);
        versions.flush().expect("healed");
        assert_eq!(versions.flushed(), Some(Version(15)));
        drop(versions);
        let mut versions = open(&store, &options);
        check(&versions, 0, 15);
        check_records(&mut versions);
    }
}

/// Whichever write a crash prevents, the database opens at the end of a run: at the last that was flushed, or at one whose flush was under way.
#[test]
fn a_crash_at_any_write_opens_at_the_end_of_a_run() {
    const ENDS: [u64; 6] = [1, 6, 7, 12, 17, 21];
    let mut next = 0;
    let runs = ENDS.map(|end| std::mem::replace(&mut next, end + 1)..=end);
    let failures = [Failure::Refused, Failure::Landed, Failure::Unsynced];
    for background in [false, true] {
        let options = Options {
            dirty_bytes: 1,
            background,
            ..quiet(Retain::Last(6))
        };
        let (mut crashes, mut behind) = (0, 0);
        for (count, failure) in (0..16).flat_map(|count| failures.map(|f| (count, f))) {
            let store = faulty();
            let mut versions = create(&store, &options);
            store.fail_after(count, failure);
            let apply = |versions: &mut Versions| {
                for numbers in runs.clone() {
                    versions.apply_together(run(numbers))?;
                }
                versions.flush().map(drop)
            };
            let result = apply(&mut versions);
            let (applied, durable) = (head(&versions), versions.flushed());
            if let Some(applied) = applied {
                assert!(ENDS.contains(&applied));
                check(&versions, applied.saturating_sub(6), applied);
            }
            drop(versions);
            store.reopen();
            let mut versions = open(&store, &options);
            let found = head(&versions);
            assert!(found <= applied);
            match &result {
                Ok(()) => assert_eq!(found, Some(21)),
                Err(error) => {
                    assert!(matches!(
                        error,
                        VersionsError::Store { .. } | VersionsError::BackgroundFlush { .. }
                    ));
                    crashes += 1;
                }
            }
            if failure != Failure::Unsynced {
                assert!(found >= durable.map(|version| version.0));
            }
            let mut rest = runs.clone().to_vec();
            if let Some(found) = found {
                assert!(ENDS.contains(&found), "{count} {failure:?}: {found}");
                let oldest = versions.view().oldest().expect("a version").0;
                assert!(oldest <= found.saturating_sub(6));
                check(&versions, oldest, found);
                check_records(&mut versions);
                rest.retain(|numbers| *numbers.start() > found);
            }
            behind += u64::from(found < applied);
            for numbers in rest {
                versions.apply_together(run(numbers)).expect("applies");
            }
            versions.flush().expect("flushes");
            check(&versions, 15, 21);
            check_records(&mut versions);
        }
        assert!(
            crashes > 15 && behind > 5,
            "the faults hit: {crashes}, {behind}"
        );
    }
}
