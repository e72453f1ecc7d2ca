//! `arbor repair`: the HEAD file of a database, from what its store says.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use arbor_state::ar16mt::recovery::is_recovering;
use arbor_state::{Network, StateSnapshot, Tree};
use arbor_store::{Reader, Store};
use arbor_versions::{DirLock, DirReader, read_head_file, stored_identity};

use super::verify;
use crate::args::Repair;
use crate::{database, output};

pub(crate) fn run(args: &Repair) -> Result<()> {
    let dir = args.database.db.as_path();
    if !dir.is_dir() {
        bail!(
            "{} is not a database: there is no such folder",
            dir.display()
        );
    }
    let context = || format!("repairing the database {}", dir.display());
    let lock = DirLock::acquire(dir).with_context(context)?;
    let store = database::open_store_alone(&args.database).with_context(context)?;
    let (tree, network) = stored_kind(&*store, args.database.memory).with_context(context)?;
    same_chain(dir, network)?;
    let open = |head| {
        let reader: Arc<dyn Reader> = store.clone();
        StateSnapshot::open(reader, head, tree.clone(), network)
    };
    if read_head_file(dir).is_ok() {
        let with_head = DirReader::new(dir).with_context(context)?;
        match open(Some(with_head)) {
            Ok(state) => return output::line(&format!("{}: nothing to repair", standing(&state)?)),
            // Without HEAD it may be whole.
            Err(_) if args.accept_store => {}
            Err(error) => {
                let why = format!(
                    "the store of {} is not what its HEAD file says; if it is the one that you want, --accept-store takes it as it is",
                    dir.display()
                );
                return Err(error).context(why);
            }
        }
    }
    let state = open(None).with_context(context)?;
    let standing = standing(&state)?;
    let head = database::head(state.reader())?;
    if is_recovering(&head.block_hash) {
        output::line("being recovered: what is there is not checked")?;
    } else {
        let has_headers = network != database::NO_CHAIN;
        verify::check(&state, dir, has_headers, args.threads)?;
    }
    state
        .rebuild_head_file(&lock, network)
        .with_context(context)?;
    output::line(&format!("wrote HEAD: {standing}"))
}

/// The tree and the chain of the database in a store.
fn stored_kind(store: &dyn Store, memory: u64) -> Result<(Tree, Network)> {
    let identity = stored_identity(store)?;
    let identity = identity.ok_or_else(|| anyhow!("its store has no database"))?;
    let tree = database::known_tree(&identity, memory)?;
    let network = Network {
        chain_id: identity.chain_id,
        genesis_hash: identity.genesis.into(),
    };
    Ok((tree, network))
}

/// Refuses a folder whose genesis is that of another chain than the store's.
fn same_chain(dir: &Path, network: Network) -> Result<()> {
    if !database::genesis_path(dir).exists() {
        return Ok(());
    }
    let (kept, _) = database::chain_in(dir)?;
    if kept != network {
        bail!(
            "the store of {} is of chain {} with genesis {}, but its genesis.json is of chain {} with {}",
            dir.display(),
            network.chain_id,
            network.genesis_hash,
            kept.chain_id,
            kept.genesis_hash
        );
    }
    Ok(())
}

/// Where a database stands, in words.
fn standing(state: &StateSnapshot) -> Result<String> {
    let head = database::head(state.reader())?;
    let root = state.reader().root();
    Ok(format!("block {}, root {root}", head.block_number))
}
