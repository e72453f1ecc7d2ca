//! The fields of a call, by the names of go-ethereum. Other fields are not looked at.

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use arbor_chain::executor;
use serde::Deserialize;

use crate::hex::{Hex, optional};
use crate::rpc_error::RpcError;

/// A call as a client writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallFields {
    #[serde(default, deserialize_with = "optional")]
    from: Option<Address>,
    #[serde(default, deserialize_with = "optional")]
    to: Option<Address>,
    #[serde(default, deserialize_with = "optional")]
    gas: Option<u64>,
    #[serde(default, deserialize_with = "optional")]
    pub(crate) gas_price: Option<u128>,
    #[serde(default, deserialize_with = "optional")]
    pub(crate) max_fee_per_gas: Option<u128>,
    #[serde(default, deserialize_with = "optional")]
    pub(crate) max_priority_fee_per_gas: Option<u128>,
    #[serde(default, deserialize_with = "optional")]
    pub(crate) max_fee_per_blob_gas: Option<u128>,
    #[serde(default, deserialize_with = "optional")]
    value: Option<U256>,
    /// Of no use, but read all the same.
    #[serde(default, deserialize_with = "optional", rename = "nonce")]
    _nonce: Option<u64>,
    /// The older name of `input`.
    #[serde(default, deserialize_with = "optional")]
    data: Option<Bytes>,
    #[serde(default, deserialize_with = "optional")]
    input: Option<Bytes>,
    #[serde(default, deserialize_with = "optional")]
    chain_id: Option<U256>,
    access_list: Option<Vec<AccessItem>>,
    pub(crate) blob_versioned_hashes: Option<Vec<Hex<B256>>>,
    pub(crate) authorization_list: Option<Vec<AuthorizationFields>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessItem {
    address: Hex<Address>,
    storage_keys: Vec<Hex<B256>>,
}

/// An authorization of EIP-7702 as a client writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AuthorizationFields {
    chain_id: Hex<U256>,
    address: Hex<Address>,
    nonce: Hex<u64>,
    y_parity: Hex<u64>,
    r: Hex<U256>,
    s: Hex<U256>,
}

impl CallFields {
    /// Checks that the fees are of one kind, and that the chain is this one.
    pub(crate) fn check(&self, chain_id: u64) -> Result<(), RpcError> {
        let has_fees = self.max_fee_per_gas.is_some() || self.max_priority_fee_per_gas.is_some();
        if self.gas_price.is_some() && has_fees {
            return Err(RpcError::server(
                "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
            ));
        }
        match self.chain_id.filter(|id| *id != U256::from(chain_id)) {
            Some(other) => Err(RpcError::server(format!(
                "chainId does not match node's (have={other}, want={chain_id})"
            ))),
            None => Ok(()),
        }
    }

    /// Makes the call, with this gas if it names none, and never with more than `most`.
    pub(crate) fn into_call(self, gas_if_absent: u64, most: u64) -> executor::Call {
        let (price, fee) = (self.gas_price, self.max_fee_per_gas);
        let has_blobs = self.blob_versioned_hashes.is_some();
        let all = |hashes: Vec<Hex<B256>>| -> Vec<B256> {
            hashes.into_iter().map(|Hex(hash)| hash).collect()
        };
        let list = self.access_list.into_iter().flatten();
        let list = list.map(|item| AccessListItem {
            address: item.address.0,
            storage_keys: all(item.storage_keys),
        });
        executor::Call {
            from: self.from.unwrap_or_default(),
            to: self.to.map_or(TxKind::Create, TxKind::Call),
            gas: self.gas.unwrap_or(gas_if_absent).min(most),
            fee: price.or(fee).unwrap_or(0),
            priority_fee: match price {
                Some(_) => None,
                None => self.max_priority_fee_per_gas.or(fee.map(|_| 0)),
            },
            blob_fee: self.max_fee_per_blob_gas.or(has_blobs.then_some(0)),
            value: self.value.unwrap_or(U256::ZERO),
            input: self.input.or(self.data).unwrap_or_default(),
            access_list: AccessList(list.collect()),
            blob_hashes: self.blob_versioned_hashes.map(all),
            authorizations: self.authorization_list.map(|list| {
                let list = list.into_iter();
                list.map(AuthorizationFields::signed).collect()
            }),
        }
    }
}

impl AuthorizationFields {
    fn signed(self) -> SignedAuthorization {
        let authorization = Authorization {
            chain_id: self.chain_id.0,
            address: self.address.0,
            nonce: self.nonce.0,
        };
        // As in go-ethereum, which keeps the last byte.
        let [.., parity] = self.y_parity.0.to_be_bytes();
        SignedAuthorization::new_unchecked(authorization, parity, self.r.0, self.s.0)
    }
}
