//! How large the witnesses of a chain's blocks are.

use std::collections::BTreeMap;

use arbor_verify::mpt::MissingAccounts;
use arbor_verify::verkle::WitnessSizes;
use arbor_versions::Version;
use serde::Serialize;

use arbor_chain::executor::Executor;
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::replay::{Chain, Replay, ReplayError};
use arbor_chain::witness::stateless::replay_witness;
use arbor_chain::witness::verkle::Verdict;
use arbor_chain::witness::{MadeWitness, make_witness};

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

/// Replays one block, on this thread, after making its witness, which is checked: one of trie nodes by executing the block over it, one of a
/// Verkle tree's leaves by its proof and the root after it.
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
    let made = make_witness(&parent, Chain::of(genesis), &block, Executor::new(), false)?;
    let size = about.of(&made);
    match made {
        MadeWitness::Nodes(witness) => {
            let executor = Executor::new();
            let missing = MissingAccounts::Error;
            replay_witness(&witness, &genesis.spec, missing, executor)
                .map_err(|error| wrong(error.to_string()))?;
            replay.block(block)?;
            let root = replay.state().root();
            if witness.tree.is_some() && witness.post_state_root != root {
                let found = witness.post_state_root;
                return Err(wrong(format!(
                    "it leads to root {found}, the root is {root}"
                )));
            }
        }
        MadeWitness::Leaves(witness) => {
            let verdict = witness.check();
            let verdict = verdict.map_err(|error| wrong(error.to_string()))?;
            replay.block(block)?;
            let root_after = replay.state().root();
            let holds =
                matches!(verdict, Verdict::Holds { root_after: found, .. } if found == root_after);
            if !holds {
                return Err(wrong(format!("{verdict:?}, the root is {root_after}")));
            }
        }
    }
    Ok(size)
}

impl WitnessSize {
    /// The size of a witness that was made of this block.
    #[must_use]
    pub fn of(self, made: &MadeWitness) -> Self {
        let (parts, counts) = match made {
            MadeWitness::Nodes(witness) => {
                let bytes = |parts: &[alloy_primitives::Bytes]| {
                    parts.iter().map(|part| part.len() as u64).sum::<u64>()
                };
                let parts = [
                    ("nodes", bytes(&witness.state_nodes)),
                    ("code", bytes(&witness.codes)),
                ];
                let counts = [
                    ("nodes", witness.state_nodes.len()),
                    ("codes", witness.codes.len()),
                ];
                (parts.to_vec(), counts.to_vec())
            }
            MadeWitness::Leaves(made) => {
                let witness = &made.block.witness;
                let changed = witness.keys().filter(|(_, diff)| diff.new.is_some());
                let counts = [
                    ("keys", witness.keys().count()),
                    ("stems", witness.state_diff.len()),
                    ("changed", changed.count()),
                    ("chunks", made.chunks),
                ];
                let parts = leaf_parts(&witness.sizes(), made.chunks);
                (parts.to_vec(), counts.to_vec())
            }
        };
        let counts = counts.into_iter().map(|(name, count)| (name, count as u64));
        Self {
            bytes: parts.iter().map(|(_, bytes)| bytes).sum(),
            parts: parts.into_iter().collect(),
            counts: counts.collect(),
            ..self
        }
    }
}

/// Bytes by part of a Verkle witness, in the order of [`WitnessSizes`]; so many chunks of code apart from other values before.
#[must_use]
pub fn leaf_parts(sizes: &WitnessSizes, chunks: usize) -> [(&'static str, u64); 9] {
    // All chunks read are there: a value is 32 bytes after the byte that says so.
    let code = 33 * chunks;
    [
        ("stems", sizes.stems),
        ("suffixes", sizes.suffixes),
        ("code chunks", code),
        ("other values before", sizes.current - code),
        ("values after", sizes.new),
        ("ways", sizes.ways),
        ("commitments", sizes.commitments),
        ("multiproof", sizes.multiproof),
        ("offsets", sizes.offsets),
    ]
    .map(|(name, bytes)| (name, bytes as u64))
}
