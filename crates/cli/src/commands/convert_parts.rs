//! `arbor convert --part` and `arbor convert join`: a conversion in parts.

use anyhow::{Context, Result, bail};
use arbor_chain::genesis::Genesis;
use arbor_chain::rules::ChainRules;
use arbor_convert::{
    ConvertError, Hooks, Job, Join, Joining, LOADED_TOGETHER, PartConversion, PartJob, PartOf,
    Source, Stage,
};
use arbor_database::{Budget, RETAINED, Remembered, TreeSettings};
use arbor_metrics::Measurement;
use arbor_state::{Network, State};
use arbor_versions::DirLock;
use serde_json::json;

use super::conversion::{self, Facts, Shown};
use crate::args::{Conversion, ConvertJoin};
use crate::trees::{self, TREES};
use crate::{bytes, database, files, metrics_server, output, report, stop};

/// Makes one part.
pub(super) fn one(
    args: &Conversion,
    part: PartOf,
    mut measurement: Measurement,
    facts: Facts,
    source: Source<'_>,
) -> Result<()> {
    let dir = args.to();
    if conversion::has_version(dir) || Job::read(dir)?.is_some() {
        bail!(
            "{} has a database: name another folder for the part",
            dir.display()
        );
    }
    let (kind, work) = (args.tree().kind, &args.work);
    let settings = TreeSettings::new(&args.setting_words(), &TREES);
    let tree = settings.tree(kind, args.hash.clone(), work.memory / 2)?;
    let Some(build) = tree.build() else {
        bail!("the tree {} is not built in parts", kind.name);
    };
    let Facts {
        name,
        network,
        genesis,
        rules,
        blocks,
        state_root,
    } = facts;
    let words = trees::words(&settings);
    let target = format!("{} ({}) with {words}", kind.name, tree.hash());
    let job = PartJob {
        tree: kind.name.to_owned(),
        hash: tree.hash().to_owned(),
        settings: settings.as_slice().to_vec(),
        chain_id: network.chain_id,
        genesis_hash: network.genesis_hash,
        state_root,
        command: conversion::command(),
        ..PartJob::new(name, target, part)
    };
    let begin = || -> Result<DirLock> {
        let lock = DirLock::acquire(dir)?;
        let what = Remembered {
            genesis: genesis.as_deref(),
            rules,
            ..Remembered::default()
        };
        database::remember(dir, kind, what)?;
        Ok(lock)
    };
    let _lock = conversion::with_remedy(dir, begin())?;
    let shown = Shown::default();
    let conversion = PartConversion {
        source,
        build,
        order: tree.order(),
        folder: dir,
        memory: work.memory / 4,
        hooks: Hooks {
            progress: &|phase, done, counts| shown.tell(phase.name(), done, counts),
            stop: &stop::asked,
        },
    };
    let made = conversion.run(job.with_blocks(&blocks));
    shown.finish();
    let (job, phases) = match made {
        Err(ConvertError::Stopped) => return conversion::stopped(work.json),
        Err(ConvertError::MissingNames(audit)) => return Err(conversion::missing(audit)),
        made => {
            let making = || format!("making part {part} in {}", dir.display());
            conversion::with_remedy(dir, made.with_context(making))?
        }
    };
    let counts = job.counts.unwrap_or_default();
    measurement.setting("state_root", state_root.map(|root| root.to_string()));
    let envelope = measurement.finish(json!({
        "part": part.to_string(),
        "accounts": counts.accounts,
        "slots": counts.slots,
        "phases": conversion::phases(&phases),
    }));
    match work.json {
        true => output::json(&envelope)?,
        false => output::line(&format!(
            "part {part} has {} accounts and {} slots",
            counts.accounts, counts.slots
        ))?,
    }
    files::write_report(work.report.as_deref(), &envelope)
}

/// Makes a database of all parts.
pub(super) fn join(args: &ConvertJoin) -> Result<()> {
    metrics_server::serve(args.work.metrics)?;
    files::check_report(args.work.report.as_deref(), Some(&args.to))?;
    conversion::check_target(&args.to)?;
    let mut measurement = report::measure("convert join");
    let parts = args.parts.iter().map(|part| part.display().to_string());
    measurement.setting("parts", parts.collect::<Vec<_>>());
    measurement.setting("to", args.to.display().to_string());
    measurement.setting("store", args.store.name());
    measurement.setting("memory_bytes", args.work.memory);
    measurement.setting("threads", args.work.threads);
    stop::listen_between("part");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.work.threads);
    let pool = pool.build().context("starting threads")?;
    pool.install(|| joined(args, measurement))
}

fn joined(args: &ConvertJoin, measurement: Measurement) -> Result<()> {
    let join = Join::open(&args.parts)?;
    let part = join.first();
    let Some(kind) = TREES.find(&part.tree) else {
        bail!(
            "the parts are for the tree {}, which this program does not know",
            part.tree
        );
    };
    let dir = args.to.as_path();
    let settings = TreeSettings::new(&part.settings, &TREES);
    let tree = settings.tree(kind, Some(part.hash.clone()), args.work.memory / 2)?;
    let mut job = Job {
        source: part.source.clone(),
        target: format!("{}, joined from {} parts", part.target, part.part.of),
        stage: Stage::Build,
        command: conversion::command(),
        block: conversion::known_block(&part.blocks()),
    };
    if conversion::is_finished(dir, &job)? {
        return conversion::finished(dir, args.work.json);
    }
    let network = Network {
        chain_id: part.chain_id,
        genesis_hash: part.genesis_hash,
    };
    let budget = Budget {
        retain: RETAINED,
        ..Budget::new(args.work.memory / 4)
    };
    let (genesis, rules) = remembered(&join)?;
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
    let mut state = conversion::with_remedy(dir, begin())?;
    let shown = Shown::default();
    let joining = Joining {
        join: &join,
        folder: dir,
        load_bytes: LOADED_TOGETHER,
        hooks: Hooks {
            progress: &|phase, done, counts| shown.tell(phase.name(), done, counts),
            stop: &stop::asked,
        },
    };
    let converted = joining.run(&mut job, &mut state);
    shown.finish();
    let converted = match converted {
        Err(ConvertError::Stopped) => return conversion::stopped(args.work.json),
        converted => {
            let into = || format!("joining into {}", dir.display());
            let converted = converted.with_context(into);
            if converted.as_ref().is_err_and(conversion::is_full) {
                // As in a conversion at once.
                drop(state);
                drop(open());
                return conversion::with_remedy(dir, converted.map(drop));
            }
            converted?
        }
    };
    drop(state);
    let disk_bytes = folder.disk_bytes()?;
    let block = job.block;
    let envelope = measurement.finish(conversion::results(&converted, block, disk_bytes));
    match args.work.json {
        true => output::json(&envelope)?,
        false => output::line(&format!(
            "joined {} accounts, {} slots and {} codes: root {}, {}; the state root is {}{}",
            converted.comparison.counts.accounts,
            converted.comparison.counts.slots,
            converted.comparison.codes,
            converted.root,
            bytes::show(disk_bytes),
            converted.flat_root,
            match part.state_root {
                Some(_) => ", as in the source",
                None => ", and that of the source is not known",
            }
        ))?,
    }
    files::write_report(args.work.report.as_deref(), &envelope)?;
    conversion::verdict(&converted, dir)
}

/// Reads the genesis and the rules that the parts remember, before anything is written. Those of all parts are the same.
fn remembered(join: &Join) -> Result<(Option<String>, Option<ChainRules>)> {
    let (mut genesis, mut rules) = (None, None);
    for (place, (dir, part)) in join.parts().enumerate() {
        let again = || {
            format!(
                "part {} in {}: remove its folder and make it again: `{}`",
                part.part,
                dir.display(),
                part.command
            )
        };
        let folder = database::folder(dir);
        let path = folder.genesis_path();
        if path.exists() {
            let text = Genesis::read_text(&path).with_context(again)?;
            let found = Genesis::from_json(&text).map_err(anyhow::Error::from);
            let found = found.and_then(|found| match found.hash == part.genesis_hash {
                true => Ok(()),
                false => bail!("it has the hash {}, not {}", found.hash, part.genesis_hash),
            });
            let damaged = || format!("{} is damaged", path.display());
            found.with_context(damaged).with_context(again)?;
            genesis = genesis.or(Some(text));
        }
        let found = folder.rules().with_context(again)?;
        if place > 0 && found != rules {
            bail!(
                "part {} in {} has other rules of the chain than part {}: make one of them again",
                part.part,
                dir.display(),
                join.first().part
            );
        }
        rules = found;
    }
    Ok((genesis, rules))
}
