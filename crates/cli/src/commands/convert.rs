//! `arbor convert`: a whole state from one tree to another.

use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::replay::{KeptBlock, ReplayError, blocks_of_chain, blocks_up_to, find_root};
use arbor_chain::rules::ChainRules;
use arbor_chain::source::open_sources;
use arbor_convert::{
    Conversion as Work, ConvertError, Dump, Estimate, Hooks, Job, Source, SourceBlock, Stage,
    check_source, estimate, estimate_dump, estimate_hashed,
};
use arbor_database::{Budget, NO_CHAIN, RETAINED, Remembered, TreeSettings, network};
use arbor_metrics::Measurement;
use arbor_state::recovery::AccountsFile;
use arbor_state::{BlockRef, Historical, RootPlace, Settings, State};
use arbor_versions::{Meta, Version};

use super::conversion::{
    Facts, Shown, check_target, command, finished, has_version, is_finished, is_full, known_block,
    missing, print, results, stopped, verdict, with_remedy,
};
use super::recover::check_blocks;
use super::{convert_follow, convert_parts};
use crate::args::{Conversion, Convert, Joining};
use crate::block_choice::BlockChoice;
use crate::trees::{self, TREES};
use crate::{bytes, database, files, metrics_server, output, report, stop};

pub(crate) fn run(args: &Convert) -> Result<()> {
    let args = match &args.joining {
        Some(Joining::Join(args)) => return convert_parts::join(args),
        None => &args.one,
    };
    metrics_server::serve(args.work.metrics)?;
    files::check_report(args.work.report.as_deref(), Some(args.to()))?;
    let settings = Settings {
        words: args.setting_words(),
        hash: args.hash.clone(),
        ..Settings::default()
    };
    let kind = args.tree().kind;
    kind.check(&settings).context("the settings of --tree")?;
    check_target(args.to())?;
    let mut measurement = report::measure("convert");
    note_settings(&mut measurement, args);
    stop::listen_between("part");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.work.threads);
    let pool = pool.build().context("starting threads")?;
    let from = || format!("reading {}", args.from().display());
    if args.from().is_dir() {
        return pool.install(|| from_database(args, measurement));
    }
    match opened(args.from()).with_context(from)? {
        Opened::Dump(dump) => pool.install(|| from_dump(args, measurement, dump)),
        Opened::Genesis(genesis, text) => {
            pool.install(|| from_genesis(args, measurement, &genesis, text))
        }
        Opened::Snapshot(file) => pool.install(|| from_snapshot(args, measurement, &file)),
    }
}

fn note_settings(measurement: &mut Measurement, args: &Conversion) {
    measurement.setting("from", args.from().display().to_string());
    measurement.setting("part", args.part.map(|part| part.to_string()));
    measurement.setting("at", args.at.map(|at| at.to_string()));
    measurement.setting("to", args.to().display().to_string());
    measurement.setting("tree", args.tree().kind.name);
    measurement.setting("hash", args.hash.clone());
    measurement.setting("tree_settings", args.setting_words());
    measurement.setting("store", args.store.name());
    measurement.setting("memory_bytes", args.work.memory);
    measurement.setting("threads", args.work.threads);
}

/// A source that is a file.
enum Opened {
    Dump(Dump),
    Genesis(Box<Genesis>, String),
    Snapshot(Box<AccountsFile>),
}

/// Opens a file or a pipe. A snapshot has its own first bytes, and a dump begins with a line that names a root; any other
/// regular file is a genesis.
fn opened(path: &Path) -> Result<Opened> {
    if path != Path::new("-") && !path.exists() {
        let name = path.to_string_lossy();
        let text = Genesis::text_of(&name)?;
        let genesis = Genesis::from_json(&text)?;
        return Ok(Opened::Genesis(Box::new(genesis), text));
    }
    if path.is_file() && AccountsFile::is_one(path)? {
        let file = AccountsFile::open(path, &TREES)?;
        return Ok(Opened::Snapshot(Box::new(file)));
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

fn source_blocks(blocks: Vec<KeptBlock>) -> Vec<SourceBlock> {
    let blocks = blocks.into_iter();
    let blocks = blocks.map(|kept| SourceBlock {
        block: kept.block,
        state_root: kept.state_root,
    });
    blocks.collect()
}

fn from_database(args: &Conversion, measurement: Measurement) -> Result<()> {
    no_chain_flags(args, "a database")?;
    let dir = args.from();
    if args.follow && convert_follow::is_converted(args.to())? {
        return with_remedy(args.to(), convert_follow::follow(args, None));
    }
    // A conversion that goes on has the block that it was begun with, also if the source has later ones.
    let begun = Job::read(args.to())?.and_then(|job| job.block);
    let at = args.at.or(begun.map(BlockChoice::Number));
    let (mut pin, snapshot) = match args.follow && at.is_none() {
        true => convert_follow::pin_latest(args)?,
        false => (None, convert_follow::look(args)?),
    };
    let reader = snapshot.reader();
    if args.follow {
        check_source(reader).with_context(|| dir.display().to_string())?;
    }
    let at = at.unwrap_or(BlockChoice::Latest);
    let then: Historical<'_> = reader.at(at.version(reader)?)?;
    if args.follow && pin.is_none() {
        pin = convert_follow::pin(dir, then.meta().version);
    }
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
    convert(args, measurement, facts, Source::State(&then))?;
    match args.follow && !stop::asked() {
        true => with_remedy(args.to(), convert_follow::follow(args, pin)),
        false => Ok(()),
    }
}

fn from_genesis(
    args: &Conversion,
    measurement: Measurement,
    genesis: &Genesis,
    text: String,
) -> Result<()> {
    no_chain_flags(args, "a genesis")?;
    no_follow(args, "a genesis")?;
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
    let source = genesis.alloc.source(args.tree().kind.tree().order());
    convert(args, measurement, facts, Source::State(&*source))
}

fn from_snapshot(args: &Conversion, measurement: Measurement, file: &AccountsFile) -> Result<()> {
    no_chain_flags(args, "a snapshot")?;
    no_follow(args, "a snapshot")?;
    if let Some(at) = args.at {
        bail!("--at {at} is of no use with a snapshot, which is the state of one block");
    }
    let head = file.head();
    check_blocks(head).with_context(|| format!("reading {}", args.from().display()))?;
    let tree = head.tree(&TREES)?;
    let root = head.root()?;
    let blocks = (0..).zip(&head.blocks).map(|(version, block)| {
        KeptBlock::kept(Meta {
            version: Version(version),
            block_number: block.number,
            block_hash: block.hash.0,
            root: block.root.0,
            extra: block.record.to_vec(),
        })
    });
    let blocks = source_blocks(blocks.collect());
    let of_header = blocks.last().and_then(|block| block.state_root);
    let is_in_headers = tree.kind().roots == RootPlace::InHeaders;
    let rules = head.rules.as_ref().map(ChainRules::from_json);
    let facts = Facts {
        name: format!("snapshot of {} with root {root}", tree.kind().name),
        network: head.network(),
        genesis: head.genesis_json.clone(),
        rules: rules.transpose()?,
        state_root: of_header.or(is_in_headers.then_some(root)),
        blocks,
    };
    convert(args, measurement, facts, Source::State(file))
}

fn no_follow(args: &Conversion, source: &str) -> Result<()> {
    match args.follow {
        true => bail!(
            "--follow is of no use with {source}, which has no later blocks: it is for databases"
        ),
        false => Ok(()),
    }
}

fn no_chain_flags(args: &Conversion, source: &str) -> Result<()> {
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

fn from_dump(args: &Conversion, measurement: Measurement, dump: Dump) -> Result<()> {
    no_follow(args, "a dump")?;
    let root = dump.state_root();
    let number = match args.at {
        None | Some(BlockChoice::Latest) => None,
        Some(BlockChoice::Number(number)) => Some(number),
        Some(at) => bail!(
            "--at {at}: the block of a dump is named by its number, or left out for the last of --ancestors"
        ),
    };
    let mut facts = Facts {
        name: dump.name(),
        network: NO_CHAIN,
        genesis: None,
        rules: None,
        blocks: Vec::new(),
        state_root: root,
    };
    if !args.ancestors.is_empty() {
        let input = open_sources(&args.ancestors).context("--ancestors")?;
        let (genesis, text) = crate::genesis::of_input(args.genesis.as_deref(), None, &input)?;
        drop(input);
        let blocks = blocks_of_chain(&args.ancestors, &genesis, number);
        if let (Err(error @ ReplayError::BeyondChain { .. }), Some(root)) = (&blocks, root) {
            let wrong = format!("--ancestors: {error}");
            return Err(wrong_block(args, &genesis, root, &wrong)?);
        }
        let blocks = blocks.context("--ancestors")?;
        let last = blocks.last().context("--ancestors has no block")?;
        match (root, last.state_root) {
            (Some(root), Some(found)) if found != root => {
                let number = last.block.number;
                let wrong = format!("block {number} of --ancestors has state root {found}");
                return Err(wrong_block(args, &genesis, root, &wrong)?);
            }
            (root, found) => facts.state_root = root.or(found),
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
            state_root: root,
        });
    }
    let source = match args.preimages.is_empty() {
        true => Source::Dump(dump),
        false => Source::Hashed(dump, args.preimages.clone()),
    };
    convert(args, measurement, facts, source)
}

/// Says which block of the chain a dump is of, if another one was named.
fn wrong_block(
    args: &Conversion,
    genesis: &Genesis,
    root: B256,
    wrong: &str,
) -> Result<anyhow::Error> {
    let found = find_root(&args.ancestors, genesis, root).context("--ancestors")?;
    let last = found.last;
    Ok(match found.block {
        Some(block) => anyhow!(
            "{wrong}, and the dump has state root {root}, which is that of block {block}: give --at {block}"
        ),
        None => anyhow!(
            "{wrong}, and the dump has state root {root}, which no block of --ancestors has, up to its last block {last}. \
             The dump is of another chain, or of a later block: give the files of its chain up to its block"
        ),
    })
}

fn convert(
    args: &Conversion,
    mut measurement: Measurement,
    facts: Facts,
    source: Source<'_>,
) -> Result<()> {
    if let Some(part) = args.part {
        return convert_parts::one(args, part, measurement, facts, source);
    }
    let dir = args.to();
    let Facts {
        name,
        network,
        genesis,
        rules,
        blocks,
        state_root,
    } = facts;
    let kind = args.tree().kind;
    let settings = TreeSettings::new(&args.setting_words(), &TREES);
    let tree = settings.tree(kind, args.hash.clone(), args.work.memory / 2)?;
    let mut job = Job {
        source: name,
        target: format!(
            "{} ({}) with {}",
            kind.name,
            tree.hash(),
            trees::words(&settings)
        ),
        stage: Stage::Sort,
        command: command(),
        block: known_block(&blocks),
    };
    if is_finished(dir, &job)? {
        return finished(dir, args.work.json);
    }
    if tree.build().is_none() {
        clear_interrupted_build(dir)?;
    }
    let memory = args.work.memory / 4;
    if !args.skip_disk_check && Job::read(dir)?.is_none() {
        let needed = match &source {
            Source::State(source) => Some(estimate(*source, &tree, memory)?),
            Source::Dump(_) => estimate_dump(args.from(), &tree, memory)?,
            Source::Hashed(..) => estimate_hashed(args.from(), &tree, memory)?,
        };
        needed.map_or(Ok(()), |needed| check_disk(dir, needed))?;
    }
    let budget = Budget {
        retain: RETAINED,
        ..Budget::new(memory)
    };
    let folder = database::folder(dir);
    let open = || folder.open_to_load((args.store, tree.clone()), network, budget);
    let mut begin = || -> Result<State> {
        let state = open()?;
        job.stage = job.begin(dir)?;
        let what = Remembered {
            genesis: genesis.as_deref(),
            rules,
            tree_settings: Some(&settings),
            ..Remembered::default()
        };
        database::remember(dir, kind, what)?;
        Ok(state)
    };
    let mut state = with_remedy(dir, begin())?;
    let block = known_block(&blocks);
    let shown = Shown::default();
    let conversion = Work {
        source,
        blocks,
        state_root,
        folder: dir,
        memory,
        hooks: Hooks {
            progress: &|phase, done, counts| shown.tell(phase.name(), done, counts),
            stop: &stop::asked,
        },
    };
    let converted = conversion.run(&mut job, &mut state);
    shown.finish();
    let converted = match converted {
        Err(ConvertError::MissingNames(audit)) => return Err(missing(audit)),
        Err(ConvertError::Stopped) => return stopped(args.work.json),
        converted => {
            let into = || format!("converting into {}", dir.display());
            let converted = converted.with_context(into);
            if converted.as_ref().is_err_and(is_full) {
                // Opened once more, the store drops the tables that were not finished. The first error is the one to tell.
                drop(state);
                drop(open());
                return with_remedy(dir, converted.map(drop));
            }
            converted?
        }
    };
    drop(state);
    let disk_bytes = database::folder(dir).disk_bytes()?;
    measurement.setting("state_root", state_root.map(|root| root.to_string()));
    let envelope = measurement.finish(results(&converted, block, disk_bytes));
    match args.work.json {
        true => output::json(&envelope)?,
        false => print(&converted, block, (envelope.wall_seconds, disk_bytes))?,
    }
    files::write_report(args.work.report.as_deref(), &envelope)?;
    verdict(&converted, dir)
}

/// Refuses a conversion for which a disk has not enough room.
fn check_disk(dir: &Path, needed: Estimate) -> Result<()> {
    let (existing, free) = files::free_space(dir)?;
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

/// Removes what a killed run left of a target's store, if the tree cannot be built in parts: its load does not go on.
fn clear_interrupted_build(dir: &Path) -> Result<()> {
    let is_interrupted = Job::read(dir)?.is_some_and(|job| job.stage == Stage::Build);
    if !is_interrupted || has_version(dir) {
        return Ok(());
    }
    Ok(database::folder(dir).remove_stores()?)
}
