//! `arbor witness` and `arbor verify-witness`.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use arbor_chain::replay::make_witness;
use arbor_chain::senders::{SignatureRules, prepare};
use arbor_chain::source::open_sources;
use arbor_chain::witness::BlockWitness;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::args::{VerifyWitness, Witness};
use crate::{database, output};

pub(crate) fn run(args: &Witness) -> Result<()> {
    let (state, genesis) = database::open_to_read(&args.database)?;
    let state = state.reader();
    if args.block == 0 {
        bail!("block 0 is the genesis: nothing comes before it");
    }
    let parent = database::version_of(state, Some(args.block - 1))
        .with_context(|| format!("the state before block {} is needed", args.block))?;
    let mut input = open_sources(&args.chain)?;
    input.skip_to(args.block)?;
    let Some(raw) = input.next_raw()? else {
        bail!("the chain ends before block {}", args.block);
    };
    let block = prepare(raw, SignatureRules::new(&genesis.spec))?;
    let mut witness = make_witness(state, parent, &genesis, &block)?;
    if genesis.network().is_none() {
        witness.config = Some(config_of(&args.database.db)?);
    }
    let text = serde_json::to_vec(&witness)?;
    match &args.out {
        None => output::line(&String::from_utf8(text)?),
        Some(file) if file.extension().is_some_and(|extension| extension == "gz") => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(&text)?;
            std::fs::write(file, packed.finish()?)
                .with_context(|| format!("writing {}", file.display()))
        }
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
        }
    }
}

/// The chain's configuration, from the genesis that the database keeps.
fn config_of(db: &Path) -> Result<Value> {
    let path = database::genesis_path(db);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut genesis: Value =
        serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    let mut config = genesis["config"].take();
    // JSON numbers beyond 64 bits are not kept whole here. A total difficulty that no chain reaches says the same as none.
    if config["terminalTotalDifficulty"].is_f64()
        && let Some(fields) = config.as_object_mut()
    {
        fields.remove("terminalTotalDifficulty");
    }
    Ok(config)
}

pub(crate) fn verify(args: &VerifyWitness) -> Result<()> {
    for file in &args.files {
        let witness = BlockWitness::from_file(file)?;
        let reach = witness
            .check()
            .with_context(|| format!("{}", file.display()))?;
        output::line(&format!(
            "{}: block {}: state root {} leads to {} nodes and {} codes; {} nodes and {} codes beside them",
            file.display(),
            witness.number,
            witness.pre_state_root,
            reach.nodes,
            reach.codes,
            reach.other_nodes,
            reach.other_codes,
        ))?;
    }
    Ok(())
}
