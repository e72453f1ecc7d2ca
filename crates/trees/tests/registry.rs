//! The rows of trees: names, identities, settings.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::B256;
use arbor_state::{Network, Registry, Scope, SettingError, Settings, State, TreeKind};
use arbor_store::MemoryStore;
use arbor_trees::ar16mt::AR16MT;
use arbor_trees::{MPT, standard};
use arbor_verify::{VerifyKind, two_trees};
use arbor_versions::stored_identity;

const NETWORK: Network = Network {
    chain_id: 7,
    genesis_hash: B256::repeat_byte(7),
};

#[test]
fn names_and_stored_names_are_unique() {
    let registry = standard();
    let names: BTreeSet<_> = registry.rows().map(|row| row.name).collect();
    assert_eq!(names.len(), registry.rows().len());
    let stored: BTreeSet<_> = registry
        .rows()
        .map(|row| (row.stored_as.tree, row.stored_as.revision))
        .collect();
    assert_eq!(stored.len(), registry.rows().len());
    for row in registry.rows() {
        assert!(std::ptr::eq(registry.find(row.name).unwrap(), row));
        let tables: BTreeSet<_> = row.tables.iter().map(|spec| spec.table).collect();
        assert_eq!(tables.len(), row.tables.len(), "{}", row.name);
        assert!(!row.summary.ends_with('.'), "{}", row.name);
    }
    assert!(registry.find("none").is_none());
}

/// A database is opened again by what it says that it is, with every hash that its tree has.
#[test]
fn an_identity_leads_back_to_its_row() {
    for row in standard().rows() {
        for hash in row.hashes {
            let settings = Settings {
                hash: Some((*hash).to_owned()),
                ..Settings::default()
            };
            let tree = (row.make)(&settings).unwrap();
            assert_eq!(tree.hash(), *hash, "{}", row.name);
            assert!(std::ptr::eq(tree.kind(), row));
            let store = Arc::new(MemoryStore::default());
            let state = State::open(store.clone(), None, tree, NETWORK, Default::default());
            drop(state.unwrap());
            let identity = stored_identity(&*store).unwrap().unwrap();
            let found = standard().of_identity(&identity).unwrap();
            assert!(std::ptr::eq(found, row), "{}", row.name);
            let mut other = identity;
            other.revision.push('x');
            assert!(standard().of_identity(&other).is_none());
        }
    }
}

#[test]
fn settings_are_those_of_the_row() {
    let made = |row: &TreeKind, word: &str| {
        let settings = Settings {
            words: vec![word.to_owned()],
            ..Settings::default()
        };
        (row.make)(&settings).map(|tree| format!("{tree:?}"))
    };
    for row in standard().rows() {
        let usual = format!("{:?}", row.tree());
        for setting in row.settings {
            let (with, without) = (format!("{}=3", setting.name), setting.name.to_owned());
            let (right, wrong) = match setting.usual.is_some() {
                true => (with, without),
                false => (without, with),
            };
            assert_ne!(made(row, &right).unwrap(), usual, "{} {right}", row.name);
            if let Some(technique) = setting.technique {
                let found = row.setting(technique.off);
                assert_eq!(found.map(|found| found.name), Some(setting.name));
                let without = made(row, technique.off).unwrap();
                assert_ne!(without, usual, "{} {}", row.name, technique.off);
                assert!(!technique.name.is_empty() && !technique.name.ends_with('.'));
            }
            match made(row, &wrong).unwrap_err() {
                SettingError::Unknown { tree, word, .. } => {
                    assert_eq!((tree, word), (row.name, wrong));
                }
                error @ SettingError::Contradiction { .. } => panic!("{error}"),
            }
        }
        let error = made(row, "nothing").unwrap_err().to_string();
        assert!(
            error.contains(row.name) && error.contains("'nothing'"),
            "{error}"
        );
        let hash = Settings {
            hash: Some("md5".to_owned()),
            ..Settings::default()
        };
        let error = (row.make)(&hash).unwrap_err().to_string();
        assert!(error.contains(row.hashes[0]), "{error}");
    }
}

/// Whoever has no database knows the same trees as whoever has one, with the same proofs.
#[test]
fn checkers_of_proofs_know_the_same_trees() {
    let registry = standard();
    let kinds = arbor_verify::standard();
    let of_rows: Vec<_> = registry.rows().map(|row| row.verify.tree).collect();
    // Proofs of a state that moves are of any two of them.
    let one = |kind: &&VerifyKind| !std::ptr::eq(*kind, &two_trees::VERIFY);
    let kinds: Vec<_> = kinds.rows().filter(one).collect();
    let of_kinds: Vec<_> = kinds.iter().map(|kind| kind.tree).collect();
    assert_eq!(of_rows, of_kinds);
    for (row, kind) in registry.rows().zip(kinds) {
        assert_eq!(row.name, kind.tree);
        assert!(std::ptr::eq(row.verify, kind), "{}", row.name);
        assert!(!kind.forms.is_empty(), "{}", row.name);
    }
}

/// A folder remembers settings as words, which are looked up in all rows: a word has one meaning.
#[test]
fn a_setting_means_the_same_under_all_trees() {
    let mut known = std::collections::BTreeMap::new();
    for row in standard().rows() {
        for setting in row.settings {
            let meaning = (setting.scope == Scope::Stored, setting.usual.is_some());
            let first = *known.entry(setting.name).or_insert(meaning);
            assert_eq!(meaning, first, "{} of {}", setting.name, row.name);
        }
    }
    assert!(!known.is_empty());
}

#[test]
fn a_registry_is_a_value() {
    let registry = Registry::new([&MPT]);
    assert!(registry.find("ar16mt").is_none());
    let more = registry.clone().with(&AR16MT);
    assert!(more.find("ar16mt").is_some() && registry.find("ar16mt").is_none());
}
