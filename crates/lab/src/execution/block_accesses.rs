//! The accesses of a chain's blocks, one block after another.

use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::replay::{BlockStats, Chain, Options, Replay, ReplayError, Roots, Verify};
use arbor_chain::rules::ChainRules;
use arbor_chain::witness::{
    AccessedBlock, BlockAccesses, BlockWitnessSize, MadeWitness, block_accesses,
};
use arbor_state::Opened;
use arbor_versions::Version;

use super::witness_size::{check_root, wrong_witness};

/// A block that was replayed, with all that it reads and changes.
#[derive(Debug)]
pub struct ReplayedBlock {
    /// All that the block reads and changes.
    pub accesses: BlockAccesses,
    /// The size of its witness; `None` if the tree has no witnesses, or if `without_witness` has a reason.
    pub witness: Option<BlockWitnessSize>,
    /// The number of nodes and leaves that the block opens in the tree; `None` if it has no witness.
    pub opened: Option<Opened>,
    /// Why this block has no witness although the tree has witnesses.
    pub without_witness: Option<ReplayError>,
    /// What the replay counted.
    pub stats: BlockStats,
}

/// Replays one block, on this thread, after collecting its accesses and making its witness. The root after the witness is
/// compared with the root of the replay, and the changes are compared in number.
///
/// # Errors
/// What does not hold, the witness included.
pub fn block_with_accesses(
    replay: &mut Replay,
    block: RecoveredBlock,
    genesis: &Genesis,
    rules: ChainRules,
) -> Result<ReplayedBlock, ReplayError> {
    let number = block.block.header.number;
    let state = replay.state().reader();
    let head = state.meta().map_or(Version(0), |head| head.version);
    let parent = state
        .at(head)
        .map_err(|error| ReplayError::State { number, error })?;
    let chain = Chain::of(genesis);
    let AccessedBlock {
        accesses,
        witness,
        without_witness,
    } = block_accesses(&parent, chain, &block, rules.executor())?;
    let opened = witness.as_ref().and_then(MadeWitness::opened);
    let mut size = None;
    let mut root = None;
    if let Some(mut made) = witness {
        size = Some(made.size());
        let found = made.witness.complete();
        root = found.map_err(|error| wrong_witness(number)(error.to_string()))?;
    }
    let options = Options {
        verify: Verify::Every,
        roots: Roots::Here,
        check_every: None,
    };
    let mut stats = BlockStats::default();
    replay.blocks(&mut std::iter::once(Ok(block)), options, &mut |of_block| {
        stats = *of_block;
    })?;
    if let Some(root) = root {
        check_root(replay, number, root)?;
    }
    let counts = accesses.counts();
    if (counts.accounts_changed, counts.slots_changed) != (stats.accounts, stats.slots) {
        let what = "numbers of changed accounts and slots";
        return Err(ReplayError::Different { number, what });
    }
    Ok(ReplayedBlock {
        accesses,
        witness: size,
        opened,
        without_witness,
        stats,
    })
}
