//! `arbor get`: an account, a slot or code.

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use anyhow::Result;
use arbor_state::{Account, Historical, StateView};
use serde::Serialize;

use crate::args::Get;
use crate::names::show_word;
use crate::{database, output};

/// The account, slot or code that was asked for, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    address: Address,
    /// The block after which it is so.
    block: u64,
    block_hash: B256,
    /// Whether there is no such account; of a slot, whether it is zero.
    absent: bool,
    #[serde(flatten)]
    value: Value,
}

#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Value {
    Account {
        nonce: Option<u64>,
        /// In wei, decimal.
        balance: Option<String>,
        code_hash: Option<B256>,
    },
    Slot {
        slot: String,
        value: String,
    },
    Code {
        code_hash: Option<B256>,
        code: Bytes,
    },
}

/// What is absent is named so, and is no error.
pub(crate) fn run(args: &Get) -> Result<()> {
    let state = database::look(&args.database)?;
    let state = state.reader();
    let then = state.at(args.at.version(state)?)?;
    let account = then.account(args.address)?;
    let (absent, value) = match args.slot {
        Some(slot) => slot_value(&then, args.address, slot)?,
        None if args.code => (account.is_none(), code_value(&then, account)?),
        None => (account.is_none(), account_value(account)),
    };
    let found = Found {
        address: args.address,
        block: then.meta().block_number,
        block_hash: then.meta().block_hash.into(),
        absent,
        value,
    };
    if absent && !args.json {
        tell_absent(&found, args.slot.unwrap_or_default(), account.is_none());
    }
    match &found.value {
        Value::Slot { value, .. } if !args.json => output::line(value),
        Value::Code { code, .. } if !args.json => output::line(&code.to_string()),
        _ => output::json(&found),
    }
}

fn account_value(account: Option<Account>) -> Value {
    Value::Account {
        nonce: account.map(|account| account.nonce),
        balance: account.map(|account| account.balance.to_string()),
        code_hash: account.map(|account| account.code_hash),
    }
}

fn slot_value(then: &Historical<'_>, address: Address, slot: U256) -> Result<(bool, Value)> {
    let value = then.storage(address, slot)?;
    let found = Value::Slot {
        slot: show_word(slot),
        value: show_word(value),
    };
    Ok((value.is_zero(), found))
}

fn code_value(then: &Historical<'_>, account: Option<Account>) -> Result<Value> {
    let code_hash = account.map(|account| account.code_hash);
    let code = match code_hash {
        None | Some(KECCAK256_EMPTY) => Bytes::new(),
        Some(hash) => then.code(hash)?,
    };
    Ok(Value::Code { code_hash, code })
}

/// Names on standard error what is absent.
fn tell_absent(found: &Found, slot: U256, is_account: bool) {
    let Found { address, block, .. } = found;
    output::tell(&match (&found.value, is_account) {
        (Value::Slot { .. }, true) => {
            format!("account {address:#x} is absent at block {block}: its slots are zero")
        }
        (Value::Slot { .. }, false) => {
            format!("slot {slot:#x} of account {address:#x} is absent at block {block}: it is zero")
        }
        (Value::Code { .. }, _) => {
            format!("account {address:#x} is absent at block {block}: it has no code")
        }
        (Value::Account { .. }, _) => format!("account {address:#x} is absent at block {block}"),
    });
}
