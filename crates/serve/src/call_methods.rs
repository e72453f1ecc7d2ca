//! Methods that execute on top of a state.

use alloy_eips::eip2930::AccessList;
use alloy_primitives::U64;
use arbor_chain::executor::{self, CallEnd, CallError, CallOutcome, InvalidTransaction};
use arbor_database::{BlockState, BlockStateError, GasEstimate};
use serde::Serialize;

use crate::block_choice::BlockChoice;
use crate::call::{Answer, Call, Method, answer, long};
use crate::call_fields::CallFields;
use crate::chain_methods::blob_fee;
use crate::overrides;
use crate::rpc_error::{RpcError, halt_message, rejected_message};

pub(crate) const METHODS: &[Method] = &[
    long("eth_call", 4, eth_call),
    long("eth_estimateGas", 4, estimate_gas),
    long("eth_createAccessList", 3, create_access_list),
];

/// Reads the call that the first parameter describes.
fn fields(call: &Call<'_>) -> Result<CallFields, RpcError> {
    let fields: CallFields = call.params.required(0)?;
    fields.check(call.context.chain.genesis().spec.chain_id())?;
    Ok(fields)
}

/// Like [`fields`], as the call to make. Without `gas` it has `gas_if_absent`; more than the server's
/// limit it never has.
fn request(call: &Call<'_>, gas_if_absent: u64) -> Result<executor::Call, RpcError> {
    Ok(fields(call)?.into_call(gas_if_absent, call.context.limits.gas))
}

/// The state that a call sees: after the block that the second parameter names, with the changes of
/// the third and fourth.
fn state<'a>(call: &Call<'a>) -> Result<BlockState<'a>, RpcError> {
    let overrides = overrides::read(&call.params)?;
    let state = BlockChoice::read(&call.params, 1)?.state(call.context, call.head)?;
    Ok(state.with_overrides(overrides)?)
}

/// Returns why a call was rejected.
fn rejected(why: &InvalidTransaction, call: &executor::Call, state: &BlockState<'_>) -> String {
    let base_fee = state.rules().ok();
    let base_fee = base_fee.and_then(|(header, _)| header.base_fee_per_gas);
    rejected_message(why, call, base_fee)
}

fn eth_call(call: &Call<'_>) -> Answer {
    let request = request(call, u64::MAX)?;
    let state = state(call)?;
    let outcome = match state.call(&request, Some(call.deadline)) {
        Err(BlockStateError::Call(CallError::Rejected(why))) => {
            let (why, gas) = (rejected(&why, &request, &state), request.gas);
            return Err(RpcError::server(format!("err: {why} (supplied gas {gas})")));
        }
        outcome => outcome?,
    };
    match outcome.end {
        CallEnd::Returned(output) => answer(&output),
        CallEnd::Reverted(output) => Err(RpcError::reverted(&output)),
        CallEnd::Halted(reason) => Err(RpcError::halted(&reason)),
    }
}

fn estimate_gas(call: &Call<'_>) -> Answer {
    let request = request(call, 0)?;
    let state = state(call)?;
    let cap = call.context.limits.gas;
    let estimate = state.estimate_gas(&request, cap, Some(call.deadline))?;
    match estimate {
        GasEstimate::Gas(gas) => answer(&U64::from(gas)),
        GasEstimate::Reverted(output) => Err(RpcError::reverted(&output)),
        GasEstimate::Halted(reason) => Err(RpcError::halted(&reason)),
        GasEstimate::Beyond(most) => Err(RpcError::server(format!(
            "gas required exceeds allowance ({most})"
        ))),
        GasEstimate::Rejected { why, gas } => {
            let why = rejected(&why, &request, &state);
            Err(RpcError::server(format!("failed with {gas} gas: {why}")))
        }
        GasEstimate::Unfunded { for_blobs: true } => Err(RpcError::server(
            "insufficient funds for gas * price + value",
        )),
        GasEstimate::Unfunded { for_blobs: false } => {
            Err(RpcError::server("insufficient funds for transfer"))
        }
    }
}

/// The accounts and slots that a call touches, with the gas that the call uses if it lists them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreatedAccessList {
    access_list: AccessList,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    gas_used: U64,
}

fn create_access_list(call: &Call<'_>) -> Answer {
    let mut fields = fields(call)?;
    let state = state(call)?;
    complete_fees(&mut fields, call, &state)?;
    let request = fields.into_call(u64::MAX, call.context.limits.gas);
    let (access_list, outcome) = match state.access_list(&request, Some(call.deadline)) {
        Err(BlockStateError::Call(CallError::Rejected(why))) => {
            let why = rejected(&why, &request, &state);
            return Err(RpcError::server(format!(
                "failed to apply transaction: {why}"
            )));
        }
        made => made?,
    };
    answer(&CreatedAccessList {
        access_list,
        error: failure(&outcome),
        gas_used: U64::from(outcome.gas_used),
    })
}

/// Checks the fees of a transaction to be, and completes them like go-ethereum. A call that names no
/// fee pays none, so that its sender needs no funds for it.
fn complete_fees(
    fields: &mut CallFields,
    call: &Call<'_>,
    state: &BlockState<'_>,
) -> Result<(), RpcError> {
    let refused = |why: &str| Err(RpcError::server(why));
    let header = state.header()?;
    let spec = &call.context.chain.genesis().spec;
    if fields.max_fee_per_blob_gas == Some(0) {
        return refused("maxFeePerBlobGas, if specified, must be non-zero");
    }
    if let Some(price) = blob_fee(spec, &header)
        && fields.blob_versioned_hashes.is_some()
    {
        fields
            .max_fee_per_blob_gas
            .get_or_insert(price.saturating_mul(2));
    }
    if fields.gas_price.is_some() && fields.authorization_list.is_some() {
        return refused("both gasPrice and authorizationList specified");
    }
    let Some(base_fee) = header.base_fee_per_gas else {
        let (fee, tip) = (fields.max_fee_per_gas, fields.max_priority_fee_per_gas);
        return match fee.or(tip) {
            Some(_) => refused(
                "maxFeePerGas and maxPriorityFeePerGas are not valid before London is active",
            ),
            None => Ok(()),
        };
    };
    if fields.gas_price == Some(0) {
        return refused("gasPrice must be non-zero after london fork");
    }
    let Some(tip) = fields.max_priority_fee_per_gas else {
        return Ok(());
    };
    let twice = 2 * u128::from(base_fee);
    let fee = *fields
        .max_fee_per_gas
        .get_or_insert(tip.saturating_add(twice));
    if fee == 0 {
        return refused("maxFeePerGas must be non-zero");
    }
    match fee < tip {
        true => refused(&format!(
            "maxFeePerGas ({fee:#x}) < maxPriorityFeePerGas ({tip:#x})"
        )),
        false => Ok(()),
    }
}

fn failure(outcome: &CallOutcome) -> Option<String> {
    match &outcome.end {
        CallEnd::Returned(_) => None,
        CallEnd::Reverted(_) => Some("execution reverted".to_owned()),
        CallEnd::Halted(reason) => Some(halt_message(reason)),
    }
}
