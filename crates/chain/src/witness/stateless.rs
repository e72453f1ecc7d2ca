//! Replay of a block over its witness, with no database.

use alloy_consensus::{EMPTY_OMMER_ROOT_HASH, Header};
use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
use arbor_state::{IntermediateRoots, ReadError, StateChanges, StateError};
use arbor_verify::PartialState;
use arbor_verify::mpt::{MissingAccounts, WitnessState};

use super::make::{RecordingRoots, add_code_reads};
use super::{MptWitness, WitnessProblem};
use crate::executor::{
    Ancestor, BlockInput, BlockOutput, CodeReads, ExecutionError, Executor, OmmerCheck, Reads,
    RecentBlocks, RecordingView,
};
use crate::genesis::ChainSpec;
use crate::prepare::{InputError, RecoveredBlock, SignatureRules, recover_block};
use crate::replay::of_whole_state;

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
        "block {number} ({hash}) is invalid: state root: {said_by} says {expected}, execution gives {actual}"
    )]
    StateRoot {
        /// The block's number.
        number: u64,
        /// The block's hash.
        hash: B256,
        /// Where the expected root is from.
        said_by: &'static str,
        /// The root in the header, or in the witness of a tree whose roots no header has.
        expected: B256,
        /// The root that execution gives.
        actual: B256,
    },
}

impl StatelessError {
    /// Returns whether the root after the block cannot be computed because only the whole state determines what the block
    /// changes, like [`ReplayError::needs_whole_state`](crate::replay::ReplayError::needs_whole_state).
    #[must_use]
    pub fn needs_whole_state(&self) -> bool {
        match self {
            Self::State { error, .. } => of_whole_state(error),
            _ => false,
        }
    }
}

/// Executes a block over its witness and checks receipts and post-state root. `executor` follows
/// the chain's rules that its specification does not have. The root is not checked if it does not
/// follow from the witness, because the block is amid the move of a state to another tree
/// ([`PartialState::has_roots`]).
///
/// Neither its seal nor its membership in the canonical chain is checked. [`BlockOutput::ommers`] is partial if the
/// block has ommers, and the witness has fewer than seven ancestors or one with ommers of its own: a witness does not
/// contain these, so an ommer may be one of them.
///
/// # Errors
/// A block that breaks a rule, and a witness that contradicts itself or lacks what the block reads.
pub fn replay_witness(
    witness: &MptWitness,
    spec: &ChainSpec,
    missing: MissingAccounts,
    mut executor: Executor,
) -> Result<BlockOutput, StatelessError> {
    let Prepared {
        recovered,
        ancestors,
        recent,
    } = Prepared::of(witness, spec)?;
    let header = &recovered.block.header;
    let (parent_hash, parent) = &ancestors[0];
    let mut input = BlockInput::new(&recovered, parent, *parent_hash, spec);
    input.parent_total_difficulty = total_difficulty(&ancestors, spec);
    let failed = |error: ReadError| StatelessError::State {
        number: header.number,
        error: error.into(),
    };
    let (mut output, actual) = match witness.partial_state()? {
        None => {
            let state = WitnessState::new(
                witness.pre_state_root,
                witness.state_nodes.iter().cloned(),
                witness.codes.iter().cloned(),
            )
            .with_missing(missing);
            let mut roots = state.pending_roots();
            let output = executor.execute(&input, &state, &recent, Some(&mut roots))?;
            let root = state.pending_roots().root_after(&output.changes);
            (output, root.map_err(failed)?)
        }
        Some(state) => {
            state.check().map_err(WitnessProblem::State)?;
            let output = match state.has_chunks() {
                false => executor.execute(&input, &*state, &recent, None)?,
                true => {
                    executor = executor.recording_code();
                    let executed = executor.execute(&input, &*state, &recent, None);
                    let code = executor.take_code_reads();
                    check_code(&*state, &recovered, code, &executed)?;
                    executed?
                }
            };
            let root = match output.changes.accounts.is_empty() {
                _ if !state.has_roots() => Ok(witness.post_state_root),
                // The witness of a block that touches nothing may be empty.
                true => Ok(witness.pre_state_root),
                false => state.pending_roots().root_after(&output.changes),
            };
            (output, root.map_err(failed)?)
        }
    };
    let mut elders = ancestors.iter().take(GENERATIONS);
    let unknown = elders.any(|(_, elder)| elder.ommers_hash != EMPTY_OMMER_ROOT_HASH);
    if unknown && !recovered.block.body.ommers.is_empty() {
        output.ommers = OmmerCheck::Partial;
    }
    let (said_by, expected) = match witness.tree {
        None => ("the header", header.state_root),
        Some(_) => ("the witness", witness.post_state_root),
    };
    if actual != expected {
        let (number, hash) = (header.number, witness.hash);
        return Err(StatelessError::StateRoot {
            number,
            hash,
            said_by,
            expected,
            actual,
        });
    }
    Ok(output)
}

/// The block of a witness, ready to be executed.
struct Prepared {
    recovered: RecoveredBlock,
    /// The parent first.
    ancestors: Vec<(B256, Header)>,
    recent: RecentBlocks,
}

impl Prepared {
    fn of(witness: &MptWitness, spec: &ChainSpec) -> Result<Self, StatelessError> {
        let decoded = witness.decode()?;
        let recovered = recover_block(decoded.block, SignatureRules::new(spec))?;
        let mut recent = RecentBlocks::default();
        for (hash, header) in decoded.ancestors.iter().rev() {
            recent.push(Ancestor {
                hash: *hash,
                header: header.clone(),
                ommers: Vec::new(),
            });
        }
        Ok(Self {
            recovered,
            ancestors: decoded.ancestors,
            recent,
        })
    }
}

/// The reads and changes of a block that was executed over a state.
pub(super) struct Effects {
    pub(super) reads: Reads,
    pub(super) changes: StateChanges,
    /// Before Byzantium, what each transaction changes.
    pub(super) transactions: Vec<StateChanges>,
}

/// Executes the block of a witness over a state. The root after it is not compared.
///
/// # Errors
/// As [`replay_witness`], except that a wrong root is no error.
pub(super) fn execute_over(
    witness: &MptWitness,
    state: &WitnessState,
    spec: &ChainSpec,
    mut executor: Executor,
) -> Result<Effects, StatelessError> {
    let block = Prepared::of(witness, spec)?;
    let (parent_hash, parent) = &block.ancestors[0];
    let mut input = BlockInput::new(&block.recovered, parent, *parent_hash, spec);
    input.parent_total_difficulty = total_difficulty(&block.ancestors, spec);
    let view = RecordingView::new(state, &block.recent);
    let mut roots = RecordingRoots {
        roots: state.pending_roots(),
        transactions: Vec::new(),
    };
    let output = executor.execute(&input, &view, &view, Some(&mut roots))?;
    Ok(Effects {
        reads: view.into_reads(),
        changes: output.changes,
        transactions: roots.transactions,
    })
}

/// Checks that a witness whose codes are chunks has all chunks that execution needed: in place of others there were zeros, so
/// that neither a result nor a broken rule counts. If something else could not be read, that is the error to report.
fn check_code(
    state: &dyn PartialState,
    block: &RecoveredBlock,
    mut code: CodeReads,
    executed: &Result<BlockOutput, ExecutionError>,
) -> Result<(), WitnessProblem> {
    let accessed = match executed {
        Err(ExecutionError::State { .. }) => return Ok(()),
        Err(_) => None,
        Ok(output) => output.accessed.as_ref(),
    };
    // An account that the witness does not have was not asked for.
    let has_code = |address| {
        let account = state.account(address).ok().flatten();
        Ok(account.is_some_and(|account| account.code_hash != KECCAK256_EMPTY))
    };
    add_code_reads(&mut code, block, accessed, has_code)?;
    Ok(state.check_chunks(&code.chunks)?)
}

/// Ancestors among which an ommer's parent and ommers that were included before are looked for.
const GENERATIONS: usize = 7;

/// The total difficulty up to the parent, if the ancestors show it: they reach down to the genesis, or what they have
/// alone suffices for the merge. Where a known network merged, no witness decides.
#[must_use]
pub fn total_difficulty(ancestors: &[(B256, Header)], spec: &ChainSpec) -> Option<U256> {
    if spec.merge_block().is_some() {
        return None;
    }
    let difficulties = ancestors.iter().map(|(_, header)| header.difficulty);
    let total = difficulties.fold(U256::ZERO, U256::saturating_add);
    let whole = ancestors
        .last()
        .is_some_and(|(_, oldest)| oldest.number == 0);
    let merged = spec.terminal_total_difficulty();
    (whole || merged.is_some_and(|terminal| total >= terminal)).then_some(total)
}
