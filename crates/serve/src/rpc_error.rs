//! Errors as JSON-RPC writes them.

use alloy_primitives::{B256, Bytes, U256};
use arbor_chain::executor::{Call, CallError, HaltReason, InvalidTransaction};
use arbor_database::BlockStateError;
use jsonrpsee::types::{ErrorObject, ErrorObjectOwned};
use serde_json::{Value, json};

/// A body that is no JSON (JSON-RPC 2.0, section 5.1).
const PARSE: i32 = -32700;
/// JSON that is no request (JSON-RPC 2.0, section 5.1).
const INVALID_REQUEST: i32 = -32600;
/// A method that there is not (JSON-RPC 2.0, section 5.1).
const UNKNOWN_METHOD: i32 = -32601;
/// Parameters that are missing or malformed (JSON-RPC 2.0, section 5.1).
const INVALID_PARAMS: i32 = -32602;
/// A call that did not end in time, as go-ethereum numbers it.
const TIMED_OUT: i32 = -32002;
/// An answer with more bytes than it may have, as go-ethereum numbers it.
const TOO_LARGE: i32 = -32003;
/// More things than one call may ask for, as go-ethereum numbers it.
const CLIENT_LIMIT: i32 = -38026;
/// Whatever else keeps a call from its answer, as go-ethereum numbers it.
const SERVER: i32 = -32000;
/// The server has no room for the call at the moment (EIP-1474, "limit exceeded").
const BUSY: i32 = -32005;
/// A call that reverted, as go-ethereum numbers it.
const REVERTED: i32 = 3;
/// History that is not kept (execution-apis, "pruned history unavailable").
const NOT_KEPT: i32 = 4444;

/// An error for a client.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct RpcError {
    code: i32,
    message: String,
    data: Option<Value>,
    /// The block that the call is about, if the latest state has it no longer.
    gone: Option<Gone>,
}

/// A block that the latest state has no longer, or never had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gone {
    /// The state after this block is not kept.
    NotKept(u64),
    /// No block has this hash.
    Unknown(B256),
}

impl RpcError {
    fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            gone: None,
        }
    }

    /// The body of a request is no JSON.
    pub(crate) fn unreadable() -> Self {
        Self::new(PARSE, "parse error")
    }

    /// The JSON of a request is no call.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    /// There is no such method.
    pub(crate) fn unknown_method(name: &str) -> Self {
        let message = format!("the method {name} does not exist/is not available");
        Self::new(UNKNOWN_METHOD, message)
    }

    /// A parameter is at fault.
    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// The server cannot answer.
    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self::new(SERVER, message)
    }

    /// The client asks for more than one call may give.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(CLIENT_LIMIT, message)
    }

    /// Other calls take all threads, or the EVM's memory.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(BUSY, message)
    }

    /// The call takes longer than it may.
    pub(crate) fn timed_out(message: impl Into<String>) -> Self {
        Self::new(TIMED_OUT, message)
    }

    /// The answer has more bytes than it may have.
    pub(crate) fn too_large() -> Self {
        Self::new(TOO_LARGE, "response too large")
    }

    /// No block has this hash.
    pub(crate) fn unknown_hash(hash: B256) -> Self {
        Self {
            gone: Some(Gone::Unknown(hash)),
            ..Self::server("header for hash not found")
        }
    }

    /// The block that the call is about, if the latest state has it no longer.
    pub(crate) const fn gone(&self) -> Option<Gone> {
        self.gone
    }

    /// The code, for figures.
    pub(crate) const fn code(&self) -> i32 {
        self.code
    }

    /// A call reverted with this output.
    pub(crate) fn reverted(output: &Bytes) -> Self {
        let message = match revert_reason(output) {
            Some(reason) => format!("execution reverted: {reason}"),
            None => "execution reverted".to_owned(),
        };
        Self {
            data: Some(json!(output)),
            ..Self::new(REVERTED, message)
        }
    }

    /// A call failed.
    pub(crate) fn halted(reason: &HaltReason) -> Self {
        Self::server(halt_message(reason))
    }

    /// A block that the database has no state of.
    fn not_kept(message: String, number: u64, oldest: u64, newest: u64) -> Self {
        Self {
            data: Some(json!({
                "oldestBlock": format!("{oldest:#x}"),
                "newestBlock": format!("{newest:#x}"),
            })),
            gone: Some(Gone::NotKept(number)),
            ..Self::new(NOT_KEPT, message)
        }
    }
}

impl From<BlockStateError> for RpcError {
    fn from(error: BlockStateError) -> Self {
        let message = error.to_string();
        match error {
            BlockStateError::NotKept {
                number,
                oldest,
                newest,
            } => Self::not_kept(message, number, oldest, newest),
            BlockStateError::Call(CallError::Late) => Self::timed_out(message),
            BlockStateError::Call(CallError::Memory) => Self::busy(message),
            _ => Self::server(message),
        }
    }
}

impl RpcError {
    /// Returns the error as it is written.
    pub(crate) fn into_object(self) -> ErrorObjectOwned {
        ErrorObject::owned(self.code, self.message, self.data)
    }
}

/// Selector of `Error(string)`, which Solidity's `require` and `revert` give.
const ERROR: [u8; 4] = [0x08, 0xc3, 0x79, 0xa0];
/// Selector of `Panic(uint256)`, which Solidity's checks give.
const PANIC: [u8; 4] = [0x4e, 0x48, 0x7b, 0x71];

/// Reads why a contract reverted, if it says so in Solidity's way.
fn revert_reason(output: &[u8]) -> Option<String> {
    let (selector, rest) = output.split_at_checked(4)?;
    let word = |at: usize| Some(U256::from_be_slice(rest.get(at..at.checked_add(32)?)?));
    if selector == PANIC {
        let code = word(0)?;
        let known = u8::try_from(code).ok().and_then(panic_message);
        return Some(known.map_or_else(|| format!("unknown panic code: {code:#x}"), str::to_owned));
    }
    if selector != ERROR {
        return None;
    }
    let start = usize::try_from(word(0)?).ok()?;
    let length = usize::try_from(word(start)?).ok()?;
    let from = start.checked_add(32)?;
    let text = rest.get(from..from.checked_add(length)?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Returns what a code of `Panic` means, in go-ethereum's words.
const fn panic_message(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00 => "generic panic",
        0x01 => "assert(false)",
        0x11 => "arithmetic underflow or overflow",
        0x12 => "division or modulo by zero",
        0x21 => "enum overflow",
        0x22 => "invalid encoded storage byte array accessed",
        0x31 => "out-of-bounds array access; popping on an empty array",
        0x32 => "out-of-bounds access of an array or bytesN",
        0x41 => "out of memory",
        0x51 => "uninitialized function",
        _ => return None,
    })
}

/// Returns why execution failed, in go-ethereum's words where it has them.
pub(crate) fn halt_message(reason: &HaltReason) -> String {
    match reason {
        HaltReason::OutOfGas(_) => "out of gas".into(),
        HaltReason::OpcodeNotFound | HaltReason::NotActivated | HaltReason::InvalidFEOpcode => {
            "invalid opcode".into()
        }
        HaltReason::InvalidJump => "invalid jump destination".into(),
        HaltReason::OutOfOffset => "return data out of bounds".into(),
        HaltReason::CreateCollision => "contract address collision".into(),
        HaltReason::NonceOverflow => "nonce uint64 overflow".into(),
        HaltReason::CreateContractSizeLimit => "max code size exceeded".into(),
        HaltReason::CreateContractStartingWithEF => "invalid code: must not begin with 0xef".into(),
        HaltReason::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        HaltReason::StateChangeDuringStaticCall | HaltReason::CallNotAllowedInsideStatic => {
            "write protection".into()
        }
        HaltReason::OutOfFunds => "insufficient balance for transfer".into(),
        HaltReason::CallTooDeep => "max call depth exceeded".into(),
        HaltReason::StackOverflow => "stack limit reached 1024 (1023)".into(),
        other => other.to_string(),
    }
}

/// Returns why a call was rejected in a block of this base fee, in go-ethereum's words where it has
/// them.
pub(crate) fn rejected_message(
    why: &InvalidTransaction,
    call: &Call,
    base_fee: Option<u64>,
) -> String {
    let from = call.from.to_checksum(None);
    let (fee, tip) = (call.fee, call.priority_fee.unwrap_or(call.fee));
    match why {
        InvalidTransaction::LackOfFundForMaxFee { fee, balance } => {
            format!(
                "insufficient funds for gas * price + value: address {from} have {balance} want {fee}"
            )
        }
        InvalidTransaction::OverflowPaymentInTransaction => {
            format!(
                "insufficient funds for gas * price + value: address {from} required balance exceeds 256 bits"
            )
        }
        InvalidTransaction::CallGasCostMoreThanGasLimit {
            initial_gas,
            gas_limit,
        } => format!("intrinsic gas too low: have {gas_limit}, want {initial_gas}"),
        InvalidTransaction::GasFloorMoreThanGasLimit {
            gas_floor,
            gas_limit,
        } => {
            format!("insufficient gas for floor data gas cost: have {gas_limit}, want {gas_floor}")
        }
        InvalidTransaction::GasPriceLessThanBasefee => {
            let base_fee = base_fee.unwrap_or(0);
            format!(
                "max fee per gas less than block base fee: address {from}, maxFeePerGas: {fee}, baseFee: {base_fee}"
            )
        }
        InvalidTransaction::PriorityFeeGreaterThanMaxFee => format!(
            "max priority fee per gas higher than max fee per gas: address {from}, maxPriorityFeePerGas: {tip}, maxFeePerGas: {fee}"
        ),
        InvalidTransaction::BlobGasPriceGreaterThanMax {
            block_blob_gas_price,
            tx_max_fee_per_blob_gas,
        } => format!(
            "max fee per blob gas less than block blob gas fee: address {from} blobGasFeeCap: {tx_max_fee_per_blob_gas}, blobBaseFee: {block_blob_gas_price}"
        ),
        InvalidTransaction::Eip4844NotSupported => {
            format!("transaction type not supported: blob tx (sender {from})")
        }
        InvalidTransaction::Eip7702NotSupported => {
            format!("transaction type not supported: setcode tx (sender {from})")
        }
        InvalidTransaction::EmptyBlobs => "blob transaction missing blob hashes".into(),
        InvalidTransaction::TooManyBlobs { .. } => "blob transaction has too many blobs".into(),
        InvalidTransaction::BlobCreateTransaction => "blob transaction of type create".into(),
        InvalidTransaction::EmptyAuthorizationList => {
            format!("EIP-7702 transaction with empty auth list (sender {from})")
        }
        InvalidTransaction::CreateInitCodeSizeLimit => "max initcode size exceeded".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reverted(output: &str) -> String {
        let output: Bytes = output.parse().expect("hex");
        RpcError::reverted(&output).message
    }

    #[test]
    fn reasons_are_read_and_nonsense_is_none() {
        let user_error = "0x08c379a00000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000000a75736572206572726f72";
        assert_eq!(reverted(user_error), "execution reverted: user error");
        let panic = "0x4e487b710000000000000000000000000000000000000000000000000000000000000011";
        assert_eq!(
            reverted(panic),
            "execution reverted: arithmetic underflow or overflow"
        );
        // Cut at every place, and with lengths beyond the end.
        for end in (2..user_error.len() - 20).step_by(2) {
            assert_eq!(reverted(&user_error[..end]), "execution reverted", "{end}");
        }
        let far = format!("0x08c379a0{}", "ff".repeat(64));
        assert_eq!(reverted(&far), "execution reverted");
    }
}
