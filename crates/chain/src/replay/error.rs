//! Why a replay stopped.

use alloy_consensus::ReceiptEnvelope;
use alloy_primitives::B256;
use arbor_state::{StateChanges, StateError};

use crate::executor::ExecutionError;
use crate::genesis::GenesisError;
use crate::prepare::InputError;
use crate::source::SourceError;

/// Why a replay stopped. The database stays at the last good block.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The next block could not be read, or a signature in it is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The chain's files are at fault.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Genesis could not be made or does not fit.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// The block breaks a rule, or its state could not be read.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// The state after the block is not the one that its header commits to.
    #[error(
        "block {number} ({hash}) is invalid: state root: the header says {expected}, execution gives {actual}",
        number = .0.number, hash = .0.hash, expected = .0.expected, actual = .0.actual
    )]
    StateRoot(Box<Failure>),
    /// The database failed.
    #[error("block {number}: {error}")]
    State {
        /// The block being applied.
        number: u64,
        /// What failed.
        #[source]
        error: StateError,
    },
    /// The database's tree has no witnesses.
    #[error(
        "a database with the tree {tree} has no witnesses; `arbor prove` proves single leaves of it"
    )]
    NoWitnesses {
        /// The tree's name.
        tree: &'static str,
    },
    /// The witness that was made of a block does not hold.
    #[error("block {number}: the witness made of it does not hold: {why}")]
    Witness {
        /// The block.
        number: u64,
        /// What checking it gave.
        why: String,
    },
    /// Two executors disagree about a block.
    #[error("block {number}: the executors have different {what}")]
    Different {
        /// The block.
        number: u64,
        /// What of its result differs.
        what: &'static str,
    },
    /// The first block does not continue the database.
    #[error("the chain begins with block {first}, but the database stands at block {head}: blocks {} to {} are missing", head + 1, first - 1)]
    Missing {
        /// The first block given.
        first: u64,
        /// The database's block.
        head: u64,
    },
    /// The chain's block has another hash than the database's block of that number.
    #[error(
        "block {number}: the chain has {given}, the database {stored}: they are not of one chain"
    )]
    OtherChain {
        /// The block.
        number: u64,
        /// The hash in the source.
        given: B256,
        /// The hash in the database.
        stored: B256,
    },
    /// The database was made of accounts alone.
    #[error(
        "the database has no header of block {0}: it was converted from a dump without its chain. Convert the dump again with --ancestors CHAIN"
    )]
    NoHeader(u64),
    /// The database remembers no block of that number.
    #[error("block {0} is not in the database, or not remembered any more")]
    UnknownBlock(u64),
    /// The database does not have the state of a block any more, to which it is to return.
    #[error(
        "the database cannot go back to block {number}: it has the states of blocks {oldest} to {newest}. Replay the other branch \
         into a new database; there, a larger `--retain N` keeps the states of more blocks"
    )]
    NotRetained {
        /// The block.
        number: u64,
        /// The oldest block whose state is there.
        oldest: u64,
        /// The latest block.
        newest: u64,
    },
    /// The files of a chain do not have the block of that number.
    #[error("the chain has no block {at}: {}", match .last {
        last if at > last => format!("its last block is {last}"),
        _ => format!("its first block is {first}"),
    })]
    BeyondChain {
        /// The block that was asked for.
        at: u64,
        /// The first block of the files.
        first: u64,
        /// The last block that was read.
        last: u64,
    },
    /// Block 0 of the chain is not the genesis given.
    #[error("the chain's block 0 is {given}, the genesis makes {expected}")]
    OtherGenesis {
        /// The hash in the source.
        given: B256,
        /// The hash of the genesis.
        expected: B256,
    },
    /// The stored record of a recent block cannot be decoded.
    #[error("the database's record of block {0} is damaged: it holds no header")]
    DamagedHeader(u64),
    /// A later program wrote the stored record of a recent block.
    #[error(
        "the database's record of block {number} is of version {version}, and this program reads version {reads}: a later version of arbor wrote it"
    )]
    RecordVersion {
        /// The block.
        number: u64,
        /// The version of its record.
        version: u8,
        /// The version that this program reads.
        reads: u8,
    },
    /// An earlier program wrote the stored record of a recent block.
    #[error(
        "the database's record of block {0} has no version: arbor of before 2026-11-27 wrote it; replay the chain into a new folder"
    )]
    UnversionedRecord(u64),
    /// Blocks do not come from where they are fetched.
    #[error(transparent)]
    Fetch(Box<dyn std::error::Error + Send + Sync>),
    /// No block is known that the block could follow: neither a header in the database nor a genesis.
    #[error("block {0} cannot be executed: no header of the block before it is known")]
    NoParent(u64),
}

impl ReplayError {
    /// The error with which fetching a block failed.
    pub fn fetched(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Fetch(Box::new(error))
    }

    /// Returns whether a block has no witness because only the whole state determines what it changes. An example is a
    /// contract that loses its storage (before EIP-6780) under a tree that does not keep the slots of an account together.
    #[must_use]
    pub fn needs_whole_state(&self) -> bool {
        match self {
            Self::State { error, .. } => of_whole_state(error),
            _ => false,
        }
    }
}

/// Returns whether changes cannot be applied to a witness because only the whole state determines them.
pub(crate) fn of_whole_state(error: &StateError) -> bool {
    match error {
        StateError::View(error) => arbor_verify::needs_whole_state(error),
        _ => false,
    }
}

/// A block whose state root does not hold, with all that is needed to find out why.
#[derive(Debug)]
pub struct Failure {
    /// The block's number.
    pub number: u64,
    /// The block's hash.
    pub hash: B256,
    /// The state root in the header.
    pub expected: B256,
    /// The state root that execution gives.
    pub actual: B256,
    /// What the block changes.
    pub changes: StateChanges,
    /// Its receipts.
    pub receipts: Vec<ReceiptEnvelope>,
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use arbor_versions::{Version, VersionsError};

    use super::*;

    /// With a full disk, all that a user saw was "flush of version Version(643) in the background failed".
    #[test]
    fn the_cause_of_a_failed_flush_is_told() {
        let disk = VersionsError::Io {
            action: "write",
            path: "db/HEAD.new".into(),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        let error = StateError::from(VersionsError::BackgroundFlush {
            version: Version(643),
            source: Box::new(disk),
        });
        let error = ReplayError::State { number: 680, error };
        assert_eq!(
            error.to_string(),
            "block 680: flush of version 643 in the background failed"
        );
        let mut cause: &dyn Error = &error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        assert_eq!(cause.to_string(), "no storage space");
    }
}
