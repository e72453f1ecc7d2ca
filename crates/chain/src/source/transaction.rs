//! Transactions of blocks in files.

use alloy_consensus::{EthereumTxEnvelope, TxEip4844};

/// A signed transaction as blocks hold it: blob transactions come without their blobs.
pub type Transaction = EthereumTxEnvelope<TxEip4844>;
