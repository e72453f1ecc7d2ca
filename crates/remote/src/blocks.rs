//! A node's blocks, one after another.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use alloy_consensus::{Block, BlockBody, Header};
use alloy_primitives::{B256, Bytes, U64};
use alloy_rpc_types_eth as rpc;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, recover_block};
use arbor_chain::source::{Position, RawBlock, Transaction};
use serde_json::{Value, json};

use crate::ancestry::same;
use crate::client::Node;
use crate::error::RemoteError;

/// A block with its transactions.
type Whole = rpc::Block<rpc::Transaction<Transaction>, rpc::Header>;

impl Node {
    /// Fetches the number of the latest block.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub fn latest(&self) -> Result<u64, RemoteError> {
        let number: U64 = self.call("eth_blockNumber", &json!([]))?;
        Ok(number.to())
    }

    /// Fetches the id of the chain (EIP-155).
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub fn chain_id(&self) -> Result<u64, RemoteError> {
        let id: U64 = self.call("eth_chainId", &json!([]))?;
        Ok(id.to())
    }

    /// Fetches the hash of a block; `None` if the node has no block of this number.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub fn block_hash(&self, number: u64) -> Result<Option<B256>, RemoteError> {
        let params = json!([U64::from(number), false]);
        let block: Option<Value> = self.call("eth_getBlockByNumber", &params)?;
        let Some(block) = block else { return Ok(None) };
        let hash = block.get("hash").cloned().unwrap_or_default();
        let hash = serde_json::from_value(hash);
        hash.map(Some)
            .map_err(|error| self.unread("eth_getBlockByNumber", &format!("hash: {error}")))
    }

    /// Fetches the block with this hash.
    ///
    /// # Errors
    /// [`RemoteError::NoBlock`]; [`RemoteError::Other`] if the node gives another block.
    pub fn block(&self, hash: B256) -> Result<RawBlock, RemoteError> {
        let raw = self.call::<Option<Bytes>>("debug_getRawBlock", &json!([hash]));
        let block = match raw {
            Ok(None) => return Err(RemoteError::NoBlock(hash.to_string())),
            Ok(Some(rlp)) => RawBlock::from_export(self.position(), &rlp)?,
            Err(error @ RemoteError::Refused { .. }) => {
                tracing::debug!("the block is fetched as JSON: {error}");
                let whole: Option<Whole> = self.call("eth_getBlockByHash", &json!([hash, true]))?;
                let whole = whole.ok_or_else(|| RemoteError::NoBlock(hash.to_string()))?;
                self.encoded(whole)?
            }
            Err(error) => return Err(error),
        };
        same("the block", &hash, &block.hash)?;
        Ok(block)
    }

    /// Fetches consecutive blocks by their numbers. Whether they are one chain is left to the caller.
    fn blocks(&self, first: u64, count: u64) -> Result<Vec<RawBlock>, RemoteError> {
        let numbers = (first..first + count).map(U64::from);
        let raw: Vec<Value> = numbers.clone().map(|number| json!([number])).collect();
        match self.call_each::<Option<Bytes>>("debug_getRawBlock", &raw) {
            Ok(blocks) => {
                let blocks = blocks.into_iter().zip(first..);
                let read = |(rlp, number): (Option<Bytes>, u64)| -> Result<RawBlock, RemoteError> {
                    let rlp = rlp.ok_or_else(|| RemoteError::NoBlock(number.to_string()))?;
                    Ok(RawBlock::from_export(self.position(), &rlp)?)
                };
                return blocks.map(read).collect();
            }
            Err(error @ RemoteError::Refused { .. }) => {
                tracing::debug!("blocks are fetched as JSON: {error}");
            }
            Err(error) => return Err(error),
        }
        let whole: Vec<Value> = numbers.map(|number| json!([number, true])).collect();
        let blocks: Vec<Option<Whole>> = self.call_each("eth_getBlockByNumber", &whole)?;
        let blocks = blocks.into_iter().zip(first..);
        let blocks = blocks.map(|(block, number)| {
            let block = block.ok_or_else(|| RemoteError::NoBlock(number.to_string()))?;
            self.encoded(block)
        });
        blocks.collect()
    }

    /// Encodes a block that came as JSON, and compares its header with its hash.
    fn encoded(&self, whole: Whole) -> Result<RawBlock, RemoteError> {
        let given = whole.header.hash;
        let ommers: Vec<Header> = (0..whole.uncles.len())
            .map(|index| {
                let params = json!([given, U64::from(index)]);
                let found: Value = self.call("eth_getUncleByBlockHashAndIndex", &params)?;
                let header: rpc::Header = serde_json::from_value(found).map_err(|error| {
                    self.unread("eth_getUncleByBlockHashAndIndex", &error.to_string())
                })?;
                Ok(header.inner)
            })
            .collect::<Result<_, RemoteError>>()?;
        let transactions = match whole.transactions {
            rpc::BlockTransactions::Full(all) => all,
            _ => return Err(self.unread("eth_getBlockByNumber", "transactions without contents")),
        };
        let block = Block {
            header: whole.header.inner,
            body: BlockBody {
                transactions: transactions
                    .into_iter()
                    .map(|transaction| transaction.inner.into_inner())
                    .collect(),
                ommers,
                withdrawals: whole.withdrawals,
            },
        };
        let block = RawBlock::from_export(self.position(), &alloy_rlp::encode(&block).into())?;
        same("a block whose header has the hash", &given, &block.hash)?;
        Ok(block)
    }

    /// Names the node in errors of blocks.
    fn position(&self) -> Position {
        Position {
            file: Arc::from(Path::new(self.url())),
            offset: 0,
            ordinal: 0,
        }
    }
}

/// Why no more blocks come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The last block that was asked for came.
    Target,
    /// The node has no more blocks yet.
    Head,
    /// The next block of the node has another parent.
    OtherBranch,
}

/// Blocks that are fetched together.
const TOGETHER: u64 = 32;

/// A node's blocks after one that is known, up to its head. Each names the one before as its parent.
pub struct Blocks<'a> {
    node: &'a Node,
    /// The number and hash of the block that came last, and its gas limit.
    last: (u64, B256),
    gas_limit: Option<u64>,
    to: u64,
    rules: SignatureRules,
    ready: VecDeque<RawBlock>,
    end: Option<Result<End, RemoteError>>,
}

impl<'a> Blocks<'a> {
    /// Begins after a block, whose gas limit bounds that of the next, and ends with block `to`.
    #[must_use]
    pub fn after(
        node: &'a Node,
        last: (u64, B256),
        gas_limit: Option<u64>,
        to: u64,
        rules: SignatureRules,
    ) -> Self {
        Self {
            node,
            last,
            gas_limit,
            to,
            rules,
            ready: VecDeque::new(),
            end: None,
        }
    }

    /// Why there are no more blocks.
    ///
    /// # Errors
    /// The error that ended them.
    pub fn end(self) -> Result<End, RemoteError> {
        self.end.unwrap_or(Ok(End::Head))
    }

    fn advance(&mut self) -> Result<Result<RecoveredBlock, End>, RemoteError> {
        let (number, hash) = self.last;
        if number >= self.to {
            return Ok(Err(End::Target));
        }
        if self.ready.is_empty() {
            let latest = self.node.latest()?.min(self.to);
            if latest <= number {
                return Ok(Err(End::Head));
            }
            let count = (latest - number).min(TOGETHER);
            self.ready = self.node.blocks(number + 1, count)?.into();
        }
        let Some(block) = self.ready.pop_front() else {
            return Ok(Err(End::Head));
        };
        if block.header.parent_hash != hash || block.header.number != number + 1 {
            return Ok(Err(End::OtherBranch));
        }
        let block = block.after_gas_limit(self.gas_limit);
        self.last = (block.header.number, block.hash);
        self.gas_limit = Some(block.header.gas_limit);
        Ok(Ok(recover_block(block.decode()?, self.rules)?))
    }
}

impl Iterator for Blocks<'_> {
    type Item = RecoveredBlock;

    fn next(&mut self) -> Option<RecoveredBlock> {
        if self.end.is_some() {
            return None;
        }
        match self.advance() {
            Ok(Ok(block)) => Some(block),
            Ok(Err(end)) => {
                self.end = Some(Ok(end));
                None
            }
            Err(error) => {
                self.end = Some(Err(error));
                None
            }
        }
    }
}
