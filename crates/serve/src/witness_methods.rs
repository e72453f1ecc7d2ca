//! `debug_executionWitness`: what a block needs of the state before it.

use arbor_chain::replay::Chain;
use arbor_chain::witness::make_witness;
use arbor_database::BlockState;

use crate::block_choice::BlockChoice;
use crate::block_methods::numbered;
use crate::call::{Answer, Call, Method, answer, long};
use crate::params::invalid;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[long("debug_executionWitness", 1, execution_witness)];

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
    let mut made = match made.map_err(|error| failed(&error))?.into_canonical() {
        Ok(canonical) => return answer(&canonical),
        Err(made) => made,
    };
    // No header has the root after the block.
    made.witness.complete().map_err(|error| failed(&error))?;
    let json = made.witness.to_json().map_err(|error| failed(&error))?;
    let json: serde_json::Value = serde_json::from_slice(&json).map_err(|error| failed(&error))?;
    answer(&json)
}
