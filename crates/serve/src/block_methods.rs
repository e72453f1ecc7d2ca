//! Methods that read blocks and transactions from the files of the chain.

use alloy_consensus::transaction::Recovered;
use alloy_consensus::{BlockHeader as _, Transaction as _};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{B256, Bytes, U64, U256};
use alloy_rpc_types_eth::{self as rpc, BlockTransactions, TransactionInfo};
use arbor_chain::prepare::RecoveredBlock;
use arbor_chain::source::Transaction;
use serde_json::Value;

use crate::block_choice::BlockChoice;
use crate::call::{Answer, Call, Method, answer, heavy};
use crate::params::invalid;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[
    heavy("eth_getBlockByNumber", 2, |call| {
        by_number_alone(call).and_then(|()| block(call))
    }),
    heavy("eth_getBlockByHash", 2, |call| {
        by_hash_alone(call).and_then(|()| block(call))
    }),
    heavy("eth_getBlockTransactionCountByNumber", 1, |call| {
        by_number_alone(call).and_then(|()| transaction_count(call))
    }),
    heavy("eth_getBlockTransactionCountByHash", 1, |call| {
        by_hash_alone(call).and_then(|()| transaction_count(call))
    }),
    heavy("eth_getUncleCountByBlockNumber", 1, |call| {
        by_number_alone(call).and_then(|()| uncle_count(call))
    }),
    heavy("eth_getUncleCountByBlockHash", 1, |call| {
        by_hash_alone(call).and_then(|()| uncle_count(call))
    }),
    heavy("eth_getTransactionByBlockNumberAndIndex", 2, |call| {
        by_number_alone(call).and_then(|()| transaction_in_block(call))
    }),
    heavy("eth_getTransactionByBlockHashAndIndex", 2, |call| {
        by_hash_alone(call).and_then(|()| transaction_in_block(call))
    }),
    heavy("eth_getTransactionByHash", 1, transaction),
    heavy("debug_getRawBlock", 1, raw_block),
    heavy("debug_getRawHeader", 1, raw_header),
    heavy("debug_getRawTransaction", 1, raw_transaction),
];

/// The number of the block that the first parameter names, and its RLP; `None` if there is no such
/// block.
fn found(call: &Call<'_>) -> Result<Option<u64>, RpcError> {
    let choice = BlockChoice::required(&call.params, 0)?;
    call.context.blocks()?;
    choice.number(call.context, call.head)
}

/// Reads the block that the first parameter names; `None` if there is no such block.
///
/// # Errors
/// No files of the chain; a block of the database that they do not have.
fn read(call: &Call<'_>) -> Result<Option<RecoveredBlock>, RpcError> {
    let Some(number) = found(call)? else {
        return Ok(None);
    };
    numbered(call, number).map(Some)
}

/// Reads a block of the database from the files.
pub(crate) fn numbered(call: &Call<'_>, number: u64) -> Result<RecoveredBlock, RpcError> {
    let blocks = call.context.blocks()?;
    let (first, last) = blocks.range();
    let block = blocks.block(number)?.ok_or_else(|| {
        RpcError::server(format!(
            "block {number} is not served: the files of the chain have blocks {first} to {last}"
        ))
    })?;
    let is_same = call.context.is_of_database(call.head, number, block.hash)?;
    match is_same {
        true => Ok(block),
        false => Err(RpcError::server(format!(
            "block {number} is not served: the files of the chain have {}, and the database is on another branch since; start the server anew with \
             that one's files",
            block.hash
        ))),
    }
}

/// Refuses a block that is named otherwise than by its hash.
fn by_hash_alone(call: &Call<'_>) -> Result<(), RpcError> {
    match BlockChoice::required(&call.params, 0)? {
        BlockChoice::Hash(_) => Ok(()),
        _ => Err(invalid(0, "a block's hash is wanted, 32 bytes")),
    }
}

/// Refuses a block that is named by its hash.
fn by_number_alone(call: &Call<'_>) -> Result<(), RpcError> {
    match BlockChoice::required(&call.params, 0)? {
        BlockChoice::Hash(_) => Err(invalid(0, "a block's number or tag is wanted, not a hash")),
        _ => Ok(()),
    }
}

fn block(call: &Call<'_>) -> Answer {
    let whole: bool = call.params.required(1)?;
    match read(call)? {
        Some(block) => answer(&rpc_block(block, whole)?),
        None => answer(&Value::Null),
    }
}

fn rpc_block(block: RecoveredBlock, whole: bool) -> Result<Value, RpcError> {
    let transactions = match whole {
        false => BlockTransactions::Hashes(
            (block.block.body.transactions.iter())
                .map(|tx| *tx.tx_hash())
                .collect(),
        ),
        true => {
            let count = block.block.body.transactions.len();
            let all = (0..count).filter_map(|index| rpc_transaction(&block, index));
            BlockTransactions::Full(all.collect::<Result<Vec<Value>, RpcError>>()?)
        }
    };
    let ommers = block.block.body.ommers.iter();
    let rpc = rpc::Block {
        uncles: ommers.map(|ommer| ommer.hash_slow()).collect(),
        header: rpc::Header {
            hash: block.hash,
            inner: block.block.header,
            total_difficulty: None,
            size: Some(U256::from(block.rlp_len)),
        },
        transactions,
        withdrawals: block.block.body.withdrawals,
    };
    serde_json::to_value(&rpc).map_err(|error| RpcError::server(error.to_string()))
}

/// A transaction as go-ethereum writes it; `None` if the block has no such place.
fn rpc_transaction(block: &RecoveredBlock, index: usize) -> Option<Result<Value, RpcError>> {
    let tx = block.block.body.transactions.get(index)?;
    let sender = *block.senders.get(index)?;
    let header = &block.block.header;
    let info = TransactionInfo {
        hash: Some(*tx.tx_hash()),
        index: Some(index as u64),
        block_hash: Some(block.hash),
        block_number: Some(header.number),
        base_fee: header.base_fee_per_gas,
        block_timestamp: Some(header.timestamp),
    };
    let rpc: rpc::Transaction<Transaction> =
        rpc::Transaction::from_transaction(Recovered::new_unchecked(tx.clone(), sender), info);
    Some(serde_json::to_value(&rpc).map_err(|error| RpcError::server(error.to_string())))
}

fn transaction_count(call: &Call<'_>) -> Answer {
    let block = read(call)?;
    answer(&block.map(|block| U64::from(block.block.body.transactions.len())))
}

fn uncle_count(call: &Call<'_>) -> Answer {
    let block = read(call)?;
    answer(&block.map(|block| U64::from(block.block.body.ommers.len())))
}

fn transaction_in_block(call: &Call<'_>) -> Answer {
    let index: u64 = call.params.hex(1)?;
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    let found = read(call)?.and_then(|block| rpc_transaction(&block, index));
    answer(&found.transpose()?)
}

/// Looks a transaction up, of a block up to the latest one.
fn by_hash(call: &Call<'_>) -> Result<Option<(RecoveredBlock, usize)>, RpcError> {
    let hash: B256 = call.params.hex(0)?;
    let latest = call.head.meta().map_or(0, |meta| meta.block_number);
    let blocks = call.context.blocks()?;
    if let Some((block, index)) = blocks.transaction(hash)? {
        let number = block.block.header.number();
        let is_there =
            number <= latest && call.context.is_of_database(call.head, number, block.hash)?;
        return Ok(is_there.then_some((block, index)));
    }
    let (first, last) = blocks.range();
    match last < latest {
        true => Err(RpcError::server(format!(
            "no transaction with this hash is in the files of the chain, which have blocks {first} to {last}; the database has blocks up to {latest}"
        ))),
        false => Ok(None),
    }
}

fn transaction(call: &Call<'_>) -> Answer {
    let found = by_hash(call)?;
    let found = found.and_then(|(block, index)| rpc_transaction(&block, index));
    answer(&found.transpose()?)
}

fn raw_block(call: &Call<'_>) -> Answer {
    answer(&encoded(call, |block| {
        alloy_rlp::encode(&block.block).into()
    })?)
}

fn raw_header(call: &Call<'_>) -> Answer {
    let encode = |block: &RecoveredBlock| alloy_rlp::encode(&block.block.header).into();
    answer(&encoded(call, encode)?)
}

fn encoded(call: &Call<'_>, encode: impl Fn(&RecoveredBlock) -> Bytes) -> Result<Bytes, RpcError> {
    match read(call)? {
        Some(block) => Ok(encode(&block)),
        None => Err(RpcError::server("block not found")),
    }
}

fn raw_transaction(call: &Call<'_>) -> Answer {
    let bytes = by_hash(call)?.map_or_else(Bytes::new, |(block, index)| {
        let tx = block.block.body.transactions.get(index);
        tx.map_or_else(Bytes::new, |tx| tx.encoded_2718().into())
    });
    answer(&bytes)
}

/// What a transaction pays its block's beneficiary for a unit of gas, in wei.
pub(crate) fn tip(tx: &Transaction, base_fee: u64) -> u128 {
    tx.effective_tip_per_gas(base_fee).unwrap_or_default()
}
