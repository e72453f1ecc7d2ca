//! How large the witnesses of a chain's blocks are.

use std::collections::BTreeMap;

use arbor_verify::mpt::MissingAccounts;
use arbor_versions::Version;
use serde::Serialize;

use arbor_chain::executor::Executor;
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::replay::{Chain, Replay, ReplayError};
use arbor_chain::witness::stateless::replay_witness;
use arbor_chain::witness::{BlockWitnessSize, MadeWitness, make_witness};

/// What the witness of a block takes, without the headers of ancestors, which are the same under any tree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct WitnessSize {
    /// The block's number.
    pub block: u64,
    /// Its transactions.
    pub transactions: u64,
    /// Its gas.
    pub gas: u64,
    /// Bytes of the whole.
    pub bytes: u64,
    /// Bytes of its parts.
    pub parts: BTreeMap<&'static str, u64>,
    /// What it has: nodes and codes, or keys, stems, changed keys and chunks of code.
    pub counts: BTreeMap<&'static str, u64>,
}

/// Replays one block, on this thread, after making its witness, which is checked: by executing the block over it if it has
/// nodes, else by its proof; and by the root after it.
///
/// # Errors
/// What does not hold, the witness included.
pub fn block_with_witness(
    replay: &mut Replay,
    block: RecoveredBlock,
    genesis: &Genesis,
) -> Result<WitnessSize, ReplayError> {
    let number = block.block.header.number;
    let about = WitnessSize {
        block: number,
        transactions: block.block.body.transactions.len() as u64,
        gas: block.block.header.gas_used,
        ..WitnessSize::default()
    };
    let state = replay.state().reader();
    let head = state.meta().map_or(Version(0), |head| head.version);
    let parent = state
        .at(head)
        .map_err(|error| ReplayError::State { number, error })?;
    let wrong = |why: String| ReplayError::Witness { number, why };
    let mut made = make_witness(&parent, Chain::of(genesis), &block, Executor::new(), false)?;
    let size = about.of(&made);
    if let Some(witness) = made.witness.executable() {
        let executor = Executor::new();
        let missing = MissingAccounts::Error;
        replay_witness(witness, &genesis.spec, missing, executor)
            .map_err(|error| wrong(error.to_string()))?;
    }
    let found = made.witness.complete();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    replay.block(block)?;
    let root = replay.state().root();
    if found != root {
        return Err(wrong(format!(
            "it leads to root {found}, the root is {root}"
        )));
    }
    Ok(size)
}

impl WitnessSize {
    /// The size of a witness that was made of this block.
    #[must_use]
    pub fn of(self, made: &MadeWitness) -> Self {
        let BlockWitnessSize { parts, counts, .. } = made.size();
        Self {
            bytes: parts.0.iter().map(|(_, bytes)| bytes).sum(),
            parts: parts.0.into_iter().collect(),
            counts: counts.0.into_iter().collect(),
            ..self
        }
    }
}
