//! How large the witnesses of a chain's blocks are.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use arbor_state::Historical;
use arbor_verify::mpt::MissingAccounts;
use arbor_versions::Version;
use serde::Serialize;

use arbor_chain::executor::Executor;
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::replay::{Chain, Replay, ReplayError};
use arbor_chain::witness::stateless::{StatelessError, replay_witness};
use arbor_chain::witness::{BlockWitnessSize, MadeWitness, make_witness};

/// What the witness of a block takes, without the headers of ancestors, which are the same under any tree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
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
    /// Bytes of the compact form.
    pub compact_bytes: u64,
    /// Bytes of the parts of the compact form.
    pub compact: BTreeMap<&'static str, u64>,
    /// Hashes and operations on curve points that it takes to check the compact form and to execute the block over it, by
    /// the names of [`arbor_metrics::snapshot`]. Those of the KECCAK256 opcode are not among them.
    pub work: BTreeMap<&'static str, u64>,
    /// What it has: nodes and codes, or keys, stems, changed keys and chunks of code.
    pub counts: BTreeMap<&'static str, u64>,
}

/// Replays one block, on this thread, after making its witness, which is checked: the block is executed over its compact
/// form, and the root after it is compared. Nothing else may hash meanwhile, because the counts are the process's.
///
/// Returns `None` for a block that cannot be checked with a witness, because only the whole state determines what the block
/// changes ([`ReplayError::needs_whole_state`]).
///
/// # Errors
/// What does not hold, the witness included.
pub fn block_with_witness(
    replay: &mut Replay,
    block: RecoveredBlock,
    genesis: &Genesis,
) -> Result<Option<WitnessSize>, ReplayError> {
    let number = block.block.header.number;
    let state = replay.state().reader();
    let head = state.meta().map_or(Version(0), |head| head.version);
    let parent = state
        .at(head)
        .map_err(|error| ReplayError::State { number, error })?;
    let measured = match measure(&parent, &block, genesis) {
        Ok(measured) => Some(measured),
        Err(error) if error.needs_whole_state() => None,
        Err(error) => return Err(error),
    };
    replay.block(block)?;
    let Some((size, root)) = measured else {
        return Ok(None);
    };
    if let Some(root) = root {
        check_root(replay, number, root)?;
    }
    Ok(Some(size))
}

/// Makes the witness of a block and checks it; returns its size, and the root after it if that follows from it.
fn measure(
    parent: &Historical<'_>,
    block: &RecoveredBlock,
    genesis: &Genesis,
) -> Result<(WitnessSize, Option<B256>), ReplayError> {
    let number = block.block.header.number;
    let about = WitnessSize {
        block: number,
        transactions: block.block.body.transactions.len() as u64,
        gas: block.block.header.gas_used,
        ..WitnessSize::default()
    };
    let wrong = wrong_witness(number);
    let mut made = make_witness(parent, Chain::of(genesis), block, Executor::new(), false)?;
    let mut size = about.of(&made);
    let found = made.witness.complete();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if let Some(witness) = made.witness.executable() {
        let is_chunk = |key: &[u8; 32]| made.chunks().contains(key);
        let compact = witness.to_compact(&is_chunk);
        let compact = compact.map_err(|error| wrong(error.to_string()))?;
        size.compact_bytes = compact.bytes.len() as u64;
        if compact.sizes.total() != size.compact_bytes {
            return Err(wrong(
                "the parts of its compact form are not all of it".to_owned(),
            ));
        }
        size.compact = compact.sizes.parts().into_iter().collect();
        let before = arbor_metrics::snapshot();
        let expanded = witness.with_compact(&compact.bytes);
        let expanded = expanded.map_err(|error| wrong(error.to_string()))?;
        let (executor, missing) = (Executor::new(), MissingAccounts::Error);
        replay_witness(&expanded, &genesis.spec, missing, executor).map_err(
            |error| match error {
                StatelessError::State { number, error } => ReplayError::State { number, error },
                error => wrong(error.to_string()),
            },
        )?;
        let after = arbor_metrics::snapshot().into_iter().zip(before);
        let work = after.map(|((name, after), (_, before))| (name, after - before));
        size.work = work.filter(|(name, _)| WORK.contains(name)).collect();
    }
    Ok((size, found))
}

/// Returns the error for a block's witness that does not hold.
pub(super) fn wrong_witness(number: u64) -> impl Fn(String) -> ReplayError {
    move |why| ReplayError::Witness { number, why }
}

/// Compares the root after a block with the root that its witness leads to.
pub(super) fn check_root(replay: &Replay, number: u64, found: B256) -> Result<(), ReplayError> {
    let root = replay.state().root();
    match found == root {
        true => Ok(()),
        false => Err(wrong_witness(number)(format!(
            "it leads to root {found}, the root is {root}"
        ))),
    }
}

/// The counters of what a proof of the execution would have to prove of a tree.
const WORK: [&str; 6] = [
    "keccak_permutations",
    "blake2s_compressions",
    "blake3_compressions",
    "sha256_compressions",
    "square_roots",
    "point_additions",
];

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
