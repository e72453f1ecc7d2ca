//! `arbor compare`: the same chain under several trees, in figures.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::bounded_input::{Bound, BoundedInput};
use arbor_compare::{
    Comparison, Folder, Outcome, Plan, Program, Results, Side, check_baseline, terminal_heading,
    terminal_table,
};
use arbor_database::show_retain;
use arbor_metrics::{Envelope, Measurement, Table};
use arbor_state::Settings;

use crate::args::Compare as Args;
use crate::trees::TREES;
use crate::{database, output, report, stop};

pub(crate) fn run(args: &Args) -> Result<()> {
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let plan = plan(args)?;
    let measurement = measurement(&plan);
    let folder = Folder::open(&args.out, &plan)?;
    stop::listen_between("run");
    let program = std::env::current_exe().context("finding the program itself")?;
    let comparison = Comparison {
        plan: &plan,
        folder: &folder,
        program: &program,
        stopped: &stop::asked,
        tell: &output::tell,
    };
    let found = match comparison.run()? {
        Outcome::Done(found) => *found,
        Outcome::Stopped { done, of } => {
            return output::line(&format!(
                "stopped as asked: {done} of {of} runs are done; the same command goes on"
            ));
        }
    };
    let results = &found.results;
    // Printed first: if a file cannot be written, the figures are not lost.
    output::line(&format!("{}\n", terminal_heading(results)))?;
    output::table(&terminal_table(results))?;
    comparison.write(&found, &measurement.finish(serde_json::to_value(results)?))?;
    output::line(&format!(
        "\nreport: {}; figures next to it: results.json, runs.csv, blocks.csv, blocks.parquet",
        args.out.join("report.html").display()
    ))?;
    if !results.failed.is_empty() {
        bail!(
            "these runs failed, and the others were compared without them: {}",
            results.failed.join("; ")
        );
    }
    match baseline {
        Some(before) => hold_to(&before, results, args.allow),
        None => Ok(()),
    }
}

/// The plan of a comparison: its inputs, sides and settings.
fn plan(args: &Args) -> Result<Plan> {
    let trees = sides(args)?;
    let length = |path: &std::path::PathBuf| {
        let bytes = bytes_below(path).with_context(|| path.display().to_string())?;
        Ok((path.display().to_string(), bytes))
    };
    Ok(Plan {
        program: program()?,
        chain: args.chain.iter().map(length).collect::<Result<_>>()?,
        paths: args.chain.clone(),
        genesis: args.genesis.clone(),
        trees,
        repetitions: args.repeat,
        cache: args.cache.into(),
        memory_bytes: args.memory,
        write_back_bytes: args.write_back,
        retain: show_retain(args.retain),
        threads: match args.threads {
            0 => rayon::current_num_threads(),
            threads => threads,
        },
        to: args.to,
        throttle: args.throttle.clone(),
        witnesses: args.witnesses,
        survey: !args.no_survey,
        growth: args.growth,
    })
}

/// The sides, held against the registry of trees.
fn sides(args: &Args) -> Result<Vec<Side>> {
    let mut sides = Vec::new();
    for text in &args.trees {
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
            let words = Side::WORDS.map(|(word, what)| format!("{word} ({what})"));
            anyhow!(
                "--trees {text}: {error}; every tree also has {}",
                words.join(" and ")
            )
        })?;
        side.write_through |= made.writes_through();
        side.start = start(args, kind.name)?;
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
fn program() -> Result<Program> {
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

fn measurement(plan: &Plan) -> Measurement {
    let mut measurement = report::measure("compare");
    let names: Vec<_> = plan.trees.iter().map(|side| side.name.as_str()).collect();
    measurement.setting("trees", names);
    let chain: Vec<_> = plan.chain.iter().map(|(path, _)| path.as_str()).collect();
    measurement.setting("chain", chain);
    measurement.setting("genesis", plan.genesis.clone());
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
    measurement
}

/// The greatest length of an earlier comparison's results: those of three trees have 30 kB.
const RESULTS: Bound = Bound {
    what: "the results of a comparison",
    bytes: 1 << 26,
};

/// Reads an earlier comparison: its folder, or its `results.json`.
fn read_baseline(path: &Path) -> Result<Results> {
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
    serde_json::from_value(envelope.results).with_context(shown)
}

/// Fails if counts or bytes grew by more than so many percent; prints times then and now.
fn hold_to(before: &Results, now: &Results, percent: f64) -> Result<()> {
    let drift = check_baseline(before, now, percent / 100.0)
        .map_err(anyhow::Error::msg)
        .context("--baseline")?;
    output::line("")?;
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
    output::table(&table)?;
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
    output::line(&format!(
        "of {} counts and bytes none grew by more than {percent} %",
        drift.compared
    ))
}

/// A value with as many digits as tell it.
fn number(value: f64) -> String {
    match value.fract() == 0.0 {
        true => format!("{value:.0}"),
        false => format!("{value:.4}"),
    }
}
