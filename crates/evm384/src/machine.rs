//! One contract alone in revm's interpreter: for programs, tests and measurements.

use revm::bytecode::Bytecode;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::{EthInterpreter, ExtBytecode};
use revm::interpreter::{
    CallInput, InputsImpl, InstructionResult, Interpreter, InterpreterAction, SharedMemory,
    host::DummyHost,
};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{B256, Bytes, keccak256};

use crate::{Backend, GasSchedule, Interface};

/// The rules that [`Machine`] runs code under.
pub const SPEC: SpecId = SpecId::OSAKA;

/// An EVM with the opcodes switched on and an empty state.
#[derive(Debug)]
pub struct Machine {
    interface: Interface,
    instructions: EthInstructions<EthInterpreter, DummyHost>,
}

/// Code that is ready to run.
#[derive(Clone, Debug)]
pub struct Contract {
    bytecode: Bytecode,
    hash: B256,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Return, revert, or the kind of halt.
    pub result: InstructionResult,
    /// Gas used; all of it where the run halted.
    pub gas_used: u64,
    /// What was returned.
    pub output: Bytes,
    /// Memory at the end.
    pub memory: Vec<u8>,
}

/// The code called another contract, or made one: there is none here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the code calls or creates another contract, and this machine has only the one")]
pub struct LeavesContract;

impl Machine {
    /// An EVM with this interface.
    #[must_use]
    pub fn new(interface: Interface, schedule: GasSchedule, backend: Backend) -> Self {
        let mut instructions = EthInstructions::new_mainnet_with_spec(SPEC);
        interface.install(&mut instructions, schedule, backend);
        Self {
            interface,
            instructions,
        }
    }

    /// Analyzes code and computes its hash.
    #[must_use]
    pub fn contract(&self, code: Vec<u8>) -> Contract {
        Contract {
            hash: keccak256(&code),
            bytecode: self.interface.analyze(code.into()),
        }
    }

    /// Calls a contract with so much gas, of which no transaction takes its share.
    ///
    /// # Errors
    ///
    /// If the code wants to call or create.
    pub fn call(
        &self,
        contract: &Contract,
        calldata: Bytes,
        gas: u64,
    ) -> Result<Outcome, LeavesContract> {
        let inputs = InputsImpl {
            input: CallInput::Bytes(calldata),
            ..InputsImpl::default()
        };
        let code = ExtBytecode::new_with_hash(contract.bytecode.clone(), contract.hash);
        let memory = SharedMemory::new();
        let mut interpreter =
            Interpreter::<EthInterpreter>::new(memory, code, inputs, false, SPEC, gas);
        let action = interpreter.run_plain(
            self.instructions.instruction_table(),
            self.instructions.gas_table(),
            &mut DummyHost::new(SPEC),
        );
        let InterpreterAction::Return(returned) = action else {
            return Err(LeavesContract);
        };
        let remaining = match returned.result {
            result if result.is_ok_or_revert() => returned.gas.remaining(),
            _ => 0,
        };
        let memory = interpreter.memory.context_memory().to_vec();
        Ok(Outcome {
            result: returned.result,
            gas_used: gas - remaining,
            output: returned.output,
            memory,
        })
    }
}
