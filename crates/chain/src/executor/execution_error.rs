//! Why a block was not executed.

use alloy_primitives::B256;
use arbor_state::ReadError;

use super::{BlockError, BlockOutput, Exceeded};

/// Why a block gave no output.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The block breaks a rule.
    #[error("block {number} ({hash}) is invalid: {error}")]
    Invalid {
        /// The block's number.
        number: u64,
        /// The block's hash.
        hash: B256,
        /// The rule and the values.
        #[source]
        error: Box<BlockError>,
        /// What the block did until then, if anything of it was executed: for a diagnosis.
        executed: Option<Box<BlockOutput>>,
    },
    /// The state, or a past block's hash, could not be read; says nothing about the block.
    #[error("block {number} ({hash}) needs state that cannot be read: {error}")]
    State {
        /// The block's number.
        number: u64,
        /// The block's hash.
        hash: B256,
        /// What could not be read.
        #[source]
        error: ReadError,
    },
    /// Executing it takes more than this engine gives; says nothing about the block.
    #[error("block {number} ({hash}) is not executed: {exceeded}")]
    Exceeded {
        /// The block's number.
        number: u64,
        /// The block's hash.
        hash: B256,
        /// What it takes.
        #[source]
        exceeded: Exceeded,
    },
}

impl ExecutionError {
    /// Returns the broken rule, if that is what stopped execution.
    pub fn block_error(&self) -> Option<&BlockError> {
        match self {
            Self::Invalid { error, .. } => Some(error),
            Self::State { .. } | Self::Exceeded { .. } => None,
        }
    }
}
