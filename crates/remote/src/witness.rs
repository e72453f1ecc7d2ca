//! The witness of a block, taken from a node or built from its proofs.

use alloy_primitives::{Address, B256, Bytes};
use arbor_chain::executor::{BlockInput, Executor, RecordingView};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, recover_block};
use arbor_chain::rules::ChainRules;
use arbor_chain::source::SourceBlock;
use arbor_chain::witness::stateless::{replay_witness, total_difficulty};
use arbor_chain::witness::{MptWitness, NodesFile};
use arbor_state::{AccountSlots, IntermediateRoots, ReadError, StateChanges, StateView};
use arbor_verify::mpt::{MissingAccounts, MissingNode, TouchedNames, WitnessState, witness_nodes};
use serde_json::json;

use crate::ancestry::Ancestry;
use crate::client::Node;
use crate::error::RemoteError;
use crate::missing::Siblings;
use crate::proven_state::ProvenState;

/// How a witness was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HowMade {
    /// The node answered `debug_executionWitness`.
    Taken,
    /// Built from `eth_getProof` and the block.
    Built {
        /// Why the node's own witness was not taken; `None` if it was not asked for.
        why: Option<String>,
    },
}

/// The witness of a block, over which the block was executed.
#[derive(Clone, Debug)]
pub struct FetchedWitness {
    /// The witness, with its block.
    pub witness: MptWitness,
    /// How it was made.
    pub how: HowMade,
}

/// The rules of the chain that a witness is fetched of.
#[derive(Clone, Copy)]
pub struct WitnessRules<'a> {
    /// The chain.
    pub genesis: &'a Genesis,
    /// Rules that its genesis does not have.
    pub rules: ChainRules,
}

/// Fetches the witness of the block with this hash, and executes the block over it. It is taken from
/// `debug_executionWitness` if the node has it and `from_proofs` is not set. Otherwise it is built
/// from proofs; it then has the canonical nodes, codes and headers.
///
/// # Errors
/// The node's errors; a block that does not hold; a sibling that no proof has.
pub fn fetch_witness(
    node: &Node,
    block: B256,
    rules: WitnessRules<'_>,
    from_proofs: bool,
) -> Result<FetchedWitness, RemoteError> {
    let source = node.block(block)?.decode()?;
    let why = match from_proofs {
        true => None,
        false => match taken(node, &source, rules) {
            Ok(witness) => {
                return Ok(FetchedWitness {
                    witness,
                    how: HowMade::Taken,
                });
            }
            Err(error) => Some(error.to_string()),
        },
    };
    let spec = &rules.genesis.spec;
    let block = recover_block(source, SignatureRules::new(spec))?;
    let witness = built(node, &block, rules)?;
    execute(&witness, rules)?;
    Ok(FetchedWitness {
        witness,
        how: HowMade::Built { why },
    })
}

/// Takes the node's own witness, if the block can be executed over it.
fn taken(
    node: &Node,
    source: &SourceBlock,
    rules: WitnessRules<'_>,
) -> Result<MptWitness, RemoteError> {
    const METHOD: &str = "debug_executionWitness";
    let number = format!("{:#x}", source.block.header.number);
    let answer = node.call_raw(METHOD, &json!([number]))?;
    let witness = match NodesFile::parse(answer.get().as_bytes())? {
        NodesFile::WithBlock(witness) => *witness,
        NodesFile::WithoutBlock(witness) => {
            witness.with_block(source, rules.genesis.spec.chain_id())?
        }
    };
    if witness.hash != source.hash {
        return Err(RemoteError::Other {
            what: "the witness of block",
            expected: source.hash.to_string(),
            actual: witness.hash.to_string(),
        });
    }
    execute(&witness, rules)?;
    Ok(witness)
}

fn execute(witness: &MptWitness, rules: WitnessRules<'_>) -> Result<(), RemoteError> {
    let mut spec = witness.judged_by(Some(rules.genesis))?.spec;
    rules.rules.set(&mut spec);
    let executor = rules.rules.executor();
    replay_witness(witness, &spec, MissingAccounts::Error, executor)?;
    Ok(())
}

/// Executes a block over proofs that are fetched as it goes, and collects the canonical witness.
fn built(
    node: &Node,
    block: &RecoveredBlock,
    rules: WitnessRules<'_>,
) -> Result<MptWitness, RemoteError> {
    let mut spec = rules.genesis.spec.clone();
    rules.rules.set(&mut spec);
    let header = &block.block.header;
    let has_ommers = !block.block.body.ommers.is_empty();
    let ancestry = Ancestry::fetch(node, header.parent_hash, has_ommers)?;
    let (parent_hash, parent) = ancestry.parent();
    let state = ProvenState::new(node, parent_hash, parent.state_root);
    // One proof shows whether the node's tree is Merkle-Patricia. Many may take another tree long.
    let slots = Vec::new();
    let address = header.beneficiary;
    state.prove(&[AccountSlots { address, slots }])?;
    state.prove(&named(block))?;
    let siblings = Siblings {
        node,
        state: &state,
        block: (header.number, block.hash),
    };
    let mut roots = ProvenRoots {
        siblings: &siblings,
        transactions: Vec::new(),
    };
    let view = RecordingView::new(&state, &ancestry);
    let mut input = BlockInput::new(block, &parent, parent_hash, &spec);
    input.parent_total_difficulty = total_difficulty(&ancestry.fetched(), &spec);
    let mut executor: Executor = rules.rules.executor();
    let output = executor.execute(&input, &view, &view, Some(&mut roots))?;
    let transactions = roots.transactions;
    let mut reads = view.into_reads();
    // What is changed without being read, such as an account that a withdrawal pays.
    state.prove(&changed(&output.changes))?;
    let touched = TouchedNames {
        reads: &reads.accounts,
        changes: &output.changes,
        transactions: &transactions,
    };
    let state_nodes = canonical_nodes(&siblings, touched)?;
    reads.ancestors.insert(parent.number);
    let oldest = reads.ancestors.first().copied().unwrap_or(parent.number);
    let codes = reads.codes.iter().map(|hash| state.code(*hash));
    let witness = MptWitness {
        chain_id: spec.chain_id(),
        number: header.number,
        hash: block.hash,
        pre_state_root: parent.state_root,
        post_state_root: header.state_root,
        receipts_root: header.receipts_root,
        tree: None,
        block_rlp: alloy_rlp::encode(&block.block).into(),
        ancestor_headers_rlp: ancestry.rlp_down_to(oldest),
        state_nodes,
        codes: codes.collect::<Result<_, _>>()?,
        config: None,
        rules: None,
    };
    Ok(witness)
}

/// The names that a block has in it, whose proofs are fetched together.
fn named(block: &RecoveredBlock) -> Vec<AccountSlots> {
    let (accounts, slots) = block.names();
    let of = |address: Address| AccountSlots {
        address,
        slots: slots
            .iter()
            .filter(|(of, _)| *of == address)
            .map(|(_, slot)| *slot)
            .collect(),
    };
    accounts.into_iter().map(of).collect()
}

fn changed(changes: &StateChanges) -> Vec<AccountSlots> {
    let accounts = changes.accounts.iter();
    accounts
        .map(|(address, change)| AccountSlots {
            address: *address,
            slots: match change.storage_cleared {
                // What is cleared goes with its root.
                true => Vec::new(),
                false => change.slots.keys().copied().collect(),
            },
        })
        .collect()
}

/// Lists the nodes of the canonical witness; siblings that are missing are fetched on the way.
fn canonical_nodes(
    siblings: &Siblings<'_>,
    touched: TouchedNames<'_>,
) -> Result<Vec<Bytes>, RemoteError> {
    let mut changes: Vec<&StateChanges> = touched.transactions.iter().collect();
    changes.push(touched.changes);
    retried(siblings, &changes, |state| witness_nodes(state, touched))
}

/// Computes something over the state before a block, until it has all nodes.
fn retried<T>(
    siblings: &Siblings<'_>,
    changes: &[&StateChanges],
    compute: impl Fn(&WitnessState) -> Result<T, ReadError>,
) -> Result<T, RemoteError> {
    loop {
        let computed = compute(&siblings.state.witness());
        let error = match computed {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let Some(missing) = MissingNode::of(&error) else {
            return Err(error.into());
        };
        siblings.fetch(missing, changes)?;
        if siblings.state.witness().node(&missing.hash).is_none() {
            return Err(error.into());
        }
    }
}

/// Roots after transactions, before Byzantium. Each is computed anew from the state before the block,
/// because nodes may come in between.
struct ProvenRoots<'a> {
    siblings: &'a Siblings<'a>,
    transactions: Vec<StateChanges>,
}

impl IntermediateRoots for ProvenRoots<'_> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        self.transactions.push(changes.clone());
        let proven = self.siblings.state.prove(&changed(changes));
        proven.map_err(ReadError::below)?;
        let all: Vec<&StateChanges> = self.transactions.iter().collect();
        let root = retried(self.siblings, &all, |state| {
            let mut roots = state.pending_roots();
            let mut root = self.siblings.state.root();
            for transaction in &self.transactions {
                root = roots.root_after(transaction)?;
            }
            Ok(root)
        });
        root.map_err(ReadError::below)
    }
}
