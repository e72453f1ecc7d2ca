//! The study as text.

use super::{Results, limit::PRODUCTS_OF_AN_ADDITION};
use crate::measure::{Row, Sample};
use std::fmt::Write;

/// One line for each row: times alone and in a batch, their ratios to one Keccak-256 of 32 bytes, for the operation and for each of its values.
#[must_use]
pub fn table(results: &Results) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Keccak-256 of 32 bytes: {} (one Keccak below); a product in lanes: {:.1} ns; tables of {:.1} MB made in {:.2} s\n",
        time(results.keccak_ns),
        results.lane_product_ns,
        results.tables_bytes as f64 / 1e6,
        results.setup_s,
    );
    let _ = writeln!(
        text,
        "{:<24}{:>10}{:>9}{:>9} |{:>10}{:>9}{:>9} |{:>9}{:>8}{:>8}{:>9}",
        "",
        "single",
        "Keccaks",
        "a value",
        "batch",
        "Keccaks",
        "a value",
        "point +",
        "bound",
        "allocs",
        "bytes"
    );
    for row in &results.rows {
        let _ = writeln!(text, "{}", line(row, results));
    }
    text.push_str(
        "\nsingle, batch: one operation, alone and in a batch. Keccaks: the same in units of one Keccak; a value: that for each value it binds.\n\
         point +: additions of points for one. bound: the time of their products in lanes, as a share of the time. allocs, bytes: allocations of\n\
         one. The last four are of the batch where there is one.\n",
    );
    text
}

fn line(row: &Row, results: &Results) -> String {
    let last = row.batch.as_ref().unwrap_or(&row.single);
    let bound = last.point_additions * PRODUCTS_OF_AN_ADDITION * results.lane_product_ns / last.ns;
    let mut text = format!(
        "{:<24}{} |",
        row.name,
        columns(&row.single, row.values, results)
    );
    match &row.batch {
        Some(batch) => text.push_str(&columns(batch, row.values, results)),
        None => text.push_str(&format!("{:>10}{:>9}{:>9}", "-", "-", "-")),
    }
    let _ = write!(text, " |{:>9}", figure(last.point_additions));
    let _ = write!(text, "{:>7.0}%", 100.0 * bound);
    let _ = write!(
        text,
        "{:>8}{:>9}",
        figure(last.allocations),
        figure(last.allocated_bytes)
    );
    text
}

fn columns(sample: &Sample, values: usize, results: &Results) -> String {
    let keccaks = sample.ns / results.keccak_ns;
    format!(
        "{:>10}{:>9}{:>9}",
        time(sample.ns),
        figure(keccaks),
        figure(keccaks / values as f64)
    )
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
