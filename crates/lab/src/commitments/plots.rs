//! The study as pictures.

use super::Results;
use crate::{
    Row,
    plot::{Plot, Scale},
};

/// Names of files and their contents: leaves by the number of their values, updates by the number of changes. Without their rows, none.
#[must_use]
pub fn plots(results: &Results) -> Vec<(&'static str, String)> {
    let line = |prefix: &str, of: &dyn Fn(&Row) -> f64| -> Vec<(f64, f64)> {
        let rows = results.rows.iter();
        let numbered = rows.filter_map(|row| {
            let count: u32 = row.name.strip_prefix(prefix)?.parse().ok()?;
            Some((f64::from(count), of(row) / results.keccak_ns))
        });
        numbered.collect()
    };
    let single = |row: &Row| row.single.ns;
    let batch = |row: &Row| row.batch.as_ref().map_or(row.single.ns, |batch| batch.ns);
    let value = |row: &Row| batch(row) / row.values as f64;
    let leaves = Plot {
        title: "A leaf from its values",
        x: "values",
        x_scale: Scale::Fours,
        y: "Keccaks of 32 bytes",
        lines: vec![
            ("one leaf", line("leaf/", &single)),
            ("in batches", line("leaf/", &batch)),
            ("in batches, a value", line("leaf/", &value)),
        ],
    };
    let updates = Plot {
        title: "Changed values of one leaf",
        x: "values in the leaf, or changed of 256",
        x_scale: Scale::Fours,
        y: "Keccaks of 32 bytes",
        lines: vec![
            ("one change", line("update/", &single)),
            ("in batches", line("update/", &batch)),
            ("from points alone", line("update-from-points/", &batch)),
            ("many changes", line("update-many/", &batch)),
            ("many changes, each", line("update-many/", &value)),
        ],
    };
    [("leaves.svg", leaves), ("updates.svg", updates)]
        .into_iter()
        .map(|(file, plot)| (file, plot.svg()))
        .filter(|(_, svg)| !svg.is_empty())
        .collect()
}
