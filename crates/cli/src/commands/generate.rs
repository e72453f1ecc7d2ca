//! `arbor generate`: a deterministic chain.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use alloy_primitives::B256;
use anyhow::{Result, anyhow, bail};
use arbor_generator::{
    GeneratorError, GeneratorSettings, Kind, OverState, Phase, Summary, folder_of,
};
use serde::Serialize;

use crate::args::{Generate, StateSize};
use crate::progress::Progress;
use crate::{bytes, files, output, stop};

pub(crate) fn run(args: &Generate) -> Result<()> {
    stop::listen();
    if let Some(size) = args.state {
        return over_state(args, size);
    }
    let summary = make(&settings(args), &args.out, args.json)?;
    if !summary.complete {
        output::remark(
            args.json,
            "stopped as asked; run the same command again to go on",
        )?;
    }
    Ok(())
}

/// Blocks over a large state, the transactions of each, their gas, and the accounts that send them, if the command line does not say.
const OVER_STATE: (u64, u64, u64, u64) = (64, 400, 30_000_000, 20_000);

/// Makes the chains over a large state.
fn over_state(args: &Generate, size: StateSize) -> Result<()> {
    let (blocks, txs, gas_limit, senders) = OVER_STATE;
    let settings = GeneratorSettings {
        blocks: args.blocks.unwrap_or(blocks),
        accounts: args.accounts.unwrap_or(senders),
        transactions_per_block: args.txs.unwrap_or(txs),
        gas_limit: args.gas_limit.unwrap_or(gas_limit),
        population: size.accounts,
        contract: size.contract,
        ..settings(args)
    };
    let StateSize { accounts, contract } = size;
    let large = match contract {
        0 => String::new(),
        slots => format!(", one of them with {slots}"),
    };
    let needed = bytes_of(size, WHILE_MADE) + chains_bytes(&settings);
    output::remark(
        args.json,
        &format!(
            "{accounts} accounts with two slots each{large}: {} of the disk while the chains are made, and later up to {} for each tree that the state is loaded into",
            bytes::show(needed),
            bytes::show(bytes_of(size, LOADED))
        ),
    )?;
    check_disk(&args.out, needed)?;
    let mut progress: Option<(OverState, Progress)> = None;
    let mut gas = 0;
    let made = arbor_generator::generate_over_state(&settings, &args.out, |load, now| {
        if progress.as_ref().is_none_or(|(other, _)| *other != load) {
            if let Some((_, before)) = progress.take() {
                before.finish();
            }
            gas = 0;
            let bar = Progress::new(load.name(), now.block, Some(now.blocks));
            progress = Some((load, bar));
        }
        if let Some((_, bar)) = &mut progress {
            bar.block(now.block, now.gas.saturating_sub(gas));
            gas = now.gas;
        }
        match stop::asked() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let made = made.map_err(over_state_by_flag)?;
    if let Some((_, progress)) = progress {
        progress.finish();
    }
    if args.json {
        let made = made.iter();
        let made = made.map(|(load, summary)| (load.name(), Made::new(summary)));
        output::json(&made.collect::<BTreeMap<_, _>>())?;
    } else {
        for (_, summary) in &made {
            print(summary)?;
        }
    }
    match made.last() {
        Some((_, last)) if !last.complete => output::remark(
            args.json,
            "stopped as asked; run the same command again to go on",
        ),
        Some(_) => Ok(()),
        None => output::remark(args.json, "all chains are there already"),
    }
}

/// Refuses a state for which a disk has not enough room, before anything is made.
fn check_disk(out: &Path, needed: u64) -> Result<()> {
    let is_begun = OverState::ALL
        .iter()
        .any(|load| folder_of(out, *load).exists());
    let (existing, free) = files::free_space(out)?;
    if !is_begun && needed > free {
        bail!(
            "--state: {} are free in {}, and the state needs {}: nothing was written; give fewer accounts or slots, or a folder on another disk",
            bytes::show(free),
            existing.display(),
            bytes::show(needed)
        );
    }
    Ok(())
}

/// Bytes of the disk for each account of a large state with its two slots: of the Merkle-Patricia state while chains are made, and of a database of the
/// largest of the trees.
const WHILE_MADE: u64 = 500;
const LOADED: u64 = 900;

/// Returns the bytes of the disk that a whole state needs, if an account with two slots needs `of_account`. A further slot is
/// counted as half an account.
fn bytes_of(size: StateSize, of_account: u64) -> u64 {
    size.accounts * of_account + size.contract * of_account / 2
}

/// Bytes of the disk for the chains, whose genesis files list the accounts that send.
fn chains_bytes(settings: &GeneratorSettings) -> u64 {
    const OF_SENDER: u64 = 700;
    const OF_TRANSACTION: u64 = 200;
    let transactions = settings
        .blocks
        .saturating_mul(settings.transactions_per_block);
    let chain = settings.accounts.saturating_mul(OF_SENDER);
    let chain = chain.saturating_add(transactions.saturating_mul(OF_TRANSACTION));
    chain.saturating_mul(OverState::ALL.len() as u64)
}

/// A chain that was made, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made<'a> {
    /// Whether the chain has all its blocks.
    complete: bool,
    chain: &'a Path,
    genesis: &'a Path,
    /// Bytes of the chain before compression.
    bytes: u64,
    /// The last block.
    block: u64,
    block_hash: B256,
    state_root: B256,
    /// Of the blocks that this run made.
    transactions: u64,
    failed: u64,
    by_kind: BTreeMap<&'static str, u64>,
}

impl<'a> Made<'a> {
    fn new(summary: &'a Summary) -> Self {
        let by_kind = Kind::ALL.iter().zip(summary.by_kind);
        Self {
            complete: summary.complete,
            chain: &summary.chain,
            genesis: &summary.genesis,
            bytes: summary.bytes,
            block: summary.head,
            block_hash: summary.head_hash,
            state_root: summary.state_root,
            transactions: summary.transactions,
            failed: summary.failed,
            by_kind: by_kind.map(|(kind, count)| (kind.name(), count)).collect(),
        }
    }
}

fn settings(args: &Generate) -> GeneratorSettings {
    let mut settings = args.preset.settings();
    settings.seed = args.seed.unwrap_or(settings.seed);
    settings.chain_id = args.chain_id.unwrap_or(settings.chain_id);
    settings.blocks = args.blocks.unwrap_or(settings.blocks);
    settings.accounts = args.accounts.unwrap_or(settings.accounts);
    settings.population = args.population.unwrap_or(settings.population);
    settings.transactions_per_block = args.txs.unwrap_or(settings.transactions_per_block);
    settings.gas_limit = args.gas_limit.unwrap_or(settings.gas_limit);
    settings.mix = args.mix.clone().unwrap_or(settings.mix);
    settings.zipf = args.zipf.unwrap_or(settings.zipf);
    settings.new_account_rate = args.new_accounts.unwrap_or(settings.new_account_rate);
    settings.gzip |= args.gzip;
    settings
}

/// Names a setting as the command line does.
fn by_flag(error: GeneratorError) -> anyhow::Error {
    let flag = |field: &str| match field {
        "transactions_per_block" => "--txs".to_owned(),
        "new_account_rate" => "--new-accounts".to_owned(),
        field => format!("--{}", field.replace('_', "-")),
    };
    match error {
        GeneratorError::Settings(error) => anyhow!("{}: {}", flag(error.field), error.reason),
        GeneratorError::OtherSettings { path, field } if !field.contains(' ') => anyhow!(
            "{}: the chain there was made with another {}: continue it with the same, or use another folder",
            path.display(),
            flag(field)
        ),
        other => other.into(),
    }
}

/// Names a setting of chains over a large state as the command line does.
fn over_state_by_flag(error: GeneratorError) -> anyhow::Error {
    let is_size = |field: &str| ["population", "contract"].contains(&field);
    match error {
        GeneratorError::OtherSettings { path, field } if is_size(field) => anyhow!(
            "{}: the chain there was made over a state of another size: continue it with the same --state, or use another folder",
            path.display()
        ),
        other => by_flag(other),
    }
}

/// Makes a chain, with progress and a summary, as JSON if asked.
pub(crate) fn make(settings: &GeneratorSettings, out: &Path, json: bool) -> Result<Summary> {
    let summary = made(settings, out)?;
    match json {
        true => output::json(&Made::new(&summary))?,
        false => print(&summary)?,
    }
    Ok(summary)
}

/// Makes a chain with progress.
fn made(settings: &GeneratorSettings, out: &Path) -> Result<Summary> {
    let mut progress: Option<Progress> = None;
    let mut gas = 0;
    let summary = arbor_generator::generate(settings, out, |now| {
        if now.phase != Phase::Compressing {
            let bar = progress
                .get_or_insert_with(|| Progress::new("generate", now.block, Some(now.blocks)));
            bar.block(now.block, now.gas.saturating_sub(gas));
            gas = now.gas;
        }
        if stop::asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
    .map_err(by_flag)?;
    if let Some(progress) = progress {
        progress.finish();
    }
    Ok(summary)
}

fn print(summary: &Summary) -> Result<()> {
    let chain = format!(
        "{}: {} blocks, {}",
        summary.chain.display(),
        summary.head,
        bytes::show(summary.bytes)
    );
    if summary.transactions == 0 {
        output::line(&format!("{chain}; no transactions were added in this run"))?;
    } else {
        output::line(&format!(
            "{chain}; {} transactions in this run, {} failed",
            summary.transactions, summary.failed
        ))?;
        let kinds: Vec<String> = Kind::ALL
            .iter()
            .zip(summary.by_kind)
            .map(|(kind, count)| format!("{} {count}", kind.name()))
            .collect();
        output::line(&format!("  {}", kinds.join(", ")))?;
    }
    output::line(&format!(
        "  head {} with state root {}",
        summary.head_hash, summary.state_root
    ))
}
