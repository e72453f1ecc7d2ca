//! A body against its header.

use alloy_consensus::{EMPTY_OMMER_ROOT_HASH, Header, Transaction as _, proofs};
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_primitives::B256;
use alloy_rlp::Encodable;
use revm::primitives::hardfork::SpecId;

use super::ommers::{OmmerCheck, check_ommers};
use super::{Ancestors, BlockError, Rules};
use crate::genesis::ChainSpec;
use crate::source::Transaction;

/// Longest encoded block in bytes from Osaka on (EIP-7934: 10 MiB less a margin of 2 MiB).
const MAX_BLOCK_SIZE: usize = 8 * 1024 * 1024;

/// A block with its body.
pub type Block = alloy_consensus::Block<Transaction>;

/// What a header says about its body, as the body has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyFacts {
    /// Root of the transactions' trie.
    pub transactions_root: B256,
    /// Hash of the list of ommers.
    pub ommers_hash: B256,
    /// Root of the withdrawals' trie; `None` if the body has no such field.
    pub withdrawals_root: Option<B256>,
    /// Length of the encoded block in bytes.
    pub size: usize,
}

impl BodyFacts {
    /// Computes them.
    pub fn of(block: &Block) -> Self {
        let body = &block.body;
        Self {
            transactions_root: proofs::calculate_transaction_root(&body.transactions),
            ommers_hash: if body.ommers.is_empty() {
                EMPTY_OMMER_ROOT_HASH
            } else {
                proofs::calculate_ommers_root(&body.ommers)
            },
            withdrawals_root: body
                .withdrawals
                .as_ref()
                .map(|withdrawals| proofs::calculate_withdrawals_root(withdrawals)),
            size: block.length(),
        }
    }
}

/// Checks a body against its header: roots of transactions and withdrawals, ommers, blob gas, size.
///
/// `rules` are the block's, `chain_spec` gives those of its ommers. `facts` are computed if they are not given.
///
/// # Errors
/// The first rule that the body breaks.
pub fn check_body(
    chain_spec: &ChainSpec,
    rules: &Rules,
    (block, hash): (&Block, B256),
    facts: Option<BodyFacts>,
    chain: &dyn Ancestors,
) -> Result<OmmerCheck, BlockError> {
    let header = &block.header;
    let facts = facts.unwrap_or_else(|| BodyFacts::of(block));
    if rules.has(SpecId::OSAKA) && facts.size > MAX_BLOCK_SIZE {
        return Err(BlockError::Size {
            limit: MAX_BLOCK_SIZE,
            actual: facts.size,
        });
    }
    if header.transactions_root != facts.transactions_root {
        return Err(BlockError::TransactionsRoot {
            expected: facts.transactions_root,
            actual: header.transactions_root,
        });
    }
    check_withdrawals(header, facts.withdrawals_root)?;
    check_blob_gas_used(rules, block)?;
    if header.ommers_hash != facts.ommers_hash {
        return Err(BlockError::OmmersHash {
            expected: facts.ommers_hash,
            actual: header.ommers_hash,
        });
    }
    check_ommers(chain_spec, (header, hash), &block.body.ommers, chain)
}

fn check_withdrawals(header: &Header, computed: Option<B256>) -> Result<(), BlockError> {
    let field = "withdrawals";
    match (header.withdrawals_root, computed) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(BlockError::MissingField { field }),
        (None, Some(_)) => Err(BlockError::UnexpectedField { field }),
        (Some(actual), Some(expected)) if actual != expected => {
            Err(BlockError::WithdrawalsRoot { expected, actual })
        }
        (Some(_), Some(_)) => Ok(()),
    }
}

fn check_blob_gas_used(rules: &Rules, block: &Block) -> Result<(), BlockError> {
    let (Some(params), Some(actual)) = (&rules.blobs, block.header.blob_gas_used) else {
        return Ok(());
    };
    let blobs = block
        .body
        .transactions
        .iter()
        .map(|tx| tx.blob_count().unwrap_or(0))
        .sum::<u64>();
    let expected = blobs * DATA_GAS_PER_BLOB;
    let limit = params.max_blob_gas_per_block();
    if expected > limit {
        Err(BlockError::BlobGasAboveLimit {
            limit,
            actual: expected,
        })
    } else if expected != actual {
        Err(BlockError::BlobGasUsed { expected, actual })
    } else {
        Ok(())
    }
}
