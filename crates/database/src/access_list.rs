//! The access list that a call would have (`eth_createAccessList`).

use std::collections::BTreeMap;
use std::time::Instant;

use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, B256, TxKind};
use arbor_chain::executor::{Call, CallError, CallOutcome};

use crate::block_state::{BlockState, BlockStateError};

/// Calls that are made at most until the list stays as it is. It does so at the second, unless the
/// call looks at the gas that it has left.
const ROUNDS: usize = 8;

impl BlockState<'_> {
    /// Finds the accounts and slots that a call touches, and what the call does with that list. The
    /// sender, the account called or created, and precompiles are listed only with slots: an
    /// account alone saves nothing there.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub fn access_list(
        &self,
        call: &Call,
        deadline: Option<Instant>,
    ) -> Result<(AccessList, CallOutcome), BlockStateError> {
        let to = match call.to {
            TxKind::Call(to) => to,
            TxKind::Create => {
                let sender = self.view()?.account(call.from)?;
                call.from.create(sender.map_or(0, |account| account.nonce))
            }
        };
        let mut call = call.clone();
        let mut rounds = 0;
        loop {
            let outcome = self.call(&call, deadline)?;
            let list = listed(&outcome, [call.from, to]);
            rounds += 1;
            if list == call.access_list || rounds == ROUNDS {
                return Ok((list, outcome));
            }
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Err(CallError::Late.into());
            }
            call.access_list = list;
        }
    }
}

fn listed(outcome: &CallOutcome, free: [Address; 2]) -> AccessList {
    let touched = outcome.touched.iter();
    let touched =
        touched.filter(|account| !(account.slots.is_empty() && free.contains(&account.address)));
    let items: BTreeMap<Address, Vec<B256>> = touched
        .map(|account| {
            let slots = account.slots.iter().map(|slot| B256::from(*slot));
            (account.address, slots.collect())
        })
        .collect();
    let items = items.into_iter();
    let items = items.map(|(address, storage_keys)| AccessListItem {
        address,
        storage_keys,
    });
    AccessList(items.collect())
}
