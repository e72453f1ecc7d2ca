//! `arbor bench witnesses`: how large the witnesses of a chain's blocks are.

use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::source::{ChainInput, open_sources};
use arbor_lab::execution::{WitnessSize, block_with_witness};
use arbor_lab::plot::{Plot, Scale};
use arbor_metrics::Table;
use arbor_state::TreeKind;
use serde_json::json;

use crate::args::BenchWitnesses;
use crate::output::counted;
use crate::progress::Progress;
use crate::{files, memory_replay, metrics_server, output, report, stop};

/// The shares of the blocks that are told of, in percent.
const SHARES: [usize; 7] = [0, 10, 50, 90, 99, 100, MEAN];
/// Stands for the mean.
const MEAN: usize = 101;

pub(super) fn run(args: &BenchWitnesses) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    files::check_report(args.report.as_deref(), None)?;
    for (index, tree) in args.trees.iter().enumerate() {
        if args.trees[..index]
            .iter()
            .any(|other| other.name == tree.name)
        {
            bail!("--trees names {} twice", tree.name);
        }
    }
    let mut measurement = report::measure("bench witnesses");
    let names: Vec<_> = args.trees.iter().map(|tree| tree.name).collect();
    measurement.setting("trees", names);
    measurement.setting("to", args.to);
    measurement.setting("memory_bytes", args.memory);
    stop::listen();
    let input = open_sources(&args.chain)?;
    let (genesis, _) = crate::genesis::of_input(args.genesis.as_deref(), None, &input)?;
    genesis.check_chain(&input)?;
    let (mut found, mut left) = (Vec::new(), Vec::new());
    for tree in &args.trees {
        let Measured {
            sizes,
            without_witness,
        } = measure(args, tree, &genesis)?;
        if without_witness > 0 {
            output::remark(args.json, &left_out(tree.name, without_witness))?;
        }
        if sizes.is_empty() {
            match without_witness {
                0 => bail!("no blocks: the chain ends with its genesis"),
                _ => bail!("{}: no block has a witness", tree.name),
            }
        }
        if !args.json {
            output::line(&format!(
                "{}: witnesses of {} blocks, all checked\n",
                tree.name,
                sizes.len()
            ))?;
            output::table(&table(&sizes))?;
        }
        found.push((tree.name, sizes));
        left.push(without_witness);
    }
    if let Some(file) = &args.plot {
        let plot = distribution(&found);
        std::fs::write(file, plot).with_context(|| format!("writing {}", file.display()))?;
    }
    let trees = found.iter().zip(left).map(|((tree, sizes), left)| {
        json!({ "tree": tree, "blocks": sizes, "blocksWithoutWitness": left })
    });
    let envelope = measurement.finish(trees.collect());
    if args.json {
        output::json(&envelope)?;
    }
    files::write_report(args.report.as_deref(), &envelope)
}

/// The witnesses of a chain's blocks.
struct Measured {
    sizes: Vec<WitnessSize>,
    /// The number of other blocks, which have no witness.
    without_witness: u64,
}

/// Says how many blocks are left out of the figures, and why.
pub(super) fn left_out(tree: &str, blocks: u64) -> String {
    format!(
        "{tree}: {} left out: a contract loses its storage or its code there, and only the whole state shows what goes with it",
        counted(blocks, "block")
    )
}

/// Replays the chain in memory, block by block, with a witness of each.
fn measure(args: &BenchWitnesses, kind: &TreeKind, genesis: &Genesis) -> Result<Measured> {
    let mut replay = memory_replay::begin(kind, None, genesis, args.memory)?;
    let mut input = open_sources(&args.chain)?;
    let last = args.to.or(ChainInput::last(&input).map(|link| link.number));
    input.skip_to(1)?;
    let rules = SignatureRules::new(&genesis.spec);
    let mut progress = Progress::new("witnesses", 1, last);
    let (mut sizes, mut without_witness) = (Vec::new(), 0);
    while let Some(raw) = input.next_raw()? {
        if args.to.is_some_and(|to| raw.header.number > to) || stop::asked() {
            break;
        }
        let (number, gas) = (raw.header.number, raw.header.gas_used);
        match block_with_witness(&mut replay, prepare(raw, rules)?, genesis)? {
            Some(size) => sizes.push(size),
            None => without_witness += 1,
        }
        progress.block(number, gas);
    }
    progress.finish();
    Ok(Measured {
        sizes,
        without_witness,
    })
}

/// Values of some of the blocks, ascending; of none, nothing.
struct Sorted(Vec<u64>);

impl Sorted {
    fn new(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        Self(values)
    }

    /// What at most this percentage of the blocks stays below; the mean.
    fn at(&self, share: usize) -> u64 {
        let count = self.0.len();
        match share {
            MEAN => self.0.iter().sum::<u64>() / count as u64,
            share => self.0[(count * share / 100).min(count - 1)],
        }
    }
}

/// A tree's distribution: bytes and counts within which a share of the blocks is.
fn table(sizes: &[WitnessSize]) -> Table {
    let mut table = Table::new([
        "", "least", "10 %", "median", "90 %", "99 %", "most", "mean",
    ]);
    let mut row = |name: &str, value: &dyn Fn(&WitnessSize) -> u64| {
        let sorted = Sorted::new(sizes.iter().map(value));
        let cells = SHARES.map(|share| sorted.at(share).to_string());
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("transactions", &|size| size.transactions);
    row("bytes", &|size| size.bytes);
    for name in sizes[0].parts.keys() {
        row(&format!("bytes: {name}"), &|size| size.parts[name]);
    }
    row("compact bytes", &|size| size.compact_bytes);
    for name in sizes[0].compact.keys() {
        if sizes.iter().any(|size| size.compact[name] > 0) {
            row(&format!("compact bytes: {name}"), &|size| {
                size.compact[name]
            });
        }
    }
    for name in sizes[0].counts.keys() {
        row(name, &|size| size.counts[name]);
    }
    for name in sizes[0].work.keys() {
        if sizes.iter().any(|size| size.work[name] > 0) {
            row(&name.replace('_', " "), &|size| size.work[name]);
        }
    }
    table
}

/// The distribution of all trees' bytes.
fn distribution(found: &[(&str, Vec<WitnessSize>)]) -> String {
    let line = |sizes: &[WitnessSize]| {
        let sorted = Sorted::new(sizes.iter().map(|size| size.bytes.max(1)));
        let point = |share: usize| (share as f64, sorted.at(share) as f64);
        (0..=100).map(point).collect()
    };
    let lines = found.iter().map(|(tree, sizes)| (*tree, line(sizes)));
    let plot = Plot {
        title: "Witnesses of a chain's blocks",
        x: "percent of the blocks",
        x_scale: Scale::Hundred,
        y: "bytes at most",
        lines: lines.collect(),
    };
    plot.svg()
}
