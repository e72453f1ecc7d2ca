//! Versions applied together: one can be read, all are remembered.

use std::sync::Arc;

use crate::support::{ACCOUNTS, change, identity, meta, options, tables, value};
use arbor_store::MemoryStore;
use arbor_versions::{Changes, Options, Retain, Version, Versions, VersionsError};

fn kept() -> Options {
    Options {
        retain: Retain::Last(10),
        dirty_bytes: usize::MAX,
        ..options()
    }
}

/// Key `k` goes from one number to another.
fn counted(from: Option<u64>, to: u64) -> Changes {
    let from = from.map(|from| from.to_string());
    change("k", from.as_deref(), Some(&to.to_string()))
}

fn check(versions: &Versions, head: u64) {
    let view = versions.view();
    assert_eq!(view.oldest(), Some(Version(6)));
    for number in 0..=head {
        let version = Version(number);
        assert_eq!(view.meta(version).expect("reads"), Some(meta(number)));
        assert_eq!(view.version_of_block(number).expect("reads"), Some(version));
        let read = view.get_at(version, ACCOUNTS, b"k");
        if number < 6 {
            assert!(matches!(read, Err(VersionsError::NotRetained { .. })));
        } else {
            assert_eq!(read.expect("reads"), Some(value(number.to_string())));
        }
    }
}

#[test]
fn of_versions_applied_together_the_last_is_read() {
    for flush in [false, true] {
        let store = Arc::new(MemoryStore::default());
        let created = Versions::create(store.clone(), None, &identity(), &tables(), kept());
        let mut versions = created.expect("created");
        for number in 0..=3u64 {
            let changes = counted(number.checked_sub(1), number);
            versions.apply(meta(number), changes).expect("applies");
        }
        if flush {
            versions.flush().expect("flushes");
        }
        let run = vec![meta(4), meta(5), meta(6)];
        versions
            .apply_as_one(run, counted(Some(3), 6))
            .expect("applies");
        check(&versions, 6);
        versions
            .apply(meta(7), counted(Some(6), 7))
            .expect("applies");
        check(&versions, 7);

        let gap = versions.apply_as_one(vec![meta(8), meta(10)], counted(Some(7), 10));
        assert!(matches!(
            gap,
            Err(VersionsError::OutOfOrder {
                got: Version(10),
                ..
            })
        ));
        versions
            .apply_as_one(Vec::new(), Changes::default())
            .expect("nothing");
        check(&versions, 7);

        versions.flush().expect("flushes");
        drop(versions);
        let opened = Versions::open(store, None, &identity(), &tables(), kept());
        let mut versions = opened.expect("opens");
        check(&versions, 7);
        let undo = versions.view().undo_since(Version(6)).expect("retained");
        versions
            .rollback(Version(6), undo, Vec::new())
            .expect("rolls back");
        check(&versions, 6);
    }
}

#[test]
fn versions_applied_together_can_each_be_read() {
    let store = Arc::new(MemoryStore::default());
    let created = Versions::create(store.clone(), None, &identity(), &tables(), kept());
    let mut versions = created.expect("created");
    let together = |from: u64, to: u64| {
        let of = |number: u64| (meta(number), counted(number.checked_sub(1), number));
        (from..=to).map(of).collect::<Vec<_>>()
    };
    versions.apply_together(together(0, 4)).expect("applies");
    versions.apply_together(together(5, 9)).expect("applies");
    let check = |versions: &Versions, head: u64| {
        let view = versions.view();
        assert_eq!(view.oldest(), Some(Version(0)));
        for number in 0..=head {
            let read = view.get_at(Version(number), ACCOUNTS, b"k");
            assert_eq!(read.expect("reads"), Some(value(number.to_string())));
        }
    };
    check(&versions, 9);
    // All or none.
    let mut gap = together(10, 12);
    gap[2].0 = meta(13);
    let gap = versions.apply_together(gap);
    let Err(VersionsError::OutOfOrder { got, wanted }) = gap else {
        panic!("{gap:?}")
    };
    assert_eq!((got, wanted), (Version(13), Version(12)));
    versions.apply_together(Vec::new()).expect("nothing");
    assert_eq!(versions.head().map(|head| head.version), Some(Version(9)));
    check(&versions, 9);
    versions.flush().expect("flushes");
    drop(versions);
    let opened = Versions::open(store, None, &identity(), &tables(), kept());
    let mut versions = opened.expect("opens");
    check(&versions, 9);
    let undo = versions.view().undo_since(Version(7)).expect("retained");
    versions
        .rollback(Version(7), undo, Vec::new())
        .expect("rolls back");
    check(&versions, 7);
}
