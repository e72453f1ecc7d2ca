//! How the operations take their operands: named interfaces that can be switched on in any revm.

pub(crate) mod immediate;
mod v7;

use std::{fmt, str::FromStr};

use revm::bytecode::Bytecode;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::{ExtBytecode, resize_memory};
use revm::interpreter::{
    Gas, Host, InstructionExecResult, InstructionResult, InterpreterTypes, SharedMemory,
};
use revm::primitives::Bytes;

use crate::arithmetic::{Arithmetic, Backend, with_arithmetic};
use crate::{GasSchedule, Offsets, Operation};

/// Opcode of ADDMOD384, in every interface.
pub const ADDMOD384: u8 = 0xc0;
/// Opcode of SUBMOD384.
pub const SUBMOD384: u8 = 0xc1;
/// Opcode of MULMODMONT384.
pub const MULMODMONT384: u8 = 0xc2;

impl Operation {
    /// Its opcode.
    #[must_use]
    pub const fn opcode(self) -> u8 {
        match self {
            Self::Add => ADDMOD384,
            Self::Sub => SUBMOD384,
            Self::Mul => MULMODMONT384,
        }
    }

    /// The operation with this opcode.
    #[must_use]
    pub const fn from_opcode(opcode: u8) -> Option<Self> {
        match opcode {
            ADDMOD384 => Some(Self::Add),
            SUBMOD384 => Some(Self::Sub),
            MULMODMONT384 => Some(Self::Mul),
            _ => None,
        }
    }

    /// The mnemonic of its opcode.
    #[must_use]
    pub const fn mnemonic(self) -> &'static str {
        match self {
            Self::Add => "ADDMOD384",
            Self::Sub => "SUBMOD384",
            Self::Mul => "MULMODMONT384",
        }
    }
}

/// Where an operation finds its four offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interface {
    /// In the low 128 bits of one stack word, most significant first: usually `PUSH16` and the opcode, 18 bytes.
    #[default]
    V7,
    /// In the 16 bytes behind the opcode, four little-endian `u32`: 17 bytes, and no push to pay for.
    ///
    /// Such code must be brought in by [`Interface::analyze`]; in other code the opcodes halt as unknown ones. Bytes missing at the
    /// end of the code are zero, as for pushes.
    Immediate,
}

impl Interface {
    /// All interfaces.
    pub const ALL: [Self; 2] = [Self::V7, Self::Immediate];

    /// The name that the command line uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V7 => "v7",
            Self::Immediate => "immediate",
        }
    }

    /// Enters the opcodes and their gas into an instruction table.
    pub fn install<W, H>(
        self,
        instructions: &mut EthInstructions<W, H>,
        gas: GasSchedule,
        backend: Backend,
    ) where
        W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
        H: Host,
    {
        with_arithmetic!(backend, A => match self {
            Self::V7 => v7::install::<A, W, H>(instructions, gas),
            Self::Immediate => immediate::install::<A, W, H>(instructions, gas),
        });
    }

    /// Gas of bringing an operation its operand.
    #[must_use]
    pub const fn push_gas(self) -> u64 {
        match self {
            Self::V7 => 3,
            Self::Immediate => 0,
        }
    }

    /// Bytes of immediate data behind an opcode under this interface.
    #[must_use]
    pub fn immediate_bytes(self, opcode: u8) -> usize {
        match opcode {
            0x60..=0x7f => usize::from(opcode - 0x5f),
            ADDMOD384..=MULMODMONT384 if self == Self::Immediate => immediate::OPERAND_BYTES,
            _ => 0,
        }
    }

    /// Code with its jump destinations, of which none lies in immediate data.
    #[must_use]
    pub fn analyze(self, code: Bytes) -> Bytecode {
        match self {
            Self::V7 => Bytecode::new_legacy(code),
            Self::Immediate => immediate::analyze(&code),
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Interface {
    type Err = UnknownInterface;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|interface| interface.name() == name)
            .ok_or_else(|| UnknownInterface(name.to_owned()))
    }
}

/// Not the name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an interface; there are: v7, immediate")]
pub struct UnknownInterface(String);

/// Grows memory to what the operands need, charges for it, and applies the operation.
#[inline(always)]
fn execute<A: Arithmetic, H: Host + ?Sized>(
    operation: Operation,
    offsets: Offsets,
    (gas, memory): (&mut Gas, &mut SharedMemory),
    host: &H,
) -> InstructionExecResult {
    let end = offsets.memory_end(operation);
    resize_memory(gas, memory, host.gas_params(), 0, end)?;
    let mut memory = memory.context_memory_mut();
    let Some(operands) = memory.get_mut(..end) else {
        return Err(InstructionResult::MemoryOOG);
    };
    // SAFETY: `operands` has all bytes up to the end of the furthest operand; `install` has asked the processor.
    unsafe { A::apply(operation, operands.as_mut_ptr(), offsets) };
    Ok(())
}

const fn operation_of(opcode: u8) -> Operation {
    match Operation::from_opcode(opcode) {
        Some(operation) => operation,
        None => panic!("only for the opcodes above"),
    }
}
