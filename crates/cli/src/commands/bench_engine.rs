//! `arbor bench engine`: what EVM384's engine makes of a chain that has no EVM384.

use std::time::Duration;

use anyhow::{Result, bail};
use arbor_chain::executor::{Evm384, Executor, GasSchedule};
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::source::{ChainInput, open_sources};
use arbor_lab::execution::SideBySide;
use serde_json::json;

use crate::args::BenchEngine;
use crate::progress::Progress;
use crate::{files, metrics_server, output, report, stop};

pub(super) fn run(args: &BenchEngine) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    files::check_report(args.report.as_deref(), None)?;
    let mut measurement = report::measure("bench engine");
    measurement.setting("evm384", args.evm384.name());
    measurement.setting("to", args.to);
    measurement.setting("rounds", args.rounds);
    stop::listen();
    let mut input = open_sources(&args.chain)?;
    let (genesis, _) = crate::genesis::of_input(args.genesis.as_deref(), None, &input)?;
    genesis.check_chain(&input)?;
    if genesis.alloc.population().is_some() {
        bail!("the state is kept as it is listed in memory, but this genesis counts a population");
    }
    let last = args.to.or(ChainInput::last(&input).map(|link| link.number));
    input.skip_to(1)?;
    let engine = Executor::with_evm384(Evm384 {
        interface: args.evm384,
        schedule: GasSchedule::default(),
    });
    let mut both = SideBySide::new(&genesis, [Executor::new(), engine]);
    let rules = SignatureRules::new(&genesis.spec);
    let mut progress = Progress::new("execution", 1, last);
    let (mut blocks, mut gas, mut times) = (0u64, 0u64, [Duration::ZERO; 2]);
    while let Some(raw) = input.next_raw()? {
        if args.to.is_some_and(|to| raw.header.number > to) || stop::asked() {
            break;
        }
        let block = prepare(raw, rules)?;
        let shortest = both.block(&block, args.rounds)?;
        for (sum, time) in times.iter_mut().zip(shortest) {
            *sum += time;
        }
        let header = &block.block.header;
        progress.block(header.number, header.gas_used);
        blocks += 1;
        gas += header.gas_used;
    }
    progress.finish();
    if blocks == 0 {
        bail!("no blocks: the chain ends with its genesis");
    }
    let [revm, engine] = times.map(|time| time.as_secs_f64());
    let results = json!({ "blocks": blocks, "gas": gas, "revm_s": revm, "engine_s": engine });
    let envelope = measurement.finish(results);
    match args.json {
        true => output::json(&envelope)?,
        false => output::line(&format!(
            "{blocks} blocks, {gas} gas, the same results: revm {revm:.3} s, engine ({}) {engine:.3} s, ratio {:.3}",
            args.evm384,
            engine / revm
        ))?,
    }
    files::write_report(args.report.as_deref(), &envelope)
}
