//! `arbor bench parallel`: how much of a chain's blocks could run side by side.

use anyhow::{Result, bail};
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::source::{ChainInput, open_sources};
use arbor_lab::execution::parallel::{CORES, Simulation};
use serde_json::{Value, json};

use crate::args::BenchParallel;
use crate::progress::Progress;
use crate::{files, metrics_server, output, report, stop};

pub(super) fn run(args: &BenchParallel) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    files::check_report(args.report.as_deref(), None)?;
    let mut measurement = report::measure("bench parallel");
    measurement.setting("to", args.to);
    stop::listen();
    let mut input = open_sources(&args.chain)?;
    let (genesis, _) = crate::genesis::of_input(args.genesis.as_deref(), None, &input)?;
    genesis.check_chain(&input)?;
    if genesis.alloc.population().is_some() {
        bail!("the state is kept as it is listed in memory, but this genesis counts a population");
    }
    let last = args.to.or(ChainInput::last(&input).map(|link| link.number));
    input.skip_to(1)?;
    let mut simulation = Simulation::new(&genesis);
    let rules = SignatureRules::new(&genesis.spec);
    let mut progress = Progress::new("execution", 1, last);
    let mut blocks = 0u64;
    while let Some(raw) = input.next_raw()? {
        if args.to.is_some_and(|to| raw.header.number > to) || stop::asked() {
            break;
        }
        let block = prepare(raw, rules)?;
        simulation.block(&block)?;
        let header = &block.block.header;
        progress.block(header.number, header.gas_used);
        blocks += 1;
    }
    progress.finish();
    let spans = simulation.spans;
    if spans.serial == 0 {
        bail!("no transactions in {blocks} blocks");
    }
    let speed_up = |span: u64| spans.serial as f64 / span as f64;
    let on_cores = CORES.iter().zip(spans.on_cores);
    let on_cores = on_cores.map(|(cores, span)| (cores.to_string(), json!(speed_up(span))));
    let results = json!({
        "blocks": blocks,
        "transactions": spans.transactions,
        "gas": spans.serial,
        "longest_chain_gas": spans.longest_chain,
        "most_speed_up": speed_up(spans.longest_chain),
        "speed_up_on_cores": on_cores.collect::<serde_json::Map<String, Value>>(),
    });
    let envelope = measurement.finish(results);
    if args.json {
        output::json(&envelope)?;
        return files::write_report(args.report.as_deref(), &envelope);
    }
    output::line(&format!(
        "{blocks} blocks, {} transactions, {} gas; the longest chains of conflicts have {:.1} % of it, so that no number of cores is more than {:.2} times as fast",
        spans.transactions,
        spans.serial,
        100.0 * spans.longest_chain as f64 / spans.serial as f64,
        speed_up(spans.longest_chain),
    ))?;
    for (cores, span) in CORES.iter().zip(spans.on_cores) {
        output::line(&format!("{cores} cores: {:.2} times", speed_up(span)))?;
    }
    files::write_report(args.report.as_deref(), &envelope)
}
