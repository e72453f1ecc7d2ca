//! `arbor snapshot` and `arbor recover`: a database as a list of its accounts or leaves, and back.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::genesis::{Genesis, Network as ChainNetwork};
use arbor_chain::replay::HeaderCheck;
use arbor_chain::rules::ChainRules;
use arbor_database::{Budget, NO_CHAIN, Remembered, network};
use arbor_state::recovery::{EntriesHead, EntriesReader, Order, Recovery, RecoveryError, Totals};
use arbor_state::{Historical, Network, State};
use arbor_versions::{Meta, Retain, Version};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args::{OrderChoice, Recover, Snapshot};
use crate::progress::PartDone;
use crate::trees::TREES;
use crate::{bytes, database, files, metrics_server, output, rules, stop};

pub(crate) fn snapshot(args: &Snapshot) -> Result<()> {
    let dir = args.database.db.as_path();
    let state = database::look(&args.database)?;
    let (network, genesis) = database::folder(dir).chain()?;
    let out = || args.out.display();
    files::not_of_database("--out", &args.out, Some(dir))?;
    if args.out == Path::new("-") {
        bail!("--out -: a snapshot is written to a file, not to standard output");
    }
    if args.out.symlink_metadata().is_ok() {
        bail!("{} is there already", out());
    }
    let name = args.out.to_string_lossy();
    if name.is_empty() || name.ends_with(std::path::is_separator) {
        bail!("--out {} names a folder, not a file", out());
    }
    let reader = state.reader();
    let then = reader.at(args.at.version(reader)?)?;
    let order = match args.order {
        OrderChoice::Key => Order::Key,
        OrderChoice::Index => Order::Index,
    };
    let mut head = then.entries_head(network, genesis, (order, args.chunk_size))?;
    let rules = database::folder(dir).rules()?;
    head.rules = rules.map(serde_json::to_value).transpose()?;
    let (totals, size) =
        write(&then, &head, &args.out).with_context(|| format!("writing {}", out()))?;
    let written = WrittenSnapshot {
        file: &args.out,
        file_bytes: size,
        block: then.meta().block_number,
        root: then.meta().root.into(),
        totals: ShownTotals::new(totals),
    };
    match args.json {
        true => output::json(&written),
        false => output::line(&format!(
            "wrote {totals} of block {} in {}, root {}",
            written.block,
            bytes::show(size),
            written.root,
        )),
    }
}

/// What a snapshot file has, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSnapshot<'a> {
    file: &'a Path,
    file_bytes: u64,
    block: u64,
    root: B256,
    #[serde(flatten)]
    totals: ShownTotals,
}

/// What a recovery did, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recovered {
    /// Whether all of the file is in.
    complete: bool,
    /// Chunks that were there before.
    chunks_before: u64,
    /// Chunks that are in now.
    chunks: u64,
    block: u64,
    root: B256,
    #[serde(flatten)]
    totals: ShownTotals,
}

/// What a file of leaves or accounts has.
#[derive(Serialize)]
#[serde(untagged)]
enum ShownTotals {
    Accounts {
        accounts: u64,
        slots: u64,
        codes: u64,
    },
    Leaves {
        leaves: u64,
        names: u64,
        codes: u64,
    },
}

impl ShownTotals {
    fn new(totals: Totals) -> Self {
        let has_accounts = totals.has_accounts();
        let Totals {
            leaves,
            names,
            codes,
            accounts,
            slots,
        } = totals;
        match has_accounts {
            true => Self::Accounts {
                accounts,
                slots,
                codes,
            },
            false => Self::Leaves {
                leaves,
                names,
                codes,
            },
        }
    }
}

/// Writes all entries to a new file, durably; returns what they are and its size. Until the file is whole it has another name, and it
/// goes away if it does not become so, also when somebody asks to stop; what is left of a snapshot that was killed, the next one into the same folder takes away.
fn write(then: &Historical<'_>, head: &EntriesHead, path: &Path) -> Result<(Totals, u64)> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    remove_killed(folder);
    let file = stop::leave_without(|| unfinished(folder))?;
    let progress = PartDone::new("snapshot");
    let tell = |part: f64, totals: Totals| progress.set(part, &counted(totals));
    let (file, totals) = then.write_entries(BufWriter::new(file), head, &tell)?;
    progress.finish();
    let unfinished = file.into_inner()?;
    unfinished.as_file().sync_all()?;
    let file = unfinished.persist_noclobber(path)?;
    Ok((totals, file.metadata()?.len()))
}

fn counted(totals: Totals) -> String {
    match totals.has_accounts() {
        true => format!("{} accounts", totals.accounts),
        false => format!("{} leaves", totals.leaves),
    }
}

/// Names of snapshots that are not whole yet begin and end so. They are locked while somebody writes them.
const UNFINISHED: (&str, &str) = ("snapshot-", ".unfinished");

/// Letters and digits between, by chance.
const RANDOM: usize = 6;

/// Makes a file for a snapshot to be written to. Where files cannot be locked, it is not, and nobody takes it for a killed one's.
fn unfinished(folder: &Path) -> Result<NamedTempFile> {
    let mut unfinished = tempfile::Builder::new();
    unfinished.prefix(UNFINISHED.0).suffix(UNFINISHED.1);
    unfinished.rand_bytes(RANDOM);
    #[cfg(unix)]
    unfinished.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        let file = unfinished.tempfile_in(folder)?;
        let _ = file.as_file().lock();
        // Another snapshot may have removed it before it was locked.
        if file.path().exists() {
            return Ok(file);
        }
    }
}

/// Removes what snapshots that were killed have left in a folder, as far as it may be listed and changed.
fn remove_killed(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let middle = name.strip_prefix(UNFINISHED.0);
        let middle = middle.and_then(|rest| rest.strip_suffix(UNFINISHED.1));
        let is_one = middle.is_some_and(|middle| {
            middle.len() == RANDOM && middle.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if is_one
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::options().write(true).open(&path)
            && file.try_lock().is_ok()
            && std::fs::remove_file(&path).is_ok()
        {
            tracing::warn!("removed {}, left by a killed snapshot", path.display());
        }
    }
}

/// Opens a file of entries, and says how long it is, which a FIFO does not know: opening one would wait for somebody to write it.
fn opened(path: &Path) -> Result<(File, u64)> {
    let found = path.metadata()?;
    if !found.is_file() {
        bail!("it is no regular file, whose length bounds what it can have");
    }
    Ok((File::open(path)?, found.len()))
}

pub(crate) fn recover(args: &Recover) -> Result<()> {
    if args.file == Path::new("-") {
        bail!("a recovery reads a file, whose length bounds what it can have, not standard input");
    }
    metrics_server::serve(args.metrics)?;
    let (file, size) =
        opened(&args.file).with_context(|| format!("reading {}", args.file.display()))?;
    let context = || args.file.display().to_string();
    let mut entries = EntriesReader::new(BufReader::new(file), size).with_context(context)?;
    let head = entries.head().clone();
    check_blocks(&head).with_context(context)?;
    let root = head.root().with_context(context)?;
    if let Some(wanted) = args.root.filter(|wanted| *wanted != root) {
        bail!("{} has root {root}, not {wanted}", args.file.display());
    }
    let rules = rules_of(args, &head).with_context(context)?;
    let (mut state, genesis) = open(args, &head)?;
    let dir = args.database.db.as_path();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads);
    let pool = pool.build().context("starting threads")?;
    stop::listen_between("chunk");
    let mut recovery = Recovery::new(&mut state, head.clone())
        .with_context(|| format!("recovering into {}", dir.display()))?;
    let (before, finished) = (recovery.done(), recovery.is_finished());
    // A database that has something of a state has these already, and maybe of another file.
    if before == 0 && !finished {
        if let Some(genesis) = &genesis {
            tell_believed(genesis, &head, rules.unwrap_or_default(), args.json)?;
        }
        let what = Remembered {
            genesis: genesis.as_ref().map(|genesis| &*genesis.text),
            rules,
            ..Remembered::default()
        };
        database::remember(dir, head.tree(&TREES)?.kind(), what)?;
    }
    let in_all = pool.install(|| add_all(&mut recovery, &mut entries, size));
    let in_all = match in_all {
        Ok(in_all) => in_all,
        Err(error) => return Err(broken_off(args, recovery, error)),
    };
    let number = head.blocks.last().map_or(0, |block| block.number);
    let mut recovered = Recovered {
        complete: in_all,
        chunks_before: before,
        chunks: recovery.done(),
        block: number,
        root,
        totals: ShownTotals::new(entries.totals()),
    };
    if !in_all {
        recovery.pause()?;
        return match args.json {
            true => output::json(&recovered),
            false => output::line(&format!(
                "stopped after chunk {}; the same command goes on",
                recovered.chunks
            )),
        };
    }
    recovery.finish(entries.place()).with_context(|| {
        format!(
            "{}: none of it is a state; remove {}, where its entries are",
            args.file.display(),
            dir.display()
        )
    })?;
    drop(state);
    recovered.totals = ShownTotals::new(entries.totals());
    if args.json {
        return output::json(&recovered);
    }
    if finished {
        return output::line(&format!("block {number} with root {root} is there already"));
    }
    let from = match before {
        0 => String::new(),
        chunks => format!(" after {chunks} chunks that were there"),
    };
    output::line(&format!(
        "recovered {} at block {number}{from}, root {root}; `arbor verify` checks names and codes too",
        entries.totals()
    ))
}

/// Holds the blocks that a replay will ask for to each other: those of a chain also to their hashes, the others to nothing but their numbers.
pub(super) fn check_blocks(head: &EntriesHead) -> Result<()> {
    for pair in head.blocks.windows(2) {
        let (before, number) = (pair[0].number, pair[1].number);
        if before.checked_add(1) != Some(number) {
            bail!("its head has block {number} behind block {before}");
        }
    }
    let mut check = HeaderCheck::new(&head.tree(&TREES)?);
    for (version, block) in (0..).zip(&head.blocks) {
        let number = block.number;
        if head.genesis_json.is_none() {
            continue;
        }
        let meta = Meta {
            version: Version(version),
            block_number: number,
            block_hash: block.hash.0,
            root: block.root.0,
            extra: block.record.to_vec(),
        };
        check
            .check(&meta)
            .map_err(|why| anyhow!("its head, block {number}: {why}"))?;
    }
    Ok(())
}

/// Keeps what is in of a recovery that cannot go on, and says what can be done.
fn broken_off(args: &Recover, recovery: Recovery<'_>, error: anyhow::Error) -> anyhow::Error {
    let file = args.file.display();
    let done = recovery.done();
    // Only of a file that is cut or damaged there may be a better copy.
    let damaged = matches!(
        error.downcast_ref(),
        Some(RecoveryError::File { .. } | RecoveryError::Malformed { .. })
    );
    if done == 0 || !damaged {
        return error.context(file.to_string());
    }
    let dir = args.database.db.display();
    match recovery.pause() {
        Ok(()) => error.context(format!(
            "{file}: the {done} chunks before are in {dir}, to go on with a whole copy of the same file; for another file remove that folder"
        )),
        Err(lost) => error.context(format!("{file}, and what came before could not be kept ({lost})")),
    }
}

/// Takes in all chunks that are not in yet; returns `false` if asked to stop before the last.
fn add_all<R: Read>(
    recovery: &mut Recovery<'_>,
    entries: &mut EntriesReader<R>,
    size: u64,
) -> Result<bool> {
    let progress = PartDone::new("recover");
    let (before, finished) = (recovery.done(), recovery.is_finished());
    while let Some(chunk) = entries.next_chunk()? {
        if entries.chunks() <= before || finished {
            continue;
        }
        let add = recovery.add(chunk, entries.place());
        add.with_context(|| format!("chunk {}", entries.chunks()))?;
        let done = entries.offset() as f64 / size.max(1) as f64;
        progress.set(done, &counted(entries.totals()));
        if stop::asked() {
            return Ok(false);
        }
    }
    progress.finish();
    Ok(true)
}

/// The rules to remember: those that the command line asks for. What a snapshot notes of them must be the same, because its root
/// does not cover them.
fn rules_of(args: &Recover, head: &EntriesHead) -> Result<Option<ChainRules>> {
    let asked = rules::asked(&args.rules);
    let Some(noted) = &head.rules else {
        return Ok((asked != ChainRules::default()).then_some(asked));
    };
    let noted = ChainRules::from_json(noted)?;
    rules::must_be_asked_for(noted, asked, "the snapshot")?;
    Ok(Some(asked))
}

/// A genesis that was compared as far as it can be.
struct Compared {
    text: String,
    genesis: Genesis,
    /// With whose it was compared, if with any.
    with: Option<String>,
}

/// Finds the genesis in a snapshot, whose root does not cover it, and compares it with the one that the command line gives, or with the
/// public network's that has its chain id or its block 0.
///
/// # Errors
/// Another genesis; the first field that differs is named.
fn compared(args: &Recover, head: &EntriesHead) -> Result<Option<Compared>> {
    let Some(text) = head.genesis_json.as_deref() else {
        if let Some(given) = &args.genesis {
            bail!("it has no chain, but --genesis {given} is given");
        }
        return Ok(None);
    };
    let genesis = Genesis::from_json(text).context("its genesis")?;
    let id = genesis.spec.chain_id();
    let known = ChainNetwork::ALL
        .into_iter()
        .find(|known| known.chain_id() == id);
    let known = genesis.network().or(known);
    let (spec, hash, with) = match (&args.genesis, known) {
        (Some(given), _) => {
            let wanted = Genesis::load(given)?;
            (wanted.spec, wanted.hash, format!("--genesis {given}"))
        }
        (None, Some(network)) => {
            let (spec, name) = (network.spec(), network.name().to_owned());
            (spec, network.genesis_hash(), name)
        }
        (None, None) => {
            let with = None;
            return Ok(Some(Compared {
                text: text.to_owned(),
                genesis,
                with,
            }));
        }
    };
    let difference = spec.differences(&genesis.spec).into_iter().next();
    let difference = difference.or_else(|| {
        let found = genesis.hash;
        (found != hash).then(|| format!("the hash of block 0 is {found} instead of {hash}"))
    });
    match (difference, &args.genesis) {
        (None, _) => Ok(Some(Compared {
            text: text.to_owned(),
            genesis,
            with: Some(with),
        })),
        (Some(difference), Some(_)) => bail!("its genesis is not that of {with}: {difference}"),
        (Some(difference), None) => bail!(
            "its genesis is not that of {with}, whose chain id or block 0 it has: {difference}. If it is of another chain, \
             give that chain's genesis file with --genesis"
        ),
    }
}

/// Prints what was taken from a snapshot although its root does not cover it.
fn tell_believed(
    genesis: &Compared,
    head: &EntriesHead,
    rules: ChainRules,
    json: bool,
) -> Result<()> {
    let (id, hash) = (genesis.genesis.spec.chain_id(), genesis.genesis.hash);
    let compared = match &genesis.with {
        Some(with) => format!("the same in every field as that of {with}"),
        None => "taken from the snapshot: --genesis compares it with a file".to_owned(),
    };
    let forks = genesis.genesis.spec.forks();
    let forks: Vec<String> = forks
        .map(|(fork, at)| format!("{fork:?} at {at}"))
        .collect();
    let rules = match &rules::words(rules)[..] {
        [] => "none beyond these".to_owned(),
        words => words.join(" "),
    };
    let text = format!(
        "not covered by the root: chain {id}, genesis {hash} ({compared}); forks: {}; rules: {rules}",
        forks.join(", ")
    );
    output::remark(json, &text)?;
    match head.blocks.last() {
        Some(block) => output::remark(
            json,
            &format!(
                "not covered by the root: block {} with hash {}",
                block.number, block.hash
            ),
        ),
        None => Ok(()),
    }
}

/// Opens the database to recover into, and finds its genesis.
fn open(args: &Recover, head: &EntriesHead) -> Result<(State, Option<Compared>)> {
    let context = || args.file.display().to_string();
    let tree = head.tree(&TREES).with_context(context)?;
    let genesis = compared(args, head).with_context(context)?;
    let network = genesis
        .as_ref()
        .map_or(NO_CHAIN, |found| network(&found.genesis));
    let said = head.network();
    if said != network {
        let Network {
            chain_id,
            genesis_hash,
        } = network;
        bail!(
            "{} says that it is of chain {} with genesis {}, but its genesis is that of chain {chain_id}: {genesis_hash}",
            args.file.display(),
            said.chain_id,
            said.genesis_hash
        );
    }
    let budget = Budget {
        write_back: args.database.write_back,
        retain: Retain::None,
        ..Budget::new(args.database.memory)
    };
    let dir = args.database.db.as_path();
    let state = database::folder(dir).open_to_recover((args.store, tree), network, budget)?;
    Ok((state, genesis))
}
