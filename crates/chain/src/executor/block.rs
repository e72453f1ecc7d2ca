//! One block from start to end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use alloy_consensus::{Eip658Value, Header, ReceiptEnvelope, Transaction as _};
use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_evm384::engine::Runner;
use arbor_evm384::{Backend, Frames, GasSchedule, Interface};
use arbor_state::{IntermediateRoots, ReadError, StateView};
use revm::MainBuilder;
use revm::bytecode::opcode::{KECCAK256, SSTORE};
use revm::context::result::{EVMError, ExecutionResult, HaltReason, InvalidTransaction};
use revm::context::{BlockEnv, CfgEnv, Context, TxEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::context_interface::cfg::gas_params::GasId;
use revm::handler::{Handler, MainnetHandler};
use revm::interpreter::{Instruction, gas};
use revm::primitives::hardfork::SpecId;

use super::access_events::AccessEvents;
use super::accesses::TransactionAccess;
use super::bounds::{self, Exceeded};
use super::code_cache::CodeCache;
use super::context::{BlockContext, BlockEvm};
use super::fees::blob_base_fee;
use super::hash_cache::HashCache;
use super::keccak256;
use super::overlay::Overlay;
use super::receipts::{BloomCache, logs_bloom, receipt, receipts_root};
use super::requests::{CONSOLIDATIONS, DEPOSITS, WITHDRAWALS, deposits, request};
use super::stop::Stop;
use super::transaction::{check_transaction, tx_env};
use super::{
    Ancestors, Block, BlockError, BlockOutput, BodyFacts, CodeReads, DaoRule, ExecutionError,
    OmmerCheck, Rules, Timings, TransactionError, check_body, check_header, eip1283, metering,
    rewards, system,
};
use crate::genesis::{ChainSpec, Fork};
use crate::prepare::RecoveredBlock;
use crate::source::Transaction;
use arbor_revm_state::ViewError;

/// A block to execute, with all that is known beforehand.
#[derive(Clone, Copy)]
pub struct BlockInput<'a> {
    /// The block.
    pub block: &'a Block,
    /// Its hash, which the caller has computed from the header.
    pub hash: B256,
    /// The sender of each transaction.
    pub senders: &'a [Address],
    /// What the header says about the body as computed from the body, if that has been done ahead.
    pub facts: Option<BodyFacts>,
    /// The parent's header.
    pub parent: &'a Header,
    /// The parent's hash.
    pub parent_hash: B256,
    /// The difficulties of all blocks up to the parent together, if known; see [`Rules::at`].
    pub parent_total_difficulty: Option<U256>,
    /// The chain's forks and parameters.
    pub chain_spec: &'a ChainSpec,
}

impl<'a> BlockInput<'a> {
    /// Takes over what was prepared ahead. The total difficulty stays unknown.
    pub fn new(
        block: &'a RecoveredBlock,
        parent: &'a Header,
        parent_hash: B256,
        chain_spec: &'a ChainSpec,
    ) -> Self {
        Self {
            block: &block.block,
            hash: block.hash,
            senders: &block.senders,
            facts: Some(BodyFacts {
                transactions_root: block.transactions_root,
                ommers_hash: block.ommers_hash,
                withdrawals_root: block.withdrawals_root,
                size: block.rlp_len,
            }),
            parent,
            parent_hash,
            parent_total_difficulty: None,
            chain_spec,
        }
    }

    /// Checks header and body, as far as that needs no execution; returns the block's rules, and how far its ommers were checked.
    pub(crate) fn check(&self, chain: &dyn Ancestors) -> Result<(Rules, OmmerCheck), BlockError> {
        let header = &self.block.header;
        let total = self.parent_total_difficulty;
        let rules = Rules::at(self.chain_spec, header, self.parent, total);
        check_header(&rules, header, self.parent, self.parent_hash)?;
        let block = (self.block, self.hash);
        let ommers = check_body(self.chain_spec, &rules, block, self.facts, chain)?;
        Ok((rules, ommers))
    }
}

/// Executes blocks, one at a time, of any chain over any state. It keeps analysed code between blocks.
#[derive(Default)]
pub struct Executor {
    pub(super) codes: CodeCache,
    pub(super) hashes: HashCache,
    blooms: BloomCache,
    code_reads: Option<CodeReads>,
    accesses: Option<Vec<TransactionAccess>>,
    new_slots: Option<BTreeMap<Address, BTreeSet<U256>>>,
    pub(super) evm384: Option<(Evm384, Runner)>,
    max_gas: Option<u64>,
}

/// 384-bit arithmetic as opcodes, switched on for a whole chain whatever the fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evm384 {
    /// Which opcodes.
    pub interface: Interface,
    /// What they cost.
    pub schedule: GasSchedule,
}

impl Executor {
    /// Creates an executor that has seen no code yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has it record which parts of code it reads. It takes several times as long, and EVM384 runs without its engine. Where transactions pay for
    /// what they touch ([`Rules::witness_gas`]), it records nothing: [`BlockOutput::accessed`] has what they paid for.
    pub fn recording_code(self) -> Self {
        Self {
            code_reads: Some(CodeReads::default()),
            ..self
        }
    }

    /// Has it record what each transaction reads and writes.
    pub fn recording_accesses(self) -> Self {
        Self {
            accesses: Some(Vec::new()),
            ..self
        }
    }

    /// What each transaction since the last call read and wrote; nothing if that is not recorded.
    pub fn take_accesses(&mut self) -> Vec<TransactionAccess> {
        self.accesses
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Records the slots that execution reads without asking the state for them. They belong to contracts that the block
    /// makes, or that lose their old storage in the block: such a slot is known to be zero.
    #[must_use]
    pub fn recording_new_slots(self) -> Self {
        Self {
            new_slots: Some(BTreeMap::new()),
            ..self
        }
    }

    /// Takes the slots that execution has read since the last call without asking the state, by contract; nothing if they
    /// are not recorded.
    pub fn take_new_slots(&mut self) -> BTreeMap<Address, BTreeSet<U256>> {
        self.new_slots
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Creates one for a chain that has EVM384. Frames run in its engine.
    pub fn with_evm384(evm384: Evm384) -> Self {
        let runner = Runner::new(evm384.interface, Backend::detect(), true);
        Self {
            evm384: Some((evm384, runner)),
            ..Self::default()
        }
    }

    /// Has it refuse blocks whose transactions may use more gas together, which it would take long to execute.
    pub fn with_max_gas(self, max_gas: u64) -> Self {
        Self {
            max_gas: Some(max_gas),
            ..self
        }
    }

    /// What was read of code since the last call; nothing if that is not recorded.
    pub fn take_code_reads(&mut self) -> CodeReads {
        self.code_reads
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Checks a block in full, but for its state root, and executes it over its parent's state.
    ///
    /// `roots` answers for the state after each transaction, which receipts need before Byzantium. Without
    /// it the receipts root of such a block stays unknown and unchecked.
    ///
    /// # Errors
    /// [`ExecutionError::Invalid`] if the block breaks a rule, [`ExecutionError::State`] if `state`, `chain`
    /// or `roots` fails.
    pub fn execute<S: StateView + ?Sized>(
        &mut self,
        input: &BlockInput<'_>,
        state: &S,
        chain: &dyn Ancestors,
        roots: Option<&mut dyn IntermediateRoots>,
    ) -> Result<BlockOutput, ExecutionError> {
        self.execute_steps(input, state, chain, roots)
            .map_err(|stop| stop.of_block(input.block.header.number, input.hash))
    }

    fn execute_steps<S: StateView + ?Sized>(
        &mut self,
        input: &BlockInput<'_>,
        state: &S,
        chain: &dyn Ancestors,
        roots: Option<&mut dyn IntermediateRoots>,
    ) -> Result<BlockOutput, Stop> {
        let start = Instant::now();
        let header = &input.block.header;
        let (rules, ommers) = input.check(chain)?;
        let checks = start.elapsed();
        let mut output = self.run_steps(&rules, input.block, input.senders, state, chain, roots)?;
        output.ommers = ommers;
        output.timings.checks = checks;
        match output.check(header) {
            Ok(()) => Ok(output),
            Err(error) => Err(Stop::Invalid(error.into(), Some(output.into()))),
        }
    }

    /// Executes a block without comparing anything with its header, of which it takes only what the EVM sees:
    /// for whoever makes blocks. The other arguments are those of [`execute`](Self::execute).
    ///
    /// # Errors
    /// As [`execute`](Self::execute), for rules that concern transactions, system calls and deposits.
    pub fn run<S: StateView + ?Sized>(
        &mut self,
        rules: &Rules,
        block: &Block,
        senders: &[Address],
        state: &S,
        chain: &dyn Ancestors,
        roots: Option<&mut dyn IntermediateRoots>,
    ) -> Result<BlockOutput, ExecutionError> {
        self.run_steps(rules, block, senders, state, chain, roots)
            .map_err(|stop| stop.of_block(block.header.number, block.header.hash_slow()))
    }

    fn run_steps<S: StateView + ?Sized>(
        &mut self,
        rules: &Rules,
        block: &Block,
        senders: &[Address],
        state: &S,
        chain: &dyn Ancestors,
        roots: Option<&mut dyn IntermediateRoots>,
    ) -> Result<BlockOutput, Stop> {
        let expected = block.body.transactions.len();
        if senders.len() != expected {
            return Err(BlockError::SenderCount {
                expected,
                actual: senders.len(),
            }
            .into());
        }
        self.check_gas(block)?;
        let start = Instant::now();
        let keeps_empty = !rules.has(SpecId::SPURIOUS_DRAGON);
        self.codes.begin(rules.has(SpecId::PRAGUE));
        let overlay = Overlay::new(
            state,
            chain,
            (&mut self.codes, &mut self.hashes),
            keeps_empty,
        );
        let mut evm = BlockEvm::new(rules, &block.header, overlay, self.code_reads.as_mut());
        evm.accesses = self.accesses.as_mut();
        evm.new_slots = self.new_slots.as_mut();
        let mut run = Run {
            rules,
            evm: match &mut self.evm384 {
                Some(evm384) => evm.with_evm384(evm384),
                None => evm,
            },
            blooms: &mut self.blooms,
            receipts: Vec::with_capacity(senders.len()),
            roots: None,
            roots_time: Duration::ZERO,
            blooms_time: Duration::ZERO,
        };
        let mut roots_missing = false;
        if !rules.has(SpecId::BYZANTIUM) && !block.body.transactions.is_empty() {
            match roots {
                Some(roots) => {
                    run.evm.overlay().track_delta();
                    run.roots = Some(roots);
                }
                None => roots_missing = true,
            }
        }
        let (requests, broken) = match run.whole(block, senders) {
            Ok(requests) => (requests, None),
            Err(Stop::Invalid(error, _)) => (None, Some(error)),
            Err(stop) => return Err(stop),
        };
        let Run {
            evm: BlockEvm {
                evm, access_events, ..
            },
            receipts,
            roots_time,
            blooms_time,
            ..
        } = run;
        let executed = Instant::now();
        let changes = evm.ctx.journaled_state.database.changes();
        let collected = Instant::now();
        let root = (!roots_missing).then(|| receipts_root(&receipts));
        let logs_bloom = logs_bloom(&receipts);
        let output = BlockOutput {
            changes,
            gas_used: gas_used(&receipts),
            receipts,
            logs_bloom,
            receipts_root: root,
            requests,
            accessed: access_events.map(AccessEvents::into_touched),
            ommers: OmmerCheck::Full,
            timings: Timings {
                checks: Duration::ZERO,
                execution: (executed - start).saturating_sub(roots_time + blooms_time),
                intermediate_roots: roots_time,
                receipts: collected.elapsed() + blooms_time,
                changes: collected - executed,
            },
        };
        match broken {
            None => Ok(output),
            Some(error) => Err(Stop::Invalid(error, Some(output.into()))),
        }
    }
}

impl Executor {
    /// Checks that the gas that a block's transactions may use, each its limit and all together the block's, is within the bound.
    fn check_gas(&self, block: &Block) -> Result<(), Stop> {
        let Some(bound) = self.max_gas else {
            return Ok(());
        };
        let limits = block.body.transactions.iter().map(|tx| tx.gas_limit());
        let gas = limits.fold(0, u64::saturating_add);
        let gas = gas.min(block.header.gas_limit);
        match gas <= bound {
            true => Ok(()),
            false => Err(Exceeded::Gas { gas, bound }.into()),
        }
    }
}

/// What stops revm.
pub(super) type RunError = EVMError<ViewError, InvalidTransaction>;

impl<'a, S: StateView + ?Sized> BlockEvm<'a, S> {
    pub(super) fn new(
        rules: &Rules,
        header: &Header,
        overlay: Overlay<'a, S>,
        code_reads: Option<&'a mut CodeReads>,
    ) -> Self {
        let mut cfg = CfgEnv::new_with_spec(rules.spec).with_chain_id(rules.chain_id);
        cfg.memory_limit = bounds::MEMORY;
        if let Some(gas) = rules.exp_byte_gas {
            cfg.gas_params.override_gas([(GasId::exp_byte_gas(), gas)]);
        }
        let mut block = BlockEnv {
            number: U256::from(header.number),
            beneficiary: header.beneficiary,
            timestamp: U256::from(header.timestamp),
            gas_limit: header.gas_limit,
            basefee: header.base_fee_per_gas.unwrap_or(0),
            difficulty: header.difficulty,
            prevrandao: rules.is_merged().then_some(header.mix_hash),
            blob_excess_gas_and_price: None,
            slot_num: 0,
        };
        let net_metering = rules.fork == Fork::Constantinople;
        if net_metering {
            eip1283::set_prices(&mut cfg);
        }
        if let Some(params) = &rules.blobs {
            cfg.max_blobs_per_tx = Some(params.max_blobs_per_tx);
            let excess_blob_gas = header.excess_blob_gas.unwrap_or(0);
            let blob_gasprice = blob_base_fee(params, excess_blob_gas);
            block.blob_excess_gas_and_price = Some(BlobExcessGasAndPrice {
                excess_blob_gas,
                blob_gasprice,
            });
        }
        if rules.witness_gas.is_some() {
            metering::set_prices(&mut cfg);
        }
        let mut context: BlockContext<'a, S> = Context::new(overlay, rules.spec);
        context.cfg = cfg;
        context.block = block;
        let mut evm = context.build_mainnet();
        let keccak256 = Instruction::new(keccak256::hash);
        evm.instruction
            .insert_instruction(KECCAK256, keccak256, gas::KECCAK256 as u16);
        if net_metering {
            let sstore = Instruction::new(eip1283::sstore);
            // Its whole price is in the parameters.
            evm.instruction.insert_instruction(SSTORE, sstore, 0);
        }
        if rules.witness_gas.is_some() {
            metering::set_instructions(&mut evm.instruction);
        }
        Self {
            evm,
            code_reads,
            accesses: None,
            new_slots: None,
            runner: None,
            access_events: rules.witness_gas.map(AccessEvents::new),
            memory_exceeded: false,
            ripemd_touched: false,
        }
    }

    /// Switches EVM384 on.
    pub(super) fn with_evm384(mut self, (evm384, runner): &'a mut (Evm384, Runner)) -> Self {
        self.evm.ctx.chain = Frames::new(evm384.schedule.registers);
        let instructions = &mut self.evm.instruction;
        runner.install(instructions, evm384.schedule);
        self.runner = Some(runner);
        self
    }

    /// The interface of EVM384, if the chain has it.
    pub(super) fn interface(&self) -> Option<Interface> {
        self.runner.as_ref().map(|runner| runner.interface())
    }

    pub(super) fn overlay(&mut self) -> &mut Overlay<'a, S> {
        &mut self.evm.ctx.journaled_state.database
    }

    /// Runs a transaction and leaves what it does in the journal.
    fn transact(&mut self, tx: TxEnv) -> Result<ExecutionResult<HaltReason>, RunError> {
        if let Some(events) = &mut self.access_events {
            events.begin(tx.caller, tx.kind.to().copied(), !tx.value.is_zero());
        }
        self.evm.ctx.tx = tx;
        MainnetHandler::default().run(self)
    }

    /// Records what the last transaction read and wrote, if that is wanted.
    fn record_access(&mut self, gas: u64) {
        if let Some(accesses) = &mut self.accesses {
            let journal = &self.evm.ctx.journaled_state;
            let beneficiary = self.evm.ctx.block.beneficiary;
            let access = journal.database.accessed(&journal.inner.state, beneficiary);
            accesses.push(TransactionAccess { gas, ..access });
        }
    }

    /// Moves what the last transaction or call left in the journal to the overlay.
    pub(super) fn take_over(&mut self) -> Result<(), ReadError> {
        self.settle_ripemd_touch();
        let journal = &mut self.evm.ctx.journaled_state;
        let mut state = std::mem::take(&mut journal.inner.state);
        journal.inner.finalize();
        if let Some(slots) = &mut self.new_slots {
            journal.database.add_unasked(&state, slots);
        }
        journal.database.apply(&mut state)?;
        // Empty now, it keeps its allocation.
        journal.inner.state = state;
        Ok(())
    }
}

/// A block under way.
struct Run<'r, 'a, S: StateView + ?Sized> {
    rules: &'r Rules,
    evm: BlockEvm<'a, S>,
    blooms: &'r mut BloomCache,
    /// Those of the transactions so far.
    receipts: Vec<ReceiptEnvelope>,
    /// Asked after each transaction before Byzantium.
    roots: Option<&'r mut dyn IntermediateRoots>,
    roots_time: Duration,
    blooms_time: Duration,
}

impl<S: StateView + ?Sized> Run<'_, '_, S> {
    /// Runs the block; returns its requests.
    fn whole(&mut self, block: &Block, senders: &[Address]) -> Result<Option<Vec<Bytes>>, Stop> {
        self.begin(&block.header)?;
        self.transactions(block, senders)?;
        self.finish(block)
    }

    /// What comes before the first transaction.
    fn begin(&mut self, header: &Header) -> Result<(), Stop> {
        if self.rules.dao == DaoRule::Transition {
            rewards::move_dao_balances(self.evm.overlay())?;
        }
        if self.rules.has(SpecId::CANCUN) {
            let root = header.parent_beacon_block_root.unwrap_or_default();
            system::store_beacon_root(&mut self.evm, root)?;
        }
        if self.rules.has(SpecId::PRAGUE) {
            system::store_parent_hash(&mut self.evm, header.parent_hash)?;
        }
        Ok(())
    }

    fn transactions(&mut self, block: &Block, senders: &[Address]) -> Result<(), Stop> {
        for (index, (tx, sender)) in block.body.transactions.iter().zip(senders).enumerate() {
            let used = gas_used(&self.receipts);
            let available = block.header.gas_limit.saturating_sub(used);
            let receipt =
                self.transaction(tx, *sender, available, used)
                    .map_err(|stop| match stop {
                        TransactionStop::Invalid(error) => BlockError::Transaction {
                            index,
                            hash: *tx.tx_hash(),
                            error,
                        }
                        .into(),
                        TransactionStop::State(error) => Stop::State(error),
                        TransactionStop::Exceeded(exceeded) => exceeded.into(),
                    })?;
            self.receipts.push(receipt);
        }
        Ok(())
    }

    fn transaction(
        &mut self,
        tx: &Transaction,
        sender: Address,
        available: u64,
        gas_before: u64,
    ) -> Result<ReceiptEnvelope, TransactionStop> {
        check_transaction(self.rules, tx, available)?;
        let result = self.evm.transact(tx_env(tx, sender));
        if self.evm.memory_exceeded {
            let index = self.receipts.len();
            return Err(TransactionStop::Exceeded(Exceeded::Memory { index }));
        }
        let result = result.map_err(|error| match error {
            EVMError::Database(error) => TransactionStop::State(error.0),
            EVMError::Transaction(error) => TransactionError::Rejected(error).into(),
            // Header errors concern fields whose presence is checked beforehand; revm has no others.
            other => TransactionStop::State(ReadError::new(format!("revm: {other}"))),
        })?;
        self.evm.record_access(result.tx_gas_used());
        self.evm.take_over()?;
        let gas_used = gas_before + result.tx_gas_used();
        let status = if self.rules.has(SpecId::BYZANTIUM) {
            Eip658Value::Eip658(result.is_success())
        } else {
            Eip658Value::PostState(self.root_now()?)
        };
        let start = Instant::now();
        let receipt = receipt(
            tx.tx_type(),
            status,
            gas_used,
            result.into_logs(),
            self.blooms,
        );
        self.blooms_time += start.elapsed();
        Ok(receipt)
    }

    /// Asks for the root after the changes since the last call; zero if there is no one to ask.
    fn root_now(&mut self) -> Result<B256, ReadError> {
        let Some(roots) = &mut self.roots else {
            return Ok(B256::ZERO);
        };
        let changes = self.evm.overlay().take_delta();
        let start = Instant::now();
        let root = roots.root_after(&changes);
        self.roots_time += start.elapsed();
        root
    }

    /// What comes after the last transaction.
    fn finish(&mut self, block: &Block) -> Result<Option<Vec<Bytes>>, Stop> {
        if let Some(withdrawals) = &block.body.withdrawals {
            rewards::credit_withdrawals(self.evm.overlay(), withdrawals)?;
        }
        rewards::pay_rewards(
            self.evm.overlay(),
            self.rules,
            &block.header,
            &block.body.ommers,
        )?;
        if !self.rules.has(SpecId::PRAGUE) {
            return Ok(None);
        }
        let deposits = match self.rules.deposit_contract {
            Some(contract) => deposits(&self.receipts, contract)?,
            None => Vec::new(),
        };
        let withdrawals = system::take_withdrawal_requests(&mut self.evm)?;
        let consolidations = system::take_consolidation_requests(&mut self.evm)?;
        let requests = [
            request(DEPOSITS, &deposits),
            request(WITHDRAWALS, &withdrawals),
            request(CONSOLIDATIONS, &consolidations),
        ];
        Ok(Some(requests.into_iter().flatten().collect()))
    }
}

/// Gas used by the transactions of these receipts together.
fn gas_used(receipts: &[ReceiptEnvelope]) -> u64 {
    receipts.last().map_or(0, |last| last.cumulative_gas_used())
}

/// What ends a transaction early.
enum TransactionStop {
    Invalid(TransactionError),
    State(ReadError),
    Exceeded(Exceeded),
}

impl From<TransactionError> for TransactionStop {
    fn from(error: TransactionError) -> Self {
        Self::Invalid(error)
    }
}

impl From<ReadError> for TransactionStop {
    fn from(error: ReadError) -> Self {
        Self::State(error)
    }
}
