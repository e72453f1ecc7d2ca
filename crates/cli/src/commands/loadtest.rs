//! `arbor loadtest`: many leaves, block by block, under any tree.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use arbor_allocations as allocations;
use arbor_database::{Budget, NO_CHAIN};
use arbor_lab::loadtest::{self, BlockFigures, Numbering, Progress, Results, run as load};
use arbor_metrics::{Machine, Measurement};
use arbor_state::{BlockMemory, Settings, State, Tree};
use arbor_store::{MemoryStore, Store};
use arbor_trees::ar16mt::HashChoice;
use arbor_versions::{Options, Retain};

use crate::args::{Loadtest as Args, NumberingChoice};
use crate::database;
use crate::metrics_server::{self, PROGRESS};
use crate::stop::Stop;
use crate::{bytes, files, output, report, stop};

/// How long a block that is under way is waited for when somebody asks to stop.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &Args) -> Result<()> {
    // What a block frees the next one wants again: given back, it has to be cleared anew, which is a tenth of the processor's time.
    allocations::keep_freed();
    let tree = tree(args)?;
    if let Some(warning) = room(args, Machine::detect().memory_bytes)? {
        tracing::warn!("{warning}");
    }
    files::check_report(args.report.as_deref(), args.db.as_deref())?;
    metrics_server::serve(args.metrics)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads);
    let pool = pool.build().context("starting threads")?;
    let measurement = measurement(args, pool.current_num_threads());
    let settings = loadtest::Settings {
        blocks: args.blocks,
        writes: args.writes,
        updates: args.updates,
        update_blocks: args.update_blocks,
        reads: args.reads,
        seed: args.rng_seed,
        numbering: numbering(args),
        proofs: args.proofs,
    };
    let folder = match (&args.db, args.in_memory) {
        (None, false) => Some(tempfile::tempdir().context("making a folder for the database")?),
        _ => None,
    };
    let dir = args
        .db
        .as_deref()
        .or(folder.as_ref().map(|folder| folder.path()));
    let mut state = open(args, tree, dir)?;
    stop::listen_for(PATIENCE);
    if let Some(folder) = &folder {
        stop::remove_if_hurried(folder.path());
    }
    if args.blocks == 0 {
        stop::STOP.must_end();
    }
    let show = |line: &str| match args.json {
        true => output::remark(true, line),
        false => output::table_line(line),
    };
    output::remark(args.json, &output::wrapped(LEGEND))?;
    show(HEADINGS)?;
    let mut printed = Ok(());
    let mut passed = |progress: Progress<'_>| {
        passed(&stop::STOP, progress, &mut |line| {
            printed = show(line);
            printed.is_ok()
        })
    };
    let results = pool.install(|| load(&settings, &mut state, &mut passed));
    drop(state);
    printed?;
    let results = results?;
    if let Some(block) = results.stopped_after {
        show(&format!(
            "stopped after block {block}: nothing was merged or checked"
        ))?;
    }
    let envelope = measurement.finish(serde_json::to_value(&results)?);
    match args.json {
        true => output::json(&envelope)?,
        false => summary(&results, envelope.process.peak_rss_bytes)?,
    }
    files::write_report(args.report.as_deref(), &envelope)
}

/// Prints a block's line, as far as `print` can, and says whether the test goes on. A block may be given up once somebody has asked to stop ([`PATIENCE`]); what comes
/// behind blocks, a flush above all, the check and the report, may not.
fn passed(
    stop: &Stop,
    progress: Progress<'_>,
    print: &mut dyn FnMut(&str) -> bool,
) -> ControlFlow<()> {
    let goes_on = match progress {
        Progress::Block { figures, last } => {
            PROGRESS.block(figures.block, 0);
            // Before the line: whoever reads the last one may know what is asked for from then on.
            let asked = match last {
                true => stop.must_end(),
                false => stop.asked(),
            };
            print(&row(figures)) && !asked
        }
        Progress::Flushed => stop.may_be_given_up(),
    };
    if goes_on {
        return ControlFlow::Continue(());
    }
    stop.must_end();
    ControlFlow::Break(())
}

/// Looks whether the largest block has room in memory, where all that it writes is until it is in: a warning if not within the budget.
///
/// # Errors
/// A block that the machine has no memory for.
fn room(args: &Args, machine: Option<u64>) -> Result<Option<String>> {
    // Measured on first blocks of 100,000 to 1,600,000, and on up to 12 of 100,000 to 600,000: later ones touch more nodes, and the one before is
    // still on its way to the disk.
    let BlockMemory { first, later } = match args.proofs {
        true => PROVEN,
        false => args.tree.block_memory,
    };
    let each_write = match args.blocks + args.update_blocks {
        ..=1 => first,
        _ => later,
    };
    let each_read = match args.proofs {
        true => READ_PROVEN,
        false => READ,
    };
    // Neither reads nor changes more leaves than blocks before it have brought.
    let before = args.writes * args.blocks.saturating_sub(1);
    let writes = args.writes + args.updates.min(before);
    let reads = args.reads.min(before);
    // What leaves hold that are no more as they came.
    let changes = args.blocks * args.updates.min(before) + args.update_blocks * args.writes;
    let changed = changes.min(args.writes * args.blocks);
    let needed = writes * each_write + reads * each_read + changed * CHANGED;
    let (mut what, mut fewer) = (format!("{writes} writes"), "WRITES".to_owned());
    for (count, name, flag) in [
        (writes - args.writes, "", "--updates"),
        (reads, "reads", "--reads"),
    ] {
        if count > 0 {
            fewer = format!("{fewer} or {flag}");
            if !name.is_empty() {
                what = format!("{what} and {count} {name}");
            }
        }
    }
    let takes = format!(
        "a block of {what} takes some {} of memory until it is in",
        bytes::show(needed)
    );
    if let Some(memory) = machine.filter(|memory| *memory < needed) {
        bail!(
            "{takes}, and the machine has {}: give fewer {fewer}",
            bytes::show(memory)
        );
    }
    let exceeds = needed > args.memory;
    Ok(exceeds.then(|| {
        let memory = bytes::show(args.memory);
        format!("{takes}, more than the {memory} of --memory, on top of which it comes")
    }))
}

/// Bytes of memory for a leaf that a block reads, which is drawn and read by itself; one that is proven, all of which are there at once; and one that has been changed.
const READ: u64 = 40;
const READ_PROVEN: u64 = 700;
/// Bytes of memory for a leaf that is written with a proof.
const PROVEN: BlockMemory = BlockMemory {
    first: 1_700,
    later: 3_200,
};
const CHANGED: u64 = 40;

fn numbering(args: &Args) -> Numbering {
    match args.numbering {
        NumberingChoice::Published => Numbering::Published,
        NumberingChoice::Upstream => Numbering::Upstream,
    }
}

fn tree(args: &Args) -> Result<Tree> {
    if args.numbering == NumberingChoice::Upstream && args.db.is_some() {
        bail!(
            "--numbering upstream leaves gaps between the numbers of leaves, which other commands refuse in a database: give it without --db"
        );
    }
    let kind = args.tree;
    let chunk = args.chunk_size.map(|chunk| format!("chunk={chunk}"));
    let any_index = numbering(args).setting();
    let words = chunk.clone().into_iter();
    let settings = Settings {
        hash: args.no_hash.then(|| HashChoice::NoOp.name().to_owned()),
        memory: Some(args.memory),
        words: words.chain(any_index.map(str::to_owned)).collect(),
    };
    let tree = (kind.make)(&Settings {
        hash: None,
        words: Vec::new(),
        ..settings.clone()
    })?;
    let by_leaves = tree.leaves().is_some();
    let hashes = |name: &str| kind.hashes.contains(&name);
    for (flag, possible) in [
        (
            "--no-hash",
            !args.no_hash || hashes(HashChoice::NoOp.name()),
        ),
        (
            "--numbering upstream",
            any_index.is_none_or(|setting| kind.setting(setting).is_some()),
        ),
        ("--proofs", !args.proofs || by_leaves),
        (
            "--chunk-size",
            chunk.is_none_or(|chunk| kind.setting(&chunk).is_some()),
        ),
    ] {
        if !possible {
            bail!("{flag} does nothing with --tree {}", kind.name);
        }
    }
    Ok((kind.make)(&settings)?)
}

fn measurement(args: &Args, threads: usize) -> Measurement {
    let mut measurement = report::measure("loadtest");
    measurement.setting("blocks", args.blocks);
    measurement.setting("writes", args.writes);
    measurement.setting("tree", args.tree.name);
    measurement.setting("reads", args.reads);
    measurement.setting("updates", args.updates);
    measurement.setting("update_blocks", args.update_blocks);
    measurement.setting("rng_seed", args.rng_seed);
    let numbering = match args.numbering {
        NumberingChoice::Published => "published",
        NumberingChoice::Upstream => "upstream",
    };
    measurement.setting("numbering", numbering);
    measurement.setting("proofs", args.proofs);
    measurement.setting("no_hash", args.no_hash);
    measurement.setting("in_memory", args.in_memory);
    measurement.setting("db", args.db.as_ref().map(|dir| dir.display().to_string()));
    measurement.setting("store", args.store.name());
    measurement.setting("prune", args.prune);
    let chunk_size = args.tree.setting("chunk=1").and_then(|chunk| chunk.usual);
    let chunk_size =
        chunk_size.map(|usual| args.chunk_size.map_or(usual, |size| size.get() as u64));
    measurement.setting("chunk_size", chunk_size);
    measurement.setting("memory_bytes", args.memory);
    measurement.setting(
        "write_back_bytes",
        args.write_back
            .unwrap_or(arbor_database::usual_write_back(args.memory)),
    );
    measurement.setting("threads", threads);
    measurement
}

fn open(args: &Args, tree: Tree, dir: Option<&Path>) -> Result<State> {
    let budget = Budget {
        memory: args.memory,
        write_back: args.write_back,
        retain: match args.prune {
            true => Retain::None,
            false => Retain::All,
        },
        history_proofs: false,
        durable: false,
        throttle: None,
        in_turn: false,
    };
    let Some(dir) = dir else {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        // What is in memory already needs no cache.
        let options = Options {
            cache_bytes: 0,
            ..budget.options()
        };
        return Ok(State::open(store, None, tree, NO_CHAIN, options)?);
    };
    let folder = database::folder(dir);
    let state = folder.open_or_create((args.store, tree), NO_CHAIN, budget)?;
    if state.head().is_some() {
        bail!(
            "{} holds a database already: the test begins with none",
            dir.display()
        );
    }
    Ok(state)
}

const LEGEND: &str = "load, apply, hash: seconds summed over all threads; the other times by the clock, of which tree has all three. hashes/leaf: to the checkpoint + from it + in nodes.
keys: leaves read. patch, cached, db: reads answered by unflushed versions, by the cache, by the store. pruned, find: records that flushes deleted meanwhile, seconds for finding them. from: the oldest version kept";
const HEADINGS: &str = " block    total    reads     tree   commit |    load   apply    hash | leaves     new   moved updated   nodes  level deepest       hashes/leaf   hashed |    keys   patch  cached      db |    batch  unflushed  written |  pruned    find   from";

fn row(block: &BlockFigures) -> String {
    let tree = block.tree.map_or_else(
        || format!("{:>27} {:>7}{:>74}", '|', block.leaves, ""),
        |tree| {
            format!(
                "{:>7.3}s {:>6.3}s {:>6.3}s | {:>6} {:>7} {:>7} {:>7} {:>7} {:>6.2} {:>7} {:>17} {:>8}",
                tree.load_s,
                tree.place_s,
                tree.hash_s,
                block.leaves,
                tree.new_leaves,
                tree.moved_leaves,
                tree.updated_leaves,
                tree.new_internal_nodes,
                tree.avg_leaf_level,
                tree.max_leaf_level,
                format!(
                    "{:.1}+{:.1}+{:.1}",
                    tree.fold_hashes_per_leaf, tree.rise_hashes_per_leaf, tree.node_hashes_per_leaf
                ),
                bytes::show(tree.hashed_bytes),
            )
        },
    );
    let written = block.written_bytes.map_or_else(|| "-".into(), bytes::show);
    format!(
        "{:>6} {:>7.3}s {:>7.3}s {:>7.3}s {:>7.3}s |{tree} | {:>7} {:>7} {:>7} {:>7} | {:>8} {:>10} {:>8} | {:>7} {:>6.3}s {:>6}",
        block.block,
        block.wall_s,
        block.reads_s + block.keys_s,
        block.tree_s,
        block.commit_s + block.records_s,
        block.key_reads,
        block.unflushed_hits,
        block.cache_hits,
        block.cache_misses,
        bytes::show(block.batch_bytes),
        bytes::show(block.dirty_bytes),
        written,
        block.pruned_keys,
        block.prune_s,
        block.oldest_version,
    )
}

fn summary(results: &Results, peak: Option<u64>) -> Result<()> {
    let line = |name: &str, value: String| output::line(&format!("  {name:<32}{value:>20}"));
    let cpu = |seconds: Option<f64>| {
        seconds.map_or_else(|| "not available".into(), |s| format!("{s:.2} s"))
    };
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "not available".into(), bytes::show);
    output::line(&format!(
        "{} leaves in {:.2} s: {:.0} new leaves/s, the flush at the end included",
        results.leaves, results.new.wall_s, results.new.writes_per_second
    ))?;
    if let Some(updates) = &results.updates {
        output::line(&format!(
            "then {:.2} s: {:.0} leaves changed/s, likewise",
            updates.wall_s, updates.writes_per_second
        ))?;
    }
    let blocks = |name: &str, [half, most, nearly, all]: [f64; 4]| {
        let times = format!("{half:.0} / {most:.0} / {nearly:.0} / {all:.0} ms");
        line(&format!("{name}, 50 / 90 / 99 / 100 %"), times)
    };
    line("seconds of the processor", cpu(results.new.cpu_s))?;
    blocks("block", results.new.block_ms)?;
    if let Some(updates) = &results.updates {
        blocks("of changes", updates.block_ms)?;
    }
    line("written by the process", size(results.new.written_bytes))?;
    if let Some(updates) = &results.updates {
        line("written by the changes", size(updates.written_bytes))?;
    }
    line("size on disk", size(results.disk_bytes))?;
    for run in std::iter::once(&results.new).chain(&results.updates) {
        let (time, size) = (run.flush_s, bytes::show(run.flush_batch_bytes));
        line(
            "flush behind the last block",
            format!("{size} in {time:.2} s"),
        )?;
    }
    if results.compact_s.is_some() {
        line("after merging", size(results.compacted_bytes))?;
    }
    for table in &results.tables {
        let name = format!("table {}, keys and values", table.table);
        line(
            &name,
            format!("{} in {}", bytes::show(table.bytes), table.records),
        )?;
    }
    let runs = || std::iter::once(&results.new).chain(&results.updates);
    if let Some(last) = results.blocks.last() {
        line(
            "oldest version that can be read",
            last.oldest_version.to_string(),
        )?;
        let sum = |of: fn(&BlockFigures) -> u64| results.blocks.iter().map(of).sum::<u64>();
        let keys = sum(|b| b.pruned_keys) + runs().map(|run| run.flush_pruned_keys).sum::<u64>();
        let in_blocks: f64 = results.blocks.iter().map(|b| b.prune_s).sum();
        let time = in_blocks + runs().map(|run| run.flush_prune_s).sum::<f64>();
        line(
            "pruned with the flushes",
            format!("{keys} keys, found in {:.1} ms", 1e3 * time),
        )?;
        line("existing keys read", sum(|b| b.key_reads).to_string())?;
        let from = [
            sum(|b| b.unflushed_hits),
            sum(|b| b.cache_hits),
            sum(|b| b.cache_misses),
        ];
        let from = from.map(|reads| reads.to_string()).join(" / ");
        line("reads of patch / cached / db", from)?;
    }
    line("peak memory", size(results.peak_rss_bytes))?;
    if results.verify_s.is_some() {
        line("with the check at the end", size(peak))?;
    }
    if let Some(seconds) = results.verify_s {
        line("whole database checked in", format!("{seconds:.2} s"))?;
        line("seconds of the processor", cpu(results.verify_cpu_s))?;
    }
    output::line(&format!("root: {}", results.root))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arbor, Command};

    /// One of 67 million began without a word, and was ended by the system minutes later.
    #[test]
    fn a_block_without_room_is_told_of_before_it_begins() {
        let room = |words: &str, machine| {
            let words = format!("arbor loadtest {words}");
            let command = Arbor::parse_from(words.split(' ')).command;
            let Command::Loadtest(args) = command else {
                unreachable!("it is the load test");
            };
            room(&args, machine).map_err(|error| error.to_string())
        };
        const MACHINE: Option<u64> = Some(24 << 30);
        assert_eq!(room("20 150000", MACHINE), Ok(None));
        assert_eq!(room("1 150000 --memory 256MiB", MACHINE), Ok(None));
        // Of later blocks it was told as of a first one: this came to 460 MiB.
        let warning = room("8 150000 --memory 256MiB", MACHINE).expect("fits");
        assert!(warning.expect("a warning").contains("329.0 MiB"));
        let most = "1 67108864";
        let error = room(most, MACHINE).expect_err("refused");
        assert_eq!(
            error,
            "a block of 67108864 writes takes some 40.0 GiB of memory until it is in, and the machine has 24.0 GiB: give fewer WRITES"
        );
        let warning = room(most, None).expect("not known").expect("a warning");
        assert!(
            warning.contains("40.0 GiB") && warning.contains("2.0 GiB of --memory"),
            "{warning}"
        );
        let error =
            room("100 1000000 --updates 67108864 --tree mpt", MACHINE).expect_err("refused");
        assert!(error.ends_with("give fewer WRITES or --updates"), "{error}");
        // The first block has no leaves to change or to read.
        let alone = "1 1000000 --updates 67108864 --reads 67108864 --proofs";
        assert_eq!(room(alone, MACHINE), Ok(None));
        // Reads had no part in it.
        let error = room("100 1000000 --reads 67108864 --proofs", MACHINE).expect_err("refused");
        assert!(
            error.contains("1000000 writes and 67108864 reads")
                && error.ends_with("give fewer WRITES or --reads"),
            "{error}"
        );
        let warning = room("100 1000 --reads 99000 --memory 16MiB --proofs", MACHINE);
        assert!(warning.expect("fits").is_some());
        for words in ["1 2000000 --proofs", "1 50000 --memory 16MiB"] {
            assert!(room(words, MACHINE).expect("fits").is_some(), "{words}");
        }
    }

    /// What a load test came to: `None` if it was given up.
    type End = Option<(Option<u64>, bool)>;

    /// Two blocks of leaves and two of changes, somebody asking to stop at the progress of that number, before it is told or after, and no block ending within the patience.
    fn asked(at: usize, before: bool) -> End {
        let settings = loadtest::Settings {
            blocks: 2,
            writes: 4,
            updates: 0,
            update_blocks: 2,
            reads: 0,
            seed: 0,
            numbering: Numbering::Published,
            proofs: false,
        };
        let tree = arbor_trees::ar16mt::AR16MT.tree();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let state = State::open(store, None, tree, NO_CHAIN, Options::default());
        let (stop, mut told, mut given_up) = (Stop::new(), 0, false);
        let mut passed = |progress: Progress<'_>| {
            let ask = |here| {
                if here && told == at {
                    stop.ask();
                }
            };
            ask(before);
            let goes_on = passed(&stop, progress, &mut |_| true);
            ask(!before);
            told += 1;
            // Whatever comes now takes longer than the patience.
            given_up = stop.give_up();
            match given_up {
                true => ControlFlow::Break(()),
                false => goes_on,
            }
        };
        let results = load(&settings, &mut state.expect("made"), &mut passed);
        let results = results.expect("no failure");
        (!given_up).then_some((results.stopped_after, results.verify_s.is_some()))
    }

    /// Asked to stop in its last flush or its check, it was given up there and reported nothing; and in blocks that only change leaves it never was.
    #[test]
    fn blocks_alone_are_given_up() {
        const IN_TIME: bool = true;
        const AFTER: bool = false;
        let [first, last, flushed, change, last_change] = [0, 1, 2, 3, 4];
        let stopped_after = |block| Some((Some(block), false));
        assert_eq!(asked(first, IN_TIME), stopped_after(0));
        assert_eq!(asked(first, AFTER), None);
        assert_eq!(asked(last, IN_TIME), stopped_after(1));
        // In the flush, behind which no blocks begin.
        assert_eq!(asked(last, AFTER), stopped_after(1));
        assert_eq!(asked(flushed, IN_TIME), stopped_after(1));
        assert_eq!(asked(flushed, AFTER), None);
        assert_eq!(asked(change, IN_TIME), stopped_after(2));
        assert_eq!(asked(change, AFTER), None);
        assert_eq!(asked(last_change, IN_TIME), stopped_after(3));
        // In the last flush or the check.
        let whole = Some((None, true));
        assert_eq!(asked(last_change, AFTER), whole);
        assert_eq!(asked(usize::MAX, AFTER), whole);
    }
}
