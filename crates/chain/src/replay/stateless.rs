//! Replay of a block over its witness, with no database.

use alloy_primitives::B256;
use arbor_state::{IntermediateRoots, MissingAccounts, StateError, WitnessState};

use crate::executor::{Ancestor, BlockInput, BlockOutput, ExecutionError, Executor, RecentBlocks};
use crate::genesis::ChainSpec;
use crate::senders::{InputError, SignatureRules, recover_block};
use crate::witness::{BlockWitness, WitnessProblem};

/// Why a block cannot be executed over its witness, or does not hold.
#[derive(Debug, thiserror::Error)]
pub enum StatelessError {
    /// The witness contradicts itself.
    #[error(transparent)]
    Witness(#[from] WitnessProblem),
    /// A signature is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The block breaks a rule, or the witness lacks what it reads.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The root after the block cannot be computed: the witness lacks a node.
    #[error("block {number}: state root after the block: {error}")]
    State {
        /// The block.
        number: u64,
        /// What is missing.
        #[source]
        error: StateError,
    },
    /// The state after the block is another one.
    #[error(
        "block {number} ({hash}) is invalid: state root: the header says {expected}, execution gives {actual}"
    )]
    StateRoot {
        /// The block's number.
        number: u64,
        /// The block's hash.
        hash: B256,
        /// The root in the header.
        expected: B256,
        /// The root that execution gives.
        actual: B256,
    },
}

/// Executes a block over its witness and checks receipts and post-state root. `executor` follows the chain's rules that its specification does not have.
pub fn replay_witness(
    witness: &BlockWitness,
    spec: &ChainSpec,
    missing: MissingAccounts,
    mut executor: Executor,
) -> Result<BlockOutput, StatelessError> {
    let decoded = witness.decode()?;
    let recovered = recover_block(decoded.block, SignatureRules::new(spec))?;
    let header = &recovered.block.header;
    let state = WitnessState::new(
        witness.pre_state_root,
        witness.state_nodes.iter().cloned(),
        witness.codes.iter().cloned(),
    )
    .with_missing(missing);
    let mut recent = RecentBlocks::default();
    for (hash, header) in decoded.ancestors.iter().rev() {
        recent.push(Ancestor {
            hash: *hash,
            header: header.clone(),
            ommers: Vec::new(),
        });
    }
    let (parent_hash, parent) = &decoded.ancestors[0];
    let input = BlockInput::new(&recovered, parent, *parent_hash, spec);
    let mut roots = state.pending_roots();
    let output = executor.execute(&input, &state, &recent, Some(&mut roots))?;
    let actual = state
        .pending_roots()
        .root_after(&output.changes)
        .map_err(|error| StatelessError::State {
            number: header.number,
            error,
        })?;
    if actual != header.state_root {
        let (number, hash, expected) = (header.number, witness.hash, header.state_root);
        return Err(StatelessError::StateRoot {
            number,
            hash,
            expected,
            actual,
        });
    }
    Ok(output)
}
