//! `arbor verify`: the whole database.

use std::path::Path;
use std::time::Instant;

use alloy_primitives::B256;
use anyhow::{Result, bail};
use arbor_chain::replay::HeaderCheck;
use arbor_state::{MetaCheck, RootPlace, StateError, StateSnapshot, VerifyProgress, VerifyReport};
use serde::Serialize;

use super::verify_parts::{self, on_threads};
use crate::args::Verify;
use crate::{database, metrics_server, output};

pub(crate) fn run(args: &Verify) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    let state = database::look(&args.database)?;
    let dir = args.database.db.as_path();
    if let (Some(part), Some(to)) = (args.part, &args.to) {
        return verify_parts::one(args, &state, part, to);
    }
    let has_headers = database::folder(dir).has_chain()?;
    let checked = match args.join.is_empty() {
        true => check(&state, has_headers, args.threads)?,
        false => {
            let parts = verify_parts::read(&state, &args.join)?;
            check_by(&state, has_headers, args.threads, |tell, meta| {
                state.verify_join(parts, tell, meta)
            })?
        }
    };
    match args.json {
        true => output::json(&checked)?,
        false => checked.print()?,
    }
    checked.verdict(dir)?;
    // They say what the blocks to come mean, not whether what is stored holds.
    database::folder(dir).rules()?;
    Ok(())
}

/// What a check of a whole database found, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checked {
    /// The latest block, and the root after it.
    block: u64,
    root: B256,
    /// Whether nothing is wrong.
    holds: bool,
    accounts: u64,
    slots: u64,
    codes: u64,
    nodes: u64,
    /// Records of versions: of headers, if the database is of a chain.
    versions: u64,
    undo_records: u64,
    /// Records of old nodes, which are there if they are kept.
    old_node_records: u64,
    index_entries: u64,
    /// Older versions rebuilt from their undo records.
    rebuilt_versions: u64,
    /// The Merkle-Patricia root of the flat tables, and that of the latest header; null if there is none.
    flat_root: B256,
    header_state_root: Option<B256>,
    fault_count: u64,
    /// The first hundred faults.
    faults: Vec<String>,
    #[serde(skip)]
    has_headers: bool,
    /// The latest block, as a message names it.
    #[serde(skip)]
    at: String,
    #[serde(skip)]
    roots: RootPlace,
}

/// Checks the whole database in a folder, whose versions have headers if it is of a chain, on a number of threads.
pub(crate) fn check(state: &StateSnapshot, has_headers: bool, threads: usize) -> Result<Checked> {
    check_by(state, has_headers, threads, |tell, meta| {
        state.verify(tell, meta)
    })
}

fn check_by(
    state: &StateSnapshot,
    has_headers: bool,
    threads: usize,
    by: impl FnOnce(&(dyn Fn(VerifyProgress) + Sync), MetaCheck<'_>) -> Result<VerifyReport, StateError>
    + Send,
) -> Result<Checked> {
    let reader = state.reader();
    let head = database::head(reader)?;
    let mut headers = HeaderCheck::new(reader.tree()).since(state.roots_since()?);
    let begin = Instant::now();
    let report = on_threads(threads, |tell| {
        by(tell, &mut |meta| match has_headers {
            true => headers.check(meta),
            false => Ok(()),
        })
    })?;
    tracing::info!(
        "checked {} nodes and {} older versions in {:.1} s, faults: {}",
        report.nodes,
        report.versions,
        begin.elapsed().as_secs_f64(),
        report.fault_count
    );
    let (flat_root, header_state_root) = (report.flat_root, headers.state_root());
    let mut faults = report.faults;
    let mut fault_count = report.fault_count;
    if let Some(expected) = header_state_root.filter(|root| *root != flat_root) {
        fault_count += 1;
        faults.push(format!(
            "the Merkle-Patricia root of the flat tables is {flat_root}, the header of block {} has {expected}",
            head.block_number
        ));
    }
    Ok(Checked {
        block: head.block_number,
        root: reader.root(),
        holds: fault_count == 0,
        accounts: report.accounts,
        slots: report.slots,
        codes: report.codes,
        nodes: report.nodes,
        versions: report.records.metas,
        undo_records: report.records.undo_chunks,
        old_node_records: report.records.old_node_chunks,
        index_entries: report.records.index_entries,
        rebuilt_versions: report.versions,
        flat_root,
        header_state_root,
        fault_count,
        faults,
        has_headers,
        at: database::block_name(head),
        roots: reader.tree().kind().roots,
    })
}

impl Checked {
    /// Prints what was checked, and names the faults on standard error.
    pub(crate) fn print(&self) -> Result<()> {
        output::line(&format!(
            "checked {}, {}, {} and {} at {}",
            output::counted(self.accounts, "account"),
            output::counted(self.slots, "slot"),
            output::counted(self.codes, "code"),
            output::counted(self.nodes, "node"),
            self.at
        ))?;
        let version = match self.has_headers {
            true => "header",
            false => "version",
        };
        output::line(&format!(
            "checked {}, {} and {} index entries, and rebuilt {}",
            output::counted(self.versions, version),
            output::counted(self.undo_records, "undo record"),
            self.index_entries,
            output::counted(self.rebuilt_versions, "older version")
        ))?;
        if self.old_node_records > 0 {
            let records = output::counted(self.old_node_records, "record");
            output::line(&format!("checked {records} of old nodes"))?;
        }
        for fault in &self.faults {
            output::tell(&format!("fault: {fault}"));
        }
        let (root, flat_root) = (self.root, self.flat_root);
        if !self.holds {
            return Ok(());
        }
        output::line(&match (self.has_headers, self.roots) {
            (false, _) => format!("every node and record agrees with root {root}"),
            (true, RootPlace::InHeaders) => {
                format!("every node and record agrees with state root {root}")
            }
            (true, _) => format!(
                "every node and record agrees with root {root}, and the accounts and slots with the header's state root {flat_root}"
            ),
        })
    }

    /// The first hundred faults.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Turns faults into an error.
    pub(crate) fn verdict(&self, dir: &Path) -> Result<()> {
        let dir = dir.display();
        let only_header = self.fault_count == 1
            && self
                .header_state_root
                .is_some_and(|root| root != self.flat_root);
        if only_header {
            bail!(
                "{dir}: every node and record agrees with root {}, but the accounts and slots are not those that the header of block {} means: that header is false, or what the blocks were executed by",
                self.root,
                self.block
            );
        }
        match self.fault_count {
            0 => Ok(()),
            faults => bail!(
                "{dir} is damaged: {} found",
                output::counted(faults, "fault")
            ),
        }
    }
}
