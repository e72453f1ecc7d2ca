//! One block from its parent.

use alloy_consensus::{BlockBody, EMPTY_OMMER_ROOT_HASH, Header, proofs};
use alloy_eips::{
    eip1559::BaseFeeParams,
    eip4895::{Withdrawal, Withdrawals},
};
use alloy_primitives::{Address, B256};
use arbor_state::{StateChanges, StateView};

use super::{
    GeneratorError, Kind,
    genesis::BLOCK_TIME,
    marker,
    random::{Random, Zipf, derive},
    signing::sign_all,
    workload::{Parent, Workload},
};
use arbor_chain::{
    executor::{Executor, RecentBlocks, Rules},
    genesis::ChainSpec,
    source::Transaction,
};

/// Withdrawals in a block.
const WITHDRAWALS: u64 = 4;
/// Validators whose balances are withdrawn, each with an address of its own.
const VALIDATORS: u64 = 10_000;
/// Addresses that take turns in proposing blocks.
const PROPOSERS: u64 = 64;
/// How often nobody proposes a block in time, so that the next one comes a slot later.
const MISSED_SLOTS: f64 = 0.01;

/// A block with its body.
pub(super) type Block = alloy_consensus::Block<Transaction>;

/// A header with its hash.
#[derive(Clone, Debug)]
pub(super) struct Sealed {
    pub(super) header: Header,
    pub(super) hash: B256,
}

impl Sealed {
    pub(super) fn new(header: Header) -> Self {
        let hash = header.hash_slow();
        Self { header, hash }
    }
}

/// A block that lacks only its state root.
#[derive(Debug)]
pub(super) struct Made {
    /// The block, with a state root of zero.
    pub(super) block: Block,
    /// What it changes.
    pub(super) changes: StateChanges,
    /// What each transaction does and whether it succeeded, in order.
    pub(super) outcomes: Vec<(Kind, bool)>,
}

/// Makes one block after the other.
pub(super) struct Maker<'a> {
    workload: Workload<'a>,
    spec: &'a ChainSpec,
    executor: Executor,
}

impl<'a> Maker<'a> {
    pub(super) fn new(workload: Workload<'a>, spec: &'a ChainSpec) -> Self {
        Self {
            workload,
            spec,
            executor: Executor::new(),
        }
    }

    /// Makes the block after `parent`, whose state is `state`.
    pub(super) fn make(
        &mut self,
        parent: &Sealed,
        state: &dyn StateView,
    ) -> Result<Made, GeneratorError> {
        let settings = self.workload.settings;
        let number = parent.header.number + 1;
        let mut random = Random::new(settings.seed, "block", number);
        let base_fee = parent
            .header
            .next_block_base_fee(BaseFeeParams::ethereum())
            .unwrap_or(0);
        // The genesis has other extra data: nobody has been reached yet.
        let recipients = marker::read(&parent.header.extra_data).unwrap_or(0);
        let plan = self.workload.plan(&Parent {
            number,
            base_fee,
            recipients,
            state,
        })?;
        let transactions = sign_all(
            &plan.transactions,
            self.workload.accounts,
            settings.chain_id,
        );
        let addresses = self.workload.accounts.addresses();
        let senders: Vec<Address> = plan
            .transactions
            .iter()
            .map(|tx| addresses[tx.sender as usize])
            .collect();

        let withdrawals = self.withdrawals(number, &mut random);
        let missed = u64::from(random.chance(MISSED_SLOTS));
        let header = Header {
            parent_hash: parent.hash,
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            beneficiary: Address::from_word(derive(
                settings.seed,
                "proposer",
                random.below(PROPOSERS),
            )),
            transactions_root: proofs::calculate_transaction_root(&transactions),
            number,
            gas_limit: settings.gas_limit,
            timestamp: parent.header.timestamp + BLOCK_TIME * (1 + missed),
            extra_data: marker::write(plan.recipients),
            mix_hash: derive(settings.seed, "randao", number),
            base_fee_per_gas: Some(base_fee),
            withdrawals_root: Some(proofs::calculate_withdrawals_root(&withdrawals)),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(derive(settings.seed, "beacon block", number)),
            ..Header::default()
        };
        let body = BlockBody {
            transactions,
            ommers: Vec::new(),
            withdrawals: Some(withdrawals),
        };
        let mut block = Block { header, body };
        // No contract of the workload asks for block hashes.
        let chain = RecentBlocks::default();
        let rules = Rules::at(self.spec, &block.header, &parent.header, None);
        let output = self
            .executor
            .run(&rules, &block, &senders, state, &chain, None)?;

        block.header.gas_used = output.gas_used;
        block.header.logs_bloom = output.logs_bloom;
        block.header.requests_hash = output.requests_hash();
        block.header.receipts_root = output
            .receipts_root
            .expect("invariant: receipts since Byzantium have a root of their own");
        let kinds = plan.transactions.iter().map(|transaction| transaction.kind);
        let outcomes = kinds
            .zip(output.receipts.iter().map(|receipt| receipt.status()))
            .collect();
        Ok(Made {
            block,
            changes: output.changes,
            outcomes,
        })
    }

    fn withdrawals(&self, number: u64, random: &mut Random) -> Withdrawals {
        let settings = self.workload.settings;
        let zipf = Zipf::new(settings.zipf);
        let withdrawal = |position| {
            let validator_index = zipf.index(VALIDATORS, random);
            Withdrawal {
                index: (number - 1) * WITHDRAWALS + position,
                validator_index,
                address: Address::from_word(derive(settings.seed, "validator", validator_index)),
                amount: random.between(10_000_000, 20_000_000),
            }
        };
        Withdrawals::new((0..WITHDRAWALS).map(withdrawal).collect())
    }
}
