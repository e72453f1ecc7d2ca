//! The third and fourth parameter of `eth_call`: changes of the state and of the block.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_database::{AccountOverride, BlockOverride, Overrides};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::hex::{Hex, optional};
use crate::params::{Params, invalid};
use crate::rpc_error::RpcError;

/// Changes of an account, by the names of go-ethereum.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AccountFields {
    #[serde(default, deserialize_with = "optional")]
    nonce: Option<u64>,
    #[serde(default, deserialize_with = "optional")]
    balance: Option<U256>,
    #[serde(default, deserialize_with = "optional")]
    code: Option<Bytes>,
    state: Option<BTreeMap<Hex<B256>, Hex<B256>>>,
    state_diff: Option<BTreeMap<Hex<B256>, Hex<B256>>>,
}

/// Changes of the block, by the names of go-ethereum.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BlockFields {
    #[serde(default, deserialize_with = "optional")]
    number: Option<u64>,
    #[serde(default, deserialize_with = "optional")]
    difficulty: Option<U256>,
    #[serde(default, deserialize_with = "optional")]
    time: Option<u64>,
    #[serde(default, deserialize_with = "optional")]
    gas_limit: Option<u64>,
    #[serde(default, deserialize_with = "optional")]
    fee_recipient: Option<Address>,
    #[serde(default, deserialize_with = "optional")]
    prev_randao: Option<B256>,
    #[serde(default, deserialize_with = "optional")]
    base_fee_per_gas: Option<u64>,
    #[serde(default, deserialize_with = "optional")]
    blob_base_fee: Option<u128>,
    beacon_root: Option<IgnoredAny>,
    withdrawals: Option<IgnoredAny>,
}

/// Reads the changes that the third and fourth parameter describe, if they are there.
pub(crate) fn read(params: &Params<'_>) -> Result<Overrides, RpcError> {
    let accounts: Option<BTreeMap<Hex<Address>, AccountFields>> = params.optional(2)?;
    let block: BlockFields = params.optional(3)?.unwrap_or_default();
    let unsupported = [
        ("beaconRoot", block.beacon_root.is_some()),
        ("withdrawals", block.withdrawals.is_some()),
    ];
    if let Some((name, _)) = unsupported.iter().find(|(_, is_given)| *is_given) {
        return Err(RpcError::server(format!(
            "block override {name:?} is not supported for this RPC method"
        )));
    }
    let accounts = accounts.unwrap_or_default().into_iter();
    Ok(Overrides {
        accounts: accounts
            .map(|(Hex(address), fields)| Ok((address, account(address, fields)?)))
            .collect::<Result<_, RpcError>>()?,
        block: BlockOverride {
            number: block.number,
            difficulty: block.difficulty,
            time: block.time,
            gas_limit: block.gas_limit,
            fee_recipient: block.fee_recipient,
            prev_randao: block.prev_randao,
            base_fee: block.base_fee_per_gas,
            blob_base_fee: block.blob_base_fee,
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
    let slots = |slots: BTreeMap<Hex<B256>, Hex<B256>>| {
        let slots = slots.into_iter();
        slots
            .map(|(Hex(slot), Hex(value))| (slot.into(), value.into()))
            .collect()
    };
    Ok(AccountOverride {
        nonce: fields.nonce,
        balance: fields.balance,
        code: fields.code,
        state: fields.state.map(slots),
        state_diff: fields.state_diff.map(slots).unwrap_or_default(),
    })
}
