//! The study's rows are right, and complete.

use arbor_lab::{
    Row,
    commitments::{Group, Results, Settings, run, table},
    measure::Budget,
};
use std::{collections::BTreeSet, time::Duration};

/// The smallest measurement there is: every result is still computed in every way and compared.
fn settings(groups: &[Group]) -> Settings {
    Settings {
        groups: groups.to_vec(),
        budget: Budget(Duration::ZERO),
        table_bytes: 6_000_000,
        openings: vec![1, 20],
    }
}

fn study(groups: &[Group]) -> Results {
    let mut heard = Vec::new();
    let results = run(&settings(groups), &mut |name| heard.push(name.to_owned())).expect("right");
    let names: Vec<_> = results.rows.iter().map(|row| row.name.as_str()).collect();
    let distinct: BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(
        names
            .iter()
            .all(|name| heard.iter().any(|other| other == name))
    );
    let table = table(&results);
    assert!(names.iter().all(|name| table.text(None).contains(name)));
    results
}

fn row<'a>(results: &'a Results, name: &str) -> &'a Row {
    let row = results.rows.iter().find(|row| row.name == name);
    row.unwrap_or_else(|| panic!("{name} is missing"))
}

#[test]
fn hashes_and_points() {
    let results = study(&[Group::Keccak, Group::Keys, Group::Points]);
    for name in ["keccak/1024", "key/keccak-slot", "point/decompress"] {
        assert_eq!(row(&results, name).values, 1);
    }
    let digest = |name: &str| &row(&results, name).digest;
    assert_ne!(digest("key/slot"), digest("key/slot-repeated"));
}

#[test]
fn vectors_and_leaves() {
    let results = study(&[Group::Vectors, Group::Leaves]);
    assert_eq!(row(&results, "vector/256").values, 256);
    assert_eq!(row(&results, "leaf/account").values, 2);
    assert_eq!(row(&results, "leaf/contract").values, 194);
}

#[test]
fn updates_end_at_the_same_leaf_however_they_are_made() {
    let results = study(&[Group::Updates]);
    let digest = |name: &str| &row(&results, name).digest;
    assert_eq!(digest("update/64"), digest("update-from-points/64"));
    assert_eq!(digest("update/256"), digest("update-many/1"));
    assert_ne!(digest("update/256"), digest("update-many/4"));
}

#[test]
fn proofs() {
    let results = study(&[Group::Proofs]);
    assert_eq!(row(&results, "prove/20").values, 20);
    assert!(row(&results, "verify/20").batch.is_none());
}

#[test]
fn groups_have_names() {
    for group in Group::ALL {
        assert_eq!(group.to_string().parse(), Ok(group));
    }
    assert!("trees".parse::<Group>().is_err());
}
