//! A chain with branches, imported through [`Replay`], which knows one branch at a time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::{B256, Bytes, U256};
use arbor_chain::executor::Executor;
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{InputError, RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{Chain, Replay, ReplayError};
use arbor_chain::source::{Position, RawBlock};
use arbor_chain::witness::make_witness;
use arbor_chain::witness::stateless::replay_witness;
use arbor_state::{Network, State, StateError};
use arbor_store::MemoryStore;
use arbor_trees::MPT;
use arbor_verify::mpt::MissingAccounts;
use arbor_versions::{Options, Retain};

use super::mode::Mode;

/// Bytes for accounts and slots used lately.
const NAMES: usize = 100_000;

/// Why a block was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Rejection {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("its parent {0} is not known")]
    UnknownParent(B256),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("over its own witness: {0}")]
    Witness(String),
}

/// A valid block that may become the head again.
struct Known {
    /// None for block 0.
    block: Option<RecoveredBlock>,
    number: u64,
    parent: B256,
    total_difficulty: U256,
}

/// Every valid block given so far, the state after one of them, and the head.
pub(crate) struct Forks {
    genesis: Genesis,
    mode: Mode,
    store: Arc<MemoryStore>,
    /// `None` only while the database is closed and opened again.
    replay: Option<Replay>,
    known: HashMap<B256, Known>,
    /// The blocks from block 0 to the one that `replay` stands at.
    branch: Vec<B256>,
    head: B256,
    reorganisations: usize,
}

impl Forks {
    pub(crate) fn new(genesis: Genesis, mode: Mode) -> Result<Self, ReplayError> {
        let store = Arc::new(MemoryStore::default());
        let replay = Some(open(&store, &genesis)?);
        let block_0 = Known {
            block: None,
            number: 0,
            parent: B256::ZERO,
            total_difficulty: genesis.header.difficulty,
        };
        Ok(Self {
            mode,
            store,
            replay,
            known: HashMap::from([(genesis.hash, block_0)]),
            branch: vec![genesis.hash],
            head: genesis.hash,
            reorganisations: 0,
            genesis,
        })
    }

    /// Imports a block on top of any that is known, and makes it the head if it wins.
    pub(crate) fn import(&mut self, rlp: &Bytes) -> Result<(), Rejection> {
        let block = self.decode(rlp)?;
        self.import_block(block)
    }

    /// As [`Self::import`], with a header that stands for the block's transactions.
    pub(crate) fn import_whatever_transactions(&mut self, rlp: &Bytes) -> Result<(), Rejection> {
        let mut block = self.decode(rlp)?;
        let transactions = &block.block.body.transactions;
        let blobs: u64 = transactions.iter().filter_map(|tx| tx.blob_count()).sum();
        let header = &mut block.block.header;
        header.transactions_root = block.transactions_root;
        header.blob_gas_used = header.blob_gas_used.map(|_| blobs * DATA_GAS_PER_BLOB);
        self.import_block(block)
    }

    fn decode(&self, rlp: &Bytes) -> Result<RecoveredBlock, InputError> {
        let file: Arc<Path> = Path::new("fixture").into();
        let position = Position {
            file,
            offset: 0,
            ordinal: 0,
        };
        let raw = RawBlock::from_export(position, rlp)?;
        prepare(raw, SignatureRules::new(&self.genesis.spec))
    }

    fn import_block(&mut self, block: RecoveredBlock) -> Result<(), Rejection> {
        if self.known.contains_key(&block.hash) {
            return Ok(());
        }
        let header = &block.block.header;
        let parent = self.known.get(&header.parent_hash);
        let parent = parent.ok_or(Rejection::UnknownParent(header.parent_hash))?;
        let known = Known {
            number: parent.number + 1,
            parent: header.parent_hash,
            total_difficulty: parent.total_difficulty.saturating_add(header.difficulty),
            block: None,
        };
        self.stand_at(header.parent_hash)?;
        self.execute(&block)?;
        if self.mode == Mode::FromWitness {
            self.check_witness(&block).map_err(Rejection::Witness)?;
        }
        self.branch.push(block.hash);
        let best = self.known[&self.head].total_difficulty;
        // Proof of stake has no choice of forks of its own: the consensus layer names the head, here the latest block.
        if known.total_difficulty > best || self.genesis.spec.is_proof_of_stake(header) {
            self.head = block.hash;
        }
        let hash = block.hash;
        let block = Some(block);
        self.known.insert(hash, Known { block, ..known });
        Ok(())
    }

    /// Goes to the head and gives the state there.
    pub(crate) fn finish(mut self) -> Result<(B256, State), ReplayError> {
        self.stand_at(self.head)?;
        let replay = self.replay.ok_or_else(closed)?;
        Ok((self.head, replay.into_state()))
    }

    /// How often blocks were undone.
    pub(crate) fn reorganisations(&self) -> usize {
        self.reorganisations
    }

    /// Undoes blocks down to the last one that leads to `target`, and executes the others that do.
    fn stand_at(&mut self, target: B256) -> Result<(), ReplayError> {
        let mut missing = Vec::new();
        let mut at = target;
        while self.branch.get(self.known[&at].number as usize) != Some(&at) {
            missing.push(at);
            at = self.known[&at].parent;
        }
        let number = self.known[&at].number;
        if number as usize + 1 < self.branch.len() {
            self.replay()?.rollback(number)?;
            self.branch.truncate(number as usize + 1);
            self.reorganisations += 1;
        }
        for hash in missing.into_iter().rev() {
            if let Some(block) = &self.known[&hash].block {
                self.execute(&block.clone())?;
            }
            self.branch.push(hash);
        }
        Ok(())
    }

    fn replay(&mut self) -> Result<&mut Replay, ReplayError> {
        self.replay.as_mut().ok_or_else(closed)
    }

    /// Executes a block on top of the head, then closes and opens the database if the mode says so.
    fn execute(&mut self, block: &RecoveredBlock) -> Result<(), ReplayError> {
        let executed = self.replay()?.block(block.clone());
        if self.mode == Mode::Reopened {
            let mut state = self.replay.take().ok_or_else(closed)?.into_state();
            state.flush().map_err(failed)?;
            drop(state);
            self.replay = Some(open(&self.store, &self.genesis)?);
        }
        executed
    }

    /// Makes the witness of the block at the head, and executes the block over nothing else. An executor of its own has seen no code yet.
    fn check_witness(&mut self, block: &RecoveredBlock) -> Result<(), String> {
        let number = block.block.header.number;
        let genesis = &self.genesis;
        let state = self
            .replay
            .as_ref()
            .ok_or("the database is closed")?
            .state();
        let view = state.versions().view();
        let parent = view.version_of_block(number - 1);
        let parent = parent.map_err(|error| error.to_string())?;
        let parent = state.at(parent.ok_or("the parent is not retained")?);
        let parent = parent.map_err(|error| error.to_string())?;
        let made = make_witness(&parent, Chain::of(genesis), block, Executor::new(), false);
        let made = made.map_err(|error| format!("making it: {error}"))?;
        let witness = made.witness.executable().ok_or("a witness of leaves")?;
        let (missing, executor) = (MissingAccounts::Error, Executor::new());
        let output = replay_witness(&witness, &genesis.spec, missing, executor);
        match output.map_err(|error| error.to_string())?.receipts_root {
            Some(root) if root == block.block.header.receipts_root => Ok(()),
            root => Err(format!("the receipts have the root {root:?}")),
        }
    }
}

/// Opens the database in a store, or makes it.
fn open(store: &Arc<MemoryStore>, genesis: &Genesis) -> Result<Replay, ReplayError> {
    let network = Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    };
    let options = Options {
        cache_bytes: 1 << 20,
        retain: Retain::All,
        background: false,
        ..Options::default()
    };
    let tree = MPT.tree();
    let state = State::open(store.clone(), None, tree, network, options).map_err(failed)?;
    Replay::new(state, genesis, NAMES)
}

fn failed(error: StateError) -> ReplayError {
    ReplayError::State { number: 0, error }
}

fn closed() -> ReplayError {
    failed(StateError::Read("the database is closed".into()))
}
