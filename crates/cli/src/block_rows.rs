//! `arbor replay --blocks FILE`: comma-separated values, a row for each block.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arbor_chain::replay::BlockStats;
use arbor_metrics::ProcessUsage;

/// The columns, in their order. `docs/design/report-format.md` explains them; names that the
/// tool `cryo` has for blocks are the same here.
const COLUMNS: &str = "block_number,block_hash,timestamp,gas_used,base_fee_per_gas,\
    n_transactions,accounts_changed,slots_changed,nodes_written,source_s,backlog_s,execution_s,\
    keys_s,tree_s,store_s,check_s,root_delay_s,root_group,elapsed_s,store_bytes,written_bytes,\
    memory_bytes,disk_bytes,cache_hits,cache_misses";

/// How often the operating system is asked for memory and written bytes.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The file under way.
pub(crate) struct BlockRows {
    path: PathBuf,
    out: BufWriter<File>,
    start: Instant,
    asked: Option<Instant>,
    written_before: Option<u64>,
    written: Option<u64>,
    memory: Option<u64>,
}

impl BlockRows {
    /// Makes the file and writes the names of the columns.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| failed(path))?;
        let mut rows = Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            start: Instant::now(),
            asked: None,
            written_before: ProcessUsage::bytes_written_so_far(),
            written: None,
            memory: None,
        };
        writeln!(rows.out, "{COLUMNS}").with_context(|| failed(path))?;
        Ok(rows)
    }

    /// Writes the row of a block that is committed.
    pub(crate) fn add(&mut self, block: &BlockStats) -> std::io::Result<()> {
        let now = Instant::now();
        if self.asked.is_none_or(|asked| now - asked >= ASK_EVERY) {
            self.asked = Some(now);
            self.memory = ProcessUsage::resident_bytes();
            let written = ProcessUsage::bytes_written_so_far();
            self.written = written
                .zip(self.written_before)
                .map(|(now, then)| now - then);
        }
        write!(
            self.out,
            "{},{},{},{},{},{},{},{},{}",
            block.number,
            block.hash,
            block.timestamp,
            block.gas,
            known(block.base_fee),
            block.transactions,
            block.accounts,
            block.slots,
            block.nodes,
        )?;
        let times = &block.times;
        for time in [
            times.source,
            times.backlog,
            times.execution,
            times.keys,
            times.tree,
            times.store,
            times.check,
            block.root_delay,
        ] {
            write!(self.out, ",{:.6}", time.as_secs_f64())?;
        }
        writeln!(
            self.out,
            ",{},{:.6},{},{},{},{},{},{}",
            block.root_group,
            (now - self.start).as_secs_f64(),
            block.database.store_bytes,
            known(self.written),
            known(self.memory),
            known(block.database.disk_bytes),
            block.database.cache_hits,
            block.database.cache_misses,
        )
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.out.flush().with_context(|| failed(&self.path))
    }

    /// The file's name, for errors.
    pub(crate) fn describe(&self) -> String {
        failed(&self.path)
    }
}

fn failed(path: &Path) -> String {
    format!("--blocks {}", path.display())
}

/// A number, or nothing if it is not known.
fn known(value: Option<u64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
