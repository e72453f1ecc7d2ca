//! Methods that describe the chain and what is kept of it.

use alloy_consensus::Header;
use alloy_eips::eip1559::BaseFeeParams;
use alloy_primitives::{B256, U64, U256};
use arbor_chain::executor::SpecId;
use arbor_chain::genesis::ChainSpec;
use arbor_database::{BlockState, kept_blocks};
use serde::Serialize;

use crate::block_files::BlockFiles;
use crate::call::{Answer, Call, Method, answer, light};
use crate::fork_config::fork_config;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[
    light("web3_clientVersion", 0, client_version),
    light("net_version", 0, network_version),
    light("eth_chainId", 0, chain_id),
    light("eth_syncing", 0, syncing),
    light("eth_blockNumber", 0, block_number),
    light("eth_config", 0, config),
    light("eth_capabilities", 0, capabilities),
    light("eth_baseFee", 0, base_fee),
    light("eth_blobBaseFee", 0, blob_base_fee),
];

fn client_version(call: &Call<'_>) -> Answer {
    answer(&call.context.client)
}

fn network_version(call: &Call<'_>) -> Answer {
    answer(&call.context.chain.genesis().spec.chain_id().to_string())
}

fn chain_id(call: &Call<'_>) -> Answer {
    answer(&U64::from(call.context.chain.genesis().spec.chain_id()))
}

fn syncing(_: &Call<'_>) -> Answer {
    answer(&false)
}

fn block_number(call: &Call<'_>) -> Answer {
    let (_, newest) = kept_blocks(call.head)?;
    answer(&U64::from(newest))
}

/// Reads the header of the latest block.
pub(crate) fn latest(call: &Call<'_>) -> Result<Header, RpcError> {
    Ok(BlockState::latest(call.head, &call.context.chain)?.header()?)
}

fn config(call: &Call<'_>) -> Answer {
    let header = latest(call)?;
    answer(&fork_config(call.context.chain.genesis(), &header)?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    head: CapableHead,
    state: Capability,
    tx: Capability,
    logs: Capability,
    receipts: Capability,
    blocks: Capability,
    stateproofs: Capability,
}

#[derive(Serialize)]
struct CapableHead {
    number: U64,
    hash: B256,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Capability {
    disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_block: Option<U64>,
    /// The last block, if it is not the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_block: Option<U64>,
}

impl Capability {
    fn from(oldest: Option<u64>) -> Self {
        Self {
            disabled: oldest.is_none(),
            oldest_block: oldest.map(U64::from),
            newest_block: None,
        }
    }

    /// Like [`from`](Self::from), of the chain's files: they may end before the database's head.
    fn of_files(files: Option<&BlockFiles>, head: u64) -> Self {
        let Some((first, last)) = files.map(BlockFiles::range) else {
            return Self::from(None);
        };
        // Block 0 is the genesis, which the database has.
        let oldest = if first <= 1 { 0 } else { first };
        Self {
            newest_block: (last < head).then(|| U64::from(last)),
            ..Self::from(Some(oldest))
        }
    }
}

/// Says from which block on what is served, and up to which if that is not the head.
fn capabilities(call: &Call<'_>) -> Answer {
    let (oldest, newest) = kept_blocks(call.head)?;
    let head = call.head.meta().map(|meta| meta.block_hash);
    let blocks = || Capability::of_files(call.context.blocks.as_ref(), newest);
    answer(&Capabilities {
        head: CapableHead {
            number: U64::from(newest),
            hash: head.unwrap_or_default().into(),
        },
        state: Capability::from(Some(oldest)),
        tx: blocks(),
        logs: Capability::from(None),
        receipts: Capability::from(None),
        blocks: blocks(),
        stateproofs: Capability::from(Some(oldest)),
    })
}

/// Returns the base fee of the block after one; zero before London.
pub(crate) fn next_base_fee(spec: &ChainSpec, header: &Header) -> u64 {
    match header.next_block_base_fee(BaseFeeParams::ethereum()) {
        Some(fee) => fee,
        None => {
            let merged = spec.is_proof_of_stake(header);
            let next = spec.fork_at(header.number + 1, header.timestamp, merged);
            match next.spec_id().is_enabled_in(SpecId::LONDON) {
                // EIP-1559: INITIAL_BASE_FEE.
                true => 1_000_000_000,
                false => 0,
            }
        }
    }
}

fn base_fee(call: &Call<'_>) -> Answer {
    let spec = &call.context.chain.genesis().spec;
    answer(&U64::from(next_base_fee(spec, &latest(call)?)))
}

/// Returns the price of a unit of blob gas in a block; none before Cancun.
pub(crate) fn blob_fee(spec: &ChainSpec, header: &Header) -> Option<u128> {
    let params = spec.blob_params_at(header.timestamp)?;
    Some(params.calc_blob_fee(header.excess_blob_gas?))
}

fn blob_base_fee(call: &Call<'_>) -> Answer {
    let spec = &call.context.chain.genesis().spec;
    answer(&blob_fee(spec, &latest(call)?).map_or(U256::ZERO, U256::from))
}
