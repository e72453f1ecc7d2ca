//! The table for a terminal.

use arbor_metrics::Table;

use crate::figure::{HEADLINES, Kind};
use crate::{FigureRow, Results};

/// Describes the blocks and what the columns of the [table](terminal_table) have, in a line.
pub fn terminal_heading(results: &Results) -> String {
    let chain = &results.chain;
    format!(
        "blocks {} to {}: {} transactions, {:.3} Ggas; medians, and ratios to {}",
        chain.first_block,
        chain.last_block,
        chain.transactions,
        chain.gas as f64 / 1e9,
        results.trees[0].side.name,
    )
}

/// Returns a table of the most telling figures: medians, and ratios to the first side.
pub fn terminal_table(results: &Results) -> Table {
    let names = results.trees.iter().map(|column| column.side.name.as_str());
    let mut table = Table::new(std::iter::once("").chain(names));
    let mut row = |label: &str, cells: Vec<String>| {
        table.row(std::iter::once(label.to_owned()).chain(cells));
    };
    for figure in HEADLINES.iter().filter_map(|name| results.figure(name)) {
        row(&figure.label, cells(figure));
    }
    let runs = results.trees.iter().map(|column| match column.runs {
        1 => "1".to_owned(),
        runs => format!("{runs}, {:.1} %", 100.0 * column.spread),
    });
    row("runs, spread of wall time", runs.collect());
    table
}

/// The medians of a row, each after the first with its ratio.
fn cells(row: &FigureRow) -> Vec<String> {
    let cells = row.trees.iter().zip(&row.ratios).enumerate();
    let cell = |(index, (side, ratio)): (usize, (&Option<crate::Summary>, &Option<f64>))| {
        let Some(side) = side else {
            return "-".to_owned();
        };
        let value = show(row.kind, side.median);
        match ratio {
            Some(ratio) if index > 0 => format!("{value} {ratio:>5.2}x"),
            _ => value,
        }
    };
    cells.map(cell).collect()
}

/// Writes a value with its unit.
pub(crate) fn show(kind: Kind, value: f64) -> String {
    match kind {
        Kind::Time => seconds(value),
        Kind::Count | Kind::Neutral => decimal(value),
        Kind::Bytes | Kind::Observed => bytes(value),
    }
}

fn seconds(value: f64) -> String {
    match value {
        0.0 => "0 s".to_owned(),
        ..0.001 => format!("{:.0} µs", value * 1e6),
        ..0.1 => format!("{:.1} ms", value * 1e3),
        _ => format!("{value:.2} s"),
    }
}

fn decimal(value: f64) -> String {
    match value {
        ..1e3 if value.fract() != 0.0 => format!("{value:.2}"),
        ..1e4 => format!("{value:.0}"),
        ..1e6 => format!("{:.1} k", value / 1e3),
        _ => format!("{:.2} M", value / 1e6),
    }
}

fn bytes(value: f64) -> String {
    let mut value = value;
    for unit in ["B", "KiB", "MiB"] {
        if value < 1024.0 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        for (kind, value, shown) in [
            (Kind::Time, 0.0, "0 s"),
            (Kind::Time, 0.000_25, "250 µs"),
            (Kind::Time, 0.012_34, "12.3 ms"),
            (Kind::Time, 61.5, "61.50 s"),
            (Kind::Count, 9_999.0, "9999"),
            (Kind::Count, 12_345.0, "12.3 k"),
            (Kind::Count, 12_345_678.0, "12.35 M"),
            (Kind::Bytes, 512.0, "512.0 B"),
            (Kind::Observed, 3.0 * 1024.0 * 1024.0, "3.0 MiB"),
        ] {
            assert_eq!(show(kind, value), shown);
        }
    }
}
