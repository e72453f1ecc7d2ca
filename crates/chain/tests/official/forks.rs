//! A chain with branches, imported through [`Replay`], which knows one branch at a time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use alloy_consensus::Transaction as _;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::{B256, Bytes, U256};
use arbor_chain::genesis::Genesis;
use arbor_chain::replay::{Replay, ReplayError};
use arbor_chain::senders::{InputError, RecoveredBlock, SignatureRules, prepare};
use arbor_chain::source::{Position, RawBlock};
use arbor_state::{Network, State, StateError, Tree};
use arbor_store::MemoryStore;
use arbor_versions::{Options, Retain};

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
    replay: Replay,
    known: HashMap<B256, Known>,
    /// The blocks from block 0 to the one that `replay` stands at.
    branch: Vec<B256>,
    head: B256,
    reorganisations: usize,
}

impl Forks {
    pub(crate) fn new(genesis: Genesis) -> Result<Self, ReplayError> {
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
        let store = Arc::new(MemoryStore::default());
        let failed = |error: StateError| ReplayError::State { number: 0, error };
        let state =
            State::open(store, None, Tree::MerklePatricia, network, options).map_err(failed)?;
        let replay = Replay::new(state, &genesis, NAMES)?;
        let block_0 = Known {
            block: None,
            number: 0,
            parent: B256::ZERO,
            total_difficulty: genesis.header.difficulty,
        };
        Ok(Self {
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
        self.replay.block(block.clone())?;
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
        Ok((self.head, self.replay.into_state()))
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
            self.replay.rollback(number)?;
            self.branch.truncate(number as usize + 1);
            self.reorganisations += 1;
        }
        for hash in missing.into_iter().rev() {
            if let Some(block) = &self.known[&hash].block {
                self.replay.block(block.clone())?;
            }
            self.branch.push(hash);
        }
        Ok(())
    }
}
