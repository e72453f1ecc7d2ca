//! A block that does not hold, as JSON for a diagnosis.

use alloy_consensus::ReceiptEnvelope;
use alloy_primitives::{Address, B256, hex};
use arbor_state::{Account, AccountChange, State, StateChanges};
use serde_json::{Value, json};

use super::ReplayError;
use crate::executor::ExecutionError;

/// What is known of the block.
struct Evidence<'a> {
    number: u64,
    hash: B256,
    field: &'static str,
    header_and_computed: Option<(String, String)>,
    executed: Option<(&'a StateChanges, &'a [ReceiptEnvelope])>,
}

impl ReplayError {
    /// The block that does not hold: which field, what the header says and execution gives, and what the block did as far as
    /// it was executed: receipts, state changes and the nodes that they touch. `state` is the one before the block; without it
    /// there are no nodes. `None` if the error is not that of a block.
    ///
    /// docs/design/report-format.md describes the form.
    pub fn failure_dump(&self, state: Option<&State>) -> Option<Value> {
        let evidence = self.evidence()?;
        let (header, computed) = evidence.header_and_computed.unzip();
        let (changes, receipts) = evidence.executed.unzip();
        let nodes = state
            .zip(changes)
            .and_then(|(state, changes)| nodes(state, changes));
        Some(json!({
            "block": evidence.number,
            "hash": evidence.hash,
            "field": evidence.field,
            "reason": self.to_string(),
            "header": header,
            "computed": computed,
            "receipts": receipts,
            "accounts": changes.map(|changes| changes.accounts.iter().map(account).collect::<Vec<_>>()),
            "nodes": nodes,
        }))
    }

    fn evidence(&self) -> Option<Evidence<'_>> {
        match self {
            Self::StateRoot(failure) => Some(Evidence {
                number: failure.number,
                hash: failure.hash,
                field: "stateRoot",
                header_and_computed: Some((
                    failure.expected.to_string(),
                    failure.actual.to_string(),
                )),
                executed: Some((&failure.changes, &failure.receipts)),
            }),
            Self::Execution(ExecutionError::Invalid {
                number,
                hash,
                error,
                executed,
            }) => Some(Evidence {
                number: *number,
                hash: *hash,
                field: error.field(),
                header_and_computed: error.header_and_computed(),
                executed: executed
                    .as_ref()
                    .map(|output| (&output.changes, &output.receipts[..])),
            }),
            _ => None,
        }
    }
}

/// The nodes that changes write (or delete: no record); `None` if they cannot be computed.
fn nodes(state: &State, changes: &StateChanges) -> Option<Vec<Value>> {
    let computed = state.compute(changes).ok()?;
    let nodes = computed.nodes().map(|(key, record)| {
        json!({ "key": hex::encode_prefixed(key), "record": record.map(hex::encode_prefixed) })
    });
    Some(nodes.collect())
}

fn account((address, change): (&Address, &AccountChange)) -> Value {
    let account = |account: &Account| json!({ "nonce": account.nonce, "balance": account.balance.to_string(), "codeHash": account.code_hash });
    let slots: Vec<Value> = change
        .slots
        .iter()
        .map(|(slot, change)| json!({ "slot": slot, "old": change.old, "new": change.new }))
        .collect();
    json!({
        "address": address,
        "old": change.old.as_ref().map(account),
        "new": change.new.as_ref().map(account),
        "storageCleared": change.storage_cleared,
        "slots": slots,
    })
}
