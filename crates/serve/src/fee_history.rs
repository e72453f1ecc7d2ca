//! `eth_feeHistory`: what gas cost, and how full blocks were.

use alloy_consensus::{BlockHeader as _, Header};
use alloy_rpc_types_eth::FeeHistory;
use arbor_chain::executor::Rules;
use arbor_chain::genesis::ChainSpec;
use arbor_chain::prepare::RecoveredBlock;
use arbor_database::BlockState;

use crate::block_choice::BlockChoice;
use crate::block_methods::{numbered, tip};
use crate::call::{Answer, Call, Method, answer, long};
use crate::chain_methods::{blob_fee, next_base_fee};
use crate::hex;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[long("eth_feeHistory", 3, fee_history)];

/// The most percentiles of one answer, as in go-ethereum.
const PERCENTILES: usize = 100;

fn fee_history(call: &Call<'_>) -> Answer {
    let count = block_count(call)?.min(call.context.limits.blocks);
    let newest = BlockChoice::required(&call.params, 1)?;
    let percentiles: Vec<f64> = call.params.optional(2)?.unwrap_or_default();
    check_percentiles(&percentiles)?;
    let Some(newest) = newest.number(call.context, call.head)? else {
        return Err(RpcError::server("request beyond head block"));
    };
    let mut history = FeeHistory::default();
    if count == 0 {
        return answer(&history);
    }
    let headers = headers(call, newest, count)?;
    let spec = &call.context.chain.genesis().spec;
    history.oldest_block = (newest + 1).saturating_sub(headers.len() as u64);
    for header in &headers {
        add(&mut history, spec, header);
    }
    let last = headers.last();
    let next = last.map_or(0, |last| u128::from(next_base_fee(spec, last)));
    history.base_fee_per_gas.push(next);
    history
        .base_fee_per_blob_gas
        .push(last.map_or(0, |last| next_blob_fee(spec, last)));
    if !percentiles.is_empty() {
        let rewards = headers
            .iter()
            .map(|header| rewards(call, header, &percentiles));
        history.reward = Some(rewards.collect::<Result<_, _>>()?);
    }
    answer(&history)
}

/// Reads the number of blocks, which may be a number of JSON too.
fn block_count(call: &Call<'_>) -> Result<u64, RpcError> {
    if let Ok(count) = call.params.required::<u64>(0) {
        return Ok(count);
    }
    let text: String = call.params.required(0)?;
    match text.parse() {
        Ok(count) => Ok(count),
        Err(_) => hex::parse(&text).map_err(|why| crate::params::invalid(0, why)),
    }
}

fn check_percentiles(percentiles: &[f64]) -> Result<(), RpcError> {
    if percentiles.len() > PERCENTILES {
        return Err(RpcError::server(format!(
            "invalid reward percentile: over the query limit {PERCENTILES}"
        )));
    }
    let is_wrong = |percentile: &&f64| !(0.0..=100.0).contains(*percentile);
    if let Some(wrong) = percentiles.iter().find(is_wrong) {
        return Err(RpcError::server(format!(
            "invalid reward percentile: {wrong}"
        )));
    }
    match percentiles.is_sorted() {
        true => Ok(()),
        false => Err(RpcError::server(
            "invalid reward percentile: percentiles must ascend",
        )),
    }
}

/// Reads the headers up to a block, ascending: as many as are asked for and known.
fn headers(call: &Call<'_>, newest: u64, count: u64) -> Result<Vec<Header>, RpcError> {
    let mut headers = Vec::new();
    let oldest = (newest + 1).saturating_sub(count);
    for number in (oldest..=newest).rev() {
        match call.context.header(call.head, number)? {
            Some(header) => headers.push(header),
            None => break,
        }
    }
    headers.reverse();
    match headers.is_empty() {
        false => Ok(headers),
        true => Err(RpcError::server(format!(
            "the header of block {newest} is not kept"
        ))),
    }
}

fn add(history: &mut FeeHistory, spec: &ChainSpec, header: &Header) {
    let ratio = |used: u64, of: u64| {
        if of == 0 {
            0.0
        } else {
            used as f64 / of as f64
        }
    };
    let blobs = spec.blob_params_at(header.timestamp);
    let most_blob_gas = blobs.map_or(0, |params| params.max_blob_gas_per_block());
    let base_fee = header.base_fee_per_gas.unwrap_or(0);
    history.base_fee_per_gas.push(base_fee.into());
    history
        .gas_used_ratio
        .push(ratio(header.gas_used, header.gas_limit));
    history
        .base_fee_per_blob_gas
        .push(blob_fee(spec, header).unwrap_or(0));
    let blob_gas = header.blob_gas_used.unwrap_or(0);
    history
        .blob_gas_used_ratio
        .push(ratio(blob_gas, most_blob_gas));
}

/// The price of blob gas in the next block, by the parameters of this one.
fn next_blob_fee(spec: &ChainSpec, header: &Header) -> u128 {
    let params = spec.blob_params_at(header.timestamp);
    let Some((params, excess)) = params.zip(header.excess_blob_gas) else {
        return 0;
    };
    let (used, base_fee) = (
        header.blob_gas_used.unwrap_or(0),
        header.base_fee_per_gas().unwrap_or(0),
    );
    let next = params.next_block_excess_blob_gas_osaka(excess, used, base_fee);
    params.calc_blob_fee(next)
}

/// Returns the tips at some percentiles of a block's gas, ascending.
///
/// # Errors
/// A block without its body, or without the state before it: receipts are not kept, so that the
/// block is executed again.
fn rewards(call: &Call<'_>, header: &Header, percentiles: &[f64]) -> Result<Vec<u128>, RpcError> {
    let number = header.number;
    if number == 0 {
        return Ok(vec![0; percentiles.len()]);
    }
    let block = numbered(call, number)?;
    let transactions = &block.block.body.transactions;
    if transactions.is_empty() {
        return Ok(vec![0; percentiles.len()]);
    }
    if std::time::Instant::now() > call.deadline {
        return Err(RpcError::timed_out(
            "rewards take too long: ask for fewer blocks",
        ));
    }
    let gas = gas_of_transactions(call, &block)?;
    let base_fee = header.base_fee_per_gas.unwrap_or(0);
    let tips = transactions.iter().map(|tx| tip(tx, base_fee));
    let mut paid: Vec<(u128, u64)> = tips.zip(gas).collect();
    paid.sort_by_key(|(tip, _)| *tip);
    let (mut place, mut sum) = (0, paid[0].1);
    let rewards = percentiles.iter().map(|percentile| {
        let threshold = (header.gas_used as f64 * percentile / 100.0) as u64;
        while sum < threshold && place + 1 < paid.len() {
            place += 1;
            sum += paid[place].1;
        }
        paid[place].0
    });
    Ok(rewards.collect())
}

/// Executes a block again for the gas of each transaction.
fn gas_of_transactions(call: &Call<'_>, block: &RecoveredBlock) -> Result<Vec<u64>, RpcError> {
    let chain = &call.context.chain;
    let number = block.block.header.number;
    let parent = BlockState::after_block(call.head, chain, number - 1)?;
    let failed = |error: &dyn std::fmt::Display| {
        RpcError::server(format!("executing block {number} for its rewards: {error}"))
    };
    let recent = parent.recent_blocks()?;
    let before = parent.header()?;
    let mut executor = chain.rules().executor();
    let view = parent.view()?;
    let rules = Rules::at(&chain.genesis().spec, &block.block.header, &before, None);
    let output = executor.run(&rules, &block.block, &block.senders, view, &recent, None);
    let output = output.map_err(|error| failed(&error))?;
    let mut before = 0;
    let gas = output.receipts.iter().map(|receipt| {
        let sum = receipt.cumulative_gas_used();
        std::mem::replace(&mut before, sum).abs_diff(sum)
    });
    Ok(gas.collect())
}
