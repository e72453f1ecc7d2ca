//! Making the witness of a block from a retained state.

use alloy_primitives::{B256, Bytes};
use alloy_rlp::Encodable;
use arbor_state::{Head, IntermediateRoots, StateError, StateView};
use arbor_versions::Version;

use super::ReplayError;
use super::record::{BlockRecord, recent_blocks};
use crate::executor::{BlockInput, Executor, RecordingView};
use crate::genesis::Genesis;
use crate::senders::RecoveredBlock;
use crate::witness::BlockWitness;

/// Executes a block over the retained state of its parent and collects what it needs.
///
/// The witness is complete: every account, slot, code, ancestor and node that executing the block and computing its
/// roots reads is in it.
///
/// # Errors
/// A block that does not hold on that state; a version that is not retained.
pub fn make_witness(
    state: Head<'_>,
    parent: Version,
    genesis: &Genesis,
    block: &RecoveredBlock,
) -> Result<BlockWitness, ReplayError> {
    let number = block.block.header.number;
    let failed = |error: StateError| ReplayError::State { number, error };
    let then = state.at(parent).map_err(failed)?;
    let recent = recent_blocks(state, parent)?;
    let before = recent
        .latest()
        .cloned()
        .ok_or(ReplayError::DamagedHeader(number.saturating_sub(1)))?;
    let view = RecordingView::new(&then, &recent);
    let input = BlockInput::new(block, &before.header, before.hash, &genesis.spec);
    let mut roots = then.intermediate_roots();
    let roots = roots
        .as_mut()
        .map(|roots| roots as &mut dyn IntermediateRoots);
    let output = Executor::new().execute(&input, &view, &view, roots)?;
    let reads = view.into_reads();
    let nodes = then
        .witness(&reads.accounts, &output.changes)
        .map_err(failed)?;
    let codes: Result<Vec<Bytes>, StateError> =
        reads.codes.iter().map(|hash| then.code(*hash)).collect();
    let oldest = reads
        .ancestors
        .first()
        .copied()
        .unwrap_or(number)
        .min(before.header.number);
    let mut headers = Vec::new();
    for ancestor in (oldest..=before.header.number).rev() {
        headers.push(header_rlp(state, ancestor)?);
    }
    Ok(BlockWitness {
        chain_id: genesis.spec.chain_id(),
        number,
        hash: block.hash,
        pre_state_root: B256::from(then.meta().root),
        post_state_root: block.block.header.state_root,
        receipts_root: block.block.header.receipts_root,
        block_rlp: encoded(&block.block),
        ancestor_headers_rlp: headers,
        state_nodes: nodes,
        codes: codes.map_err(failed)?,
        config: None,
    })
}

fn encoded(value: &impl Encodable) -> Bytes {
    alloy_rlp::encode(value).into()
}

/// The header of a block that the database remembers.
fn header_rlp(state: Head<'_>, number: u64) -> Result<Bytes, ReplayError> {
    let failed = |error: arbor_versions::VersionsError| ReplayError::State {
        number,
        error: error.into(),
    };
    let view = state.view();
    let version = view.version_of_block(number).map_err(failed)?;
    let meta = version
        .map(|version| view.meta(version))
        .transpose()
        .map_err(failed)?
        .flatten();
    let meta = meta.ok_or(ReplayError::DamagedHeader(number))?;
    Ok(encoded(&BlockRecord::decode(&meta)?.block.header))
}
