//! The state behind the chain's last block.

use std::{fs, io, path::Path, sync::Arc};

use alloy_primitives::B256;
use alloy_rlp::Encodable;
use arbor_state::{
    BlockRef, Computed, Network, State, StateChanges, StateError, StateView, Unfinished,
};
use arbor_store::Store;
use arbor_store_fjall::FjallStore;
use arbor_trees::MPT;
use arbor_versions::{DirLock, Options, Retain, Version};

use super::{GeneratorError, block::Sealed};
use arbor_chain::genesis::Genesis;

/// Bytes for the state's cache, and again for what is not yet written.
const MEMORY: usize = 256 << 20;

/// Blocks by which a state can be taken back.
pub(super) const UNDO: u64 = 250;

/// A state on disk that follows the chain block by block.
pub(super) struct Ledger {
    state: State,
}

impl Ledger {
    /// Opens the state in `dir`, or makes that of the genesis there. If making it was interrupted, by a kill or a full disk, it is begun again.
    pub(super) fn open(dir: &Path, genesis: &Genesis) -> Result<Self, GeneratorError> {
        match Self::open_whole(dir, genesis) {
            Err(GeneratorError::State(error))
                if matches!(*error, StateError::Unfinished(Unfinished::Load)) =>
            {
                Self::delete(dir)?;
                Self::open_whole(dir, genesis)
            }
            opened => opened,
        }
    }

    fn open_whole(dir: &Path, genesis: &Genesis) -> Result<Self, GeneratorError> {
        fs::create_dir_all(dir).map_err(|cause| GeneratorError::file(dir, cause))?;
        let lock = DirLock::acquire(dir).map_err(StateError::from)?;
        let store: Arc<dyn Store> = Arc::new(
            FjallStore::open(&dir.join("store"), &arbor_store_fjall::Options::default())
                .map_err(|error| GeneratorError::damaged(dir, error.to_string()))?,
        );
        let network = Network {
            chain_id: genesis.spec.chain_id(),
            genesis_hash: genesis.hash,
        };
        let options = Options {
            cache_bytes: MEMORY as u64,
            dirty_bytes: MEMORY,
            retain: Retain::Last(UNDO),
            ..Options::default()
        };
        let mut ledger = Self {
            state: State::open(store, Some(lock), MPT.tree(), network, options)?,
        };
        if ledger.state.head().is_none() {
            let computed = genesis.compute(&mut ledger.state, &|_, _| ())?;
            ledger.commit(&Sealed::new(genesis.header.clone()), computed)?;
            // A state that was loaded is lost with its first version.
            ledger.flush()?;
        }
        Ok(ledger)
    }

    /// Deletes the state in `dir`, from which it can be made again.
    pub(super) fn delete(dir: &Path) -> Result<(), GeneratorError> {
        match fs::remove_dir_all(dir) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(GeneratorError::file(dir, cause))
            }
            _ => Ok(()),
        }
    }

    /// Number of the block whose state this is.
    pub(super) fn head(&self) -> u64 {
        self.state.head().map_or(0, |meta| meta.block_number)
    }

    /// Hash of that block.
    pub(super) fn head_hash(&self) -> B256 {
        self.state
            .head()
            .map_or(B256::ZERO, |meta| meta.block_hash.into())
    }

    /// What the next block reads.
    pub(super) fn view(&self) -> &dyn StateView {
        &self.state
    }

    /// Computes what changes make of the state, its root among it.
    pub(super) fn compute(&self, changes: &StateChanges) -> Result<Computed, GeneratorError> {
        Ok(self.state.compute(changes)?)
    }

    /// Takes the state of the next block.
    pub(super) fn commit(
        &mut self,
        block: &Sealed,
        computed: Computed,
    ) -> Result<(), GeneratorError> {
        let mut record = Vec::with_capacity(block.header.length());
        block.header.encode(&mut record);
        let block = BlockRef {
            number: block.header.number,
            hash: block.hash,
            record,
        };
        Ok(self.state.commit(&block, computed)?)
    }

    /// Returns to the state of an earlier block, at most [`UNDO`] back.
    pub(super) fn take_back(&mut self, block: u64) -> Result<(), GeneratorError> {
        // Block n is version n: the genesis is the first version, and every block makes one.
        Ok(self.state.rollback(Version(block))?)
    }

    /// Makes the state durable.
    pub(super) fn flush(&mut self) -> Result<(), GeneratorError> {
        Ok(self.state.flush()?)
    }
}
