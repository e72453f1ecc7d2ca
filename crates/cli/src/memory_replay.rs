//! A replay whose state is kept in memory, for commands that study a chain without a database.

use anyhow::Result;
use arbor_chain::genesis::Genesis;
use arbor_chain::replay::Replay;
use arbor_database::{Budget, TreeSettings, in_memory, network};
use arbor_state::TreeKind;
use arbor_versions::Retain;

/// Begins a replay with the genesis, under a tree with this hash function or its usual one. No history is kept.
pub(crate) fn begin(
    kind: &TreeKind,
    hash: Option<String>,
    genesis: &Genesis,
    memory: u64,
) -> Result<Replay> {
    let tree = TreeSettings::default().tree(kind, hash, memory)?;
    let budget = Budget {
        retain: Retain::None,
        ..Budget::new(memory)
    };
    let state = in_memory(tree, network(genesis), budget)?;
    Ok(Replay::new(state, genesis, budget.names())?)
}
