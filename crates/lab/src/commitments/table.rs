//! The study as text.

use super::{Results, limit::PRODUCTS_OF_AN_ADDITION};
use crate::measure::{Row, Sample};
use arbor_metrics::Table;

/// What all rows are compared with, in a line.
#[must_use]
pub fn heading(results: &Results) -> String {
    format!(
        "Keccak-256 of 32 bytes: {} (one Keccak below); a product in lanes: {:.1} ns; tables of {:.1} MB made in {:.2} s",
        time(results.keccak_ns),
        results.lane_product_ns,
        results.tables_bytes as f64 / 1e6,
        results.setup_s,
    )
}

/// Explains the columns.
pub const LEGEND: &str = "\
single, batch: one operation, alone and in a batch. Keccaks: the same in units of one Keccak; a value: that for each
value it binds. point +: additions of points for one. bound: the time of their products in lanes, as a share of the
time. allocs, bytes: allocations of one. The last four are of the batch if there is one.";

/// Returns a row for each operation: times alone and in a batch, and their ratios to one Keccak-256 of 32 bytes, for the
/// operation and for each of its values.
#[must_use]
pub fn table(results: &Results) -> Table {
    let mut table = Table::new([
        "", "single", "Keccaks", "a value", "batch", "Keccaks", "a value", "point +", "bound",
        "allocs", "bytes",
    ]);
    for row in &results.rows {
        table.row(cells(row, results));
    }
    table
}

fn cells(row: &Row, results: &Results) -> Vec<String> {
    let last = row.batch.as_ref().unwrap_or(&row.single);
    let bound = last.point_additions * PRODUCTS_OF_AN_ADDITION * results.lane_product_ns / last.ns;
    let mut cells = vec![row.name.to_string()];
    cells.extend(times(&row.single, row.values, results));
    match &row.batch {
        Some(batch) => cells.extend(times(batch, row.values, results)),
        None => cells.extend(["-"; 3].map(str::to_owned)),
    }
    cells.extend([
        figure(last.point_additions),
        format!("{:.0}%", 100.0 * bound),
        figure(last.allocations),
        figure(last.allocated_bytes),
    ]);
    cells
}

fn times(sample: &Sample, values: usize, results: &Results) -> [String; 3] {
    let keccaks = sample.ns / results.keccak_ns;
    [
        time(sample.ns),
        figure(keccaks),
        figure(keccaks / values as f64),
    ]
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e4 => format!("{ns:.0} ns"),
        ns if ns < 1e7 => format!("{:.1} us", ns / 1e3),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}

/// Three digits or so.
fn figure(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}
