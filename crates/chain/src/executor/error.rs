//! Rules that a block may break.

use alloy_primitives::{Address, B256, Bloom, Bytes, U256};
use revm::context::result::InvalidTransaction;

/// A broken rule. Field names are those of the header in JSON-RPC.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlockError {
    /// The fork is not one that this executor runs.
    #[error("fork {fork} is not supported")]
    UnsupportedFork {
        /// Name of the fork.
        fork: String,
    },
    /// A field that the fork demands is absent.
    #[error("{field}: missing")]
    MissingField {
        /// The field.
        field: &'static str,
    },
    /// A field that a later fork brings is present.
    #[error("{field}: not known to this fork")]
    UnexpectedField {
        /// The field.
        field: &'static str,
    },
    /// The header names another parent.
    #[error("parentHash: expected {expected}, actual {actual}")]
    ParentHash {
        /// Hash of the parent given.
        expected: B256,
        /// The header's.
        actual: B256,
    },
    /// The number does not follow the parent's.
    #[error("number: expected {expected}, actual {actual}")]
    Number {
        /// Parent's plus one.
        expected: u64,
        /// The header's.
        actual: u64,
    },
    /// The timestamp is not later than the parent's.
    #[error("timestamp: expected more than {parent}, actual {actual}")]
    Timestamp {
        /// The parent's.
        parent: u64,
        /// The header's.
        actual: u64,
    },
    /// More than 32 bytes of extra data.
    #[error("extraData: expected at most 32 bytes, actual {actual}")]
    ExtraDataLength {
        /// Its length.
        actual: usize,
    },
    /// Extra data against the DAO fork's rule (EIP-779).
    #[error(
        "extraData: {} dao-hard-fork, actual {actual}",
        if *.required { "expected" } else { "must not be" }
    )]
    DaoExtraData {
        /// Whether the chain demands the marker, or forbids it.
        required: bool,
        /// The header's.
        actual: Bytes,
    },
    /// The gas limit moved by more than 1/1024 of the parent's, or is out of range.
    #[error("gasLimit: expected {min}..={max}, actual {actual}")]
    GasLimit {
        /// Least value allowed.
        min: u64,
        /// Greatest value allowed.
        max: u64,
        /// The header's.
        actual: u64,
    },
    /// The header claims more gas than its limit.
    #[error("gasUsed: expected at most the limit of {limit}, actual {actual}")]
    GasUsedAboveLimit {
        /// The gas limit.
        limit: u64,
        /// The header's.
        actual: u64,
    },
    /// The difficulty is not what the parent's makes it.
    #[error("difficulty: expected {expected}, actual {actual}")]
    Difficulty {
        /// The computed one.
        expected: U256,
        /// The header's.
        actual: U256,
    },
    /// A proof-of-stake header carries a nonce (EIP-3675).
    #[error("nonce: expected 0, actual {actual:#x}")]
    Nonce {
        /// The header's.
        actual: u64,
    },
    /// The base fee is not what the parent's use makes it (EIP-1559).
    #[error("baseFeePerGas: expected {expected}, actual {actual}")]
    BaseFee {
        /// The computed one, in wei.
        expected: u64,
        /// The header's.
        actual: u64,
    },
    /// Excess blob gas is not what the parent makes it (EIP-4844, EIP-7918).
    #[error("excessBlobGas: expected {expected}, actual {actual}")]
    ExcessBlobGas {
        /// The computed one.
        expected: u64,
        /// The header's.
        actual: u64,
    },
    /// Blob gas used is not that of the transactions.
    #[error("blobGasUsed: expected {expected}, actual {actual}")]
    BlobGasUsed {
        /// The sum over the transactions.
        expected: u64,
        /// The header's.
        actual: u64,
    },
    /// The transactions carry more blobs than a block may.
    #[error("blobGasUsed: expected at most {limit}, actual {actual}")]
    BlobGasAboveLimit {
        /// The greatest value allowed.
        limit: u64,
        /// The sum over the transactions.
        actual: u64,
    },
    /// The transactions' root does not match.
    #[error("transactionsRoot: expected {expected}, actual {actual}")]
    TransactionsRoot {
        /// The computed one.
        expected: B256,
        /// The header's.
        actual: B256,
    },
    /// The withdrawals' root does not match.
    #[error("withdrawalsRoot: expected {expected}, actual {actual}")]
    WithdrawalsRoot {
        /// The computed one.
        expected: B256,
        /// The header's.
        actual: B256,
    },
    /// The hash of the ommers does not match (after the merge: there are ommers).
    #[error("sha3Uncles: expected {expected}, actual {actual}")]
    OmmersHash {
        /// The computed one.
        expected: B256,
        /// The header's.
        actual: B256,
    },
    /// More than two ommers.
    #[error("uncles: expected at most 2, actual {actual}")]
    TooManyOmmers {
        /// How many.
        actual: usize,
    },
    /// An ommer that was included before.
    #[error("uncles[{index}]: {hash} is included already")]
    OmmerRepeated {
        /// Which of the block's ommers.
        index: usize,
        /// Its hash.
        hash: B256,
    },
    /// An ommer that is an ancestor of the block.
    #[error("uncles[{index}]: {hash} is an ancestor")]
    OmmerIsAncestor {
        /// Which of the block's ommers.
        index: usize,
        /// Its hash.
        hash: B256,
    },
    /// An ommer whose parent is not among the second to seventh ancestor.
    #[error("uncles[{index}]: {hash} is not a child of a recent ancestor")]
    OmmerUnrelated {
        /// Which of the block's ommers.
        index: usize,
        /// Its hash.
        hash: B256,
    },
    /// An ommer whose header breaks a rule.
    #[error("uncles[{index}]: {error}")]
    OmmerHeader {
        /// Which of the block's ommers.
        index: usize,
        /// The rule.
        #[source]
        error: Box<BlockError>,
    },
    /// The encoded block is longer than EIP-7934 allows.
    #[error("size: expected at most {limit} bytes, actual {actual}")]
    Size {
        /// The greatest length.
        limit: usize,
        /// The block's.
        actual: usize,
    },
    /// Not one sender for each transaction.
    #[error("senders: expected {expected}, actual {actual}")]
    SenderCount {
        /// Number of transactions.
        expected: usize,
        /// Number of senders.
        actual: usize,
    },
    /// A transaction cannot be included.
    #[error("transaction {index} ({hash}): {error}")]
    Transaction {
        /// Its position in the block.
        index: usize,
        /// Its hash.
        hash: B256,
        /// Why.
        #[source]
        error: TransactionError,
    },
    /// A contract of the protocol is not there.
    #[error("system contract {address:#x}: no code")]
    SystemContractEmpty {
        /// The contract.
        address: Address,
    },
    /// A contract of the protocol failed.
    #[error("system contract {address:#x}: {reason}")]
    SystemCallFailed {
        /// The contract.
        address: Address,
        /// How it ended.
        reason: String,
    },
    /// A log of the deposit contract is not laid out as its ABI says (EIP-6110).
    #[error("deposit log {index}: {reason}")]
    DepositLog {
        /// Which deposit of the block.
        index: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// The gas used does not match.
    #[error("gasUsed: expected {expected}, actual {actual}")]
    GasUsed {
        /// What execution used.
        expected: u64,
        /// The header's.
        actual: u64,
    },
    /// The receipts' root does not match.
    #[error("receiptsRoot: expected {expected}, actual {actual}")]
    ReceiptsRoot {
        /// The computed one.
        expected: B256,
        /// The header's.
        actual: B256,
    },
    /// The bloom filter does not match.
    #[error("logsBloom: expected {expected}, actual {actual}")]
    LogsBloom {
        /// The computed one.
        expected: Box<Bloom>,
        /// The header's.
        actual: Box<Bloom>,
    },
    /// The hash of the requests does not match (EIP-7685).
    #[error("requestsHash: expected {expected}, actual {actual}")]
    RequestsHash {
        /// The computed one.
        expected: B256,
        /// The header's.
        actual: B256,
    },
}

impl BlockError {
    /// Returns what the header says and what execution gives, where the field is one that execution gives.
    pub fn header_and_computed(&self) -> Option<(String, String)> {
        Some(match self {
            Self::GasUsed { expected, actual } => (actual.to_string(), expected.to_string()),
            Self::ReceiptsRoot { expected, actual } | Self::RequestsHash { expected, actual } => {
                (actual.to_string(), expected.to_string())
            }
            Self::LogsBloom { expected, actual } => (actual.to_string(), expected.to_string()),
            _ => return None,
        })
    }

    /// Returns the field that is wrong, as JSON-RPC names it; `transactions` for a transaction, `uncles` for
    /// an ommer.
    pub fn field(&self) -> &'static str {
        match self {
            Self::UnsupportedFork { .. } => "fork",
            Self::MissingField { field } | Self::UnexpectedField { field } => field,
            Self::ParentHash { .. } => "parentHash",
            Self::Number { .. } => "number",
            Self::Timestamp { .. } => "timestamp",
            Self::ExtraDataLength { .. } | Self::DaoExtraData { .. } => "extraData",
            Self::GasLimit { .. } => "gasLimit",
            Self::GasUsedAboveLimit { .. } | Self::GasUsed { .. } => "gasUsed",
            Self::Difficulty { .. } => "difficulty",
            Self::Nonce { .. } => "nonce",
            Self::BaseFee { .. } => "baseFeePerGas",
            Self::ExcessBlobGas { .. } => "excessBlobGas",
            Self::BlobGasUsed { .. } | Self::BlobGasAboveLimit { .. } => "blobGasUsed",
            Self::TransactionsRoot { .. } => "transactionsRoot",
            Self::WithdrawalsRoot { .. } => "withdrawalsRoot",
            Self::OmmersHash { .. } => "sha3Uncles",
            Self::TooManyOmmers { .. }
            | Self::OmmerRepeated { .. }
            | Self::OmmerIsAncestor { .. }
            | Self::OmmerUnrelated { .. }
            | Self::OmmerHeader { .. } => "uncles",
            Self::Size { .. } => "size",
            Self::SenderCount { .. } => "senders",
            Self::Transaction { .. } => "transactions",
            Self::SystemContractEmpty { .. } | Self::SystemCallFailed { .. } => "systemContract",
            Self::DepositLog { .. } => "depositLog",
            Self::ReceiptsRoot { .. } => "receiptsRoot",
            Self::LogsBloom { .. } => "logsBloom",
            Self::RequestsHash { .. } => "requestsHash",
        }
    }
}

/// Why a transaction cannot be part of its block.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TransactionError {
    /// The gas that earlier transactions left in the block is too little for its limit.
    #[error("gas limit {limit} exceeds the block's remaining {available}")]
    GasAllowance {
        /// The transaction's gas limit.
        limit: u64,
        /// What the block has left.
        available: u64,
    },
    /// A signature with a chain id before EIP-155.
    #[error("replay-protected signature before Spurious Dragon")]
    ReplayProtectionTooEarly,
    /// The signature's `s` is in the upper half (EIP-2).
    #[error("signature's s is above half the curve order")]
    HighS,
    /// revm's validation rejected it.
    #[error("{0}")]
    Rejected(#[from] InvalidTransaction),
}
