//! Why our import rejects a block, in one word, and which words the fixtures' exceptions stand for.

use arbor_chain::executor::{BlockError, ExecutionError, TransactionError};
use arbor_chain::prepare::InputError;
use arbor_chain::replay::ReplayError;
use arbor_chain::source::SourceError;

use super::forks::Rejection;

/// The reason: the name of our error's variant, after a `/` that of the error within.
pub(crate) fn reason(rejection: &Rejection) -> String {
    match rejection {
        Rejection::UnknownParent(_) => "UnknownParent".into(),
        Rejection::Input(InputError::Source(SourceError::PriceBeyondFunds { .. })) => {
            "PriceBeyondFunds".into()
        }
        Rejection::Input(InputError::Source(_)) => "Undecodable".into(),
        Rejection::Input(InputError::Signature { .. }) => "Signature".into(),
        Rejection::Replay(ReplayError::StateRoot(_)) => "StateRoot".into(),
        Rejection::Replay(ReplayError::Execution(ExecutionError::Invalid { error, .. })) => {
            block_reason(error)
        }
        Rejection::Replay(other) => format!("FAULT {}", variant(other)),
        Rejection::Witness(_) => "FAULT Witness".into(),
    }
}

fn block_reason(error: &BlockError) -> String {
    match error {
        BlockError::OmmerHeader { error, .. } => format!("OmmerHeader/{}", block_reason(error)),
        BlockError::Transaction { error, .. } => match error {
            TransactionError::Rejected(error) => format!("Transaction/{}", variant(error)),
            other => format!("Transaction/{}", variant(other)),
        },
        other => variant(other),
    }
}

/// The name of a value's variant, as its `Debug` form begins.
fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find(|c: char| !c.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

/// Whether a reason is the one that an exception names, or one of several with `|` between.
pub(crate) fn agrees(exception: &str, reason: &str) -> bool {
    exception.split('|').any(|name| {
        let known = EXCEPTIONS.iter().filter(|(known, _)| *known == name);
        known
            .flat_map(|(_, reasons)| *reasons)
            .any(|known| *known == reason)
    })
}

/// The fixtures' names, of three generations, and our reasons.
#[rustfmt::skip]
const EXCEPTIONS: &[(&str, &[&str])] = &[
    // What cannot be read.
    ("BlockException.RLP_STRUCTURES_ENCODING", &["Undecodable"]),
    ("BlockException.RLP_WITHDRAWALS_NOT_READ", &["MissingField"]),
    ("BlockException.INCORRECT_BLOCK_FORMAT", &["Undecodable", "MissingField"]),
    ("TransactionException.RLP_INVALID_VALUE", &["Undecodable"]),
    ("INPUT_UNMARSHAL_ERROR", &["Undecodable"]),
    // The header against its parent.
    ("BlockException.UNKNOWN_PARENT", &["UnknownParent"]),
    ("BlockException.UNKNOWN_PARENT_ZERO", &["UnknownParent"]),
    ("UnknownParent", &["UnknownParent"]),
    ("UnknownParent2", &["UnknownParent"]),
    ("BlockException.INVALID_BLOCK_NUMBER", &["Number"]),
    ("InvalidNumber", &["Number", "OmmerHeader/Number"]),
    ("BlockException.INVALID_BLOCK_TIMESTAMP_OLDER_THAN_PARENT", &["Timestamp"]),
    ("InvalidTimestampOlderParent", &["Timestamp", "OmmerHeader/Timestamp"]),
    ("InvalidTimestamp", &["Timestamp", "OmmerHeader/Timestamp"]),
    ("BlockException.EXTRA_DATA_TOO_BIG", &["ExtraDataLength"]),
    ("ExtraDataTooBig", &["ExtraDataLength"]),
    ("BlockException.EXTRA_DATA_INVALID_DAO", &["DaoExtraData", "OmmerHeader/DaoExtraData"]),
    ("BlockException.INVALID_GASLIMIT", &["GasLimit"]),
    ("BlockException.GASLIMIT_TOO_BIG", &["GasLimit"]),
    ("InvalidGasLimit", &["GasLimit", "OmmerHeader/GasLimit"]),
    ("InvalidGasLimit2", &["GasLimit", "OmmerHeader/GasLimit"]),
    ("BlockException.GAS_USED_OVERFLOW", &["GasUsedAboveLimit"]),
    ("TooMuchGasUsed", &["GasUsedAboveLimit", "OmmerHeader/GasUsedAboveLimit"]),
    ("BlockException.INVALID_BASEFEE_PER_GAS", &["BaseFee"]),
    ("1559BlockImportImpossible_BaseFeeWrong", &["BaseFee"]),
    ("BlockException.INCORRECT_EXCESS_BLOB_GAS", &["ExcessBlobGas"]),
    // Difficulty, and blocks of a fork that has not begun or is over.
    ("BlockException.INVALID_DIFFICULTY", &["Difficulty"]),
    ("InvalidDifficulty", &["Difficulty", "OmmerHeader/Difficulty"]),
    ("BlockException.IMPORT_IMPOSSIBLE_DIFFICULTY_OVER_PARIS", &["Difficulty"]),
    ("PostParisDifficultyIsNot0", &["Difficulty"]),
    ("BlockException.IMPORT_IMPOSSIBLE_PARIS_WRONG_POS", &["Difficulty"]),
    ("BlockException.IMPORT_IMPOSSIBLE_PARIS_WRONG_POW", &["Difficulty"]),
    ("3675PreParis1559BlockRejected", &["Difficulty", "OmmersHash"]),
    ("BlockException.IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS", &["OmmersHash"]),
    ("PostParisUncleHashIsNotEmpty", &["OmmersHash"]),
    ("BlockException.IMPORT_IMPOSSIBLE_LONDON_WRONG_PARENT", &["UnexpectedField", "OmmerHeader/UnexpectedField"]),
    ("BlockException.IMPORT_IMPOSSIBLE_LEGACY", &["MissingField"]),
    ("BlockException.IMPORT_IMPOSSIBLE_LEGACY_WRONG_PARENT", &["MissingField", "OmmerHeader/MissingField"]),
    ("BlockException.IMPORT_IMPOSSIBLE_SHANGHAI", &["UnexpectedField"]),
    ("BlockException.IMPORT_IMPOSSIBLE_PARIS_OVER_SHANGHAI", &["MissingField"]),
    // The header against the body.
    ("InvalidTransactionsRoot", &["TransactionsRoot"]),
    ("BlockException.INVALID_WITHDRAWALS_ROOT", &["WithdrawalsRoot"]),
    ("InvalidUnclesHash", &["OmmersHash"]),
    // Ommers.
    ("TooManyUncles", &["TooManyOmmers"]),
    ("UncleInChain", &["OmmerRepeated", "OmmerIsAncestor"]),
    ("UncleIsAncestor", &["OmmerIsAncestor"]),
    ("UncleIsBrother", &["OmmerUnrelated", "OmmerRepeated"]),
    ("UncleParentIsNotAncestor", &["OmmerUnrelated"]),
    ("InvalidUncleParentHash", &["OmmerUnrelated"]),
    ("BlockException.UNCLE_PARENT_INCORRECT", &["OmmerUnrelated"]),
    // Transactions.
    ("TransactionException.TYPE_NOT_SUPPORTED", &["Transaction/Eip1559NotSupported", "Transaction/Eip2930NotSupported"]),
    ("TR_TypeNotSupportedBlob", &["Transaction/Eip4844NotSupported"]),
    ("TransactionException.INTRINSIC_GAS_TOO_LOW", &["Transaction/CallGasCostMoreThanGasLimit"]),
    ("TR_IntrinsicGas", &["Transaction/CallGasCostMoreThanGasLimit"]),
    ("TransactionException.INITCODE_SIZE_EXCEEDED", &["Transaction/CreateInitCodeSizeLimit"]),
    ("TransactionException.INSUFFICIENT_ACCOUNT_FUNDS", &["Transaction/LackOfFundForMaxFee", "Transaction/OverflowPaymentInTransaction", "PriceBeyondFunds"]),
    ("TR_NoFunds", &["Transaction/LackOfFundForMaxFee", "Transaction/OverflowPaymentInTransaction"]),
    ("TransactionException.INSUFFICIENT_MAX_FEE_PER_GAS", &["Transaction/GasPriceLessThanBasefee"]),
    ("TR_FeeCapLessThanBlocks", &["Transaction/GasPriceLessThanBasefee"]),
    ("TR_FeeCapLessThanBlocksORNoFunds", &["Transaction/GasPriceLessThanBasefee", "Transaction/LackOfFundForMaxFee"]),
    ("TR_FeeCapLessThanBlocksORGasLimitReached", &["Transaction/GasPriceLessThanBasefee", "Transaction/GasAllowance"]),
    ("TransactionException.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS", &["Transaction/PriorityFeeGreaterThanMaxFee"]),
    ("TR_TipGtFeeCap", &["Transaction/PriorityFeeGreaterThanMaxFee"]),
    ("TransactionException.GAS_ALLOWANCE_EXCEEDED", &["Transaction/GasAllowance"]),
    ("TR_GasLimitReached", &["Transaction/GasAllowance"]),
    ("TransactionException.NONCE_IS_MAX", &["Transaction/NonceOverflowInTransaction"]),
    ("TransactionException.NONCE_MISMATCH_TOO_LOW", &["Transaction/NonceTooLow"]),
    ("TransactionException.NONCE_MISMATCH_TOO_HIGH", &["Transaction/NonceTooHigh"]),
    ("TR_NonceTooHigh", &["Transaction/NonceTooHigh"]),
    ("TransactionException.SENDER_NOT_EOA", &["Transaction/RejectCallerWithCode"]),
    ("TransactionException.INSUFFICIENT_MAX_FEE_PER_BLOB_GAS", &["Transaction/BlobGasPriceGreaterThanMax"]),
    ("TransactionException.TYPE_3_TX_BLOB_COUNT_EXCEEDED", &["BlobGasAboveLimit", "Transaction/TooManyBlobs"]),
    ("TransactionException.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH", &["Transaction/BlobVersionNotSupported"]),
    ("TransactionException.TYPE_3_TX_ZERO_BLOBS", &["Transaction/EmptyBlobs"]),
    ("TransactionException.TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED", &["BlobGasAboveLimit"]),
    ("TransactionException.TYPE_4_EMPTY_AUTHORIZATION_LIST", &["Transaction/EmptyAuthorizationList"]),
    ("TransactionException.GAS_LIMIT_EXCEEDS_MAXIMUM", &["Transaction/TxGasLimitGreaterThanCap"]),
    ("TransactionException.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST", &["Transaction/GasFloorMoreThanGasLimit"]),
    // Requests (EIP-7685).
    ("BlockException.INVALID_REQUESTS", &["RequestsHash"]),
    ("BlockException.INVALID_DEPOSIT_EVENT_LAYOUT", &["DepositLog"]),
    ("BlockException.SYSTEM_CONTRACT_EMPTY", &["SystemContractEmpty"]),
    ("BlockException.SYSTEM_CONTRACT_CALL_FAILED", &["SystemCallFailed"]),
    // What execution gives.
    ("BlockException.INVALID_GAS_USED", &["GasUsed"]),
    ("InvalidGasUsed", &["GasUsed"]),
    ("InvalidReceiptsStateRoot", &["ReceiptsRoot"]),
    ("BlockException.INVALID_LOG_BLOOM", &["LogsBloom"]),
    ("BlockException.INVALID_STATE_ROOT", &["StateRoot"]),
    ("InvalidStateRoot", &["StateRoot"]),
];
