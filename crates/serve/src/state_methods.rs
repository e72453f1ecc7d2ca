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
use crate::params::invalid;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[
    light("eth_getBalance", 2, balance),
    light("eth_getTransactionCount", 2, transaction_count),
    light("eth_getCode", 2, code),
    light("eth_getStorageAt", 3, storage_at),
    heavy("eth_getStorageValues", 2, storage_values),
    heavy("eth_getProof", 3, proof),
    heavy("debug_accountRange", 6, account_range),
];

/// Reads the account that the first parameter names, after the block that another one names.
fn account(call: &Call<'_>, block: usize) -> Result<Option<Account>, RpcError> {
    let address: Address = call.params.required(0)?;
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
    let address: Address = call.params.required(0)?;
    let state = BlockChoice::read(&call.params, 1)?.state(call.context, call.head)?;
    let view = state.view()?;
    let read = || match view.account(address)?.map(|account| account.code_hash) {
        None | Some(KECCAK256_EMPTY) => Ok(Bytes::new()),
        Some(hash) => view.code(hash),
    };
    answer(&read().map_err(BlockStateError::from)?)
}

fn storage_at(call: &Call<'_>) -> Answer {
    let address: Address = call.params.required(0)?;
    let key: String = call.params.required(1)?;
    let slot = SlotKey::parse(&key)?.slot;
    let state = BlockChoice::read(&call.params, 2)?.state(call.context, call.head)?;
    let value = state.view()?.storage(address, slot);
    answer(&B256::from(value.map_err(BlockStateError::from)?))
}

fn storage_values(call: &Call<'_>) -> Answer {
    let asked: BTreeMap<Address, Vec<String>> = call.params.required(0)?;
    let count: usize = asked.values().map(Vec::len).sum();
    if count == 0 {
        return Err(RpcError::params("empty request"));
    }
    check_count(count, call)?;
    let state = BlockChoice::read(&call.params, 1)?.state(call.context, call.head)?;
    let view = state.view()?;
    let mut values: BTreeMap<Address, Vec<B256>> = BTreeMap::new();
    for (address, keys) in asked {
        let values = values.entry(address).or_default();
        for key in keys {
            let value = view.storage(address, SlotKey::parse(&key)?.slot);
            values.push(value.map_err(BlockStateError::from)?.into());
        }
    }
    answer(&values)
}

fn check_count(count: usize, call: &Call<'_>) -> Result<(), RpcError> {
    let most = call.context.limits.slots;
    match count <= most {
        true => Ok(()),
        false => Err(RpcError::params(format!("too many slots (max {most})"))),
    }
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
    let address: Address = call.params.required(0)?;
    let keys: Vec<String> = call.params.optional(1)?.unwrap_or_default();
    check_count(keys.len(), call)?;
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
        let tree = call.head.tree().kind().name;
        fields.insert("tree".to_owned(), tree.into());
    }
    answer(&json)
}

/// The most accounts of one answer, as in go-ethereum.
const RANGE: usize = 256;

#[derive(Serialize)]
struct AccountRange {
    root: String,
    accounts: BTreeMap<Address, RangeAccount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<B256>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RangeAccount {
    balance: String,
    nonce: u64,
    code_hash: B256,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Bytes>,
}

/// Lists accounts of the latest block, without their slots, from a key of the flat tables on.
fn account_range(call: &Call<'_>) -> Answer {
    let block = BlockChoice::read(&call.params, 0)?.state(call.context, call.head)?;
    let start: Option<Bytes> = call.params.optional(1)?;
    let most = call.params.optional(2)?.unwrap_or(RANGE);
    let without_code = call.params.optional(3)?.unwrap_or(false);
    let without_storage = call.params.optional(4)?.unwrap_or(false);
    if Some(block.meta().version) != call.head.meta().map(|head| head.version) {
        return Err(invalid(0, "accounts are listed of the latest block alone"));
    }
    if !without_storage {
        return Err(invalid(4, "slots are not listed: nostorage must be true"));
    }
    let start = start.unwrap_or_default();
    if start.len() > 32 {
        return Err(invalid(1, "a key has at most 32 bytes"));
    }
    let mut key = [0; 32];
    key[..start.len()].copy_from_slice(&start);
    let order = call.head.tree().order();
    let mut range = AccountRange {
        root: hex::encode(block.meta().root),
        accounts: BTreeMap::new(),
        next: None,
    };
    let view = block.view()?;
    let mut next = Some(U256::from_be_bytes(key));
    while let Some(from) = next.take() {
        let found = call.head.account_from(&from.to_be_bytes());
        let Some(address) = found.map_err(BlockStateError::from)? else {
            break;
        };
        let mut key = [[0; 32]];
        (order.account_keys)(&[address], &mut key);
        let key = U256::from_be_bytes(key[0]);
        if range.accounts.contains_key(&address) {
            // Keys are addresses, of which the first 20 bytes count.
            next = (key | U256::from(u128::MAX >> 32)).checked_add(U256::ONE);
            continue;
        }
        if range.accounts.len() == most.min(RANGE).min(call.context.limits.slots) {
            range.next = Some(key.into());
            break;
        }
        let listed = view.account(address).map_err(BlockStateError::from)?;
        if let Some(account) = listed {
            let code = match account.code_hash {
                KECCAK256_EMPTY => None,
                _ if without_code => None,
                hash => Some(view.code(hash).map_err(BlockStateError::from)?),
            };
            let account = RangeAccount {
                balance: account.balance.to_string(),
                nonce: account.nonce,
                code_hash: account.code_hash,
                code,
            };
            range.accounts.insert(address, account);
        }
        next = key.checked_add(U256::ONE);
    }
    answer(&range)
}
