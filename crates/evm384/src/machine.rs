//! Contracts alone in an EVM: for programs, tests and measurements.

use revm::MainContext;
use revm::context::result::{ExecutionResult, HaltReason};
use revm::context::{Context, TxEnv};
use revm::database::InMemoryDB;
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, Bytes, TxKind, keccak256};
use revm::state::AccountInfo;

use crate::debug::Observer;
use crate::engine::EngineEvm;
use crate::{Backend, GasSchedule, Interface};

/// The rules that a [`Machine`] runs code under.
pub const SPEC: SpecId = SpecId::OSAKA;

/// What a machine is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The interface that is switched on.
    pub interface: Interface,
    /// What operations cost.
    pub schedule: GasSchedule,
    /// What computes.
    pub backend: Backend,
    /// Whether code is decoded, or interpreted instruction by instruction.
    pub engine: bool,
}

impl Setup {
    /// The engine on the fastest code that the processor runs.
    #[must_use]
    pub fn new(interface: Interface, schedule: GasSchedule) -> Self {
        Self {
            interface,
            schedule,
            backend: Backend::detect(),
            engine: true,
        }
    }
}

/// An EVM with the opcodes switched on and one contract in its state.
#[derive(Debug)]
pub struct Machine {
    evm: EngineEvm<InMemoryDB>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it came to a regular end.
    pub end: End,
    /// Gas used; all of it where the call halted.
    pub gas_used: u64,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It returned this.
    Returned(Bytes),
    /// It reverted, with this.
    Reverted(Bytes),
    /// It halted.
    Halted(HaltReason),
}

impl Outcome {
    /// What was returned, if the call succeeded.
    #[must_use]
    pub const fn output(&self) -> Option<&Bytes> {
        match &self.end {
            End::Returned(output) => Some(output),
            _ => None,
        }
    }
}

/// The EVM refused the call, for instance because it wants more than a transaction may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the call is refused: {0}")]
pub struct Refused(String);

impl Machine {
    /// Where the contract lives.
    pub const ADDRESS: Address = Address::repeat_byte(0x38);

    /// A machine with this contract.
    #[must_use]
    pub fn new(setup: Setup, code: Vec<u8>) -> Self {
        Self::with_others(setup, code, &[])
    }

    /// A machine with this contract, and others that it may call.
    #[must_use]
    pub fn with_others(setup: Setup, code: Vec<u8>, others: &[(Address, Vec<u8>)]) -> Self {
        let mut state = InMemoryDB::default();
        for (address, code) in others.iter().cloned().chain([(Self::ADDRESS, code)]) {
            let account = AccountInfo {
                code_hash: keccak256(&code),
                code: Some(setup.interface.analyze(code.into())),
                ..AccountInfo::default()
            };
            state.insert_account_info(address, account);
        }
        let context = Context::mainnet()
            .modify_cfg_chained(|cfg| cfg.set_spec_and_mainnet_gas_params(SPEC))
            .with_db(state);
        let evm = EngineEvm::new(
            context,
            setup.interface,
            setup.schedule,
            setup.backend,
            setup.engine,
        );
        Self { evm }
    }

    /// Tells somebody of every instruction from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer + Send>) {
        self.evm.observe(observer);
    }

    /// Calls the contract with so much gas, of which no transaction takes its share; what the call changes is forgotten.
    ///
    /// # Errors
    ///
    /// If the EVM refuses the call.
    pub fn call(&mut self, calldata: Bytes, gas: u64) -> Result<Outcome, Refused> {
        let result = self.evm.call(TxEnv {
            kind: TxKind::Call(Self::ADDRESS),
            data: calldata,
            gas_limit: gas,
            ..TxEnv::default()
        });
        let result = result.map_err(|error| Refused(error.to_string()))?;
        let gas_used = result.gas().total_gas_spent();
        let end = match result {
            ExecutionResult::Success { output, .. } => End::Returned(output.into_data()),
            ExecutionResult::Revert { output, .. } => End::Reverted(output),
            ExecutionResult::Halt { reason, .. } => End::Halted(reason),
        };
        Ok(Outcome { end, gas_used })
    }
}
