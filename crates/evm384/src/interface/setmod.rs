//! The interface with a modulus that is set once: SETMOD, then operations of seven bytes.

use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::{ExtBytecode, resize_memory};
use revm::interpreter::interpreter_types::{InputsTr, StackTr};
use revm::interpreter::{
    Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult,
    InterpreterTypes, SharedMemory,
};

use super::{REFUSED, execute, insert_operations, take_immediate};
use crate::arithmetic::{Arithmetic, negated_inverse};
use crate::{GasSchedule, HasFrames, MULTIPLICATION_MODULUS_BYTES, OPERAND_BYTES, Offsets};

/// Opcode of SETMOD.
pub(crate) const SETMOD: u8 = 0xc3;

/// Bytes behind the opcode of an operation.
pub(crate) const IMMEDIATE_BYTES: usize = 6;

pub(super) fn install<A, W, H>(instructions: &mut EthInstructions<W, H>, gas: GasSchedule)
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    insert_operations!(instructions, gas, instruction);
    instructions.insert_instruction(SETMOD, Instruction::new(set::<W, H>), gas.set_modulus);
}

/// Pops an offset and a length of up to 48 bytes, at which the modulus lies, little-endian; memory grows to hold it.
fn set<W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let InstructionContext { interpreter, host } = context;
    if host.frames().is_none() {
        return Err(InstructionResult::OpcodeNotFound);
    }
    let Some([offset, length]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let length = usize::try_from(length)
        .ok()
        .filter(|&length| length <= OPERAND_BYTES);
    let length = length.ok_or(REFUSED)?;
    let mut modulus = [0; MULTIPLICATION_MODULUS_BYTES];
    if length > 0 {
        let offset = usize::try_from(offset).map_err(|_| InstructionResult::MemoryOOG)?;
        let (gas, memory) = (&mut interpreter.gas, &mut interpreter.memory);
        resize_memory(gas, memory, host.gas_params(), offset, length)?;
        modulus[..length].copy_from_slice(&memory.slice_len(offset, length));
    }
    let low = modulus
        .first_chunk()
        .map_or(0, |low| u64::from_le_bytes(*low));
    let inverse = if low % 2 == 1 {
        negated_inverse(low)
    } else {
        0
    };
    modulus[OPERAND_BYTES..].copy_from_slice(&inverse.to_le_bytes());
    if let Some(frames) = host.frames() {
        frames.at(interpreter.input.depth()).modulus = Some(modulus);
    }
    Ok(())
}

/// The offsets that an operation has behind its opcode.
pub(crate) fn offsets(bytes: [u8; IMMEDIATE_BYTES]) -> Offsets {
    let [a, b, c, d, e, f] = bytes;
    Offsets {
        out: u32::from(u16::from_le_bytes([a, b])),
        x: u32::from(u16::from_le_bytes([c, d])),
        y: u32::from(u16::from_le_bytes([e, f])),
        modulus: 0,
    }
}

fn instruction<A, const OPCODE: u8, W, H>(
    context: InstructionContext<'_, H, W>,
) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let InstructionContext { interpreter, host } = context;
    let offsets = offsets(take_immediate(&mut interpreter.bytecode)?);
    let frame = host
        .frames()
        .and_then(|frames| frames.get(interpreter.input.depth()));
    let modulus = frame.and_then(|frame| frame.modulus);
    let modulus = modulus.ok_or(InstructionResult::NotActivated)?;
    let context = InstructionContext { interpreter, host };
    execute::<A, OPCODE, W, H>(context, offsets, Some(&modulus))
}
