//! Methods that execute on top of a state.

use alloy_eips::eip2930::AccessList;
use alloy_primitives::{TxKind, U64, U256};
use alloy_rpc_types_eth::TransactionRequest;
use arbor_chain::executor::{self, CallEnd, CallError, CallOutcome};
use arbor_database::{BlockState, BlockStateError, GasEstimate};
use serde::Serialize;

use crate::block_choice::BlockChoice;
use crate::call::{Answer, Call, Method, answer, long};
use crate::overrides;
use crate::rpc_error::{RpcError, halt_message};

pub(crate) const METHODS: &[Method] = &[
    long("eth_call", 4, eth_call),
    long("eth_estimateGas", 4, estimate_gas),
    long("eth_createAccessList", 3, create_access_list),
];

/// Reads the call that the first parameter describes. Without `gas` it has `gas_if_absent`; more
/// than the server's limit it never has.
fn request(call: &Call<'_>, gas_if_absent: u64) -> Result<executor::Call, RpcError> {
    let request: TransactionRequest = call.params.required(0)?;
    let (price, fee, priority) = (
        request.gas_price,
        request.max_fee_per_gas,
        request.max_priority_fee_per_gas,
    );
    if price.is_some() && (fee.is_some() || priority.is_some()) {
        return Err(RpcError::server(
            "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
        ));
    }
    let id = call.context.chain.genesis().spec.chain_id();
    if let Some(other) = request.chain_id.filter(|other| *other != id) {
        return Err(RpcError::server(format!(
            "chainId does not match node's (have={other}, want={id})"
        )));
    }
    let input = request.input.try_into_unique_input();
    let input = input.map_err(|_| {
        RpcError::server("both \"data\" and \"input\" are set and not equal. Please use \"input\" to pass transaction call data")
    })?;
    Ok(executor::Call {
        from: request.from.unwrap_or_default(),
        to: request.to.unwrap_or(TxKind::Create),
        gas: request
            .gas
            .unwrap_or(gas_if_absent)
            .min(call.context.limits.gas),
        fee: price.or(fee).unwrap_or(0),
        priority_fee: match price {
            Some(_) => None,
            None => priority.or(fee.map(|_| 0)),
        },
        blob_fee: request.max_fee_per_blob_gas.unwrap_or(0),
        value: request.value.unwrap_or(U256::ZERO),
        input: input.unwrap_or_default(),
        access_list: request.access_list.unwrap_or_default(),
        blob_hashes: request.blob_versioned_hashes.unwrap_or_default(),
        authorizations: request.authorization_list.unwrap_or_default(),
    })
}

/// The state that a call sees: after the block that the second parameter names, with the changes of
/// the third and fourth.
fn state<'a>(call: &Call<'a>) -> Result<BlockState<'a>, RpcError> {
    let overrides = overrides::read(&call.params)?;
    let state = BlockChoice::read(&call.params, 1)?.state(call.context, call.head)?;
    Ok(state.with_overrides(overrides)?)
}

/// An error of a call with so much gas.
fn failed(gas: u64) -> impl Fn(BlockStateError) -> RpcError {
    move |error| match error {
        BlockStateError::Call(CallError::Rejected(why)) => RpcError::rejected(&why, gas),
        error => error.into(),
    }
}

fn eth_call(call: &Call<'_>) -> Answer {
    let request = request(call, u64::MAX)?;
    let state = state(call)?;
    let outcome = state.call(&request, Some(call.deadline));
    match outcome.map_err(failed(request.gas))?.end {
        CallEnd::Returned(output) => answer(&output),
        CallEnd::Reverted(output) => Err(RpcError::reverted(&output)),
        CallEnd::Halted(reason) => Err(RpcError::halted(&reason)),
    }
}

fn estimate_gas(call: &Call<'_>) -> Answer {
    let request = request(call, 0)?;
    let state = state(call)?;
    let cap = call.context.limits.gas;
    let estimate = state.estimate_gas(&request, cap, Some(call.deadline));
    match estimate.map_err(failed(cap))? {
        GasEstimate::Gas(gas) => answer(&U64::from(gas)),
        GasEstimate::Reverted(output) => Err(RpcError::reverted(&output)),
        GasEstimate::Halted(reason) => Err(RpcError::halted(&reason)),
        GasEstimate::Beyond(most) => Err(RpcError::server(format!(
            "gas required exceeds allowance ({most})"
        ))),
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
    let request = request(call, u64::MAX)?;
    let state = state(call)?;
    let made = state.access_list(&request, Some(call.deadline));
    let (access_list, outcome) = made.map_err(failed(request.gas))?;
    answer(&CreatedAccessList {
        access_list,
        error: failure(&outcome),
        gas_used: U64::from(outcome.gas_used),
    })
}

fn failure(outcome: &CallOutcome) -> Option<String> {
    match &outcome.end {
        CallEnd::Returned(_) => None,
        CallEnd::Reverted(_) => Some("execution reverted".to_owned()),
        CallEnd::Halted(reason) => Some(halt_message(reason)),
    }
}
