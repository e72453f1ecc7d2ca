//! What can go wrong with a read.

use std::error::Error;

use alloy_primitives::B256;

/// Why something could not be read of a state.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Code that an account names is in neither the database nor the witness.
    #[error("code {0} is missing")]
    MissingCode(B256),
    /// Whatever keeps the reader below from answering: a store, a tree, a caller's own view.
    #[error(transparent)]
    Below(Box<dyn Error + Send + Sync>),
}

impl ReadError {
    /// An error that a text tells.
    pub fn new(why: impl Into<String>) -> Self {
        let why: String = why.into();
        Self::Below(why.into())
    }

    /// An error of what lies below a view.
    pub fn below(cause: impl Error + Send + Sync + 'static) -> Self {
        Self::Below(Box::new(cause))
    }
}
