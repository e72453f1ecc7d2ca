//! From planned to signed transactions.

use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::B256;
use rayon::prelude::*;

use arbor_chain::source::Transaction;

use super::{
    accounts::Accounts,
    workload::{Envelope, Planned},
};

/// Signs a block's transactions on all of rayon's threads, in order.
pub(super) fn sign_all(
    planned: &[Planned],
    accounts: &Accounts,
    chain_id: u64,
) -> Vec<Transaction> {
    planned
        .par_iter()
        .map(|transaction| sign(transaction, accounts, chain_id))
        .collect()
}

fn sign(planned: &Planned, accounts: &Accounts, chain_id: u64) -> Transaction {
    let Planned {
        sender,
        nonce,
        max_fee,
        tip,
        ref call,
        ..
    } = *planned;
    let (to, value, input, gas_limit) = (call.to, call.value, call.input.clone(), call.gas_limit);
    match planned.envelope {
        Envelope::Legacy => {
            let transaction = TxLegacy {
                chain_id: Some(chain_id),
                nonce,
                gas_price: max_fee,
                gas_limit,
                to,
                value,
                input,
            };
            signed(transaction, sender, accounts)
        }
        Envelope::AccessList => {
            let access_list = access_list(planned);
            let transaction = TxEip2930 {
                chain_id,
                nonce,
                gas_price: max_fee,
                gas_limit,
                to,
                value,
                access_list,
                input,
            };
            signed(transaction, sender, accounts)
        }
        Envelope::DynamicFee => {
            let transaction = TxEip1559 {
                chain_id,
                nonce,
                gas_limit,
                max_fee_per_gas: max_fee,
                max_priority_fee_per_gas: tip,
                to,
                value,
                access_list: AccessList::default(),
                input,
            };
            signed(transaction, sender, accounts)
        }
    }
}

fn signed<T>(transaction: T, sender: u64, accounts: &Accounts) -> Transaction
where
    T: SignableTransaction<alloy_primitives::Signature>,
    alloy_consensus::Signed<T>: Into<Transaction>,
{
    let signature = accounts.sign(sender, &transaction);
    transaction.into_signed(signature).into()
}

fn access_list(planned: &Planned) -> AccessList {
    let item = |(address, slot)| AccessListItem {
        address,
        storage_keys: vec![B256::from(slot)],
    };
    AccessList(planned.call.reads.map(item).into_iter().collect())
}
