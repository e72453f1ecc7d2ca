//! A call: what a transaction would do on top of a state, of which nothing stays (`eth_call`).
//!
//! A call differs from a transaction in what is checked before it runs. Nobody signed it, so its
//! sender may be any account, a contract included, and its nonce is the sender's. A call that
//! offers no fee pays none: it sees a base fee of zero. It may have more gas than a block. The
//! sender must be able to pay for gas and value all the same. These are the rules of go-ethereum.

use std::marker::PhantomData;
use std::time::Instant;

use alloy_consensus::Header;
use alloy_eips::eip2930::AccessList;
use alloy_eips::eip7702::SignedAuthorization;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use arbor_state::{AccountSlots, ReadError, StateView};
use revm::context::TxEnv;
use revm::context::either::Either;
use revm::context::result::{EVMError, ExecutionResult, HaltReason, InvalidTransaction};
use revm::context_interface::journaled_state::account::JournaledAccountTr;
use revm::context_interface::{JournalTr, Transaction as _};
use revm::handler::pre_execution::calculate_caller_fee;
use revm::handler::{EvmTr, FrameResult, Handler, ItemOrResult, validation};
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::{InitialAndFloorGas, InstructionResult, STACK_LIMIT};
use revm::primitives::hardfork::SpecId;

use super::block::RunError;
use super::bounds::MEMORY;
use super::context::BlockEvm;
use super::overlay::Overlay;
use super::transaction::recover_authority;
use super::{Ancestors, Executor, Rules};

/// A call to make.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who makes it.
    pub from: Address,
    /// The contract or account called, or a creation.
    pub to: TxKind,
    /// The most gas that it may use.
    pub gas: u64,
    /// The most wei that it pays for a unit of gas: the gas price, if there is no `priority_fee`.
    pub fee: u128,
    /// The most wei that it pays for a unit of gas beyond the base fee (EIP-1559).
    pub priority_fee: Option<u128>,
    /// The most wei that it pays for a unit of blob gas (EIP-4844). With zero, the call sees a price
    /// of zero.
    pub blob_fee: Option<u128>,
    /// Wei that it moves.
    pub value: U256,
    /// Its input.
    pub input: Bytes,
    /// Accounts and slots that it pays for ahead (EIP-2930).
    pub access_list: AccessList,
    /// Versioned hashes of its blobs (EIP-4844). An empty list is rejected.
    pub blob_hashes: Option<Vec<B256>>,
    /// Delegations that it sets (EIP-7702). An empty list is rejected.
    pub authorizations: Option<Vec<SignedAuthorization>>,
}

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallEnd {
    /// It succeeded, with this output; a creation's is the code.
    Returned(Bytes),
    /// It took everything back itself, with this output.
    Reverted(Bytes),
    /// It failed, and all its gas is gone.
    Halted(HaltReason),
}

/// What a call did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallOutcome {
    /// How it ended.
    pub end: CallEnd,
    /// Gas that it paid for.
    pub gas_used: u64,
    /// The most gas that it had in use, of which refunds gave a part back.
    pub peak_gas: u64,
    /// Accounts that it loaded, with the slots that it loaded of each: ascending; without
    /// precompiles and the beneficiary, unless it loaded slots of them.
    pub touched: Vec<AccountSlots>,
}

/// Why a call was not made to its end.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// It breaks a rule that holds before anything runs.
    #[error(transparent)]
    Rejected(Box<InvalidTransaction>),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] ReadError),
    /// It did not end in time.
    #[error("the call did not end in time")]
    Late,
    /// It has the gas for more memory than is given to it.
    #[error("the call has the gas for more than {} MiB of EVM memory, which is the bound", MEMORY >> 20)]
    Memory,
}

/// Where a call runs.
#[derive(Clone, Copy)]
pub struct CallPlace<'a> {
    /// The rules of the block.
    pub rules: &'a Rules,
    /// The block after which the call is made. The call sees its number, time and fees.
    pub header: &'a Header,
    /// The blocks before it.
    pub chain: &'a dyn Ancestors,
    /// The price of a unit of blob gas, if it is not that of the header.
    pub blob_base_fee: Option<u128>,
    /// When the call is given up, between two frames; never if not given.
    pub deadline: Option<Instant>,
}

impl Executor {
    /// Makes a call on the state after a block.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call<S: StateView + ?Sized>(
        &mut self,
        place: CallPlace<'_>,
        call: &Call,
        state: &S,
    ) -> Result<CallOutcome, CallError> {
        let CallPlace { rules, header, .. } = place;
        self.codes.begin(rules.has(SpecId::PRAGUE));
        let overlay = Overlay::new(
            state,
            place.chain,
            (&mut self.codes, &mut self.hashes),
            !rules.has(SpecId::SPURIOUS_DRAGON),
        );
        let evm = BlockEvm::new(rules, header, overlay, None);
        let mut evm = match &mut self.evm384 {
            Some(evm384) => evm.with_evm384(evm384),
            None => evm,
        };
        let context = &mut evm.evm.ctx;
        context.cfg.tx_chain_id_check = false;
        context.cfg.tx_gas_limit_cap = Some(u64::MAX);
        if call.fee == 0 {
            context.block.basefee = 0;
        }
        let free = call.blob_fee.filter(|fee| *fee == 0);
        if let Some(blobs) = &mut context.block.blob_excess_gas_and_price
            && let Some(price) = free.or(place.blob_base_fee)
        {
            blobs.blob_gasprice = price;
        }
        let tx = tx_env(call, rules);
        if let Some(events) = &mut evm.access_events {
            events.begin(tx.caller, tx.kind.to().copied(), !tx.value.is_zero());
        }
        evm.evm.ctx.tx = tx;
        let mut handler = CallHandler {
            deadline: place.deadline,
            late: false,
            evm: PhantomData,
        };
        let result = handler.run(&mut evm);
        if evm.memory_exceeded {
            return Err(CallError::Memory);
        }
        if handler.late {
            return Err(CallError::Late);
        }
        match result {
            Ok(result) => Ok(outcome(&evm, result)),
            Err(EVMError::Database(error)) => Err(error.0.into()),
            Err(EVMError::Transaction(error)) => Err(CallError::Rejected(Box::new(error))),
            Err(other) => Err(ReadError::new(format!("revm: {other}")).into()),
        }
    }
}

/// Fills revm's form of a call: the earliest kind of transaction that has all that the call has.
fn tx_env(call: &Call, rules: &Rules) -> TxEnv {
    let priority_fee = call.priority_fee;
    // Before London there are no fees of this kind, and no gas price was offered.
    let fee = match priority_fee {
        Some(_) if !rules.has(SpecId::LONDON) => 0,
        _ => call.fee,
    };
    let tx_type = if call.authorizations.is_some() {
        4
    } else if call.blob_hashes.is_some() {
        3
    } else if priority_fee.is_some() && rules.has(SpecId::LONDON) {
        2
    } else {
        u8::from(!call.access_list.is_empty() && rules.has(SpecId::BERLIN))
    };
    let authorizations = call.authorizations.iter().flatten();
    TxEnv {
        tx_type,
        caller: call.from,
        gas_limit: call.gas,
        gas_price: fee,
        kind: call.to,
        value: call.value,
        data: call.input.clone(),
        // The sender's own counts: see `CallHandler`.
        nonce: 0,
        chain_id: Some(rules.chain_id),
        access_list: call.access_list.clone(),
        gas_priority_fee: (tx_type >= 2).then(|| priority_fee.unwrap_or(fee)),
        blob_hashes: call.blob_hashes.clone().unwrap_or_default(),
        max_fee_per_blob_gas: call.blob_fee.unwrap_or(0),
        authorization_list: authorizations
            .map(|signed| Either::Right(recover_authority(signed)))
            .collect(),
    }
}

fn outcome<S: StateView + ?Sized>(
    evm: &BlockEvm<'_, S>,
    result: ExecutionResult<HaltReason>,
) -> CallOutcome {
    let journal = &evm.evm.ctx.journaled_state;
    let precompiles = journal.precompile_addresses();
    let beneficiary = evm.evm.ctx.block.beneficiary;
    let accounts = journal.inner.state.iter();
    let mut touched: Vec<AccountSlots> = accounts
        .filter(|(address, account)| {
            let is_asides = precompiles.contains(*address) || **address == beneficiary;
            !(is_asides && account.storage.is_empty())
        })
        .map(|(address, account)| {
            let mut slots: Vec<U256> = account.storage.keys().copied().collect();
            slots.sort_unstable();
            AccountSlots {
                address: *address,
                slots,
            }
        })
        .collect();
    touched.sort_unstable_by_key(|account| account.address);
    let gas = result.gas();
    CallOutcome {
        gas_used: result.tx_gas_used(),
        peak_gas: gas.total_gas_spent().max(gas.floor_gas()),
        touched,
        end: match result {
            ExecutionResult::Success { output, .. } => CallEnd::Returned(output.into_data()),
            ExecutionResult::Revert { output, .. } => CallEnd::Reverted(output),
            ExecutionResult::Halt { reason, .. } => CallEnd::Halted(reason),
        },
    }
}

/// revm's steps, without the checks that a call is free of.
struct CallHandler<E> {
    deadline: Option<Instant>,
    late: bool,
    evm: PhantomData<E>,
}

impl<'a, S: StateView + ?Sized> Handler for CallHandler<BlockEvm<'a, S>> {
    type Evm = BlockEvm<'a, S>;
    type Error = RunError;
    type HaltReason = HaltReason;

    /// Lets the call have more gas than the block.
    fn validate_env(&self, evm: &mut Self::Evm) -> Result<(), RunError> {
        let context = &mut evm.evm.ctx;
        let limit = std::mem::replace(&mut context.block.gas_limit, u64::MAX);
        let result = validation::validate_env(&mut *context);
        context.block.gas_limit = limit;
        result
    }

    /// Takes the fee, but compares no nonce and lets contracts send.
    fn validate_against_state_and_deduct_caller(
        &self,
        evm: &mut Self::Evm,
        _: &mut InitialAndFloorGas,
    ) -> Result<(), RunError> {
        let context = &mut evm.evm.ctx;
        let (tx, block, cfg) = (&context.tx, &context.block, &context.cfg);
        let mut caller = context
            .journaled_state
            .load_account_with_code_mut(tx.caller())?
            .data;
        let balance = calculate_caller_fee(*caller.balance(), tx, block, cfg)?;
        caller.set_balance(balance);
        if tx.kind().is_call() {
            caller.bump_nonce();
        }
        Ok(())
    }

    /// Looks at the time before each frame goes on.
    fn run_exec_loop(
        &mut self,
        evm: &mut Self::Evm,
        first: FrameInit,
    ) -> Result<FrameResult, RunError> {
        if let ItemOrResult::Result(result) = evm.frame_init(first)? {
            return Ok(result);
        }
        loop {
            if self
                .deadline
                .is_some_and(|deadline| Instant::now() > deadline)
            {
                self.late = true;
                return Err(EVMError::Custom("late".into()));
            }
            let result = match evm.frame_run()? {
                ItemOrResult::Item(init) => match evm.frame_init(init)? {
                    ItemOrResult::Item(_) => continue,
                    ItemOrResult::Result(result) => result,
                },
                ItemOrResult::Result(mut result) => {
                    let depth = evm.evm.frame_stack.get().interpreter.stack.len();
                    name_underflow(&mut result, depth);
                    result
                }
            };
            if let Some(result) = evm.frame_return_result(result)? {
                return Ok(result);
            }
        }
    }
}

/// Tells underflows of the stack from overflows: revm calls both overflows when `DUP` and `SWAP` find
/// too few words.
fn name_underflow(result: &mut FrameResult, depth: usize) {
    let result = &mut result.interpreter_result_mut().result;
    if *result == InstructionResult::StackOverflow && depth < STACK_LIMIT {
        *result = InstructionResult::StackUnderflow;
    }
}
