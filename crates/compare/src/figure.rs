//! The figures of a run: what they are called, their units, and where reports have them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run::Run;

/// What a figure is, which says whether it may grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Seconds. Differs from run to run.
    Time,
    /// How often something was done or how many there are. The same in every run with one thread.
    Count,
    /// A count that may grow at no cost, such as hits of a cache. The same in every run with one thread.
    Neutral,
    /// Bytes that follow from the work alone, such as those handed to the store.
    Bytes,
    /// Bytes as the operating system or the store counts them. Differs from run to run.
    Observed,
}

impl Kind {
    /// Whether a growth of it costs something, and is a change of the program rather than of the machine.
    pub fn may_not_grow(self) -> bool {
        matches!(self, Self::Count | Self::Bytes)
    }
}

/// A figure of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name in results.
    pub name: String,
    /// What it is called in tables.
    pub label: String,
    /// Its kind.
    pub kind: Kind,
    /// Seconds, bytes or a count.
    pub value: f64,
}

/// Figures with a fixed place in a report: name, label, kind, and the path there.
const FIXED: [(&str, &str, Kind, &str); 31] = [
    ("wall_s", "wall time", Kind::Time, "/wall_seconds"),
    ("user_s", "processor, user", Kind::Time, "/process/user_s"),
    ("sys_s", "processor, system", Kind::Time, "/process/sys_s"),
    (
        "execution_s",
        "execution",
        Kind::Time,
        "/results/total/execution_s",
    ),
    ("keys_s", "key hashing", Kind::Time, "/results/total/keys_s"),
    ("tree_s", "tree", Kind::Time, "/results/total/tree_s"),
    ("store_s", "store", Kind::Time, "/results/total/store_s"),
    (
        "source_s",
        "waiting for blocks",
        Kind::Time,
        "/results/total/source_s",
    ),
    (
        "backlog_s",
        "waiting for roots",
        Kind::Time,
        "/results/total/backlog_s",
    ),
    ("start_s", "start", Kind::Time, "/results/start_s"),
    ("rest_s", "rest", Kind::Time, "/results/rest_s"),
    ("end_s", "end", Kind::Time, "/results/end_s"),
    (
        "root_p50_s",
        "root known after, p50",
        Kind::Time,
        "/results/root_delay/p50_s",
    ),
    (
        "root_p99_s",
        "root known after, p99",
        Kind::Time,
        "/results/root_delay/p99_s",
    ),
    (
        "root_before_move_p50_s",
        "root before the move, p50",
        Kind::Time,
        "/results/move/before/p50_s",
    ),
    (
        "root_before_move_p99_s",
        "root before the move, p99",
        Kind::Time,
        "/results/move/before/p99_s",
    ),
    (
        "root_amid_move_p50_s",
        "root amid the move, p50",
        Kind::Time,
        "/results/move/amid/p50_s",
    ),
    (
        "root_amid_move_p99_s",
        "root amid the move, p99",
        Kind::Time,
        "/results/move/amid/p99_s",
    ),
    (
        "root_after_move_p50_s",
        "root after the move, p50",
        Kind::Time,
        "/results/move/after/p50_s",
    ),
    (
        "root_after_move_p99_s",
        "root after the move, p99",
        Kind::Time,
        "/results/move/after/p99_s",
    ),
    (
        "units_moved",
        "accounts and slots moved",
        Kind::Count,
        "/results/move/units",
    ),
    (
        "written_bytes",
        "written to disk",
        Kind::Observed,
        "/process/written_bytes",
    ),
    (
        "disk_bytes",
        "size on disk",
        Kind::Observed,
        "/results/disk_bytes",
    ),
    (
        "peak_rss_bytes",
        "peak memory",
        Kind::Observed,
        "/process/peak_rss_bytes",
    ),
    (
        "nodes",
        "nodes written",
        Kind::Count,
        "/results/total/nodes",
    ),
    (
        "accounts",
        "accounts changed",
        Kind::Count,
        "/results/total/accounts",
    ),
    (
        "slots",
        "slots changed",
        Kind::Count,
        "/results/total/slots",
    ),
    (
        "keys_written",
        "keys handed to the store",
        Kind::Count,
        "/results/database/keys_written",
    ),
    (
        "cache_hits",
        "cache hits",
        Kind::Neutral,
        "/results/database/cache_hits",
    ),
    (
        "cache_misses",
        "cache misses",
        Kind::Count,
        "/results/database/cache_misses",
    ),
    (
        "group_max",
        "blocks to a root at most",
        Kind::Neutral,
        "/results/root_delay/group_max",
    ),
];

/// Names that a terminal's table shows, in their order; a report and a page show all.
pub const HEADLINES: [&str; 32] = [
    "wall_s",
    "blocks_s",
    "start_s",
    "execution_s",
    "source_s",
    "backlog_s",
    "keys_s",
    "tree_s",
    "store_s",
    "rest_s",
    "end_s",
    "root_p50_s",
    "root_p99_s",
    "root_before_move_p50_s",
    "root_before_move_p99_s",
    "root_amid_move_p50_s",
    "root_amid_move_p99_s",
    "root_after_move_p50_s",
    "root_after_move_p99_s",
    "store_bytes",
    "written_bytes",
    "disk_bytes",
    "peak_rss_bytes",
    "blocks_s_per_transaction",
    "cache_misses_per_transaction",
    "store_bytes_per_transaction",
    "nodes",
    "keccak_permutations",
    "blake2s_compressions",
    "blake3_compressions",
    "sha256_compressions",
    "point_additions",
];

/// Counts of operations that take long or ask the store, which a page draws next to each other.
pub const COUNTERS: [&str; 10] = [
    "keccak_permutations",
    "blake2s_compressions",
    "blake3_compressions",
    "sha256_compressions",
    "point_additions",
    "normalisations",
    "field_inversions",
    "square_roots",
    "store_reads",
    "store_writes",
];

/// All figures of a run that its report has.
pub fn of_run(run: &Run) -> Vec<Figure> {
    let report = serde_json::to_value(&run.report).unwrap_or_default();
    let mut figures = Vec::new();
    let mut add = |name: &str, label: &str, kind: Kind, value: Option<f64>| {
        figures.extend(value.map(|value| Figure {
            name: name.to_owned(),
            label: label.to_owned(),
            kind,
            value,
        }));
    };
    for (name, label, kind, path) in FIXED {
        add(
            name,
            label,
            kind,
            report.pointer(path).and_then(Value::as_f64),
        );
    }
    let at = |path: &str| report.pointer(path).and_then(Value::as_f64);
    // The start loads a genesis and makes tables, however many blocks follow.
    let apart = ["/results/start_s", "/results/end_s"].map(|path| at(path).unwrap_or_default());
    let of_blocks = at("/wall_seconds").map(|wall| (wall - apart[0] - apart[1]).max(0.0));
    add("blocks_s", "of that, the blocks", Kind::Time, of_blocks);
    let stored = numbers(&report, "/results/database/bytes");
    let all = (!stored.is_empty()).then(|| stored.values().sum());
    add("store_bytes", "handed to the store", Kind::Bytes, all);
    for (kind, bytes) in stored {
        let label = format!("handed to the store: {kind}");
        add(
            &format!("store_bytes.{kind}"),
            &label,
            Kind::Bytes,
            Some(bytes),
        );
    }
    let transactions = report.pointer("/results/total/transactions");
    let transactions = transactions
        .and_then(Value::as_f64)
        .filter(|number| *number > 0.0);
    let part = |value: Option<f64>| Some(value? / transactions?);
    for (name, label, kind, value) in [
        ("blocks_s", "time a transaction", Kind::Time, of_blocks),
        (
            "cache_misses",
            "look-ups a transaction",
            Kind::Neutral,
            at("/results/database/cache_misses"),
        ),
        ("store_bytes", "bytes a transaction", Kind::Observed, all),
    ] {
        add(&format!("{name}_per_transaction"), label, kind, part(value));
    }
    for (name, count) in numbers(&report, "/results/counters") {
        let kind = match name.ends_with("_bytes") {
            true => Kind::Bytes,
            false => Kind::Count,
        };
        add(&name, &name.replace('_', " "), kind, Some(count));
    }
    for (name, bytes) in numbers(&report, "/results/total/work/published") {
        let label = format!("published form: {name}");
        add(
            &format!("published_bytes.{name}"),
            &label,
            Kind::Bytes,
            Some(bytes),
        );
    }
    for row in run
        .inspection
        .as_ref()
        .and_then(|found| found["tables"].as_array())
        .into_iter()
        .flatten()
    {
        let table = row["table"].as_str().unwrap_or_default();
        let number = |name: &str| row[name].as_f64();
        let records = format!("records.{table}");
        add(
            &records,
            &format!("records: {table}"),
            Kind::Count,
            number("records"),
        );
        let bytes = number("keyBytes")
            .zip(number("valueBytes"))
            .map(|(keys, values)| keys + values);
        let name = format!("table_bytes.{table}");
        add(
            &name,
            &format!("bytes of records: {table}"),
            Kind::Bytes,
            bytes,
        );
    }
    figures
}

/// The numbers of an object in a report, by name.
fn numbers(report: &Value, path: &str) -> BTreeMap<String, f64> {
    let fields = report.pointer(path).and_then(Value::as_object);
    let numbers = fields.into_iter().flatten();
    let numbers = numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::done;

    #[test]
    fn start_and_end_are_no_time_of_blocks() {
        let mut run = done("oak", 1, 3.0, 1);
        run.report.results["start_s"] = 1.5.into();
        run.report.results["end_s"] = 0.5.into();
        let figures = of_run(&run);
        let value = |name: &str| {
            let figure = figures.iter().find(|figure| figure.name == name);
            figure.map(|figure| figure.value)
        };
        assert_eq!(value("wall_s"), Some(3.0));
        assert_eq!(value("blocks_s"), Some(1.0));
        assert_eq!(value("blocks_s_per_transaction"), Some(0.2));
    }
}
