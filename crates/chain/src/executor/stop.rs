//! What ends a block early.

use alloy_primitives::B256;
use arbor_state::ReadError;

use super::{BlockError, BlockOutput, Exceeded, ExecutionError};

/// What ends a block early, before it is known which block that was.
#[derive(Debug)]
pub(super) enum Stop {
    /// The block is at fault; with what it did until then, where that is known.
    Invalid(Box<BlockError>, Option<Box<BlockOutput>>),
    /// The state is.
    State(ReadError),
    /// It takes more than this engine gives.
    Exceeded(Exceeded),
}

impl From<Exceeded> for Stop {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl Stop {
    pub(super) fn of_block(self, number: u64, hash: B256) -> ExecutionError {
        match self {
            Self::Invalid(error, executed) => ExecutionError::Invalid {
                number,
                hash,
                error,
                executed,
            },
            Self::State(error) => ExecutionError::State {
                number,
                hash,
                error,
            },
            Self::Exceeded(exceeded) => ExecutionError::Exceeded {
                number,
                hash,
                exceeded,
            },
        }
    }
}

impl From<BlockError> for Stop {
    fn from(error: BlockError) -> Self {
        Self::Invalid(Box::new(error), None)
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::State(error)
    }
}
