//! Calls that the protocol itself makes (EIP-4788, EIP-2935, EIP-7002, EIP-7251).

use alloy_eips::eip2935::HISTORY_STORAGE_ADDRESS;
use alloy_eips::eip4788::{BEACON_ROOTS_ADDRESS, SYSTEM_ADDRESS};
use alloy_eips::eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS;
use alloy_eips::eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS;
use alloy_primitives::{Address, B256, Bytes, TxKind};
use arbor_state::StateView;
use revm::context::TxEnv;
use revm::context::result::{EVMError, ExecutionResult, HaltReason};
use revm::handler::{Handler, MainnetHandler};

use super::BlockError;
use super::context::BlockEvm;
use super::stop::Stop;

/// Gas of a system call, which counts towards nothing (EIP-4788).
const GAS_LIMIT: u64 = 30_000_000;

/// Stores the parent beacon block root (EIP-4788). Nothing happens where there is no contract, or if it fails.
pub(super) fn store_beacon_root<S: StateView + ?Sized>(
    evm: &mut BlockEvm<'_, S>,
    root: B256,
) -> Result<(), Stop> {
    call_if_present(evm, BEACON_ROOTS_ADDRESS, root)
}

/// Stores the parent's hash (EIP-2935). Nothing happens where there is no contract, or if it fails.
pub(super) fn store_parent_hash<S: StateView + ?Sized>(
    evm: &mut BlockEvm<'_, S>,
    parent_hash: B256,
) -> Result<(), Stop> {
    call_if_present(evm, HISTORY_STORAGE_ADDRESS, parent_hash)
}

/// Takes the withdrawal requests that are due (EIP-7002).
///
/// # Errors
/// If the contract is missing or fails: the block is invalid then.
pub(super) fn take_withdrawal_requests<S: StateView + ?Sized>(
    evm: &mut BlockEvm<'_, S>,
) -> Result<Bytes, Stop> {
    call_or_reject(evm, WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS)
}

/// Takes the consolidation requests that are due (EIP-7251).
///
/// # Errors
/// If the contract is missing or fails: the block is invalid then.
pub(super) fn take_consolidation_requests<S: StateView + ?Sized>(
    evm: &mut BlockEvm<'_, S>,
) -> Result<Bytes, Stop> {
    call_or_reject(evm, CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS)
}

fn call_if_present<S: StateView + ?Sized>(
    evm: &mut BlockEvm<'_, S>,
    contract: Address,
    word: B256,
) -> Result<(), Stop> {
    if evm.overlay().has_code(contract)? {
        call(evm, contract, Bytes::copy_from_slice(word.as_slice()))?;
    }
    Ok(())
}

fn call_or_reject<S: StateView + ?Sized>(
    evm: &mut BlockEvm<'_, S>,
    contract: Address,
) -> Result<Bytes, Stop> {
    if !evm.overlay().has_code(contract)? {
        return Err(BlockError::SystemContractEmpty { address: contract }.into());
    }
    match call(evm, contract, Bytes::new())? {
        ExecutionResult::Success { output, .. } => Ok(output.into_data()),
        ExecutionResult::Revert { .. } => Err(failed(contract, "reverted".into())),
        ExecutionResult::Halt { reason, .. } => Err(failed(contract, format!("{reason:?}"))),
    }
}

fn failed(address: Address, reason: String) -> Stop {
    BlockError::SystemCallFailed { address, reason }.into()
}

fn call<S: StateView + ?Sized>(
    evm: &mut BlockEvm<'_, S>,
    contract: Address,
    data: Bytes,
) -> Result<ExecutionResult<HaltReason>, Stop> {
    let result = evm.call_system(TxEnv {
        caller: SYSTEM_ADDRESS,
        kind: TxKind::Call(contract),
        data,
        gas_limit: GAS_LIMIT,
        gas_price: 0,
        ..TxEnv::default()
    });
    match result {
        Ok(result) => Ok(result),
        Err(EVMError::Database(error)) => Err(Stop::State(error.0)),
        Err(error) => Err(failed(contract, error.to_string())),
    }
}

impl<S: StateView + ?Sized> BlockEvm<'_, S> {
    /// Runs a system call and takes its changes over.
    fn call_system(
        &mut self,
        tx: TxEnv,
    ) -> Result<ExecutionResult<HaltReason>, EVMError<arbor_revm_state::ViewError>> {
        self.evm.ctx.tx = tx;
        // The protocol's own calls pay for no witness.
        let access_events = self.access_events.take();
        let result = MainnetHandler::default().run_system_call(self);
        self.access_events = access_events;
        self.take_over()
            .map_err(|error| EVMError::Database(error.into()))?;
        result
    }
}
