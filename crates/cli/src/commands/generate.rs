//! `arbor generate`: a deterministic chain.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, anyhow};
use arbor_generator::{GeneratorError, GeneratorSettings, Kind, Phase, Summary};

use crate::args::Generate;
use crate::progress::Progress;
use crate::{bytes, output, stop};

pub(crate) fn run(args: &Generate) -> Result<()> {
    stop::listen();
    let summary = make(&settings(args), &args.out)?;
    if !summary.complete {
        output::line("stopped as asked; run the same command again to go on")?;
    }
    Ok(())
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

/// Makes a chain, with progress and a summary.
pub(crate) fn make(settings: &GeneratorSettings, out: &Path) -> Result<Summary> {
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
    ))?;
    Ok(summary)
}
