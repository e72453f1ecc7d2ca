//! `arbor bench database`: what proofs, updates and witnesses cost over a database.

use anyhow::{Context, Result, bail};
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::replay::{Chain, EarlierBlocks};
use arbor_chain::source::open_sources;
use arbor_chain::witness::make_witness;
use arbor_lab::execution::WitnessSize;
use arbor_lab::survey;
use serde_json::{Value, json};

use super::bench_witnesses::left_out;
use crate::args::BenchDatabase as Args;
use crate::{database, files, metrics_server, output, report, retained};

pub(super) fn run(args: &Args) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    let db = &args.database.db;
    files::check_report(args.report.as_deref(), Some(db))?;
    if database::folder(db)
        .has_chain()
        .is_ok_and(|has_chain| !has_chain)
    {
        bail!(
            "{} has leaves alone, without accounts: `arbor loadtest` measures those",
            db.display()
        );
    }
    let mut measurement = report::measure("bench database");
    let settings = survey::Settings {
        proofs: args.proofs.clone(),
        updates: args.updates.clone(),
        repetitions: args.repeat.get(),
        seed: args.seed,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(args.threads)
        .build()
        .context("starting threads")?;
    measurement.setting("memory_bytes", args.database.memory);
    measurement.setting("proofs", args.proofs.clone());
    measurement.setting("updates", args.updates.clone());
    measurement.setting("witnesses", args.witnesses);
    measurement.setting("repeat", args.repeat.get());
    measurement.setting("seed", args.seed);
    measurement.setting("threads", pool.current_num_threads());
    let (state, genesis) = database::open_to_read(&args.database)?;
    let head = state.reader();
    head.tree().prepare(Box::new(|| ()));
    let found = pool.install(|| survey::run(&settings, head))?;
    if !args.json {
        output::line(&format!("block {}", found.block))?;
        for table in survey::tables(&found) {
            output::line("")?;
            output::table(&table)?;
        }
    }
    let mut results = serde_json::to_value(&found)?;
    let (sizes, without_witness) = match args.witnesses {
        0 => (Value::Null, Value::Null),
        _ => {
            let (sizes, without) = pool.install(|| witnesses(args, head, genesis))?;
            if without > 0 {
                let remark = left_out(head.tree().kind().name, without);
                output::remark(args.json, &remark)?;
            }
            (json!(sizes), json!(without))
        }
    };
    results["witnesses"] = sizes;
    results["blocksWithoutWitness"] = without_witness;
    let envelope = measurement.finish(results);
    if args.json {
        output::json(&envelope)?;
    }
    files::write_report(args.report.as_deref(), &envelope)
}

/// Returns the sizes of the last blocks' witnesses, none if the tree has no witnesses, and the number of blocks that have no
/// witness because only the whole state determines what they change.
fn witnesses(
    args: &Args,
    head: arbor_state::Head<'_>,
    mut genesis: arbor_chain::genesis::Genesis,
) -> Result<(Vec<WitnessSize>, u64)> {
    if !head.tree().kind().has_witnesses {
        return Ok((Vec::new(), 0));
    }
    let rules = database::folder(&args.database.db)
        .rules()?
        .unwrap_or_default();
    rules.set(&mut genesis.spec);
    let latest = database::head(head)?.clone();
    let oldest = head.view().oldest().map_or(0, |oldest| oldest.0);
    let blocks = args.witnesses.min(latest.version.0.saturating_sub(oldest));
    let first = latest.block_number.saturating_sub(blocks) + 1;
    let before = retained::version_of(head, first - 1)?;
    let earlier = EarlierBlocks::read(head, before, &args.chain)?;
    let chain = Chain {
        genesis: &genesis,
        earlier: &earlier,
    };
    let mut input = open_sources(&args.chain)?;
    input.skip_to(first)?;
    let mut parent = head.at(before)?;
    let (mut sizes, mut without_witness) = (Vec::new(), 0);
    for number in first..=latest.block_number {
        let raw = input.next_raw()?;
        let raw = raw.with_context(|| format!("the chain ends before block {number}"))?;
        let about = WitnessSize {
            block: number,
            transactions: 0,
            gas: raw.header.gas_used,
            ..WitnessSize::default()
        };
        let block = prepare(raw, SignatureRules::new(&genesis.spec))?;
        let about = WitnessSize {
            transactions: block.block.body.transactions.len() as u64,
            ..about
        };
        match make_witness(&parent, chain, &block, rules.executor(), false) {
            Ok(made) => sizes.push(about.of(&made)),
            Err(error) if error.needs_whole_state() => without_witness += 1,
            Err(error) => return Err(error.into()),
        }
        if number < latest.block_number {
            parent = parent.next()?;
        }
    }
    Ok((sizes, without_witness))
}
