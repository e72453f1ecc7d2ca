//! Making the witness of a block from a retained state.

use std::collections::{BTreeMap, BTreeSet};

use alloy_consensus::Transaction;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use alloy_rlp::Encodable;
use arbor_state::{
    AccountSlots, Head, Historical, IntermediateRoots, Moves, OfOneTree, Opened, ReadError,
    RootPlace, StateChanges, StateError, StateView, StateWitness, Then, Touched, Tree, WitnessForm,
};
use arbor_verify::Proof;
use arbor_verify::two_trees::{OneOfTwo, TwoTrees};
use arbor_verify::verkle::Witness;

use super::accesses::{BlockAccesses, PaidLeaves, chunk_of};
use super::verkle::{Execution, VerkleWitness};
use super::{
    BlockWitness, BlockWitnessSize, ExecutionWitness, MptWitness, NamedTree, ProofWitness,
};
use crate::executor::{
    Ancestor, BlockInput, CodeReads, Executor, LeafName, Reads, RecordingView, authority,
};
use crate::prepare::RecoveredBlock;
use crate::replay::record::{BlockRecord, recent_blocks};
use crate::replay::{Chain, ReplayError};

/// A block executed over the retained state of its parent, with all that it read.
struct Executed {
    parent: Ancestor,
    reads: Reads,
    code: CodeReads,
    /// The slots read without asking the state, if they are recorded. They are in no witness.
    new_slots: BTreeMap<Address, BTreeSet<U256>>,
    changes: StateChanges,
    /// The leaves that transactions touched and paid for, if they pay for leaves.
    paid: Option<BTreeSet<LeafName>>,
    /// Before Byzantium, the changes of each transaction, after which its receipt has the root.
    transactions: Vec<StateChanges>,
}

/// Passes questions for roots between transactions on, and keeps what they are about.
pub(super) struct RecordingRoots<R> {
    pub(super) roots: R,
    pub(super) transactions: Vec<StateChanges>,
}

impl<R: IntermediateRoots> IntermediateRoots for RecordingRoots<R> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        self.transactions.push(changes.clone());
        self.roots.root_after(changes)
    }
}

fn execute(
    parent: &Historical<'_>,
    roots: Option<Box<dyn IntermediateRoots + '_>>,
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
    let mut roots = roots.map(|roots| RecordingRoots {
        roots,
        transactions: Vec::new(),
    });
    let asked = roots.as_mut();
    let asked = asked.map(|roots| roots as &mut dyn IntermediateRoots);
    let output = executor.execute(&input, &view, &view, asked)?;
    let transactions = roots.map_or_else(Vec::new, |roots| roots.transactions);
    let reads = view.into_reads();
    let mut code = executor.take_code_reads();
    let new_slots = executor.take_new_slots();
    let state = |error: ReadError| failed(number)(error.into());
    let has_code = |address| {
        let account = parent.account(address)?;
        Ok(account.is_some_and(|account| account.code_hash != KECCAK256_EMPTY))
    };
    add_code_reads(&mut code, block, output.accessed.as_ref(), has_code).map_err(state)?;
    Ok(Executed {
        reads,
        code,
        new_slots,
        parent: before,
        changes: output.changes,
        paid: output.accessed,
        transactions,
    })
}

/// Adds the chunks of code that execution needs beside those that it runs and copies: those that transactions pay for
/// (EIP-4762), and the first chunk of the code of each sender and of each account that authorises a delegation (EIP-7702),
/// which shows whether the code is a delegation.
pub(super) fn add_code_reads(
    code: &mut CodeReads,
    block: &RecoveredBlock,
    accessed: Option<&BTreeSet<LeafName>>,
    has_code: impl Fn(Address) -> Result<bool, ReadError>,
) -> Result<(), ReadError> {
    for leaf in accessed.into_iter().flatten() {
        if let Some(chunk) = chunk_of(leaf) {
            code.chunks.entry(leaf.0.address).or_default().insert(chunk);
        }
    }
    let transactions = block.block.body.transactions.iter();
    let authorities = transactions
        .flat_map(|transaction| transaction.authorization_list().unwrap_or_default())
        .filter_map(authority);
    for address in block.senders.iter().copied().chain(authorities) {
        if has_code(address)? {
            code.chunks.entry(address).or_default().insert(0);
        }
    }
    Ok(())
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
    /// The keys (stem and suffix) of the code chunks that the block reads.
    chunks: BTreeSet<[u8; 32]>,
    /// The number of nodes and leaves that the block opens in the tree; `None` if they were not counted.
    opened: Option<Opened>,
    /// Headers that `BLOCKHASH` needs, the parent's included. The others are those among which ommers are looked for.
    hashed: usize,
}

impl From<MptWitness> for MadeWitness {
    fn from(witness: MptWitness) -> Self {
        Self {
            hashed: witness.ancestor_headers_rlp.len(),
            witness: Box::new(witness),
            chunks: BTreeSet::new(),
            opened: None,
        }
    }
}

impl MadeWitness {
    /// Returns the canonical form, which has no header that only ommers need; or the witness as it is, if it is not one of
    /// Merkle-Patricia.
    pub fn into_canonical(mut self) -> Result<ExecutionWitness, Self> {
        let nodes = self.witness.nodes_mut();
        if nodes.is_none_or(|witness| witness.tree.is_some()) {
            return Err(self);
        }
        match self.witness.into::<MptWitness>() {
            Some(mut witness) => {
                witness.ancestor_headers_rlp.truncate(self.hashed);
                Ok(ExecutionWitness::canonical(witness))
            }
            None => Ok(ExecutionWitness::default()),
        }
    }

    /// Counts what the witness has, and its bytes.
    pub fn size(&self) -> BlockWitnessSize {
        self.witness.size(self.chunks.len())
    }

    /// The keys, stem and suffix, of chunks of code that the block reads, if chunks are among the leaves of the witness.
    pub fn chunks(&self) -> &BTreeSet<[u8; 32]> {
        &self.chunks
    }

    /// Returns how many nodes and leaves the block opens in the tree; `None` if that was not counted, because the witness
    /// was not made from a state, or the state moves to another tree.
    #[must_use]
    pub const fn opened(&self) -> Option<Opened> {
        self.opened
    }
}

/// Executes a block over the state of its parent and collects or proves what it needs. Whoever goes on to the next block
/// goes on from its parent ([`Historical::next`]).
///
/// A witness of nodes is complete: every account, slot, code, ancestor and node that executing the
/// block and computing its roots reads is in it. One of leaves has all fields of every account
/// asked for, whether it exists or not; every slot asked for; every chunk of code that is executed,
/// jumped into or copied; and whatever changes. It is empty if the block touches nothing, for
/// example without transactions, withdrawals and rewards. With `guarded` it has further keys where
/// they are needed for no absence to be doubtful
/// ([`Verified::doubtful`](arbor_verify::verkle::Verified::doubtful)). `executor` follows the
/// chain's rules that its genesis does not say. The witness of a block amid the move of a state to
/// another tree is a [`ProofWitness`].
///
/// # Errors A block that does not hold on that state; a tree without witnesses, or amid a move a
/// tree without proofs.
pub fn make_witness(
    parent: &Historical<'_>,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    executor: Executor,
    guarded: bool,
) -> Result<MadeWitness, ReplayError> {
    let alone = match states(parent, block.block.header.number)? {
        States::Two(moves) => {
            let executed = execute(parent, None, chain, block, executor)?;
            return prove_moving(parent, moves, chain, block, &executed);
        }
        States::One(alone) => alone,
    };
    let (tree, then) = of_one_tree(parent, alone.as_ref());
    let Some(witnesses) = tree.witnesses() else {
        let tree = tree.kind().name;
        return Err(ReplayError::NoWitnesses { tree });
    };
    let executor = match witnesses.form() {
        WitnessForm::Nodes => executor,
        WitnessForm::Leaves => executor.recording_code(),
    };
    let roots = tree.inner_roots().map(|roots| roots.at_version(then));
    let executed = execute(parent, roots, chain, block, executor)?;
    prove(parent, tree, then, chain, block, &executed, guarded)
}

/// A block's accesses, and its witness.
#[derive(Debug)]
pub struct AccessedBlock {
    /// All that the block reads and changes.
    pub accesses: BlockAccesses,
    /// The witness; `None` if the tree has no witnesses, or if `without_witness` has a reason.
    pub witness: Option<MadeWitness>,
    /// Why this block has no witness although the tree has witnesses ([`ReplayError::needs_whole_state`]).
    pub without_witness: Option<ReplayError>,
}

/// Executes a block over the state of its parent like [`make_witness`], and collects what it reads and changes by plain
/// name. The chunks of code are those that execution reads, under whatever tree. A block whose changes only the whole state
/// determines ([`ReplayError::needs_whole_state`]) has accesses, but no witness.
///
/// # Errors
/// A block that does not hold on that state.
pub fn block_accesses(
    parent: &Historical<'_>,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    executor: Executor,
) -> Result<AccessedBlock, ReplayError> {
    let number = block.block.header.number;
    let states = states(parent, number)?;
    let one = match &states {
        States::One(alone) => Some(of_one_tree(parent, alone.as_ref())),
        States::Two(_) => None,
    };
    let roots = one.and_then(|(tree, then)| Some(tree.inner_roots()?.at_version(then)));
    let executor = executor.recording_code().recording_new_slots();
    let executed = execute(parent, roots, chain, block, executor)?;
    let code = |hash: B256| match executed.changes.codes.get(&hash) {
        Some(code) => Ok(code.clone()),
        None => parent.code(hash),
    };
    let accesses = BlockAccesses::new(
        &executed.reads,
        &executed.new_slots,
        &executed.code,
        &executed.changes,
        &code,
    );
    let accesses = accesses.map_err(|error| failed(number)(error.into()))?;
    let witness = match (one, &states) {
        (Some((tree, then)), _) if tree.witnesses().is_some() => {
            Some(prove(parent, tree, then, chain, block, &executed, false))
        }
        (None, States::Two(moves)) => Some(prove_moving(parent, *moves, chain, block, &executed)),
        _ => None,
    };
    let (witness, without_witness) = match witness.transpose() {
        Ok(witness) => (witness, None),
        Err(error) if error.needs_whole_state() => (None, Some(error)),
        Err(error) => return Err(error),
    };
    Ok(AccessedBlock {
        accesses: BlockAccesses {
            paid: executed.paid.as_ref().map(PaidLeaves::of),
            ..accesses
        },
        witness,
        without_witness,
    })
}

/// The trees that have a state before a block and after it.
enum States<'a> {
    /// One tree; if the state moves to another one, the state as that tree reads it.
    One(Option<OfOneTree<'a>>),
    /// The block is amid the move to another tree.
    Two(&'a dyn Moves),
}

/// Returns the trees that have a state before a block and after it.
fn states<'a>(parent: &'a Historical<'_>, number: u64) -> Result<States<'a>, ReplayError> {
    let Some(moves) = parent.tree().moves() else {
        return Ok(States::One(None));
    };
    let alone = moves.alone(parent).map_err(failed(number))?;
    Ok(match alone {
        Some(alone) => States::One(Some(alone)),
        None => States::Two(moves),
    })
}

/// The tree of a state, and the state as that tree reads it.
fn of_one_tree<'a>(
    parent: &'a Historical<'_>,
    alone: Option<&'a OfOneTree<'_>>,
) -> (&'a Tree, &'a dyn Then) {
    match alone {
        None => (parent.tree(), parent),
        Some((tree, then)) => (tree, then.as_ref()),
    }
}

/// Collects or proves what an executed block needs of a state, which `tree` reads as `then`.
fn prove(
    parent: &Historical<'_>,
    tree: &Tree,
    then: &dyn Then,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    executed: &Executed,
    guarded: bool,
) -> Result<MadeWitness, ReplayError> {
    let (number, name) = (block.block.header.number, tree.kind().name);
    let no_witnesses = || ReplayError::NoWitnesses { tree: name };
    let witnesses = tree.witnesses().ok_or_else(no_witnesses)?;
    let touched = Touched {
        reads: &executed.reads.accounts,
        chunks: &executed.code.chunks,
        changes: &executed.changes,
        transactions: &executed.transactions,
        guarded,
    };
    let last = executed.parent.header.number;
    let hashed = executed.reads.ancestors.first();
    let hashed = hashed.map_or(1, |oldest| last.saturating_sub(*oldest) + 1);
    let hashed = usize::try_from(hashed).unwrap_or(usize::MAX);
    let made = witnesses.of_block(then, touched);
    match made.map_err(failed(number))? {
        StateWitness::Nodes { nodes, opened } => Ok(MadeWitness {
            hashed,
            opened: Some(opened),
            ..with_nodes(parent, tree, chain, block, executed, nodes)?.into()
        }),
        StateWitness::Leaves(leaves) => {
            let witness = leaves.proof.into::<Witness>();
            let witness = witness.ok_or_else(no_witnesses)?;
            let stems: BTreeSet<[u8; 31]> = witness.keys().map(|(stem, _)| *stem).collect();
            let opened = Opened {
                nodes: None,
                stems: Some(stems.len() as u64),
                leaves: witness.keys().count() as u64,
            };
            Ok(MadeWitness {
                opened: Some(opened),
                witness: Box::new(VerkleWitness {
                    number: Some(number),
                    hash: Some(block.hash),
                    parent_hash: Some(block.block.header.parent_hash),
                    root_before: Some(parent.meta().root.into()),
                    root_after: None,
                    witness,
                    execution: Some(Execution {
                        chain_id: chain.genesis.spec.chain_id(),
                        tree: NamedTree {
                            name: name.to_owned(),
                            hash: tree.hash().to_owned(),
                        },
                        block_rlp: encoded(&block.block),
                        ancestor_headers_rlp: headers(parent, chain, executed)?,
                        config: None,
                        rules: None,
                    }),
                }),
                chunks: leaves.chunks,
                hashed,
            })
        }
    }
}

/// Proves what an executed block amid a move reads and changes.
fn prove_moving(
    parent: &Historical<'_>,
    moves: &dyn Moves,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    executed: &Executed,
) -> Result<MadeWitness, ReplayError> {
    let number = block.block.header.number;
    let root = B256::from(parent.meta().root);
    let names = names(block, executed);
    let proof = parent.prove_together(&names).map_err(failed(number))?;
    let is_begun = moves.moved(parent).map_err(failed(number))?.is_some();
    let proof: Box<dyn Proof> = match is_begun {
        true => proof,
        // The block is the first of the move: before it the source alone has the state.
        false => Box::new(TwoTrees {
            source: OneOfTwo {
                tree: moves.source().kind().name.to_owned(),
                root,
                proof,
            },
            target: None,
            names,
            gone: Vec::new(),
        }),
    };
    let execution = Execution {
        chain_id: chain.genesis.spec.chain_id(),
        tree: ProofWitness::tree(),
        block_rlp: encoded(&block.block),
        ancestor_headers_rlp: headers(parent, chain, executed)?,
        config: None,
        rules: None,
    };
    let of_block = (number, block.hash);
    let codes = codes(parent, executed)?;
    let witness = ProofWitness::new(of_block, root, &*proof, codes, execution);
    let witness = witness.map_err(|error| ReplayError::Witness {
        number,
        why: error.to_string(),
    })?;
    Ok(MadeWitness {
        hashed: witness.execution.ancestor_headers_rlp.len(),
        witness: Box::new(witness),
        chunks: BTreeSet::new(),
        opened: None,
    })
}

/// Returns the accounts and slots that a block reads and changes. If there are none, it is the
/// account that the block pays: a proof has at least one name.
fn names(block: &RecoveredBlock, executed: &Executed) -> Vec<AccountSlots> {
    let mut names = executed.reads.accounts.clone();
    for (address, change) in &executed.changes.accounts {
        let slots = names.entry(*address).or_default();
        slots.extend(change.slots.keys());
    }
    if names.is_empty() {
        names.entry(block.block.header.beneficiary).or_default();
    }
    let names = names.into_iter().map(|(address, slots)| AccountSlots {
        address,
        slots: slots.into_iter().collect(),
    });
    names.collect()
}

/// Returns the codes that a block reads.
fn codes(parent: &Historical<'_>, executed: &Executed) -> Result<Vec<Bytes>, ReplayError> {
    let number = executed.parent.header.number.saturating_add(1);
    let codes = executed.reads.codes.iter().map(|hash| parent.code(*hash));
    let codes: Result<Vec<Bytes>, ReadError> = codes.collect();
    codes.map_err(|error| failed(number)(error.into()))
}

/// RLP of the headers of ancestors that a block needs, the parent's first.
fn headers(
    parent: &Historical<'_>,
    chain: Chain<'_>,
    executed: &Executed,
) -> Result<Vec<Bytes>, ReplayError> {
    let last = executed.parent.header.number;
    let Reads {
        ancestors, elders, ..
    } = &executed.reads;
    let oldest = ancestors.first().into_iter().chain(elders.first()).min();
    let oldest = oldest.map_or(last, |oldest| last.min(*oldest));
    let numbers = (oldest..=last).rev();
    numbers
        .map(|ancestor| header_rlp(parent.head(), chain, ancestor))
        .collect()
}

/// What a block needs beside nodes.
fn with_nodes(
    parent: &Historical<'_>,
    tree: &Tree,
    chain: Chain<'_>,
    block: &RecoveredBlock,
    executed: &Executed,
    state_nodes: Vec<Bytes>,
) -> Result<MptWitness, ReplayError> {
    let number = block.block.header.number;
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
        ancestor_headers_rlp: headers(parent, chain, executed)?,
        state_nodes,
        codes: codes(parent, executed)?,
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
