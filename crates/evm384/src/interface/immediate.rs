//! The interface without a stack operand: the offsets follow the opcode.

use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::ExtBytecode;
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InterpreterTypes, SharedMemory,
};

use super::{execute, insert_operations, take_immediate};
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
    insert_operations!(instructions, gas, instruction);
}

/// The offsets that an operation has behind its opcode.
pub(crate) fn offsets(bytes: [u8; IMMEDIATE_BYTES]) -> Offsets {
    // By shifts: `map` over an array stays a call for each element, which took longer than an addition.
    let word = u128::from_le_bytes(bytes);
    Offsets {
        out: word as u32,
        x: (word >> 32) as u32,
        y: (word >> 64) as u32,
        modulus: (word >> 96) as u32,
    }
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
    let offsets = offsets(take_immediate(&mut context.interpreter.bytecode)?);
    execute::<A, OPCODE, W, H>(context, offsets, None)
}
