//! `arbor accesses`: what each block of a chain reads and changes, as Parquet files.

use std::path::PathBuf;

use anyhow::{Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{Options, Replay, ReplayError, Roots, Verify};
use arbor_chain::source::{ChainInput, open_sources};
use arbor_lab::execution::{ACCESSES, AccessTables, BLOCKS, ReplayedBlock, block_with_accesses};
use serde::Serialize;

use crate::args::Accesses;
use crate::output::counted;
use crate::progress::Progress;
use crate::{genesis, memory_replay, metrics_server, output, rules, stop};

pub(crate) fn run(args: &Accesses) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    if args.to == Some(0) {
        bail!("--to 0: block 0 has no transactions, so --from and --to begin at block 1");
    }
    if let Some(to) = args.to.filter(|to| *to < args.from) {
        bail!(
            "--from {} comes after --to {to}: no block is between them",
            args.from
        );
    }
    stop::listen();
    let input = open_sources(&args.chain)?;
    let (mut genesis, _) = genesis::of_input(args.genesis.as_deref(), None, &input)?;
    rules::asked(&args.rules).set(&mut genesis.spec);
    genesis.check_chain(&input)?;
    let replay = memory_replay::begin(args.tree, args.hash.clone(), &genesis, args.memory)?;
    let tables = AccessTables::create(&args.out)?;
    match write(args, &genesis, input, replay, tables)? {
        Some(written) => tell(args, &written),
        None => output::remark(args.json, "stopped: no files are written"),
    }
}

/// The files that a run has written and the counts of their rows, as `--json` prints them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    tree: &'static str,
    first_block: u64,
    last_block: u64,
    rows: u64,
    accounts_read: u64,
    accounts_changed: u64,
    slots_read: u64,
    slots_changed: u64,
    chunks_read: u64,
    chunks_changed: u64,
    /// Whether blocks have witnesses under the tree.
    witnesses: bool,
    /// The number of blocks that have no witness although the tree has witnesses.
    blocks_without_witness: u64,
    /// Why the first of them has none.
    #[serde(skip)]
    without_witness: Option<String>,
    accesses: PathBuf,
    blocks: PathBuf,
}

/// Replays the chain in memory, and writes the accesses of its blocks; `None` if somebody asked to stop.
fn write(
    args: &Accesses,
    genesis: &Genesis,
    mut input: ChainInput,
    replay: Replay,
    mut tables: AccessTables,
) -> Result<Option<Written>> {
    let chain_rules = rules::asked(&args.rules);
    let mut replay = replay.with_executor(chain_rules.executor());
    let last = args.to.or(ChainInput::last(&input).map(|link| link.number));
    input.skip_to(1)?;
    let mut progress = Progress::new("accesses", 1, last);
    let signatures = SignatureRules::new(&genesis.spec);
    pass(
        &mut replay,
        &mut input,
        args.from,
        signatures,
        &mut progress,
    )?;
    let mut written: Option<Written> = None;
    while !stop::asked() && args.to.is_none_or(|to| replay.head().0 < to) {
        let Some(block) = next(&mut input, signatures)? else {
            break;
        };
        let block = block_with_accesses(&mut replay, block, genesis, chain_rules)?;
        tables.add(&block)?;
        let number = block.stats.number;
        progress.block(number, block.stats.gas);
        let written = written.get_or_insert_with(|| Written::from(args, number));
        written.add(number, &block);
    }
    progress.finish();
    if stop::asked() {
        return Ok(None);
    }
    let Some(written) = written else {
        bail!(
            "no block from {} on: the chain ends with block {}",
            args.from,
            replay.head().0
        );
    };
    let rows = tables.rows();
    tables.finish()?;
    Ok(Some(Written { rows, ..written }))
}

fn next(
    input: &mut ChainInput,
    signatures: SignatureRules,
) -> Result<Option<RecoveredBlock>, ReplayError> {
    let raw = input.next_raw()?;
    Ok(raw.map(|raw| prepare(raw, signatures)).transpose()?)
}

/// Replays the blocks before `from`, whose accesses are not wanted.
fn pass(
    replay: &mut Replay,
    input: &mut ChainInput,
    from: u64,
    signatures: SignatureRules,
    progress: &mut Progress,
) -> Result<()> {
    let mut before = (1..from).map_while(|_| match stop::asked() {
        true => None,
        false => next(input, signatures).transpose(),
    });
    let options = Options {
        verify: Verify::Every,
        roots: Roots::Beside,
        check_every: None,
    };
    replay.blocks(&mut before, options, &mut |block| {
        progress.block(block.number, block.gas);
    })?;
    Ok(())
}

impl Written {
    fn from(args: &Accesses, first_block: u64) -> Self {
        Self {
            tree: args.tree.name,
            first_block,
            last_block: first_block,
            rows: 0,
            accounts_read: 0,
            accounts_changed: 0,
            slots_read: 0,
            slots_changed: 0,
            chunks_read: 0,
            chunks_changed: 0,
            witnesses: args.tree.has_witnesses,
            blocks_without_witness: 0,
            without_witness: None,
            accesses: args.out.join(ACCESSES),
            blocks: args.out.join(BLOCKS),
        }
    }

    fn add(&mut self, number: u64, block: &ReplayedBlock) {
        self.last_block = number;
        if let Some(reason) = &block.without_witness {
            self.blocks_without_witness += 1;
            self.without_witness
                .get_or_insert_with(|| reason.to_string());
        }
        let counts = block.accesses.counts();
        self.accounts_read += counts.accounts_read;
        self.accounts_changed += counts.accounts_changed;
        self.slots_read += counts.slots_read;
        self.slots_changed += counts.slots_changed;
        self.chunks_read += counts.chunks_read;
        self.chunks_changed += counts.chunks_changed;
    }
}

fn tell(args: &Accesses, written: &Written) -> Result<()> {
    if args.json {
        output::json(written)?;
    } else {
        output::line(&format!(
            "blocks {} to {}: {} in {}",
            written.first_block,
            written.last_block,
            counted(written.rows, "row"),
            written.accesses.display(),
        ))?;
        output::line(&format!(
            "read: {}, {}, {}; changed: {}, {}, {}",
            counted(written.accounts_read, "account"),
            counted(written.slots_read, "slot"),
            counted(written.chunks_read, "chunk"),
            counted(written.accounts_changed, "account"),
            counted(written.slots_changed, "slot"),
            counted(written.chunks_changed, "chunk"),
        ))?;
        output::line(&format!(
            "a row for each block: {}",
            written.blocks.display()
        ))?;
    }
    if !written.witnesses {
        let tree = written.tree;
        let remark = format!("{tree} has no block witnesses: the column witness_bytes is null");
        output::remark(args.json, &remark)?;
    }
    if let Some(reason) = &written.without_witness {
        let blocks = counted(written.blocks_without_witness, "block");
        let remark = format!(
            "no witness of {blocks}: their columns of witnesses are null. The first: {reason}"
        );
        output::remark(args.json, &remark)?;
    }
    if let Some(to) = args.to.filter(|to| written.last_block < *to) {
        let remark = format!("the chain ends before block {to}, which --to names");
        output::remark(args.json, &remark)?;
    }
    Ok(())
}
