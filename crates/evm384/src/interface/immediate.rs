//! The interface without a stack operand: the offsets follow the opcode.

use revm::bytecode::{Bytecode, JumpTable, opcode};
use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::ExtBytecode;
use revm::interpreter::interpreter_types::Jumps;
use revm::interpreter::{
    Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult,
    InterpreterTypes, SharedMemory,
};

use super::{ADDMOD384, Interface, MULMODMONT384, SUBMOD384, execute, operation_of};
use crate::arithmetic::Arithmetic;
use crate::{GasSchedule, Offsets};

/// Bytes behind the opcode.
pub(crate) const OPERAND_BYTES: usize = 16;

/// Zeros behind analyzed code: an opcode and the longest immediate, which a truncated push reads, and a STOP. revm's own
/// analysis appends fewer, which tells its code from ours.
const PADDING: usize = 64;

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

pub(super) fn analyze(code: &[u8]) -> Bytecode {
    let mut jumps = vec![0u8; code.len().div_ceil(8)];
    let mut position = 0;
    while let Some(&opcode) = code.get(position) {
        if opcode == opcode::JUMPDEST {
            jumps[position / 8] |= 1 << (position % 8);
        }
        position += 1 + Interface::Immediate.immediate_bytes(opcode);
    }
    let mut padded = Vec::with_capacity(code.len() + PADDING);
    padded.extend_from_slice(code);
    padded.resize(code.len() + PADDING, opcode::STOP);
    let table = JumpTable::from_slice(&jumps, code.len());
    // SAFETY: the table marks only JUMPDEST opcodes within the code, and the padding is longer than any
    // immediate with its opcode, so that no instruction reads beyond it and execution ends at a STOP.
    unsafe { Bytecode::new_analyzed(padded.into(), code.len(), table) }
}

/// Whether [`analyze`] made it: code that revm analyzed takes immediates for opcodes, and to go on behind one would leave what its padding was
/// made for.
pub(crate) fn is_analyzed(code: &Bytecode) -> bool {
    code.bytes_ref().len() >= code.len() + PADDING
}

/// The offsets behind an opcode; bytes beyond the code are zero.
pub(crate) fn offsets_at(code: &[u8], position: usize) -> Offsets {
    let mut bytes = [0u8; OPERAND_BYTES];
    let rest = code.get(position..).unwrap_or_default();
    let present = rest.len().min(OPERAND_BYTES);
    bytes[..present].copy_from_slice(&rest[..present]);
    let [out, x, y, modulus] = [0, 4, 8, 12]
        .map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    Offsets { out, x, y, modulus }
}

/// The bytes of [`offsets_at`].
pub(crate) fn operand_bytes(offsets: Offsets) -> [u8; OPERAND_BYTES] {
    let Offsets { out, x, y, modulus } = offsets;
    let mut bytes = [0u8; OPERAND_BYTES];
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
    let code = &interpreter.bytecode;
    if !is_analyzed(code) {
        return Err(InstructionResult::OpcodeNotFound);
    }
    let position = code.pc();
    let offsets = offsets_at(code.original_byte_slice(), position);
    let ended = position + OPERAND_BYTES >= code.len();
    let machine = (&mut interpreter.gas, &mut interpreter.memory);
    execute::<A, H>(
        const { operation_of(OPCODE) },
        offsets,
        machine,
        context.host,
    )?;
    if ended {
        return Err(InstructionResult::Stop);
    }
    interpreter.bytecode.relative_jump(OPERAND_BYTES as isize);
    Ok(())
}
