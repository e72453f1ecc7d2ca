//! `arbor inspect`: what a database consists of.

use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use alloy_primitives::Address;
use anyhow::{Context, Result, bail};
use arbor_compare::inspection_page;
use arbor_metrics::Table;
use arbor_state::{Bucket, Inspection, NodeFigures, TableFigures};
use serde::Serialize;

use crate::args::Inspect;
use crate::progress::PartDone;
use crate::{bytes, database, files, metrics_server, output, report, stop};

/// What a database consists of, as `--json` prints it and as the page shows it.
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
    metrics_server::serve(args.metrics)?;
    let dir = args.database.db.as_path();
    if let Some(folder) = &args.csv {
        files::not_of_database("--csv", folder, Some(dir))?;
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        check("--csv", &folder.join("tables.csv"))?;
    }
    if let Some(file) = &args.html {
        files::not_of_database("--html", file, Some(dir))?;
        check("--html", file)?;
    }
    let mut measurement = report::measure("inspect");
    measurement.setting("db", dir.display().to_string());
    measurement.setting("top", args.top);
    let state = database::look(&args.database)?;
    database::head(state.reader())?;
    stop::listen_between("record");
    let progress = PartDone::new("inspect");
    let mut table = "";
    let found = state.inspect(args.top, &mut |now| {
        if table != now.table {
            table = now.table;
            tracing::info!("counting table {table}");
        }
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
    // Printed first: a disk that is full takes no file, and then the figures are not lost.
    match args.json {
        true => output::json(&inspected)?,
        false => print(&inspected)?,
    }
    if let Some(folder) = &args.csv {
        write_csv(&inspected.found, folder)?;
    }
    if let Some(file) = &args.html {
        let envelope = measurement.finish(serde_json::to_value(&inspected)?);
        files::write(file, inspection_page(&envelope).as_bytes())
            .with_context(|| format!("writing {}", file.display()))?;
    }
    match &inspected.found.fault {
        Some(fault) => bail!("{}: {fault}", dir.display()),
        None => Ok(()),
    }
}

/// Checks before the work that a file can be written.
fn check(flag: &str, file: &Path) -> Result<()> {
    files::check(file).with_context(|| format!("{flag} {}", file.display()))
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

/// Prints the same in words and tables.
fn print(inspected: &Inspected) -> Result<()> {
    let found = &inspected.found;
    output::line(&format!(
        "block {}, root {}, tree {}",
        found.block, found.root, found.tree
    ))?;
    output::line(&format!(
        "size on disk {}",
        bytes::show(inspected.disk_bytes)
    ))?;
    let why = match (&found.fault, found.complete) {
        (Some(_), _) => "a record cannot be read",
        (None, false) => "stopped as asked",
        (None, true) => "",
    };
    if !why.is_empty() {
        output::line(&format!(
            "{why}: these are the figures of the records read so far"
        ))?;
    }
    let storage = &found.storage;
    output::line(&format!(
        "{}; {} of {}; {}, {}\n",
        output::counted(found.accounts, "account"),
        output::counted(storage.slots, "slot"),
        output::counted(storage.accounts, "account"),
        output::counted(found.codes.codes, "code"),
        bytes::show(found.codes.bytes)
    ))?;
    let tables = [
        records(&found.tables),
        depths(&found.nodes),
        histogram("values in a leaf", "leaves", &found.occupancy),
        histogram("slots", "accounts", &storage.slots_per_account),
        largest_storage(found),
        histogram("bytes of code", "codes", &found.codes.by_bytes),
        largest_codes(found),
        history(found),
    ];
    for (place, table) in tables.into_iter().flatten().enumerate() {
        if place > 0 {
            output::line("")?;
        }
        output::table(&table)?;
    }
    Ok(())
}

fn records(tables: &[TableFigures]) -> Option<Table> {
    let mut shown = Table::new(["table", "records", "keys", "values"]);
    for table in tables {
        shown.row([
            match table.complete {
                true => table.table.clone().into_owned(),
                false => format!("{} (a part)", table.table),
            },
            table.records.to_string(),
            bytes::show(table.key_bytes),
            bytes::show(table.value_bytes),
        ]);
    }
    (!tables.is_empty()).then_some(shown)
}

/// A column for each kind of node, a row for each depth.
fn depths(nodes: &[NodeFigures]) -> Option<Table> {
    let names = nodes.iter().map(|of| format!("{} {}", of.trie, of.kind));
    let mut shown = Table::new(std::iter::once("nodes at depth".to_owned()).chain(names));
    let count = |of: &NodeFigures, depth| match of.by_depth.get(depth) {
        None | Some(0) => String::new(),
        Some(count) => count.to_string(),
    };
    let deepest = nodes.iter().map(|of| of.by_depth.len()).max()?;
    for depth in 0..deepest {
        let counts = nodes.iter().map(|of| count(of, depth));
        shown.row(std::iter::once(depth.to_string()).chain(counts));
    }
    let sums = nodes.iter().map(|of| of.count.to_string());
    shown.row(std::iter::once("all".to_owned()).chain(sums));
    Some(shown)
}

fn histogram(what: &str, of: &str, buckets: &[Bucket]) -> Option<Table> {
    let mut shown = Table::new([what, of]);
    for Bucket { from, to, count } in buckets {
        let bounds = match from == to {
            true => from.to_string(),
            false => format!("{from} to {to}"),
        };
        shown.row([bounds, count.to_string()]);
    }
    (!buckets.is_empty()).then_some(shown)
}

fn largest_storage(found: &Inspection) -> Option<Table> {
    let largest = &found.storage.largest;
    let mut shown = Table::new(["account", "slots"]);
    for large in largest {
        shown.row([address(large.address), large.slots.to_string()]);
    }
    (!largest.is_empty()).then_some(shown)
}

fn largest_codes(found: &Inspection) -> Option<Table> {
    let largest = &found.codes.largest;
    let mut shown = Table::new(["first account with the code", "bytes", "accounts with it"]);
    for large in largest {
        shown.row([
            address(large.address),
            large.bytes.to_string(),
            large.accounts.to_string(),
        ]);
    }
    (!largest.is_empty()).then_some(shown)
}

fn history(found: &Inspection) -> Option<Table> {
    let mut shown = Table::new([
        "history (undo records)",
        "entries",
        "absent before",
        "keys",
        "earlier values",
    ]);
    for of in &found.history {
        shown.row([
            of.table.clone().into_owned(),
            of.entries.to_string(),
            of.absent_before.to_string(),
            bytes::show(of.key_bytes),
            bytes::show(of.old_value_bytes),
        ]);
    }
    (!found.history.is_empty()).then_some(shown)
}

fn address(address: Option<Address>) -> String {
    address.map_or("unknown".to_owned(), |address| format!("{address:#x}"))
}
