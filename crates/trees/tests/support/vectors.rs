//! Vectors from ../shared/vectors, and the states that they have.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use alloy_primitives::{B256, KECCAK256_EMPTY, U256, hex, keccak256};
use arbor_state::Account;
use arbor_state_tree::conformance::{Codes, Contents};
use serde_json::Value;

pub(crate) fn bytes(test: &str, name: &str) -> Option<Vec<u8>> {
    let path = arbor_testdata::find(test, &format!("vectors/{name}"))?;
    Some(std::fs::read(path).unwrap())
}

pub(crate) fn json(test: &str, name: &str) -> Option<Value> {
    Some(serde_json::from_slice(&bytes(test, name)?).unwrap())
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

pub(crate) fn hex_of(value: &Value) -> Vec<u8> {
    hex::decode(text(value)).unwrap()
}

pub(crate) fn hash(value: &Value) -> B256 {
    text(value).parse().unwrap()
}

pub(crate) fn number_of(text: &str) -> U256 {
    match text.strip_prefix("0x") {
        Some("") => U256::ZERO,
        Some(digits) => U256::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

pub(crate) fn number(value: &Value) -> U256 {
    match value {
        Value::Null => U256::ZERO,
        Value::String(text) => number_of(text),
        other => other.to_string().parse().unwrap(),
    }
}

pub(crate) fn code_hash(code: &[u8]) -> B256 {
    match code.is_empty() {
        true => KECCAK256_EMPTY,
        false => keccak256(code),
    }
}

/// An allocation as genesis files and test tools write it.
pub(crate) fn allocation(alloc: &Value) -> (Contents, Codes) {
    let (mut contents, mut codes) = (Contents::new(), Codes::new());
    for (address, of) in alloc.as_object().unwrap() {
        let code = of["code"].as_str().map(|code| hex::decode(code).unwrap());
        let code = code.unwrap_or_default();
        let account = Account {
            nonce: number(&of["nonce"]).to(),
            balance: number(&of["balance"]),
            code_hash: code_hash(&code),
        };
        codes.insert(account.code_hash, code.into());
        let slots = of["storage"].as_object().into_iter().flatten();
        let slots = slots.map(|(slot, value)| (number_of(slot), number(value)));
        let slots = slots.filter(|(_, value)| !value.is_zero());
        contents.insert(address.parse().unwrap(), (account, slots.collect()));
    }
    (contents, codes)
}
