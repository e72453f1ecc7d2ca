//! `arbor replay --witness`: blocks judged over their witnesses, without a database.

use std::path::{Path, PathBuf};
use std::time::Instant;

use alloy_primitives::B256;
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::executor::{BlockOutput, OmmerCheck};
use arbor_chain::genesis::Genesis;
use arbor_chain::rules::ChainRules;
use arbor_chain::source::open_sources;
use arbor_chain::witness::stateless::{StatelessError, replay_witness};
use arbor_chain::witness::{
    Authority, ExecutionWitness, JudgedBy, MptWitness, NodesFile, WitnessProblem,
};
use arbor_verify::mpt::MissingAccounts;
use serde::Serialize;

use crate::args::Replay as Args;
use crate::{described, output, rules};

/// Some verdicts are partial. The exit code is another one than that of an error.
#[derive(Debug, thiserror::Error)]
#[error(
    "{partial} of {all} verdicts are partial: a rule was not checked, as the output says. --accept-partial exits with 0"
)]
pub(crate) struct Partial {
    partial: usize,
    all: usize,
}

impl Partial {
    /// The exit code.
    pub(crate) const EXIT_CODE: u8 = 3;
}

/// Replays blocks over their witnesses. A block that does not hold does not keep the others from being judged.
pub(crate) fn run(args: &Args) -> Result<()> {
    let genesis = match (&args.genesis, &args.witness_chain[..]) {
        (Some(named), _) => Some(Genesis::load(named)?),
        (None, []) => None,
        (None, chain) => Some(crate::genesis::of_input(None, None, &open_sources(chain)?)?.0),
    };
    for warning in genesis.iter().flat_map(|genesis| &genesis.warnings) {
        tracing::warn!("genesis: {warning}");
    }
    let mut failed = Vec::new();
    let (mut partial, all) = (0, args.witness.len());
    for file in &args.witness {
        match judge(args, file, genesis.as_ref()) {
            Ok(Verdict::Holds) => {}
            Ok(Verdict::Partial) => partial += 1,
            Err(error) => failed.push(error),
        }
    }
    match (failed.len(), all) {
        (0, _) if partial > 0 && !args.accept_partial => Err(Partial { partial, all }.into()),
        (0, _) => Ok(()),
        (_, 1) => Err(failed.remove(0)),
        (count, _) => {
            for error in &failed {
                output::tell(&format!("error: {}", described(error)));
            }
            bail!("{count} of {all} witnesses do not hold")
        }
    }
}

/// What is known of a block in which no fault was found.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Verdict {
    /// Every rule was checked that block and witness can show.
    Holds,
    /// Some were not.
    Partial,
}

fn judge(args: &Args, file: &Path, genesis: Option<&Genesis>) -> Result<Verdict> {
    let name = || file.display().to_string();
    let witness = match (NodesFile::read(file)?, genesis) {
        (NodesFile::WithBlock(witness), _) => *witness,
        (NodesFile::WithoutBlock(witness), Some(genesis)) if !args.witness_chain.is_empty() => {
            with_block(&args.witness_chain, witness, genesis).with_context(name)?
        }
        (NodesFile::WithoutBlock(_), _) => {
            return Err(anyhow::Error::from(WitnessProblem::NoBlock).context(name()));
        }
    };
    let rules = asked(args, &witness).with_context(name)?;
    let mut judged = witness.judged_by(genesis).with_context(name)?;
    for warning in &judged.warnings {
        tracing::warn!("{}: {warning}", name());
    }
    rules.set(&mut judged.spec);
    let missing = match args.assume_absent {
        true => MissingAccounts::Absent,
        false => MissingAccounts::Error,
    };
    let start = Instant::now();
    let executor = rules.executor().with_max_gas(args.max_gas);
    let output = replay_witness(&witness, &judged.spec, missing, executor);
    let output = output
        .map_err(|error| hinted(args, error))
        .with_context(name)?;
    let seconds = start.elapsed().as_secs_f64();
    let unchecked = unchecked(&witness, &judged, &output);
    let judgement = Judgement {
        file,
        chain: chain(&judged, rules),
        block: witness.number,
        verdict: match unchecked.is_empty() {
            true => Verdict::Holds,
            false => Verdict::Partial,
        },
        unchecked,
        transactions: output.receipts.len(),
        gas: output.gas_used,
        root_before: witness.pre_state_root,
        state_root: has_root_after(&witness).then_some(witness.post_state_root),
        seconds,
        judged_by: described_rules(args, &judged, rules),
        assume_absent: args.assume_absent,
    };
    match args.json {
        true => output::line(&serde_json::to_string(&judgement)?)?,
        false => judgement.print()?,
    }
    Ok(judgement.verdict)
}

/// Adds the block of the chain to a witness that has none.
pub(super) fn with_block(
    chain: &[PathBuf],
    witness: ExecutionWitness,
    genesis: &Genesis,
) -> Result<MptWitness> {
    let (number, _) = witness.block()?;
    let mut input = open_sources(chain).context("--witness-chain")?;
    input.skip_to(number).context("--witness-chain")?;
    let block = input.next().transpose().context("--witness-chain")?;
    let block = block.with_context(|| format!("--witness-chain ends before block {number}"))?;
    Ok(witness.with_block(&block, genesis.spec.chain_id())?)
}

/// What was found of a block over its witness, as `--json` prints it, a line each.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Judgement<'a> {
    file: &'a Path,
    chain: String,
    block: u64,
    verdict: Verdict,
    /// Why the verdict is partial.
    unchecked: Vec<String>,
    transactions: usize,
    gas: u64,
    /// The root before the block, and the one after it, if it follows from the witness.
    root_before: B256,
    state_root: Option<B256>,
    seconds: f64,
    /// Whose rules the block was judged by.
    judged_by: String,
    /// Whether accounts that the witness does not show were taken as absent.
    assume_absent: bool,
}

impl Judgement<'_> {
    fn print(&self) -> Result<()> {
        let verdict = match &self.unchecked[..] {
            [] => "holds".to_owned(),
            reasons => format!(
                "has no fault, but the verdict is partial ({})",
                reasons.join("; ")
            ),
        };
        let assumed = match self.assume_absent {
            true => "; accounts that the witness does not show were taken as absent",
            false => "",
        };
        let roots = match self.state_root {
            Some(root) => format!("state root {root} (before it {})", self.root_before),
            None => format!("state root before it {}", self.root_before),
        };
        output::line(&format!(
            "{}: {} block {} {verdict}: {} transactions, {} gas, {roots}, {:.1} ms; judged by {}{assumed}; \
             not checked: its seal, and whether it is in the canonical chain",
            self.file.display(),
            self.chain,
            self.block,
            self.transactions,
            self.gas,
            self.seconds * 1e3,
            self.judged_by,
        ))
    }
}

/// Names the flag that helps if a witness lacks an account's node, which geth takes for an absent account.
fn hinted(args: &Args, error: StatelessError) -> anyhow::Error {
    let error = anyhow::Error::from(error);
    let text = described(&error);
    // Execution passes errors of reading on as texts.
    let is_account =
        text.contains("witness: account of ") && text.contains("the witness lacks node");
    match is_account && !args.assume_absent {
        true => anyhow!(
            "{text}. If the account does not exist, --assume-absent goes on as geth does; then the header must be trusted"
        ),
        false => error,
    }
}

/// The rules that the command line asks for. What the witness notes of rules must be the same: it does not choose them.
fn asked(args: &Args, witness: &MptWitness) -> Result<ChainRules> {
    let asked = rules::asked(&args.rules);
    if let Some(noted) = witness.rules {
        rules::must_be_asked_for(noted, asked, "the witness")?;
    }
    Ok(asked)
}

/// Whether the root after a block follows from its witness.
fn has_root_after(witness: &MptWitness) -> bool {
    // The replay has found that there is such a state.
    let state = witness.partial_state().ok().flatten();
    state.is_none_or(|state| state.has_roots())
}

/// Why a verdict is partial, if it is.
fn unchecked(witness: &MptWitness, judged: &JudgedBy, output: &BlockOutput) -> Vec<String> {
    let mut reasons = Vec::new();
    if judged.authority == Authority::Witness {
        let chain = witness.chain_id;
        reasons.push(format!(
            "chain {chain} is not known, and the witness's own configuration may be anybody's: give --genesis"
        ));
    }
    if output.ommers == OmmerCheck::Partial {
        let given = witness.ancestor_headers_rlp.len();
        reasons.push(format!(
            "its ommers were not fully checked: this takes the headers of 7 ancestors without ommers of their own, and the witness has {given}"
        ));
    }
    if !has_root_after(witness) {
        reasons.push(
            "it is amid the move of a state to another tree: the root after it does not follow from the witness, because what the block moves is not in it".to_owned(),
        );
    }
    // The replay has found that there is such a state.
    let state = witness.partial_state().ok().flatten();
    match state.map_or(0, |state| state.doubtful()) {
        0 => {}
        stems => reasons.push(format!(
            "{stems} stems are absent if the witness was made honestly, and nothing proves it: make it with --guarded"
        )),
    }
    let number = witness.number;
    let limits = judged.spec.limitations().iter();
    let limits = limits
        .filter(|limit| limit.from <= number && limit.until.is_none_or(|until| number < until));
    reasons.extend(limits.map(ToString::to_string));
    reasons
}

/// Names the chain: a public network only if nothing was changed of its rules.
fn chain(judged: &JudgedBy, rules: ChainRules) -> String {
    match judged.authority {
        Authority::Network(network) if rules == ChainRules::default() => network.name().to_owned(),
        _ => format!("chain {}", judged.spec.chain_id()),
    }
}

fn described_rules(args: &Args, judged: &JudgedBy, rules: ChainRules) -> String {
    let whose = match judged.authority {
        Authority::Network(network) => format!("the rules of {}", network.name()),
        Authority::Generator => "the rules of the chains that `arbor generate` makes".to_owned(),
        Authority::Genesis => {
            format!(
                "the genesis {}",
                args.genesis.as_deref().unwrap_or_default()
            )
        }
        Authority::Witness => "the configuration in the witness".to_owned(),
    };
    match &rules::words(rules)[..] {
        [] => whose,
        words => format!("{whose} with {}", words.join(" ")),
    }
}
