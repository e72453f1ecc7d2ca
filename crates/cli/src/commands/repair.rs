//! `arbor repair`: the HEAD file of a database, from what its store says.

use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail};
use arbor_database::{LockedStore, TreeSettings};
use arbor_state::recovery::is_recovering;
use arbor_state::{Network, StateError, StateSnapshot, Tree};
use arbor_versions::{DirReader, HeadFile, Meta, VersionsError, read_head_file};

use serde::Serialize;

use super::verify::{self, Checked};
use crate::args::Repair;
use crate::{database, output};

/// What a repair did, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Repaired {
    action: Action,
    /// The latest block and the root after it; null if nothing was flushed yet, or while the database is recovered.
    block: Option<u64>,
    root: Option<alloy_primitives::B256>,
    /// The check of the whole database, which was made if HEAD was not whole.
    checked: Option<Checked>,
}

/// What became of the HEAD file.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
enum Action {
    /// It was whole.
    None,
    /// It was brought up to its store.
    Followed,
    /// It was written from what the store says; there was none that could be read.
    Written,
    /// It was written although there was one, of a later version or another database.
    Replaced,
}

impl Repaired {
    fn new(action: Action, head: Option<&Meta>, checked: Option<Checked>) -> Self {
        let whole = head.filter(|head| !is_recovering(&head.block_hash));
        Self {
            action,
            block: whole.map(|head| head.block_number),
            root: whole.map(|head| head.root.into()),
            checked,
        }
    }

    fn print(&self, head: Option<&Meta>) -> Result<()> {
        let standing = standing(head);
        match self.action {
            Action::None => output::line(&format!(
                "HEAD is whole: {standing}; `arbor verify` checks the rest"
            )),
            Action::Followed => output::line(&format!("brought HEAD up to its store: {standing}")),
            Action::Written | Action::Replaced => output::line(&format!("wrote HEAD: {standing}")),
        }?;
        match self.action {
            Action::Written => output::line(
                "whether a later version had been flushed, which HEAD would tell, is not known any more",
            ),
            _ => Ok(()),
        }
    }
}

/// Prints what was done.
fn tell(args: &Repair, done: &Repaired, head: Option<&Meta>) -> Result<()> {
    match args.json {
        true => output::json(done),
        false => done.print(head),
    }
}

pub(crate) fn run(args: &Repair) -> Result<()> {
    let dir = args.database.db.as_path();
    if database::folder(dir).store().is_none() {
        if let Some(part) = database::folder(dir).part_of_conversion() {
            return Err(part.into());
        }
        bail!(
            "{} is not a database: there is no store in it",
            dir.display()
        );
    }
    let context = || format!("repairing the database {}", dir.display());
    let store = database::folder(dir).lock_store(database::editing(&args.database));
    let store = store.with_context(context)?;
    let (tree, network) = stored_kind(dir, &store, args.database.memory).with_context(context)?;
    same_chain(dir, network)?;
    let open = |head| store.state(&tree, network, head);
    let head_file = read_head_file(dir).ok();
    if let Some(file) = &head_file {
        let with_head = DirReader::new(dir).with_context(context)?;
        match open(Some(with_head)) {
            Ok(state) => return follow(args, &state, file, &store),
            Err(error) if !is_about_head(&error) => return Err(error).with_context(context),
            Err(_) if args.accept_store => {}
            Err(error) => return Err(refused(dir, &error)),
        }
    }
    let state = open(None).with_context(context)?;
    let head = state.reader().meta();
    let mut checked = None;
    if head.is_some_and(|head| !is_recovering(&head.block_hash)) {
        let has_headers = network != arbor_database::NO_CHAIN;
        let found = verify::check(&state, has_headers, args.threads)?;
        if !args.json {
            found.print()?;
        }
        found.verdict(dir)?;
        checked = Some(found);
    }
    store.rebuild_head_file(&state).with_context(context)?;
    let action = match head_file {
        Some(_) => Action::Replaced,
        None => Action::Written,
    };
    tell(args, &Repaired::new(action, head, checked), head)
}

/// Brings a HEAD that is whole up to its store, which may be one flush ahead.
fn follow(
    args: &Repair,
    state: &StateSnapshot,
    file: &HeadFile,
    store: &LockedStore,
) -> Result<()> {
    let head = state.reader().meta();
    let said = file.head.as_ref().map(|head| head.version);
    let action = match said == head.map(|head| head.version.0) {
        true => Action::None,
        false => {
            store.rebuild_head_file(state)?;
            Action::Followed
        }
    };
    tell(args, &Repaired::new(action, head, None), head)
}

/// Whether a store cannot be opened because of what HEAD says of it.
fn is_about_head(error: &StateError) -> bool {
    let StateError::Versions(error) = error else {
        return false;
    };
    matches!(
        **error,
        VersionsError::StoreOlder { .. }
            | VersionsError::HeadDiffers { .. }
            | VersionsError::Identity { .. }
    )
}

fn refused(dir: &Path, error: &StateError) -> Error {
    let why = match error {
        StateError::Versions(other) if matches!(**other, VersionsError::Identity { .. }) => {
            "its HEAD file is that of another database".to_owned()
        }
        error => error.to_string(),
    };
    anyhow!(
        "{}: {why}; if the store is the one that you want, --accept-store takes it as it is",
        dir.display()
    )
}

/// The tree and the chain of the database in a store.
fn stored_kind(dir: &Path, store: &LockedStore, memory: u64) -> Result<(Tree, Network)> {
    let identity = store.identity()?;
    let identity = identity.ok_or_else(|| {
        anyhow!("its store has no database yet: whatever began it can be run again")
    })?;
    let settings = TreeSettings::default();
    let tree = database::folder(dir).tree_of(&identity, memory, &settings)?;
    let network = Network {
        chain_id: identity.chain_id,
        genesis_hash: identity.genesis.into(),
    };
    Ok((tree, network))
}

/// Refuses a folder whose genesis is that of another chain than the store's. HEAD is not asked: what is wrong with it is found afterwards. A genesis that
/// is missing or damaged says nothing.
fn same_chain(dir: &Path, network: Network) -> Result<()> {
    match database::folder(dir).genesis() {
        Ok(genesis) if arbor_database::network(&genesis) != network => bail!(
            "the store of {} is of chain {} with genesis {}, but its genesis.json is of chain {} with {}: take that file away if the store is the one that you want",
            dir.display(),
            network.chain_id,
            network.genesis_hash,
            genesis.spec.chain_id(),
            genesis.hash
        ),
        _ => Ok(()),
    }
}

/// Where a database stands, in words.
fn standing(head: Option<&Meta>) -> String {
    match head {
        None => "nothing was flushed yet".to_owned(),
        Some(head) if is_recovering(&head.block_hash) => {
            "being recovered, `arbor recover` with the same file goes on with it".to_owned()
        }
        Some(head) => {
            let root = alloy_primitives::B256::from(head.root);
            format!("block {}, root {root}", head.block_number)
        }
    }
}
