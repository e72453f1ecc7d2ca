//! Accounts as revm has them.

use alloy_primitives::KECCAK256_EMPTY;
use arbor_accounts::Account;
use revm::state::AccountInfo;

/// Returns an account without what revm keeps beside it. A code hash of zero, which revm also has for an account without code, is that of the
/// empty code.
#[must_use]
pub fn account_of(info: &AccountInfo) -> Account {
    let code_hash = match info.code_hash.is_zero() {
        true => KECCAK256_EMPTY,
        false => info.code_hash,
    };
    Account {
        nonce: info.nonce,
        balance: info.balance,
        code_hash,
    }
}

/// Returns what revm keeps of an account, without its code.
#[must_use]
pub fn info_of(account: Account) -> AccountInfo {
    AccountInfo {
        nonce: account.nonce,
        balance: account.balance,
        code_hash: account.code_hash,
        code: None,
        account_id: None,
    }
}
