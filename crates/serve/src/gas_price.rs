//! What gas costs: `eth_gasPrice` and `eth_maxPriorityFeePerGas`, from the tips of the latest blocks.
//!
//! The samples, the percentile and the bounds are go-ethereum's. go-ethereum goes on from the price
//! that it found before; here each call begins with the default price.

use alloy_primitives::U256;
use arbor_chain::prepare::RecoveredBlock;

use crate::block_methods::{numbered, tip};
use crate::call::{Answer, Call, Method, answer, heavy};
use crate::chain_methods::latest;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[
    heavy("eth_gasPrice", 0, gas_price),
    heavy("eth_maxPriorityFeePerGas", 0, priority_fee),
];

/// Blocks that are looked at. Those with at most one sample count half: up to twice as many samples
/// are taken then.
const BLOCKS: usize = 20;
/// The lowest tips of a block that are samples.
const SAMPLES: usize = 3;
/// The percentile of the samples that is suggested.
const PERCENTILE: usize = 60;
/// The tip of a block without samples, in wei.
const DEFAULT: u128 = 1_000_000;
/// Lower tips are no samples, in wei.
const LEAST: u128 = 2;
/// The most that is suggested, in wei.
const MOST: u128 = 500_000_000_000;

fn priority_fee(call: &Call<'_>) -> Answer {
    answer(&U256::from(suggested(call)?))
}

fn gas_price(call: &Call<'_>) -> Answer {
    let base_fee = latest(call)?.base_fee_per_gas.unwrap_or(0);
    answer(&U256::from(suggested(call)? + u128::from(base_fee)))
}

/// Returns the tip that transactions of the next blocks will need, in wei.
fn suggested(call: &Call<'_>) -> Result<u128, RpcError> {
    let mut number = call.head.meta().map_or(0, |meta| meta.block_number);
    let mut samples: Vec<u128> = Vec::new();
    let mut left = BLOCKS;
    while left > 0 && number > 0 {
        let tips = lowest_tips(&numbered(call, number)?);
        (left, number) = (left - 1, number - 1);
        if tips.len() <= 1 && samples.len() + 1 + left < 2 * BLOCKS {
            left += 1;
        }
        match tips.is_empty() {
            true => samples.push(DEFAULT),
            false => samples.extend(tips),
        }
        if std::time::Instant::now() > call.deadline {
            return Err(RpcError::timed_out("the call did not end in time"));
        }
    }
    samples.sort_unstable();
    let place = samples.len().saturating_sub(1) * PERCENTILE / 100;
    Ok(samples.get(place).map_or(DEFAULT, |tip| *tip).min(MOST))
}

/// Returns the lowest tips of a block, ascending, without those of the block's own beneficiary.
fn lowest_tips(block: &RecoveredBlock) -> Vec<u128> {
    let header = &block.block.header;
    let base_fee = header.base_fee_per_gas.unwrap_or(0);
    let transactions = block.block.body.transactions.iter().zip(&block.senders);
    let others = transactions.filter(|(_, sender)| **sender != header.beneficiary);
    let mut tips: Vec<u128> = others
        .map(|(tx, _)| tip(tx, base_fee))
        .filter(|tip| *tip >= LEAST)
        .collect();
    tips.sort_unstable();
    tips.truncate(SAMPLES);
    tips
}
