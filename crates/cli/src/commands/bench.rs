//! `arbor bench`: what single operations cost.

use std::{fs, time::Duration};

use anyhow::{Context, Result, anyhow};
use arbor_lab::{
    commitments::{Group, LEGEND, Settings, heading, plots, run as study, table},
    measure::Budget,
    reads, senders as senders_study,
};

use arbor_state::RootPlace;

use crate::args::{Bench, BenchCommitments, BenchReads, BenchSenders};
use crate::{database, files, metrics_server, output, report};

pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Commitments(args) => commitments(args),
        Bench::Reads(args) => reads(args),
        Bench::Ablation(args) => super::bench_ablation::run(args),
        Bench::Database(args) => super::bench_database::run(args),
        Bench::Witnesses(args) => super::bench_witnesses::run(args),
        Bench::Engine(args) => super::bench_engine::run(args),
        Bench::Parallel(args) => super::bench_parallel::run(args),
        Bench::Senders(args) => senders(args),
    }
}

fn commitments(args: &BenchCommitments) -> Result<()> {
    files::check_report(args.report.as_deref(), None)?;
    let settings = Settings {
        groups: if args.groups.is_empty() {
            Group::ALL.to_vec()
        } else {
            args.groups.clone()
        },
        budget: Budget(Duration::from_millis(args.budget)),
        table_bytes: usize::try_from(args.tables).context("--tables")?,
        openings: args.openings.clone(),
    };
    let names: Vec<_> = settings.groups.iter().map(|group| group.name()).collect();
    let mut measurement = report::measure("bench commitments");
    measurement.setting("groups", names);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads)
        .build()
        .context("starting threads")?;
    measurement.setting("threads", pool.current_num_threads());
    measurement.setting("tables_bytes", args.tables);
    measurement.setting("budget_s", settings.budget.0.as_secs_f64());
    measurement.setting("openings", args.openings.clone());
    let results = pool.install(|| study(&settings, &mut |row| tracing::info!("{row}")))?;
    if !args.json {
        output::line(&format!("{}\n", heading(&results)))?;
        output::table(&table(&results))?;
        output::line(&format!("\n{LEGEND}"))?;
    }
    if let Some(dir) = &args.plots {
        fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        for (file, svg) in plots(&results) {
            let path = dir.join(file);
            fs::write(&path, svg).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    let envelope = measurement.finish(serde_json::to_value(&results)?);
    if args.json {
        output::json(&envelope)?;
    }
    files::write_report(args.report.as_deref(), &envelope)
}

fn reads(args: &BenchReads) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    files::check_report(args.report.as_deref(), Some(&args.database.db))?;
    let in_headers = database::folder(&args.database.db)
        .tree()
        .is_some_and(|kind| kind.roots == RootPlace::InHeaders);
    let usual = if in_headers { 1_000 } else { 0 };
    let settings = reads::Settings {
        reads: args.reads,
        proofs: args.proofs.unwrap_or(usual),
        back: args.back.clone(),
        threads: args.threads.get(),
        seed: args.seed,
    };
    let mut measurement = report::measure("bench reads");
    measurement.setting("memory_bytes", args.database.memory);
    measurement.setting("reads", args.reads);
    measurement.setting("proofs", settings.proofs);
    measurement.setting("back", args.back.clone());
    measurement.setting("threads", args.threads.get());
    measurement.setting("seed", args.seed);
    let place = reads::Place {
        open: &|| {
            let state = database::look(&args.database)?;
            database::head(state.reader())?;
            Ok(state)
        },
        forget: &|| database::forget_files(&args.database.db),
    };
    let results = reads::run(&settings, &place).map_err(|error| match error {
        reads::ReadsError::Place(error) => error,
        error => anyhow!(error.to_string()),
    })?;
    let table = reads::table(&results);
    let envelope = measurement.finish(serde_json::to_value(&results)?);
    if args.json {
        output::json(&envelope)?;
    } else {
        output::table(&table)?;
        for rebuild in &results.rebuilds {
            output::line(&format!(
                "the first proof {} blocks back rebuilds nodes for {:.1} ms",
                rebuild.back, rebuild.ms
            ))?;
        }
    }
    files::write_report(args.report.as_deref(), &envelope)
}

fn senders(args: &BenchSenders) -> Result<()> {
    files::check_report(args.report.as_deref(), None)?;
    let budget = Duration::from_millis(args.budget);
    let mut measurement = report::measure("bench senders");
    measurement.setting("threads", 1);
    measurement.setting("batches", args.batches.clone());
    measurement.setting("budget_s", budget.as_secs_f64());
    let results = senders_study::run(&args.batches, budget)?;
    let table = senders_study::table(&results);
    let envelope = measurement.finish(serde_json::to_value(&results)?);
    if args.json {
        output::json(&envelope)?;
    } else {
        output::line(&format!(
            "Microseconds a signature on one thread, medians (least); {}\n",
            results.method
        ))?;
        output::table(&table)?;
    }
    files::write_report(args.report.as_deref(), &envelope)
}
