//! The third and fourth parameter of `eth_call`: changes of the state and of the block.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U64, U256};
use arbor_database::{AccountOverride, BlockOverride, Overrides};
use serde::Deserialize;

use crate::params::{Params, invalid};
use crate::rpc_error::RpcError;

/// Changes of an account, by the names of go-ethereum.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AccountFields {
    nonce: Option<U64>,
    balance: Option<U256>,
    code: Option<Bytes>,
    state: Option<BTreeMap<B256, B256>>,
    state_diff: Option<BTreeMap<B256, B256>>,
}

/// Changes of the block, by the names of go-ethereum.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BlockFields {
    number: Option<U64>,
    time: Option<U64>,
    gas_limit: Option<U64>,
    fee_recipient: Option<Address>,
    prev_randao: Option<B256>,
    base_fee_per_gas: Option<U64>,
}

/// Reads the changes that the third and fourth parameter describe, if they are there.
pub(crate) fn read(params: &Params<'_>) -> Result<Overrides, RpcError> {
    let accounts: Option<BTreeMap<Address, AccountFields>> = params.optional(2)?;
    let block: BlockFields = params.optional(3)?.unwrap_or_default();
    let accounts = accounts.unwrap_or_default().into_iter();
    let number = |field: Option<U64>| field.map(|field| field.to::<u64>());
    Ok(Overrides {
        accounts: accounts
            .map(|(address, fields)| Ok((address, account(address, fields)?)))
            .collect::<Result<_, RpcError>>()?,
        block: BlockOverride {
            number: number(block.number),
            time: number(block.time),
            gas_limit: number(block.gas_limit),
            fee_recipient: block.fee_recipient,
            prev_randao: block.prev_randao,
            base_fee: number(block.base_fee_per_gas),
        },
    })
}

fn account(address: Address, fields: AccountFields) -> Result<AccountOverride, RpcError> {
    if fields.state.is_some() && fields.state_diff.is_some() {
        return Err(invalid(
            2,
            format!("account {address:#x} has both 'state' and 'stateDiff'"),
        ));
    }
    let slots = |slots: BTreeMap<B256, B256>| {
        let slots = slots.into_iter();
        slots
            .map(|(slot, value)| (slot.into(), value.into()))
            .collect()
    };
    Ok(AccountOverride {
        nonce: fields.nonce.map(|nonce| nonce.to()),
        balance: fields.balance,
        code: fields.code,
        state: fields.state.map(slots),
        state_diff: fields.state_diff.map(slots).unwrap_or_default(),
    })
}
