//! `arbor inspect`: what a database consists of.

use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result};
use arbor_state::{Bucket, Inspection, TableFigures};
use serde::Serialize;

use crate::args::Inspect;
use crate::progress::PartDone;
use crate::{bytes, database, files, output, stop};

/// What a database consists of, as `--json` prints it and as a page may show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Inspected {
    /// Bytes of disk that the store's files occupy.
    pub(crate) disk_bytes: u64,
    /// All that was counted.
    #[serde(flatten)]
    pub(crate) found: Inspection,
}

pub(crate) fn run(args: &Inspect) -> Result<()> {
    let dir = args.database.db.as_path();
    if let Some(folder) = &args.csv {
        files::not_of_database("--csv", folder, Some(dir))?;
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let state = database::look(&args.database)?;
    database::head(state.reader())?;
    stop::listen_between("table record");
    let progress = PartDone::new("inspect");
    let found = state.inspect(args.top, &mut |now| {
        let what = format!("table {}, {} records", now.table, now.records);
        progress.set(now.done, &what);
        match stop::asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    progress.finish();
    let inspected = Inspected {
        disk_bytes: database::folder(dir).disk_bytes()?,
        found,
    };
    if let Some(folder) = &args.csv {
        write_csv(&inspected.found, folder)?;
    }
    match args.json {
        true => output::json(&inspected),
        false => output::line(text(&inspected).trim_end()),
    }
}

/// Writes a file of comma-separated values for each part.
fn write_csv(found: &Inspection, folder: &Path) -> Result<()> {
    let buckets = |of: &str, buckets: &[Bucket]| {
        let mut text = format!("from,to,{of}\n");
        for Bucket { from, to, count } in buckets {
            let _ = writeln!(text, "{from},{to},{count}");
        }
        text
    };
    let mut tables = "table,complete,records,key_bytes,value_bytes\n".to_owned();
    for table in &found.tables {
        let TableFigures {
            table,
            complete,
            records,
            key_bytes,
            value_bytes,
        } = table;
        let _ = writeln!(
            tables,
            "{table},{complete},{records},{key_bytes},{value_bytes}"
        );
    }
    let mut nodes = "trie,kind,depth,nodes\n".to_owned();
    for of in &found.nodes {
        for (depth, count) in of.by_depth.iter().enumerate().filter(|(_, n)| **n > 0) {
            let _ = writeln!(nodes, "{},{},{depth},{count}", of.trie, of.kind);
        }
    }
    let mut largest = "address,slots\n".to_owned();
    for account in &found.storage.largest {
        let address = account.address.map(|address| format!("{address:#x}"));
        let _ = writeln!(largest, "{},{}", address.unwrap_or_default(), account.slots);
    }
    let mut codes = "code_hash,bytes,accounts,address\n".to_owned();
    for code in &found.codes.largest {
        let address = code.address.map(|address| format!("{address:#x}"));
        let address = address.unwrap_or_default();
        let (hash, bytes, accounts) = (code.code_hash, code.bytes, code.accounts);
        let _ = writeln!(codes, "{hash},{bytes},{accounts},{address}");
    }
    let mut history = "table,entries,absent_before,key_bytes,old_value_bytes\n".to_owned();
    for of in &found.history {
        let _ = writeln!(
            history,
            "{},{},{},{},{}",
            of.table, of.entries, of.absent_before, of.key_bytes, of.old_value_bytes
        );
    }
    let storage = buckets("accounts", &found.storage.slots_per_account);
    for (name, text) in [
        ("tables.csv", tables),
        ("nodes.csv", nodes),
        ("occupancy.csv", buckets("leaves", &found.occupancy)),
        ("slots-per-account.csv", storage),
        ("largest-storage.csv", largest),
        (
            "codes-by-bytes.csv",
            buckets("codes", &found.codes.by_bytes),
        ),
        ("largest-codes.csv", codes),
        ("history.csv", history),
    ] {
        let file = folder.join(name);
        files::write(&file, text.as_bytes())
            .with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

/// The same in words and tables.
fn text(inspected: &Inspected) -> String {
    let found = &inspected.found;
    let mut out = String::new();
    // Writing to a string does not fail.
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    line(format!(
        "block {}, root {}, tree {}",
        found.block, found.root, found.tree
    ));
    line(format!(
        "size on disk {}",
        bytes::show(inspected.disk_bytes)
    ));
    if !found.complete {
        line("stopped as asked: these are the figures of the records read so far".to_owned());
    }
    line(format!(
        "\n{:<16}{:>14}{:>14}{:>14}",
        "table", "records", "keys", "values"
    ));
    for table in &found.tables {
        line(format!(
            "{:<16}{:>14}{:>14}{:>14}{}",
            table.table,
            table.records,
            bytes::show(table.key_bytes),
            bytes::show(table.value_bytes),
            if table.complete { "" } else { "  (a part)" }
        ));
    }
    line(format!(
        "\n{:<10}{:<12}{:>12}   {}",
        "trie", "node", "count", "depth: count"
    ));
    for of in &found.nodes {
        let depths = of.by_depth.iter().enumerate().filter(|(_, n)| **n > 0);
        let depths: Vec<_> = depths.map(|(depth, n)| format!("{depth}: {n}")).collect();
        let (first, rest) = depths.split_at(depths.len().min(DEPTHS));
        line(format!(
            "{:<10}{:<12}{:>12}   {}",
            of.trie,
            of.kind,
            of.count,
            first.join(", ")
        ));
        for some in rest.chunks(DEPTHS) {
            line(format!("{:37}{}", "", some.join(", ")));
        }
    }
    histogram(&mut line, "values in a leaf", "leaves", &found.occupancy);
    let storage = &found.storage;
    line(format!(
        "\n{} accounts; {} slots of {} accounts; {} codes, {}",
        found.accounts,
        storage.slots,
        storage.accounts,
        found.codes.codes,
        bytes::show(found.codes.bytes)
    ));
    histogram(&mut line, "slots", "accounts", &storage.slots_per_account);
    for large in &storage.largest {
        let address = large.address;
        let address = address.map_or("unknown".to_owned(), |address| format!("{address:#x}"));
        line(format!("{address:<44}{:>12} slots", large.slots));
    }
    histogram(&mut line, "bytes of code", "codes", &found.codes.by_bytes);
    for large in &found.codes.largest {
        let address = large.address;
        let address = address.map_or("unknown".to_owned(), |address| format!("{address:#x}"));
        line(format!(
            "{address:<44}{:>12} bytes of code, in {} accounts",
            large.bytes, large.accounts
        ));
    }
    line("\nhistory (undo records)".to_owned());
    for of in &found.history {
        line(format!(
            "{:<16}{:>14} entries, {} of absent keys; keys {}, values before {}",
            of.table,
            of.entries,
            of.absent_before,
            bytes::show(of.key_bytes),
            bytes::show(of.old_value_bytes)
        ));
    }
    out
}

/// Depths in a line.
const DEPTHS: usize = 4;

fn histogram(line: &mut impl FnMut(String), what: &str, of: &str, buckets: &[Bucket]) {
    if buckets.is_empty() {
        return;
    }
    line(format!("\n{what:<24}{of:>14}"));
    for Bucket { from, to, count } in buckets {
        let bounds = match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        };
        line(format!("{bounds:<24}{count:>14}"));
    }
}
