//! The interface without a stack operand: the offsets follow the opcode.

use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::ExtBytecode;
use revm::interpreter::{
    Host, Instruction, InstructionContext, InstructionExecResult, InterpreterTypes, SharedMemory,
};

use super::{ADDMOD384, MULMODMONT384, SUBMOD384, execute, operation_of, take_immediate};
use crate::arithmetic::Arithmetic;
use crate::{GasSchedule, Offsets};

/// Bytes behind the opcode.
pub(crate) const IMMEDIATE_BYTES: usize = 16;

pub(super) fn install<A, W, H>(instructions: &mut EthInstructions<W, H>, gas: GasSchedule)
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host,
{
    let add = Instruction::new(instruction::<A, ADDMOD384, W, H>);
    let sub = Instruction::new(instruction::<A, SUBMOD384, W, H>);
    let mul = Instruction::new(instruction::<A, MULMODMONT384, W, H>);
    instructions.insert_instruction(ADDMOD384, add, gas.add);
    instructions.insert_instruction(SUBMOD384, sub, gas.sub);
    instructions.insert_instruction(MULMODMONT384, mul, gas.mul);
}

/// The offsets that an operation has behind its opcode.
pub(crate) fn offsets(bytes: [u8; IMMEDIATE_BYTES]) -> Offsets {
    let [out, x, y, modulus] = [0, 4, 8, 12]
        .map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    Offsets { out, x, y, modulus }
}

/// The inverse of [`offsets`].
pub(crate) fn operand_bytes(offsets: Offsets) -> [u8; IMMEDIATE_BYTES] {
    let Offsets { out, x, y, modulus } = offsets;
    let mut bytes = [0u8; IMMEDIATE_BYTES];
    for (chunk, offset) in bytes.chunks_exact_mut(4).zip([out, x, y, modulus]) {
        chunk.copy_from_slice(&offset.to_le_bytes());
    }
    bytes
}

fn instruction<A, const OPCODE: u8, W, H>(
    context: InstructionContext<'_, H, W>,
) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host,
{
    let interpreter = context.interpreter;
    let offsets = offsets(take_immediate(&mut interpreter.bytecode)?);
    let machine = (&mut interpreter.gas, &mut interpreter.memory);
    execute::<A, H>(
        const { operation_of(OPCODE) },
        offsets,
        None,
        machine,
        context.host,
    )
}
