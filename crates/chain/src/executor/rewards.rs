//! Balances that change outside of transactions: the DAO fork, withdrawals, block rewards.

use alloy_consensus::Header;
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{Address, U256};
use arbor_state::{ReadError, StateView};

use super::Rules;
use super::dao_accounts::{DAO_ACCOUNTS, DAO_REFUND_CONTRACT};
use super::overlay::Overlay;

/// Wei in a gwei, the unit of withdrawals (EIP-4895).
const GWEI: u64 = 1_000_000_000;

/// Moves the balances of the DAO fork (EIP-779). Accounts that do not exist are created empty, like in the first
/// clients. An account that has no ether is not touched, so that EIP-161 does not delete it.
pub(super) fn move_dao_balances<S: StateView + ?Sized>(
    overlay: &mut Overlay<'_, S>,
) -> Result<(), ReadError> {
    for account in DAO_ACCOUNTS {
        let balance = overlay.balance(account)?;
        if balance != Some(U256::ZERO) {
            overlay.set_balance(account, U256::ZERO)?;
        }
        add_balance(overlay, DAO_REFUND_CONTRACT, balance.unwrap_or_default())?;
    }
    Ok(())
}

/// Credits withdrawals (EIP-4895), which are in gwei.
pub(super) fn credit_withdrawals<S: StateView + ?Sized>(
    overlay: &mut Overlay<'_, S>,
    withdrawals: &[Withdrawal],
) -> Result<(), ReadError> {
    for withdrawal in withdrawals {
        let amount = U256::from(withdrawal.amount) * U256::from(GWEI);
        add_balance(overlay, withdrawal.address, amount)?;
    }
    Ok(())
}

/// Pays the beneficiaries of a proof-of-work block and of its ommers (yellow paper, section 11.3).
pub(super) fn pay_rewards<S: StateView + ?Sized>(
    overlay: &mut Overlay<'_, S>,
    rules: &Rules,
    header: &Header,
    ommers: &[Header],
) -> Result<(), ReadError> {
    if rules.is_merged() {
        return Ok(());
    }
    let mut reward = rules.rewards.block(rules.fork, header.number);
    for ommer in ommers {
        let (ommer_reward, inclusion) =
            rules.rewards.ommer(rules.fork, header.number, ommer.number);
        add_balance(overlay, ommer.beneficiary, ommer_reward)?;
        reward += inclusion;
    }
    add_balance(overlay, header.beneficiary, reward)
}

fn add_balance<S: StateView + ?Sized>(
    overlay: &mut Overlay<'_, S>,
    address: Address,
    amount: U256,
) -> Result<(), ReadError> {
    let balance = overlay.balance(address)?.unwrap_or_default();
    overlay.set_balance(address, balance.saturating_add(amount))
}
