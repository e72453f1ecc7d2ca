//! What executing a block gives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_primitives::{Address, B256, Bloom, Bytes};
use arbor_state::StateChanges;

use super::requests::requests_hash;
use super::{BlockError, LeafName, OmmerCheck};

/// Where a block's time went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timings {
    /// Checking header and body.
    pub checks: Duration,
    /// Running system calls and transactions, state reads included, roots between transactions not.
    pub execution: Duration,
    /// Roots between transactions, which receipts carried before Byzantium.
    pub intermediate_roots: Duration,
    /// The receipts' root and bloom filters.
    pub receipts: Duration,
    /// Collecting the changes.
    pub changes: Duration,
}

/// Chunks of code by account and number. Some may lie beyond the code's end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodeReads {
    /// The chunks read of each account's code.
    pub chunks: BTreeMap<Address, BTreeSet<u32>>,
}

/// What executing a block gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockOutput {
    /// The difference between the state before and after, nothing that stayed the same among it.
    pub changes: StateChanges,
    /// One receipt for each transaction.
    pub receipts: Vec<ReceiptEnvelope>,
    /// Gas used by the transactions.
    pub gas_used: u64,
    /// The receipts' filters together.
    pub logs_bloom: Bloom,
    /// Root of the receipts' trie; `None` if receipts need intermediate roots and there was no one to ask.
    pub receipts_root: Option<B256>,
    /// Requests with their type byte, from Prague on (EIP-7685).
    pub requests: Option<Vec<Bytes>>,
    /// The leaves of a Verkle tree that transactions touched and paid for, where they pay for them (EIP-4762).
    pub accessed: Option<BTreeSet<LeafName>>,
    /// How far ommers were checked.
    pub ommers: OmmerCheck,
    /// Where the time went.
    pub timings: Timings,
}

impl BlockOutput {
    /// Returns the hash of the requests (EIP-7685), `None` before Prague.
    pub fn requests_hash(&self) -> Option<B256> {
        self.requests.as_deref().map(requests_hash)
    }

    /// Compares the result with the header's gas used, receipts root, bloom filter and requests hash.
    ///
    /// # Errors
    /// The first field that differs.
    pub fn check(&self, header: &Header) -> Result<(), BlockError> {
        if header.gas_used != self.gas_used {
            return Err(BlockError::GasUsed {
                expected: self.gas_used,
                actual: header.gas_used,
            });
        }
        match self.receipts_root {
            Some(expected) if header.receipts_root != expected => {
                return Err(BlockError::ReceiptsRoot {
                    expected,
                    actual: header.receipts_root,
                });
            }
            _ => {}
        }
        if header.logs_bloom != self.logs_bloom {
            return Err(BlockError::LogsBloom {
                expected: Box::new(self.logs_bloom),
                actual: Box::new(header.logs_bloom),
            });
        }
        match (self.requests_hash(), header.requests_hash) {
            (Some(expected), Some(actual)) if expected != actual => {
                Err(BlockError::RequestsHash { expected, actual })
            }
            _ => Ok(()),
        }
    }
}
