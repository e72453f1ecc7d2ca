//! Which genesis a chain begins with.

use std::path::Path;

use anyhow::{Context, Result, bail};
use arbor_chain::genesis::{Genesis, Network};
use arbor_chain::source::ChainInput;
use arbor_remote::Node;

use crate::database;

/// The genesis: named, or in the database already, or beside the chain.
pub(crate) fn of_input(
    named: Option<&str>,
    db: Option<&Path>,
    input: &ChainInput,
) -> Result<(Genesis, String)> {
    let stored = db
        .map(|dir| database::folder(dir).genesis_path())
        .filter(|path| path.is_file());
    let of_folder = input.genesis_file().map(|path| path.as_path());
    let known = of_folder.or(stored.as_deref());
    let known = known.or(input.network().map(Path::new));
    let known = known.or(input.genesis_beside().map(|path| path.as_path()));
    let named = match named.map(Path::new).or(known) {
        Some(named) => named,
        None => bail!(
            "no genesis: give --genesis FILE or the name of a network, or put genesis.json next to the chain"
        ),
    };
    read(named)
}

/// The genesis of a node's chain: named, or in the database already, or that of the network with the
/// node's chain id. Its hash is compared with that of the node's block 0.
pub(crate) fn of_node(
    named: Option<&str>,
    db: Option<&Path>,
    node: &Node,
) -> Result<(Genesis, String)> {
    let stored = db
        .map(|dir| database::folder(dir).genesis_path())
        .filter(|path| path.is_file());
    let chain_id = node.chain_id()?;
    let mut networks = Network::ALL.into_iter();
    let network = networks.find(|network| network.chain_id() == chain_id);
    let named = named.map(Path::new).or(stored.as_deref());
    let named = named.or(network.map(|network| Path::new(network.name())));
    let Some(named) = named else {
        bail!(
            "{} has the chain id {chain_id}, which is that of no public network: give --genesis FILE",
            node.url()
        );
    };
    let (genesis, text) = read(named)?;
    let first = node.block_hash(0)?;
    if first.is_some_and(|first| first != genesis.hash) {
        bail!(
            "the chain of {} begins with block {}, and the genesis {} with {}",
            node.url(),
            first.unwrap_or_default(),
            named.display(),
            genesis.hash
        );
    }
    Ok((genesis, text))
}

/// Reads a genesis, from a file or by the name of a network. It is read once: a pipe has it no
/// second time.
fn read(named: &Path) -> Result<(Genesis, String)> {
    let shown = || format!("genesis {}", named.display());
    let text = match named.to_str() {
        Some(name) => Genesis::text_of(name).with_context(shown)?,
        None => Genesis::read_text(named).with_context(shown)?,
    };
    let genesis = Genesis::from_json(&text).with_context(shown)?;
    Ok((genesis, text))
}
