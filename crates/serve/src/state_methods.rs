//! Methods that read accounts, slots and code.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U64, U256, hex};
use arbor_database::BlockStateError;
use arbor_state::Account;
use arbor_verify::mpt::AccountProof;
use serde::Serialize;
use serde_json::Value;

use crate::block_choice::BlockChoice;
use crate::call::{Answer, Call, Method, answer, heavy, light};
use crate::hex::Hex;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[
    light("eth_getBalance", 2, balance),
    light("eth_getTransactionCount", 2, transaction_count),
    light("eth_getCode", 2, code),
    light("eth_getStorageAt", 3, storage_at),
    heavy("eth_getStorageValues", 2, storage_values),
    heavy("eth_getProof", 3, proof),
];

/// Reads the account that the first parameter names, after the block that another one names.
fn account(call: &Call<'_>, block: usize) -> Result<Option<Account>, RpcError> {
    let address: Address = call.params.hex(0)?;
    let state = BlockChoice::read(&call.params, block)?.state(call.context, call.head)?;
    let account = state.view()?.account(address);
    Ok(account.map_err(BlockStateError::from)?)
}

fn balance(call: &Call<'_>) -> Answer {
    let balance = account(call, 1)?.map_or(U256::ZERO, |account| account.balance);
    answer(&balance)
}

fn transaction_count(call: &Call<'_>) -> Answer {
    let nonce = account(call, 1)?.map_or(0, |account| account.nonce);
    answer(&U64::from(nonce))
}

fn code(call: &Call<'_>) -> Answer {
    let address: Address = call.params.hex(0)?;
    let state = BlockChoice::read(&call.params, 1)?.state(call.context, call.head)?;
    let view = state.view()?;
    let read = || match view.account(address)?.map(|account| account.code_hash) {
        None | Some(KECCAK256_EMPTY) => Ok(Bytes::new()),
        Some(hash) => view.code(hash),
    };
    answer(&read().map_err(BlockStateError::from)?)
}

fn storage_at(call: &Call<'_>) -> Answer {
    let address: Address = call.params.hex(0)?;
    let key: String = call.params.required(1)?;
    let slot = SlotKey::parse(&key)?.slot;
    let state = BlockChoice::read(&call.params, 2)?.state(call.context, call.head)?;
    let value = state.view()?.storage(address, slot);
    answer(&B256::from(value.map_err(BlockStateError::from)?))
}

fn storage_values(call: &Call<'_>) -> Answer {
    let asked: BTreeMap<Hex<Address>, Vec<String>> = call.params.required(0)?;
    let count: usize = asked.values().map(Vec::len).sum();
    let most = call.context.limits.slots;
    match count {
        0 => return Err(RpcError::params("empty request")),
        _ if count > most => return Err(RpcError::limit(format!("too many slots (max {most})"))),
        _ => {}
    }
    let state = BlockChoice::read(&call.params, 1)?.state(call.context, call.head)?;
    let view = state.view()?;
    let mut values: BTreeMap<Address, Vec<B256>> = BTreeMap::new();
    for (Hex(address), keys) in asked {
        let values = values.entry(address).or_default();
        for key in keys {
            let value = view.storage(address, SlotKey::parse(&key)?.slot);
            values.push(value.map_err(BlockStateError::from)?.into());
        }
    }
    answer(&values)
}

/// The key of a slot as a client writes it: at most 32 bytes of hexadecimal digits, with or without
/// `0x`.
struct SlotKey {
    slot: U256,
    /// How an answer repeats it: all 32 bytes if all were given, else a number.
    repeated: String,
}

impl SlotKey {
    fn parse(text: &str) -> Result<Self, RpcError> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let digits = digits.unwrap_or(text);
        let wrong = |why: &str| RpcError::params(format!("{why}: {text:?}"));
        if digits.len().div_ceil(2) > 32 {
            return Err(wrong("storage key too long (want at most 32 bytes)"));
        }
        let even = format!("{}{digits}", if digits.len() % 2 == 1 { "0" } else { "" });
        let bytes = hex::decode(&even).map_err(|_| wrong("invalid hex in storage key"))?;
        let slot = U256::from_be_slice(&bytes);
        Ok(Self {
            slot,
            repeated: match bytes.len() {
                32 => B256::from(slot).to_string(),
                _ => format!("{slot:#x}"),
            },
        })
    }
}

/// A proof of EIP-1186.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Eip1186<'a> {
    address: Address,
    account_proof: &'a [Bytes],
    balance: U256,
    code_hash: B256,
    nonce: U64,
    storage_hash: B256,
    storage_proof: Vec<Eip1186Slot<'a>>,
}

#[derive(Serialize)]
struct Eip1186Slot<'a> {
    key: &'a str,
    value: U256,
    proof: &'a [Bytes],
}

/// Proves an account and slots: by EIP-1186 if the tree is the one that it is about, else in the
/// tree's own form, with the names of tree and form.
fn proof(call: &Call<'_>) -> Answer {
    let address: Address = call.params.hex(0)?;
    let keys: Vec<String> = call.params.optional(1)?.unwrap_or_default();
    let (count, most) = (keys.len(), call.context.limits.slots);
    if count > most {
        return Err(RpcError::params(format!(
            "too many storage keys requested (max {most}, got {count})"
        )));
    }
    let keys = keys.iter().map(|key| SlotKey::parse(key));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    let state = BlockChoice::read(&call.params, 2)?.state(call.context, call.head)?;
    let slots: Vec<U256> = keys.iter().map(|key| key.slot).collect();
    let proof = state.prove(address, &slots)?;
    if let Some(proof) = proof.downcast::<AccountProof>() {
        let slots = keys.iter().zip(&proof.storage_proof);
        return answer(&Eip1186 {
            address,
            account_proof: &proof.account_proof,
            balance: proof.balance,
            code_hash: proof.code_hash,
            nonce: proof.nonce,
            storage_hash: proof.storage_hash,
            storage_proof: slots
                .map(|(key, slot)| Eip1186Slot {
                    key: &key.repeated,
                    value: slot.value,
                    proof: &slot.proof,
                })
                .collect(),
        });
    }
    let unwritten = |error: serde_json::Error| RpcError::server(error.to_string());
    let mut json = Vec::new();
    proof.write_json(&mut json, false).map_err(unwritten)?;
    let mut json: Value = serde_json::from_slice(&json).map_err(unwritten)?;
    if let Some(fields) = json.as_object_mut() {
        let tree = call.head.tree().name_of(&*proof);
        fields.insert("tree".to_owned(), tree.into());
    }
    answer(&json)
}
