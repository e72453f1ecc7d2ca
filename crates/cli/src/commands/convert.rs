//! `arbor convert`: a whole state from one tree to another.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::replay::{KeptBlock, blocks_of_chain, blocks_up_to};
use arbor_chain::rules::ChainRules;
use arbor_chain::source::open_sources;
use arbor_convert::{
    Conversion, ConvertError, Converted, Counts, Dump, Estimate, Hooks, Job, Source, SourceBlock,
    Stage, estimate, estimate_dump,
};
use arbor_database::{Budget, NO_CHAIN, RETAINED, Remembered, TreeSettings, network};
use arbor_metrics::Measurement;
use arbor_state::{BlockRef, Historical, Network, Settings, StateSnapshot};
use arbor_versions::read_head_file;
use serde_json::{Value, json};

use crate::args::{Convert, Database};
use crate::block_choice::BlockChoice;
use crate::commands::replay::genesis_of;
use crate::progress::PartDone;
use crate::trees::{self, TREES};
use crate::{bytes, database, files, metrics_server, output, report, stop};

pub(crate) fn run(args: &Convert) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    files::check_report(args.report.as_deref(), Some(&args.to))?;
    let settings = Settings {
        words: args.tree_settings.clone(),
        ..Settings::default()
    };
    args.tree.check(&settings).context("--tree-settings")?;
    let mut measurement = report::measure("convert");
    note_settings(&mut measurement, args);
    stop::listen_between("part");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads);
    let pool = pool.build().context("starting threads")?;
    let from = || format!("reading {}", args.from.display());
    if args.from.is_dir() {
        return pool.install(|| from_database(args, measurement));
    }
    match opened(&args.from).with_context(from)? {
        Opened::Dump(dump) => pool.install(|| from_dump(args, measurement, dump)),
        Opened::Genesis(genesis, text) => {
            pool.install(|| from_genesis(args, measurement, &genesis, text))
        }
    }
}

fn note_settings(measurement: &mut Measurement, args: &Convert) {
    measurement.setting("from", args.from.display().to_string());
    measurement.setting("at", args.at.map(|at| at.to_string()));
    measurement.setting("to", args.to.display().to_string());
    measurement.setting("tree", args.tree.name);
    measurement.setting("tree_settings", args.tree_settings.clone());
    measurement.setting("store", args.store.name());
    measurement.setting("memory_bytes", args.memory);
    measurement.setting("threads", args.threads);
}

/// A source that is a file.
enum Opened {
    Dump(Dump),
    Genesis(Box<Genesis>, String),
}

/// Opens a file or a pipe. A dump begins with a line that names a root; any other regular file is a genesis.
fn opened(path: &Path) -> Result<Opened> {
    if path != Path::new("-") && !path.exists() {
        let name = path.to_string_lossy();
        let text = Genesis::text_of(&name)?;
        let genesis = Genesis::from_json(&text)?;
        return Ok(Opened::Genesis(Box::new(genesis), text));
    }
    match Dump::open(path) {
        Ok(dump) => Ok(Opened::Dump(dump)),
        Err(ConvertError::Line { .. }) if path.is_file() => {
            let read = || -> Result<Opened> {
                let text = Genesis::read_text(path)?;
                Ok(Opened::Genesis(Box::new(Genesis::from_json(&text)?), text))
            };
            read().context(
                "it is no dump, which begins with a line {\"root\": \"0x...\"}, and no genesis",
            )
        }
        Err(error) => Err(error.into()),
    }
}

/// The facts that a source gives for the database that is made of it.
struct Facts {
    /// Description of the source, by which a conversion that goes on is recognised.
    name: String,
    network: Network,
    genesis: Option<String>,
    rules: Option<ChainRules>,
    blocks: Vec<SourceBlock>,
    state_root: Option<B256>,
}

fn source_blocks(blocks: Vec<KeptBlock>) -> Vec<SourceBlock> {
    let blocks = blocks.into_iter();
    let blocks = blocks.map(|kept| SourceBlock {
        block: kept.block,
        state_root: kept.state_root,
    });
    blocks.collect()
}

fn from_database(args: &Convert, measurement: Measurement) -> Result<()> {
    no_chain_flags(args, "a database")?;
    let dir = args.from.as_path();
    let snapshot: StateSnapshot = database::look(&Database {
        db: dir.to_owned(),
        memory: args.memory / 4,
        write_back: None,
    })?;
    let reader = snapshot.reader();
    let at = args.at.unwrap_or(BlockChoice::Latest);
    let then: Historical<'_> = reader.at(at.version(reader)?)?;
    let (network, genesis) = database::folder(dir).chain()?;
    let blocks = source_blocks(blocks_up_to(reader, then.meta().version)?);
    let of_header = blocks.last().and_then(|block| block.state_root);
    let is_head = Some(then.meta().version) == reader.meta().map(|meta| meta.version);
    let state_root = match of_header {
        None if is_head => Some(reader.flat_root()?),
        of_header => of_header,
    };
    let (meta, kind) = (then.meta(), reader.tree().kind());
    let facts = Facts {
        name: format!(
            "block {} ({}) of {} with root {}",
            meta.block_number,
            B256::from(meta.block_hash),
            kind.name,
            B256::from(meta.root)
        ),
        network,
        genesis,
        rules: database::folder(dir).rules()?,
        blocks,
        state_root,
    };
    convert(args, measurement, facts, Source::State(&then))
}

fn from_genesis(
    args: &Convert,
    measurement: Measurement,
    genesis: &Genesis,
    text: String,
) -> Result<()> {
    no_chain_flags(args, "a genesis")?;
    if let Some(at) = args.at {
        bail!("--at {at} is of no use with a genesis, which is the state of block 0");
    }
    let block = KeptBlock::genesis(genesis);
    let facts = Facts {
        name: format!("genesis {}", genesis.hash),
        network: network(genesis),
        genesis: Some(text),
        rules: None,
        state_root: block.state_root,
        blocks: source_blocks(vec![block]),
    };
    let source = genesis.alloc.source(args.tree.tree().order());
    convert(args, measurement, facts, Source::State(&*source))
}

fn no_chain_flags(args: &Convert, source: &str) -> Result<()> {
    if !args.ancestors.is_empty() {
        bail!("--ancestors is of no use with {source}, which has its blocks: it is for dumps");
    }
    if !args.preimages.is_empty() {
        bail!("--preimages is of no use with {source}, which has its names: it is for dumps");
    }
    if let Some(genesis) = &args.genesis {
        bail!(
            "--genesis {genesis} is of no use with {source}, which names its chain: it is for dumps"
        );
    }
    Ok(())
}

fn from_dump(args: &Convert, measurement: Measurement, dump: Dump) -> Result<()> {
    let root = dump.root();
    let number = match args.at {
        None | Some(BlockChoice::Latest) => None,
        Some(BlockChoice::Number(number)) => Some(number),
        Some(at) => bail!(
            "--at {at}: the block of a dump is named by its number, or left out for the last of --ancestors"
        ),
    };
    let mut facts = Facts {
        name: format!("dump with state root {root}"),
        network: NO_CHAIN,
        genesis: None,
        rules: None,
        blocks: Vec::new(),
        state_root: Some(root),
    };
    if !args.ancestors.is_empty() {
        let input = open_sources(&args.ancestors).context("--ancestors")?;
        let (genesis, text) = genesis_of(args.genesis.as_deref(), None, &input)?;
        drop(input);
        let blocks = blocks_of_chain(&args.ancestors, &genesis, number).context("--ancestors")?;
        let last = blocks.last().context("--ancestors has no block")?;
        if let Some(found) = last.state_root.filter(|found| *found != root) {
            bail!(
                "the dump has state root {root}, and block {} of --ancestors has {found}: give the dump's block with --at",
                last.block.number
            );
        }
        facts.network = network(&genesis);
        facts.genesis = Some(text);
        facts.blocks = source_blocks(blocks);
    } else {
        if let Some(genesis) = &args.genesis {
            let text = Genesis::text_of(genesis)?;
            let genesis = Genesis::from_json(&text)?;
            facts.network = network(&genesis);
            facts.genesis = Some(text);
        }
        facts.blocks.push(SourceBlock {
            block: BlockRef {
                number: number.unwrap_or(0),
                hash: B256::ZERO,
                record: Vec::new(),
            },
            state_root: Some(root),
        });
    }
    let source = match args.preimages.is_empty() {
        true => Source::Dump(dump),
        false => Source::Hashed(dump, args.preimages.clone()),
    };
    convert(args, measurement, facts, source)
}

fn convert(
    args: &Convert,
    mut measurement: Measurement,
    facts: Facts,
    source: Source<'_>,
) -> Result<()> {
    let dir = args.to.as_path();
    let Facts {
        name,
        network,
        genesis,
        rules,
        blocks,
        state_root,
    } = facts;
    let settings = TreeSettings::new(&args.tree_settings, &TREES);
    let tree = settings.tree(args.tree, None, args.memory / 2)?;
    let mut job = Job {
        source: name,
        target: format!("{} with {}", args.tree.name, trees::words(&settings)),
        stage: Stage::Sort,
    };
    refuse_database(dir)?;
    if tree.build().is_none() {
        clear_interrupted_build(dir)?;
    }
    if !args.skip_disk_check && Job::read(dir)?.is_none() {
        let needed = match &source {
            Source::State(source) => Some(estimate(*source, &tree)?),
            Source::Dump(_) => estimate_dump(&args.from, &tree)?,
            Source::Hashed(..) => None,
        };
        needed.map_or(Ok(()), |needed| check_disk(dir, needed))?;
    }
    let budget = Budget {
        retain: RETAINED,
        ..Budget::new(args.memory / 4)
    };
    let folder = database::folder(dir);
    let mut state = folder.open_to_load((args.store, tree), network, budget)?;
    job.stage = job.begin(dir)?;
    let what = Remembered {
        genesis: genesis.as_deref(),
        rules,
        tree_settings: Some(&settings),
        ..Remembered::default()
    };
    database::remember(dir, args.tree, what)?;
    let block = blocks.last().map_or(0, |block| block.block.number);
    let shown = Shown::default();
    let conversion = Conversion {
        source,
        blocks,
        state_root,
        folder: dir,
        memory: args.memory / 4,
        hooks: Hooks {
            progress: &|phase, done, counts| shown.tell(phase.name(), done, counts),
            stop: &stop::asked,
        },
    };
    let converted = conversion.run(&mut job, &mut state);
    shown.finish();
    let converted = match converted {
        Err(ConvertError::MissingNames(audit)) => {
            for missing in &audit.missing {
                output::tell(&format!("no preimage: {missing}"));
            }
            return Err(ConvertError::MissingNames(audit).into());
        }
        Err(ConvertError::Stopped) => {
            return output::remark(
                args.json,
                "stopped as asked; run the same command again to go on",
            );
        }
        converted => converted.with_context(|| format!("converting into {}", dir.display()))?,
    };
    drop(state);
    let disk_bytes = database::folder(dir).disk_bytes()?;
    measurement.setting("state_root", state_root.map(|root| root.to_string()));
    let envelope = measurement.finish(results(&converted, block, disk_bytes));
    match args.json {
        true => output::json(&envelope)?,
        false => print(&converted, block, (envelope.wall_seconds, disk_bytes))?,
    }
    files::write_report(args.report.as_deref(), &envelope)?;
    verdict(&converted, dir)
}

/// Refuses a conversion for which a disk has not enough room.
fn check_disk(dir: &Path, needed: Estimate) -> Result<()> {
    let existing = dir.ancestors().find(|path| path.exists());
    let existing = existing
        .filter(|path| *path != Path::new(""))
        .unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(existing)
        .with_context(|| format!("asking for the free space of {}", existing.display()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let shown = format!(
        "about {} accounts and {} slots need about {} for the database and {} for files on the way",
        needed.accounts,
        needed.slots,
        bytes::show(needed.target_bytes),
        bytes::show(needed.scratch_bytes)
    );
    tracing::info!("{shown}");
    if needed.bytes() > free {
        bail!(
            "{shown}, and {} are free in {}: nothing was written. --skip-disk-check begins all the same",
            bytes::show(free),
            existing.display()
        );
    }
    Ok(())
}

/// Whether a folder has a database with a version.
fn has_version(dir: &Path) -> bool {
    read_head_file(dir).is_ok_and(|file| file.head.is_some())
}

/// Refuses a database that no conversion is making.
fn refuse_database(dir: &Path) -> Result<()> {
    match Job::read(dir)? {
        None if has_version(dir) => bail!("{} has a database already", dir.display()),
        _ => Ok(()),
    }
}

/// Removes what a killed run left of a target's store, if the tree cannot be built in parts: its load does not go on.
fn clear_interrupted_build(dir: &Path) -> Result<()> {
    let is_interrupted = Job::read(dir)?.is_some_and(|job| job.stage == Stage::Build);
    if !is_interrupted || has_version(dir) {
        return Ok(());
    }
    Ok(database::folder(dir).remove_stores()?)
}

fn results(converted: &Converted, block: u64, disk_bytes: u64) -> Value {
    let phases = converted.phases.iter().map(|done| {
        json!({
            "phase": done.phase.name(),
            "seconds": done.time.as_secs_f64(),
            "accounts": done.counts.accounts,
            "slots": done.counts.slots,
        })
    });
    let found = &converted.comparison;
    json!({
        "block": block,
        "root": converted.root,
        "stateRoot": converted.flat_root,
        "accounts": found.counts.accounts,
        "slots": found.counts.slots,
        "codes": found.codes,
        "codeBytes": found.code_bytes,
        "diskBytes": disk_bytes,
        "differenceCount": found.difference_count,
        "differences": found.differences.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "phases": phases.collect::<Vec<_>>(),
    })
}

fn print(converted: &Converted, block: u64, (seconds, disk_bytes): (f64, u64)) -> Result<()> {
    let found = &converted.comparison;
    for phase in &converted.phases {
        output::line(&format!(
            "  {}: {:.2} s",
            phase.phase.name(),
            phase.time.as_secs_f64()
        ))?;
    }
    if !found.is_same() {
        return Ok(());
    }
    output::line(&format!(
        "converted {} accounts, {} slots and {} codes of block {block} in {seconds:.2} s ({:.0} accounts and slots/s): root {}, {}",
        found.counts.accounts,
        found.counts.slots,
        found.codes,
        rate(found.counts, Duration::from_secs_f64(seconds)),
        converted.root,
        bytes::show(disk_bytes)
    ))?;
    output::line(&format!(
        "all of it was read again and compared with the source: the state root is {}",
        converted.flat_root
    ))
}

fn verdict(converted: &Converted, dir: &Path) -> Result<()> {
    let found = &converted.comparison;
    for difference in &found.differences {
        output::tell(&format!("difference: {difference}"));
    }
    match found.is_same() {
        true => Ok(()),
        false => bail!(
            "{} is not the state that it was converted from: {} differences found",
            dir.display(),
            found.difference_count
        ),
    }
}

fn rate(counts: Counts, time: Duration) -> f64 {
    (counts.accounts + counts.slots) as f64 / time.as_secs_f64().max(1e-3)
}

/// The progress of the phase that is under way.
#[derive(Default)]
pub(super) struct Shown(Mutex<Option<(&'static str, Instant, PartDone)>>);

impl Shown {
    /// Takes the name of the phase, the part of it that is done, and what it has read.
    pub(super) fn tell(&self, phase: &'static str, done: f64, counts: Counts) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref().is_none_or(|(before, _, _)| *before != phase) {
            end(shown.take());
            tracing::info!("{phase}: begins");
            *shown = Some((phase, Instant::now(), PartDone::new(phase)));
        }
        let Some((_, begin, progress)) = &*shown else {
            return;
        };
        let what = match counts == Counts::default() {
            true => phase.to_owned(),
            false => format!(
                "{} accounts, {} slots, {:.0}/s",
                counts.accounts,
                counts.slots,
                rate(counts, begin.elapsed())
            ),
        };
        progress.set(done, &what);
    }

    pub(super) fn finish(&self) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        end(shown.take());
    }
}

/// Ends the progress of a phase.
fn end(shown: Option<(&'static str, Instant, PartDone)>) {
    if let Some((phase, begin, progress)) = shown {
        progress.finish();
        tracing::info!(
            "{phase}: ended after {:.1} s",
            begin.elapsed().as_secs_f64()
        );
    }
}
