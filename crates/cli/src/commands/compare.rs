//! `arbor compare`: the same chain under several trees, in figures.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::bounded_input::{Bound, BoundedInput};
use arbor_chain::source::open_sources;
use arbor_compare::{
    Comparison, Folder, Found, Outcome, Plan, Program, Results, Side, check_baseline, check_sides,
    terminal_heading, terminal_table,
};
use arbor_database::show_retain;
use arbor_metrics::{Envelope, Measurement, Table};
use arbor_state::Settings;

use super::compare_state;
use crate::args::Compare as Args;
use crate::metrics_server::PROGRESS;
use crate::trees::TREES;
use crate::{database, metrics_server, output, report, stop};

pub(crate) fn run(args: &Args) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let plan = plan(args)?;
    if let Some(before) = &baseline {
        check_before(before, &plan).context("--baseline")?;
    }
    let measurement = measurement("compare", &plan);
    let folder = Folder::open(&args.out, &plan)?;
    if compare_state::load(args, &plan)?.is_break() {
        return Ok(());
    }
    let found = carry_out(&plan, &folder, args.json, |found| {
        let results = &found.results;
        let envelope = measurement.finish(serde_json::to_value(results)?);
        if args.json {
            output::json(&envelope)?;
        } else {
            output::line(&format!("{}\n", terminal_heading(results)))?;
            output::table(&terminal_table(results))?;
        }
        Ok(envelope)
    })?;
    match (baseline, found) {
        (Some(before), Some(now)) => hold_to(&before.results, &now.results, args),
        _ => Ok(()),
    }
}

/// Does the runs of a plan that are not done yet, in its folder, and writes the files of what was found. `print` prints
/// the figures and returns their report. `None` if somebody asked to stop before all runs were done.
///
/// # Errors
/// Runs that failed, once the others were compared and written.
pub(super) fn carry_out(
    plan: &Plan,
    folder: &Folder,
    json: bool,
    print: impl FnOnce(&Found) -> Result<Envelope>,
) -> Result<Option<Found>> {
    stop::listen_between("run");
    let program = std::env::current_exe().context("finding the program itself")?;
    let comparison = Comparison {
        plan,
        folder,
        program: &program,
        copy: &|from, to| database::folder(from).copy_to(to).map_err(io::Error::other),
        stopped: &stop::asked,
        tell: &output::tell,
        done: &|done, of| PROGRESS.done((done as f64 / of as f64).min(1.0)),
    };
    let found = match comparison.run()? {
        Outcome::Done(found) => *found,
        Outcome::Stopped { done, of } => {
            let said = format!("stopped: {done} of {of} runs are done; the same command goes on");
            output::remark(json, &said)?;
            return Ok(None);
        }
    };
    // Printed first: if a file cannot be written, the figures are not lost.
    let envelope = print(&found)?;
    comparison.write(&found, &envelope)?;
    output::remark(
        json,
        &format!(
            "\nreport: {}; figures next to it: results.json, runs.csv, blocks.csv, blocks.parquet",
            folder.path("report.html").display()
        ),
    )?;
    let failed = &found.results.failed;
    if !failed.is_empty() {
        bail!(
            "these runs failed, and the others were compared without them: {}",
            failed.join("; ")
        );
    }
    Ok(Some(found))
}

/// The plan of a comparison: its inputs, sides and settings.
fn plan(args: &Args) -> Result<Plan> {
    for (flag, points) in [("--growth", args.growth), ("--witnesses", args.witnesses)] {
        if let Some(points) = points.filter(|points| args.no_survey && *points > 0) {
            bail!("{flag} {points} is of no use with --no-survey, which leaves both out");
        }
    }
    check_to(args.to)?;
    let trees = sides(args)?;
    let state = args.state.as_ref().map(|state| state.display().to_string());
    let paths = compare_state::chain(args)?;
    Ok(Plan {
        program: program()?,
        chain: lengths(&paths)?,
        paths,
        genesis: args.genesis.clone(),
        state: state.zip(args.workload.map(|load| load.to_string())),
        trees,
        repetitions: args.repeat,
        cache: args.cache.into(),
        memory_bytes: args.memory,
        write_back_bytes: args.write_back,
        retain: show_retain(args.retain),
        threads: threads(args.threads),
        to: args.to,
        throttle: args.throttle.clone(),
        witnesses: args.witnesses.unwrap_or(WITNESSES),
        verify: !args.no_verify,
        survey: !args.no_survey,
        growth: args.growth.unwrap_or(GROWTH),
    })
}

/// Refuses to stop before any block.
pub(super) fn check_to(to: Option<u64>) -> Result<()> {
    match to {
        Some(0) => bail!("--to 0: no block is left to compare, since block 0 is the genesis"),
        _ => Ok(()),
    }
}

/// The files and folders of a chain, with their lengths in bytes.
pub(super) fn lengths(chain: &[PathBuf]) -> Result<Vec<(String, u64)>> {
    let length = |path: &PathBuf| {
        let bytes = bytes_below(path).with_context(|| path.display().to_string())?;
        Ok((path.display().to_string(), bytes))
    };
    chain.iter().map(length).collect()
}

/// The threads of each run: all cores if the command line has 0.
pub(super) fn threads(given: usize) -> usize {
    match given {
        0 => rayon::current_num_threads(),
        threads => threads,
    }
}

/// Checks before any run what would make the results incomparable: the sides, and the blocks. Says what else differs.
fn check_before(before: &Baseline, plan: &Plan) -> Result<()> {
    check_sides(&before.results, &plan.trees).map_err(anyhow::Error::msg)?;
    let chain = &before.results.chain;
    let of = format!(
        "the baseline is of blocks {} to {} ({})",
        chain.first_block, chain.last_block, chain.last_hash
    );
    if let Some(to) = plan.to.filter(|to| *to < chain.last_block) {
        bail!("{of}, and --to is {to}");
    }
    let mut input = open_sources(&plan.paths)?;
    let passed = input.skip_to(chain.last_block + 1)?;
    match passed.filter(|link| link.number == chain.last_block) {
        None => bail!("{of}, and the chain ends before"),
        Some(link) if link.hash.to_string() != chain.last_hash => {
            bail!(
                "{of}, and block {} of the chain is {}",
                link.number,
                link.hash
            )
        }
        Some(_) => {}
    }
    if plan.to != Some(chain.last_block) && input.next_raw()?.is_some() {
        bail!(
            "{of}, and the chain goes on: give --to {}",
            chain.last_block
        );
    }
    let now = measurement("compare", plan)
        .finish(serde_json::Value::Null)
        .settings;
    for name in [
        "memory_bytes",
        "write_back_bytes",
        "retain",
        "threads",
        "throttle",
    ] {
        if before.settings.get(name) != now.get(name) {
            let shown = |value: Option<&serde_json::Value>| match value {
                None | Some(serde_json::Value::Null) => "not given".to_owned(),
                Some(value) => value.to_string(),
            };
            tracing::warn!(
                "the baseline was made with another {name}: {}, now {}. Counts may differ for that reason",
                shown(before.settings.get(name)),
                shown(now.get(name))
            );
        }
    }
    if plan.threads != 1 {
        tracing::warn!("counts of reads and hits vary from run to run, but with --threads 1");
    }
    Ok(())
}

/// Blocks whose witnesses are made, and points along the chain, if the command line does not say.
const WITNESSES: u64 = 64;
const GROWTH: u64 = 8;

/// The sides, held against the registry of trees.
fn sides(args: &Args) -> Result<Vec<Side>> {
    let mut sides = Vec::new();
    let texts = args.trees.iter().map(|text| compare_state::swept(text));
    let texts = texts.collect::<Result<Vec<_>>>().context("--trees")?;
    for text in &texts.concat() {
        let mut side = Side::parse(text).context("--trees")?;
        let kind = TREES.find(&side.tree).with_context(|| {
            let names: Vec<_> = TREES.rows().map(|kind| kind.name).collect();
            format!(
                "--trees: there is no tree '{}', only {}",
                side.tree,
                names.join(", ")
            )
        })?;
        let settings = Settings {
            words: side.settings.clone(),
            memory: Some(args.memory),
            ..Settings::default()
        };
        let made = (kind.make)(&settings).map_err(|error| {
            let words = Side::WORDS.map(|known| format!("{} ({})", known.word, known.effect));
            anyhow!(
                "--trees {text}: {error}; every tree also has {}",
                words.join(", ")
            )
        })?;
        side.write_through |= made.writes_through();
        side.start = match &args.state {
            Some(state) => Some(compare_state::start(state, &side).display().to_string()),
            None => start(args, kind.name)?,
        };
        if let Some(moves) = &side.moves
            && TREES.find(&moves.to).is_none()
        {
            bail!("--trees {text}: there is no tree '{}'", moves.to);
        }
        if side
            .moves
            .as_ref()
            .is_some_and(|moves| moves.to == kind.name)
        {
            bail!("--trees {text}: the side has that tree from the start");
        }
        sides.push(side);
    }
    Side::check_distinct(&sides).context("--trees")?;
    Ok(sides)
}

/// The start database with this tree, if any are named.
fn start(args: &Args, tree: &str) -> Result<Option<String>> {
    if args.start.is_empty() {
        return Ok(None);
    }
    let has_tree = |dir: &&std::path::PathBuf| {
        database::folder(dir)
            .tree()
            .is_some_and(|kind| kind.name == tree)
    };
    let dir = args.start.iter().find(has_tree).with_context(|| {
        format!("--start names no database with the tree {tree}: all trees must begin at one block")
    })?;
    Ok(Some(dir.display().to_string()))
}

/// This program, as far as it tells runs of it from runs of another.
pub(super) fn program() -> Result<Program> {
    let path = std::env::current_exe().context("finding the program itself")?;
    let file = path
        .metadata()
        .with_context(|| path.display().to_string())?;
    let written = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Ok(Program {
        versions: report::versions(),
        bytes: file.len(),
        written: written
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs(),
    })
}

/// Bytes of a file, or of all files below a folder.
fn bytes_below(path: &Path) -> std::io::Result<u64> {
    let about = path.metadata()?;
    if !about.is_dir() {
        return Ok(about.len());
    }
    let entries = std::fs::read_dir(path)?;
    entries.map(|entry| bytes_below(&entry?.path())).sum()
}

/// Begins the report of a command whose runs are those of a plan.
pub(super) fn measurement(command: &'static str, plan: &Plan) -> Measurement {
    let mut measurement = report::measure(command);
    let names: Vec<_> = plan.trees.iter().map(|side| side.name.as_str()).collect();
    measurement.setting("trees", names);
    let chain: Vec<_> = plan.chain.iter().map(|(path, _)| path.as_str()).collect();
    measurement.setting("chain", chain);
    measurement.setting("genesis", plan.genesis.clone());
    let (state, workload) = plan.state.clone().unzip();
    measurement.setting("state", state);
    measurement.setting("workload", workload);
    measurement.setting("repeat", plan.repetitions);
    measurement.setting("cache", plan.cache.name());
    measurement.setting("memory_bytes", plan.memory_bytes);
    measurement.setting("write_back_bytes", plan.write_back_bytes);
    measurement.setting("retain", plan.retain.as_str());
    measurement.setting("threads", plan.threads);
    measurement.setting("to", plan.to);
    measurement.setting("throttle", plan.throttle.clone());
    measurement.setting("witnesses", plan.witnesses);
    measurement.setting("growth", plan.growth);
    measurement.setting("no_verify", !plan.verify);
    measurement
}

/// The greatest length of an earlier comparison's results: those of three trees have 30 kB.
const RESULTS: Bound = Bound {
    what: "the results of a comparison",
    bytes: 1 << 26,
};

/// An earlier comparison.
struct Baseline {
    results: Results,
    settings: serde_json::Map<String, serde_json::Value>,
}

/// Reads an earlier comparison: its folder, or its `results.json`.
fn read_baseline(path: &Path) -> Result<Baseline> {
    let file = match path.is_dir() {
        true => path.join("results.json"),
        false => path.to_owned(),
    };
    let shown = || format!("--baseline {}", file.display());
    let text = BoundedInput::open(&file, RESULTS).and_then(BoundedInput::text);
    let text = text.map_err(|error| anyhow!("{}: {}", shown(), error.fault))?;
    let envelope = Envelope::from_text(&text)
        .map_err(anyhow::Error::msg)
        .with_context(shown)?;
    if envelope.command != "compare" {
        bail!(
            "{}: a report of `arbor {}`, not of `arbor compare`",
            shown(),
            envelope.command
        );
    }
    Ok(Baseline {
        results: serde_json::from_value(envelope.results).with_context(shown)?,
        settings: envelope.settings,
    })
}

/// Fails if counts or bytes grew by more than so many percent; prints times then and now.
fn hold_to(before: &Results, now: &Results, args: &Args) -> Result<()> {
    let percent = args.allow;
    let drift = check_baseline(before, now, percent / 100.0)
        .map_err(anyhow::Error::msg)
        .context("--baseline")?;
    output::remark(args.json, "")?;
    let mut table = Table::new(["since the baseline", "before", "now", "growth", ""]);
    for change in &drift.changes {
        table.row([
            format!("{}: {}", change.side, change.figure),
            number(change.before),
            number(change.now),
            format!("{:+.1} %", 100.0 * change.growth()),
            if change.is_too_much { "too much" } else { "" }.to_owned(),
        ]);
    }
    match args.json {
        true => output::tell(table.text(None).trim_end()),
        false => output::table(&table)?,
    }
    let grown: Vec<String> = drift
        .too_much()
        .map(|change| format!("{} of {}", change.figure, change.side))
        .collect();
    if !grown.is_empty() {
        bail!(
            "grown by more than {percent} % since the baseline: {}",
            grown.join(", ")
        );
    }
    output::remark(
        args.json,
        &format!(
            "of {} counts and bytes none grew by more than {percent} %",
            drift.compared
        ),
    )
}

/// A value with as many digits as tell it.
fn number(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.4}"),
    }
}
