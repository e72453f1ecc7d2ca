//! Making the witness of a block from a retained state.

use alloy_primitives::{B256, Bytes};
use alloy_rlp::Encodable;
use arbor_state::{
    Head, Historical, IntermediateRoots, ReadError, RootPlace, StateChanges, StateError, StateView,
    StateWitness, Touched, WitnessForm,
};
use arbor_verify::verkle::Witness;

use super::verkle::VerkleWitness;
use super::{BlockWitness, BlockWitnessSize, MptWitness, NamedTree};
use crate::executor::{Ancestor, BlockInput, CodeReads, Executor, Reads, RecordingView};
use crate::prepare::RecoveredBlock;
use crate::replay::record::{BlockRecord, recent_blocks};
use crate::replay::{Chain, ReplayError};

/// A block executed over the retained state of its parent, with all that it read.
struct Executed {
    parent: Ancestor,
    reads: Reads,
    code: CodeReads,
    changes: StateChanges,
    /// Before Byzantium, the changes of each transaction, after which its receipt has the root.
    transactions: Vec<StateChanges>,
}

/// Passes questions for roots between transactions on, and keeps what they are about.
struct RecordingRoots<R> {
    roots: R,
    transactions: Vec<StateChanges>,
}

impl<R: IntermediateRoots> IntermediateRoots for RecordingRoots<R> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        self.transactions.push(changes.clone());
        self.roots.root_after(changes)
    }
}

fn execute(
    parent: &Historical<'_>,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    mut executor: Executor,
) -> Result<Executed, ReplayError> {
    let number = block.block.header.number;
    let mut recent = recent_blocks(parent.head(), parent.meta().version)?;
    chain.earlier.complete(&mut recent);
    let before = recent
        .latest()
        .cloned()
        .ok_or(ReplayError::NoParent(number))?;
    let view = RecordingView::new(parent, &recent);
    let input = BlockInput::new(block, &before.header, before.hash, &chain.genesis.spec);
    let roots = parent.intermediate_roots();
    let mut roots = roots.map(|roots| RecordingRoots {
        roots,
        transactions: Vec::new(),
    });
    let asked = roots.as_mut();
    let asked = asked.map(|roots| roots as &mut dyn IntermediateRoots);
    let changes = executor.execute(&input, &view, &view, asked)?.changes;
    let transactions = roots.map_or_else(Vec::new, |roots| roots.transactions);
    let reads = view.into_reads();
    Ok(Executed {
        reads,
        code: executor.take_code_reads(),
        parent: before,
        changes,
        transactions,
    })
}

fn failed(number: u64) -> impl Fn(StateError) -> ReplayError {
    move |error| ReplayError::State { number, error }
}

/// The witness of a block, in the form that the database's tree gives. The root after a block is left open if only
/// [`BlockWitness::complete`] finds it.
#[derive(Debug)]
pub struct MadeWitness {
    /// The witness.
    pub witness: Box<dyn BlockWitness>,
    /// How many of its keys are chunks of code that are read.
    chunks: usize,
}

impl MadeWitness {
    /// Counts what the witness has, and its bytes.
    pub fn size(&self) -> BlockWitnessSize {
        self.witness.size(self.chunks)
    }
}

/// Executes a block over the state of its parent and collects or proves what it needs. Whoever goes on to the next block
/// goes on from its parent ([`Historical::next`]).
///
/// A witness of nodes is complete: every account, slot, code, ancestor and node that executing the block and computing
/// its roots reads is in it. One of leaves has all fields of every account asked for, whether it exists or not; every slot
/// asked for; every chunk of code that is executed, jumped into or copied; and whatever changes. It is empty if the block
/// touches nothing, for example without transactions, withdrawals and rewards. With `guarded` it has further keys where they
/// are needed for no absence to be doubtful ([`Verified::doubtful`](arbor_verify::verkle::Verified::doubtful)).
/// `executor` follows the chain's rules that its genesis does not say.
///
/// # Errors
/// A block that does not hold on that state; a tree without witnesses.
pub fn make_witness(
    parent: &Historical<'_>,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    executor: Executor,
    guarded: bool,
) -> Result<MadeWitness, ReplayError> {
    let Some(witnesses) = parent.tree().witnesses() else {
        let tree = parent.tree().kind().name;
        return Err(ReplayError::NoWitnesses { tree });
    };
    let executor = match witnesses.form() {
        WitnessForm::Nodes => executor,
        WitnessForm::Leaves => executor.recording_code(),
    };
    let executed = execute(parent, chain, block, executor)?;
    let touched = Touched {
        reads: &executed.reads.accounts,
        chunks: &executed.code.chunks,
        changes: &executed.changes,
        transactions: &executed.transactions,
        guarded,
    };
    let made = witnesses.of_block(parent, touched);
    match made.map_err(failed(block.block.header.number))? {
        StateWitness::Nodes(nodes) => {
            let witness = with_nodes(parent, chain, block, &executed, nodes)?;
            Ok(MadeWitness {
                witness: Box::new(witness),
                chunks: 0,
            })
        }
        StateWitness::Leaves(leaves) => {
            let tree = parent.tree().kind().name;
            let witness = leaves.proof.into::<Witness>();
            let witness = witness.ok_or(ReplayError::NoWitnesses { tree })?;
            Ok(MadeWitness {
                witness: Box::new(VerkleWitness {
                    number: Some(block.block.header.number),
                    hash: Some(block.hash),
                    parent_hash: Some(block.block.header.parent_hash),
                    root_before: Some(parent.meta().root.into()),
                    root_after: None,
                    witness,
                }),
                chunks: leaves.chunks,
            })
        }
    }
}

/// What a block needs beside nodes.
fn with_nodes(
    parent: &Historical<'_>,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    executed: &Executed,
    state_nodes: Vec<Bytes>,
) -> Result<MptWitness, ReplayError> {
    let number = block.block.header.number;
    let (reads, before) = (&executed.reads, &executed.parent);
    let codes = reads.codes.iter().map(|hash| parent.code(*hash));
    let codes: Result<Vec<Bytes>, ReadError> = codes.collect();
    let oldest = reads.ancestors.first().copied().unwrap_or(number);
    let oldest = oldest.min(before.header.number);
    let mut headers = Vec::new();
    for ancestor in (oldest..=before.header.number).rev() {
        headers.push(header_rlp(parent.head(), chain, ancestor)?);
    }
    let tree = parent.tree();
    let tree = (tree.kind().roots == RootPlace::Apart).then(|| NamedTree {
        name: tree.kind().name.to_owned(),
        hash: tree.hash().to_owned(),
    });
    let mut witness = MptWitness {
        chain_id: chain.genesis.spec.chain_id(),
        number,
        hash: block.hash,
        pre_state_root: B256::from(parent.meta().root),
        post_state_root: block.block.header.state_root,
        receipts_root: block.block.header.receipts_root,
        tree,
        block_rlp: encoded(&block.block),
        ancestor_headers_rlp: headers,
        state_nodes,
        codes: codes.map_err(|error| failed(number)(error.into()))?,
        config: None,
        rules: None,
    };
    // The root after the block is in no header, and follows from the witness.
    let state = witness.partial_state();
    let state = state.map_err(|error| ReplayError::Witness {
        number,
        why: error.to_string(),
    })?;
    if let Some(state) = state {
        let root = state.pending_roots().root_after(&executed.changes);
        witness.post_state_root = root.map_err(|error| failed(number)(error.into()))?;
    }
    Ok(witness)
}

fn encoded(value: &impl Encodable) -> Bytes {
    alloy_rlp::encode(value).into()
}

/// The header of a block that the database remembers, or of an earlier one.
fn header_rlp(state: Head<'_>, chain: Chain<'_>, number: u64) -> Result<Bytes, ReplayError> {
    let failed = |error: arbor_versions::VersionsError| ReplayError::State {
        number,
        error: error.into(),
    };
    let view = state.view();
    let version = view.version_of_block(number).map_err(failed)?;
    let meta = version
        .map(|version| view.meta(version))
        .transpose()
        .map_err(failed)?
        .flatten();
    match (meta, chain.earlier.header(number)) {
        (Some(meta), _) => Ok(encoded(&BlockRecord::decode(&meta)?.block.header)),
        (None, Some(header)) => Ok(encoded(header)),
        (None, None) => Err(ReplayError::UnknownBlock(number)),
    }
}
