//! `arbor get`: an account, a slot or code.

use anyhow::{Result, bail};
use arbor_state::StateView;
use serde_json::json;

use crate::args::Get;
use crate::{database, output};

pub(crate) fn run(args: &Get) -> Result<()> {
    let state = database::look(&args.database)?;
    let state = state.reader();
    let then = state.at(database::version_of(state, args.at)?)?;
    if let Some(slot) = args.slot {
        if then.account(args.address)?.is_none() {
            let (address, block) = (args.address, then.meta().block_number);
            output::tell(&format!(
                "there is no account {address} at block {block}: its slots are zero"
            ));
        }
        return output::line(&format!("{:#066x}", then.storage(args.address, slot)?));
    }
    let Some(account) = then.account(args.address)? else {
        bail!(
            "there is no account {} at block {}",
            args.address,
            then.meta().block_number
        );
    };
    if args.code {
        let code = match account.code_hash {
            alloy_primitives::KECCAK256_EMPTY => Default::default(),
            hash => then.code(hash)?,
        };
        return output::line(&code.to_string());
    }
    output::json(&json!({
        "address": args.address,
        "block": then.meta().block_number,
        "nonce": account.nonce,
        "balance": account.balance.to_string(),
        "codeHash": account.code_hash,
    }))
}
