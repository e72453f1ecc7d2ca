//! The summary of a replay and its report file.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use arbor_chain::replay::{DelaySummary, Series, Sums};
use arbor_chain::rules::ChainRules;
use arbor_cpu::Backend;
use arbor_database::{Limits, TreeSettings, show_retain};
use arbor_metrics::{Measurement, Versions};
use arbor_state::Tree;
use arbor_versions::Retain;
use serde_json::{Value, json};

use crate::args::Replay as Args;
use crate::moves::MoveSummary;
use crate::trees::TreeChoice;
use crate::{bytes, files, output, rules};

/// The versions recorded by the build script.
pub(crate) fn versions() -> Versions {
    Versions {
        arbor: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("ARBOR_COMMIT").map(str::to_owned),
        rustc: option_env!("ARBOR_RUSTC").map(str::to_owned),
    }
}

/// Starts the measurement of a command, with the instructions that it computes with, which the environment may choose.
pub(crate) fn measure(command: &str) -> Measurement {
    let mut measurement = Measurement::start(command, versions());
    measurement.setting("backend", Backend::detect().name());
    measurement
}

/// Starts the measurement of a replay, its settings recorded but for the rules.
pub(crate) fn start(
    args: &Args,
    (choice, made): (TreeChoice, Option<&Tree>),
    settings: &TreeSettings,
) -> Measurement {
    let mut measurement = measure("replay");
    measurement.setting("tree", choice.name());
    measurement.setting("tree_settings", settings.as_slice());
    if let Some(hash) = &args.hash {
        measurement.setting("hash", hash.as_str());
    }
    let check_state = args.check_state.map(NonZeroU64::get);
    measurement.setting("check_state", check_state);
    let shown = |path: &PathBuf| path.display().to_string();
    measurement.setting("chain", args.chain.iter().map(shown).collect::<Vec<_>>());
    measurement.setting("genesis", args.genesis.clone());
    measurement.setting("to", args.to);
    for (name, file) in [
        ("db", &args.db),
        ("roots", &args.roots),
        ("blocks", &args.blocks),
        ("failure_dump", &args.failure_dump),
    ] {
        measurement.setting(name, file.as_ref().map(shown));
    }
    measurement.setting("store", args.store.name());
    measurement.setting("memory_bytes", args.memory);
    measurement.setting("write_back_bytes", args.write_back(made));
    measurement.setting("threads", args.thread_count());
    // Of a database: see `retain`.
    measurement.setting("retain", Value::Null);
    measurement.setting("verify", args.verify.name());
    measurement.setting("durable", args.durable);
    measurement.setting("compact", args.compact);
    let limits = |limits: Limits| json!({ "requests_per_second": limits.per_second, "latency_s": limits.latency.as_secs_f64() });
    measurement.setting("throttle", args.throttle.map(limits));
    measurement
}

/// Records which history a replay with a database keeps, as was asked for or remembered.
pub(crate) fn retain(measurement: &mut Measurement, retain: Retain) {
    measurement.setting("retain", show_retain(retain));
}

/// Records the rules that a replay follows, given or remembered.
pub(crate) fn rules(measurement: &mut Measurement, rules: ChainRules) {
    for (flag, value) in rules::settings(rules) {
        measurement.setting(flag, value);
    }
}

/// The time of a replay, beside what its blocks took one by one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Spans {
    /// From the begin of the command until the first block was asked for: tables, genesis, opening.
    pub(crate) start: Duration,
    /// From then on until the last block was committed or failed.
    pub(crate) blocks: Duration,
    /// The flush after the last block.
    pub(crate) last_flush: Duration,
}

/// What a replay did, before the database is closed.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Sums over all blocks.
    pub(crate) total: Sums,
    /// The time before, during and after the blocks.
    pub(crate) spans: Spans,
    /// Sums over intervals.
    pub(crate) series: Series,
    /// How long roots took to be known, if blocks had any.
    pub(crate) root_delay: Option<DelaySummary>,
    /// The move to another tree, if the state was on one.
    pub(crate) moved: Option<MoveSummary>,
    /// The head after it, where there is a database.
    pub(crate) head: Option<Head>,
    /// Whether roots are computed next to execution, on a thread of their own.
    pub(crate) beside: bool,
    /// Time spent merging the store's files at the end.
    pub(crate) compacting: Duration,
    /// The database's own figures: bytes handed to the store by table, flushes, cache hits.
    pub(crate) database: Value,
    /// Whether it ended by an error.
    pub(crate) failed: bool,
    /// Whether somebody asked to stop.
    pub(crate) stopped: bool,
    /// The block that was to be the last, if one was named.
    pub(crate) to: Option<u64>,
    /// The last block that is kept, which without a database is the last one executed; `None` if no flush succeeded.
    pub(crate) kept: Option<u64>,
    /// Bytes of the store's files.
    pub(crate) disk_bytes: Option<u64>,
}

/// A database's own figures since it was opened.
pub(crate) fn database_figures(stats: &arbor_versions::Stats) -> Value {
    let bytes = &stats.flush.bytes;
    json!({
        "flushes": stats.flush.flushes,
        "flushed_versions": stats.flush.versions,
        "flush_s": stats.flush.time.as_secs_f64(),
        "flush_wait_s": stats.flush_wait.as_secs_f64(),
        "keys_written": stats.flush.keys,
        "keys_skipped": stats.flush.skipped,
        "bytes": {
            "flat": bytes.flat,
            "nodes": bytes.nodes,
            "blobs": bytes.blobs,
            "undo": bytes.undo,
            "index": bytes.index,
            "meta": bytes.meta,
        },
        "cache_bytes": stats.cache_bytes,
        "cache_hits": stats.cache_hits,
        "cache_misses": stats.cache_misses,
    })
}

/// Where a database stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// The block.
    pub(crate) block: u64,
    /// Its hash.
    pub(crate) hash: alloy_primitives::B256,
    /// Its state root.
    pub(crate) root: alloy_primitives::B256,
}

impl Outcome {
    /// Prints the summary and, if asked, writes the report.
    pub(crate) fn finish(
        self,
        measurement: Measurement,
        file: Option<&Path>,
        json: bool,
    ) -> Result<()> {
        let results = self.results(measurement.elapsed());
        let envelope = measurement.finish(results);
        match json {
            true => output::json(&envelope)?,
            false => self.print(envelope.wall_seconds, &envelope.process)?,
        }
        files::write_report(file, &envelope)
    }

    /// The time between the blocks' begin and their end that is in no part. With a thread for roots, execution has
    /// ended then and waits for the last of them.
    fn rest(&self) -> f64 {
        let total = &self.total;
        let executing = total.source_s + total.backlog_s + total.execution_s;
        let roots = total.keys_s + total.tree_s + total.store_s + total.check_s;
        let parts = match self.beside {
            true => executing,
            false => executing + roots - self.spans.last_flush.as_secs_f64(),
        };
        (self.spans.blocks.as_secs_f64() - parts).max(0.0)
    }

    /// The time after the last flush, without compaction.
    fn end(&self, wall: f64) -> f64 {
        let Spans {
            start,
            blocks,
            last_flush,
        } = self.spans;
        let before = start + blocks + last_flush + self.compacting;
        (wall - before.as_secs_f64()).max(0.0)
    }

    fn results(&self, wall: Duration) -> Value {
        let counters: serde_json::Map<String, Value> = arbor_metrics::snapshot()
            .into_iter()
            .map(|(name, count)| (name.to_owned(), json!(count)))
            .collect();
        let head = self
            .head
            .map(|head| json!({ "block": head.block, "hash": head.hash, "stateRoot": head.root }));
        json!({
            "head": head,
            "total": self.total,
            "root_delay": self.root_delay,
            "move": self.moved,
            "start_s": self.spans.start.as_secs_f64(),
            "rest_s": self.rest(),
            "last_flush_s": self.spans.last_flush.as_secs_f64(),
            "compacting_s": self.compacting.as_secs_f64(),
            "end_s": self.end(wall.as_secs_f64()),
            "disk_bytes": self.disk_bytes,
            "database": self.database,
            "counters": counters,
            "series": self.series.entries(),
        })
    }

    fn print(&self, wall: f64, process: &arbor_metrics::ProcessUsage) -> Result<()> {
        let total = &self.total;
        if total.blocks == 0 {
            output::line(&self.nothing())?;
        } else {
            output::line(&format!(
                "{}: {} transactions, {:.3} Ggas in {wall:.2} s ({:.1} blocks/s, {:.1} Mgas/s)",
                self.done(),
                total.transactions,
                total.gas as f64 / 1e9,
                total.blocks as f64 / wall,
                total.gas as f64 / 1e6 / wall,
            ))?;
        }
        if total.blocks > 0 {
            for part in self.parts(wall) {
                part.print(wall)?;
            }
        }
        let size = |name: &str, value: Option<u64>| match value {
            Some(value) => output::line(&format!("  {name:<34}{:>11}", bytes::show(value))),
            None => Ok(()),
        };
        size("written by the process", process.written_bytes)?;
        size("size on disk", self.disk_bytes)?;
        size("peak memory", process.peak_rss_bytes)?;
        if let Some(head) = self.head {
            output::line(&format!("head: block {}, hash {}", head.block, head.hash))?;
            output::line(&format!("state root: {}", head.root))?;
        }
        if let Some(moved) = &self.moved {
            moved.tell()?;
        }
        let end = self.kept.unwrap_or(0);
        match self.to {
            Some(to) if to > end && !self.failed && !self.stopped => output::line(&format!(
                "the chain ends before block {to}, which --to names"
            )),
            _ => Ok(()),
        }
    }

    /// The parts of the time. Each group is one thread's work, one part after another. The first one has all of the time.
    fn parts(&self, wall: f64) -> Vec<Group> {
        let total = &self.total;
        let last_flush = self.spans.last_flush.as_secs_f64();
        let start = (
            "start: tables, genesis, opening",
            self.spans.start.as_secs_f64(),
        );
        let execution = [
            ("execution and verification", total.execution_s),
            ("waiting for blocks and senders", total.source_s),
            ("waiting for earlier roots", total.backlog_s),
        ];
        let roots = [
            ("key hashing", total.keys_s),
            ("tree", total.tree_s),
            ("store", total.store_s - last_flush),
            ("checking the state", total.check_s),
        ];
        let end = [
            ("last flush", last_flush),
            ("compaction", self.compacting.as_secs_f64()),
            ("end: closing the database", self.end(wall)),
        ];
        let group = |name, parts| Group { name, parts };
        match self.beside {
            true => {
                let rest = ("waiting for the last roots", self.rest());
                let first = [&[start], &execution[..], &[rest], &end].concat();
                vec![
                    group("thread of execution", first),
                    group("next to it, thread of roots", roots.to_vec()),
                ]
            }
            false => {
                let rest = ("between the parts", self.rest());
                let all = [&[start], &execution[..], &roots, &[rest], &end].concat();
                vec![group("one thread, in turn", all)]
            }
        }
    }

    /// Which blocks were replayed, and which of them were not kept since a flush failed.
    fn done(&self) -> String {
        let (first, last) = (self.total.first_block, self.total.last_block);
        let all = match first == last {
            true => format!("block {first}"),
            false => format!("blocks {first} to {last}"),
        };
        match self.kept {
            Some(kept) if kept >= last => format!("replayed {all}"),
            Some(kept) if kept == first => {
                format!("executed {all}, of which block {kept} was kept")
            }
            Some(kept) if kept > first => {
                format!("executed {all}, of which blocks {first} to {kept} were kept")
            }
            _ => format!("executed {all}, of which none was kept"),
        }
    }

    /// Why no block was replayed.
    fn nothing(&self) -> String {
        let head = self.head.map_or(0, |head| head.block);
        match self.to {
            _ if self.failed || self.stopped => "no block was replayed".to_owned(),
            Some(to) if to <= head => {
                format!("nothing to do: the head is block {head}, and --to is {to}")
            }
            _ => format!(
                "nothing to do: the database has every block of the chain; its head is block {head}"
            ),
        }
    }
}

/// Parts of the time that come one after another.
struct Group {
    name: &'static str,
    parts: Vec<(&'static str, f64)>,
}

impl Group {
    /// Prints each part with its share of the whole time, and their sum. Groups run next to each other, so that only the
    /// shares of one group add up to 100 % at most.
    fn print(&self, wall: f64) -> Result<()> {
        let sum: f64 = self.parts.iter().map(|(_, seconds)| seconds).sum();
        if sum <= 0.0 {
            return Ok(());
        }
        let line = |name: &str, seconds: f64| {
            let share = 100.0 * seconds / wall;
            output::line(&format!("  {name:<34}{seconds:>9.2} s{share:>6.1} %"))
        };
        line(self.name, sum)?;
        let parts = self.parts.iter().filter(|(_, seconds)| *seconds > 0.0);
        for (name, seconds) in parts {
            line(&format!("  {name}"), *seconds)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(blocks: u64, kept: Option<u64>, head: u64) -> Outcome {
        let mut total = Sums::default();
        (total.blocks, total.first_block, total.last_block) = (blocks, 101, 100 + blocks);
        Outcome {
            total,
            spans: Spans::default(),
            series: Series::default(),
            root_delay: None,
            moved: None,
            head: Some(Head {
                block: head,
                hash: Default::default(),
                root: Default::default(),
            }),
            beside: true,
            compacting: Duration::ZERO,
            database: Value::Null,
            failed: false,
            stopped: false,
            to: None,
            kept,
            disk_bytes: None,
        }
    }

    /// The shares added up to 115 %, as if all came one after another.
    #[test]
    fn what_runs_side_by_side_is_not_added_up() {
        let mut outcome = outcome(2, Some(102), 102);
        let total = &mut outcome.total;
        (total.execution_s, total.source_s, total.backlog_s) = (0.6, 0.1, 0.3);
        (total.keys_s, total.tree_s, total.store_s) = (0.1, 0.4, 0.2);
        let seconds = Duration::from_secs_f64;
        outcome.spans = Spans {
            start: seconds(0.5),
            blocks: seconds(1.2),
            last_flush: seconds(0.1),
        };
        outcome.compacting = seconds(0.25);
        let sums = |outcome: &Outcome, wall: f64| -> Vec<f64> {
            let groups = outcome.parts(wall).into_iter();
            groups
                .map(|group| group.parts.iter().map(|part| part.1).sum::<f64>())
                .collect()
        };
        let [execution, roots] = sums(&outcome, 2.5)[..] else {
            unreachable!("two threads");
        };
        // The first thread has all of the time: 0.2 s waiting for the last roots, 0.45 s for the end.
        assert!((execution - 2.5).abs() < 1e-9 && (roots - 0.6).abs() < 1e-9);
        assert!((outcome.rest() - 0.2).abs() < 1e-9 && (outcome.end(2.5) - 0.45).abs() < 1e-9);
        outcome.beside = false;
        outcome.spans.blocks = seconds(1.8);
        let [all] = sums(&outcome, 3.0)[..] else {
            unreachable!("one thread");
        };
        assert!((all - 3.0).abs() < 1e-9, "{all}");
    }

    /// After a full disk it was "replayed blocks 101 to 221", above "head: block 100".
    #[test]
    fn what_was_not_kept_was_not_replayed() {
        for (blocks, kept, said) in [
            (121, Some(221), "replayed blocks 101 to 221"),
            (1, Some(101), "replayed block 101"),
            (
                121,
                Some(100),
                "executed blocks 101 to 221, of which none was kept",
            ),
            (
                121,
                None,
                "executed blocks 101 to 221, of which none was kept",
            ),
            (
                121,
                Some(150),
                "executed blocks 101 to 221, of which blocks 101 to 150 were kept",
            ),
            (
                121,
                Some(101),
                "executed blocks 101 to 221, of which block 101 was kept",
            ),
        ] {
            assert_eq!(outcome(blocks, kept, 100).done(), said);
        }
    }

    /// `--to 100` with the head at 200 was told that the chain ends there.
    #[test]
    fn where_nothing_is_done_the_reason_is_told() {
        let mut outcome = outcome(0, Some(200), 200);
        let ends =
            "nothing to do: the database has every block of the chain; its head is block 200";
        assert_eq!(outcome.nothing(), ends);
        outcome.to = Some(300);
        assert_eq!(outcome.nothing(), ends);
        outcome.to = Some(100);
        assert_eq!(
            outcome.nothing(),
            "nothing to do: the head is block 200, and --to is 100"
        );
        outcome.failed = true;
        assert_eq!(outcome.nothing(), "no block was replayed");
    }
}
