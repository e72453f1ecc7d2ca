//! A valid block with one field changed is rejected for that field.

use alloy_primitives::{Address, B64, B256, Bytes, U256};
use arbor_chain::executor::{BlockError, MemoryState, TransactionError};
use arbor_chain::prepare::RecoveredBlock;

use super::support::{Replay, data};

/// A chain before the block under test, and that block.
struct Fixture {
    replay: Replay,
    state: MemoryState,
    block: RecoveredBlock,
}

impl Fixture {
    fn new(test: &str, chain: &str, number: u64) -> Option<Self> {
        let mut replay = Replay::open(data(test, &format!("chains/{chain}"))?);
        let mut state = MemoryState::from_genesis(&replay.genesis.alloc);
        replay.run_to(number - 1, &mut state);
        let block = replay.next_block()?;
        Some(Self {
            replay,
            state,
            block,
        })
    }

    /// Executes the block after `change`; the rule that it breaks.
    fn error(&mut self, change: impl FnOnce(&mut RecoveredBlock)) -> BlockError {
        let mut block = self.block.clone();
        change(&mut block);
        let number = block.block.header.number;
        let error = match self.replay.execute(&block, &self.state, None) {
            Ok(_) => panic!("still valid"),
            Err(error) => error,
        };
        let text = error.to_string();
        assert!(
            text.contains(&format!("block {number} ({})", block.hash)),
            "{text}"
        );
        let error = error.block_error().expect("the block's fault").clone();
        assert!(text.contains(&error.to_string()), "{text}");
        error
    }
}

/// Asserts that a change gives an error that matches a pattern.
macro_rules! rejects {
    ($fixture:expr, |$block:ident| $change:expr, $pattern:pat) => {
        let error = $fixture.error(|$block| {
            $change;
        });
        assert!(
            matches!(error, $pattern),
            "{}: {error}",
            stringify!($change)
        );
    };
}

/// Block 54 of the execution-apis chain: Osaka with the second blob-parameter fork.
#[test]
fn latest_fork() {
    let Some(mut f) = Fixture::new("latest_fork", "execution-apis", 54) else {
        return;
    };
    let parent = f.replay.parent().0;
    assert!(
        f.replay.execute(&f.block.clone(), &f.state, None).is_ok(),
        "valid as it is"
    );
    rejects!(
        f,
        |b| b.block.header.parent_hash.0[0] ^= 1,
        BlockError::ParentHash { .. }
    );
    rejects!(
        f,
        |b| b.block.header.number += 1,
        BlockError::Number {
            expected: 54,
            actual: 55
        }
    );
    rejects!(
        f,
        |b| b.block.header.timestamp = parent.timestamp,
        BlockError::Timestamp { .. }
    );
    rejects!(
        f,
        |b| b.block.header.extra_data = Bytes::from(vec![0; 33]),
        BlockError::ExtraDataLength { actual: 33 }
    );
    let step = parent.gas_limit / 1024;
    rejects!(
        f,
        |b| b.block.header.gas_limit = parent.gas_limit + step,
        BlockError::GasLimit { .. }
    );
    rejects!(
        f,
        |b| b.block.header.gas_limit = parent.gas_limit - step,
        BlockError::GasLimit { .. }
    );
    rejects!(
        f,
        |b| b.block.header.gas_used = b.block.header.gas_limit + 1,
        BlockError::GasUsedAboveLimit { .. }
    );
    rejects!(
        f,
        |b| b.block.header.gas_used += 1,
        BlockError::GasUsed { .. }
    );
    rejects!(
        f,
        |b| b.block.header.difficulty = U256::ONE,
        BlockError::Difficulty { .. }
    );
    rejects!(
        f,
        |b| b.block.header.nonce = B64::with_last_byte(1),
        BlockError::Nonce { actual: 1 }
    );
    rejects!(
        f,
        |b| b.block.header.ommers_hash = B256::ZERO,
        BlockError::OmmersHash { .. }
    );
    rejects!(
        f,
        |b| b.block.header.base_fee_per_gas = Some(6),
        BlockError::BaseFee { actual: 6, .. }
    );
    rejects!(
        f,
        |b| b.block.header.excess_blob_gas = Some(1),
        BlockError::ExcessBlobGas { actual: 1, .. }
    );
    rejects!(
        f,
        |b| b.block.header.blob_gas_used = Some(131_072),
        BlockError::BlobGasUsed {
            actual: 131_072,
            ..
        }
    );
    rejects!(
        f,
        |b| b.block.header.blob_gas_used = Some(22 * 131_072),
        BlockError::BlobGasAboveLimit { .. }
    );
    rejects!(
        f,
        |b| b.block.header.transactions_root = B256::ZERO,
        BlockError::TransactionsRoot { .. }
    );
    rejects!(
        f,
        |b| b.block.header.withdrawals_root = Some(B256::ZERO),
        BlockError::WithdrawalsRoot { .. }
    );
    rejects!(
        f,
        |b| b.block.header.receipts_root = B256::ZERO,
        BlockError::ReceiptsRoot { .. }
    );
    rejects!(
        f,
        |b| b.block.header.logs_bloom.0[0] ^= 1,
        BlockError::LogsBloom { .. }
    );
    rejects!(
        f,
        |b| b.block.header.requests_hash = Some(B256::ZERO),
        BlockError::RequestsHash { .. }
    );
    rejects!(f, |b| b.rlp_len = (8 << 20) + 1, BlockError::Size { .. });
    rejects!(
        f,
        |b| b.senders.push(Address::ZERO),
        BlockError::SenderCount { .. }
    );
}

/// Fields that a fork demands are missing, fields that it does not know are there.
#[test]
fn optional_fields() {
    let Some(mut f) = Fixture::new("optional_fields", "execution-apis", 54) else {
        return;
    };
    let mut missing = |change: &dyn Fn(&mut alloy_consensus::Header)| match f
        .error(|b| change(&mut b.block.header))
    {
        BlockError::MissingField { field } => field,
        other => panic!("{other}"),
    };
    assert_eq!(missing(&|h| h.base_fee_per_gas = None), "baseFeePerGas");
    assert_eq!(missing(&|h| h.withdrawals_root = None), "withdrawalsRoot");
    assert_eq!(missing(&|h| h.blob_gas_used = None), "blobGasUsed");
    assert_eq!(missing(&|h| h.excess_blob_gas = None), "excessBlobGas");
    assert_eq!(
        missing(&|h| h.parent_beacon_block_root = None),
        "parentBeaconBlockRoot"
    );
    assert_eq!(missing(&|h| h.requests_hash = None), "requestsHash");
    rejects!(
        f,
        |b| b.withdrawals_root = None,
        BlockError::MissingField {
            field: "withdrawals"
        }
    );
    rejects!(
        f,
        |b| b.block.header.slot_number = Some(1),
        BlockError::UnexpectedField {
            field: "slotNumber"
        }
    );
    rejects!(
        f,
        |b| b.block.header.block_access_list_hash = Some(B256::ZERO),
        BlockError::UnexpectedField {
            field: "blockAccessListHash"
        }
    );
}

/// Block 26 (Muir Glacier to Berlin, proof of work) and 27 (London begins) of the same chain.
#[test]
fn proof_of_work() {
    let Some(mut f) = Fixture::new("proof_of_work", "execution-apis", 26) else {
        return;
    };
    rejects!(
        f,
        |b| b.block.header.difficulty += U256::ONE,
        BlockError::Difficulty { .. }
    );
    rejects!(
        f,
        |b| b.block.header.base_fee_per_gas = Some(7),
        BlockError::UnexpectedField {
            field: "baseFeePerGas"
        }
    );
    rejects!(
        f,
        |b| b.block.header.withdrawals_root = Some(B256::ZERO),
        BlockError::UnexpectedField {
            field: "withdrawalsRoot"
        }
    );
    rejects!(
        f,
        |b| b.withdrawals_root = Some(B256::ZERO),
        BlockError::UnexpectedField {
            field: "withdrawals"
        }
    );
    let Some(mut f) = Fixture::new("proof_of_work", "execution-apis", 27) else {
        return;
    };
    rejects!(
        f,
        |b| b.block.header.base_fee_per_gas = Some(7),
        BlockError::BaseFee {
            expected: 1_000_000_000,
            actual: 7
        }
    );
    let limit = f.block.block.header.gas_limit;
    rejects!(
        f,
        |b| b.block.header.gas_limit = limit / 2,
        BlockError::GasLimit { .. }
    );
}

/// A sender that is not the signer: the nonce or the balance is wrong, and the transaction is named.
#[test]
fn wrong_sender() {
    let Some(mut f) = Fixture::new("wrong_sender", "execution-apis", 26) else {
        return;
    };
    let last = f.block.senders.len() - 1;
    let hash = *f.block.block.body.transactions[last].tx_hash();
    match f.error(|b| b.senders[last] = Address::repeat_byte(0x77)) {
        BlockError::Transaction {
            index,
            hash: of,
            error: TransactionError::Rejected(_),
        } => {
            assert_eq!((index, of), (last, hash));
        }
        other => panic!("{other}"),
    }
}

/// The DAO fork's marker, at block 69 of the condensed mainnet chain.
#[test]
fn dao_marker() {
    let Some(mut f) = Fixture::new("dao_marker", "coregeth-foundation-condense-2", 78) else {
        return;
    };
    rejects!(
        f,
        |b| b.block.header.extra_data = Bytes::new(),
        BlockError::DaoExtraData { required: true, .. }
    );
}

/// A block of mainnet's first era with one ommer.
#[test]
fn ommers() {
    let Some(folder) = data("ommers", "chains/mainnet-0-16383") else {
        return;
    };
    let mut replay = Replay::open(folder);
    let mut state = MemoryState::from_genesis(&replay.genesis.alloc);
    let mut earlier: Option<alloy_consensus::Header> = None;
    // The first block with an ommer, and the next one that comes close enough to include the same.
    let block = loop {
        let block = replay.next_block().expect("the era has ommers");
        let number = block.block.header.number;
        let has_ommer = !block.block.body.ommers.is_empty();
        // An ommer may be up to six generations old.
        if has_ommer && number > 20 && earlier.as_ref().is_some_and(|old| number - old.number <= 6)
        {
            break block;
        }
        let output = replay.execute(&block, &state, None).expect("valid");
        state.apply(&output.changes);
        replay.push(&block);
        if let Some(ommer) = block.block.body.ommers.first() {
            earlier = Some(ommer.clone());
        }
    };
    let included = earlier.expect("found");
    let mut f = Fixture {
        replay,
        state,
        block,
    };
    let (parent, _) = f.replay.parent();
    let grandparent = f.replay.chain_header(parent.number - 1);
    let mut error = |change: &dyn Fn(&mut Vec<alloy_consensus::Header>)| {
        f.error(|b| {
            change(&mut b.block.body.ommers);
            b.ommers_hash = alloy_consensus::proofs::calculate_ommers_root(&b.block.body.ommers);
            b.block.header.ommers_hash = b.ommers_hash;
        })
    };
    let is = |error: BlockError, expected: &str| {
        assert!(format!("{error:?}").starts_with(expected), "{error:?}");
    };
    is(error(&|o| o.push(o[0].clone())), "OmmerRepeated { index: 1");
    is(
        error(&|o| o.extend([o[0].clone(), o[0].clone()])),
        "TooManyOmmers",
    );
    is(
        error(&|o| o[0] = included.clone()),
        "OmmerRepeated { index: 0",
    );
    is(error(&|o| o[0] = parent.clone()), "OmmerIsAncestor");
    is(error(&|o| o[0] = grandparent.clone()), "OmmerIsAncestor");
    is(error(&|o| o[0].parent_hash = B256::ZERO), "OmmerUnrelated");
    is(
        error(&|o| o[0].parent_hash = parent.hash_slow()),
        "OmmerUnrelated",
    );
    is(
        error(&|o| o[0].number -= 10),
        "OmmerHeader { index: 0, error: Number",
    );
    is(
        error(&|o| o[0].difficulty += U256::ONE),
        "OmmerHeader { index: 0, error: Difficulty",
    );
    is(
        error(&|o| o[0].gas_limit = 0),
        "OmmerHeader { index: 0, error: GasLimit",
    );
    is(
        error(&|o| o[0].timestamp = 0),
        "OmmerHeader { index: 0, error: Timestamp",
    );
    rejects!(
        f,
        |b| b.ommers_hash = B256::ZERO,
        BlockError::OmmersHash { .. }
    );
}
