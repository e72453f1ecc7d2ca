//! `debug_executionWitness`: what a block needs of the state before it.

use std::collections::BTreeSet;

use alloy_primitives::Bytes;
use arbor_chain::replay::Chain;
use arbor_chain::witness::make_witness;
use arbor_database::BlockState;
use serde::Serialize;

use crate::block_choice::BlockChoice;
use crate::block_methods::numbered;
use crate::call::{Answer, Call, Method, answer, heavy};
use crate::params::invalid;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[heavy("debug_executionWitness", 1, execution_witness)];

/// The canonical form (execution-apis 845, 847): each list ascending by its bytes, and nothing
/// twice.
#[derive(Serialize)]
struct CanonicalWitness {
    state: BTreeSet<Bytes>,
    codes: BTreeSet<Bytes>,
    headers: BTreeSet<Bytes>,
}

/// Executes a block over the state before it: nodes, codes and headers in the canonical form, or
/// the tree's own witness.
fn execution_witness(call: &Call<'_>) -> Answer {
    let choice = BlockChoice::required(&call.params, 0)?;
    let Some(number) = choice.number(call.context, call.head)? else {
        return Err(RpcError::server("block not found"));
    };
    if number == 0 {
        return Err(invalid(
            0,
            "block 0 is the genesis: nothing comes before it",
        ));
    }
    let block = numbered(call, number)?;
    let chain = &call.context.chain;
    let parent = BlockState::after_block(call.head, chain, number - 1)?;
    let failed = |error: &dyn std::fmt::Display| {
        RpcError::server(format!("the witness of block {number}: {error}"))
    };
    let executor = chain.rules().executor();
    let of_genesis = Chain::of(chain.genesis());
    let made = make_witness(parent.then()?, of_genesis, &block, executor, false);
    let mut made = made.map_err(|error| failed(&error))?;
    if let Some(witness) = made.witness.executable_mut() {
        return answer(&CanonicalWitness {
            state: std::mem::take(&mut witness.state_nodes)
                .into_iter()
                .collect(),
            codes: std::mem::take(&mut witness.codes).into_iter().collect(),
            headers: std::mem::take(&mut witness.ancestor_headers_rlp)
                .into_iter()
                .collect(),
        });
    }
    let json = made.witness.to_json().map_err(|error| failed(&error))?;
    let json: serde_json::Value = serde_json::from_slice(&json).map_err(|error| failed(&error))?;
    answer(&json)
}
