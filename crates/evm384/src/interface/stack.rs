//! What came before packed operands, version 2 of 2020: a stack word for each offset, and one for the inverse.

use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::resize_memory;
use revm::interpreter::interpreter_types::StackTr;
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
    SharedMemory,
};
use revm::primitives::U256;

use super::{execute, insert_operations, operation_of};
use crate::arithmetic::Arithmetic;
use crate::{GasSchedule, MULTIPLICATION_MODULUS_BYTES, OPERAND_BYTES, Offsets, Operation};

pub(super) fn install<A, W, H>(instructions: &mut EthInstructions<W, H>, gas: GasSchedule)
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host,
{
    insert_operations!(instructions, gas, instruction);
}

fn instruction<A, const OPCODE: u8, W, H>(
    context: InstructionContext<'_, H, W>,
) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host,
{
    let operation = const { operation_of(OPCODE) };
    let interpreter = context.interpreter;
    let Some([out, x, y, modulus]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let offsets = Offsets {
        out: offset(out)?,
        x: offset(x)?,
        y: offset(y)?,
        modulus: offset(modulus)?,
    };
    let (gas, memory) = (&mut interpreter.gas, &mut interpreter.memory);
    if operation != Operation::Mul {
        return execute::<A, H>(operation, offsets, None, (gas, memory), context.host);
    }
    let Some([inverse]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let at = offsets.modulus as usize;
    resize_memory(gas, memory, context.host.gas_params(), at, OPERAND_BYTES)?;
    let mut modulus = [0; MULTIPLICATION_MODULUS_BYTES];
    modulus[..OPERAND_BYTES].copy_from_slice(&memory.slice_len(at, OPERAND_BYTES));
    modulus[OPERAND_BYTES..].copy_from_slice(&inverse.as_limbs()[0].to_le_bytes());
    let machine = (gas, memory);
    execute::<A, H>(operation, offsets, Some(&modulus), machine, context.host)
}

/// No gas pays for memory beyond.
fn offset(word: U256) -> Result<u32, InstructionResult> {
    u32::try_from(word).map_err(|_| InstructionResult::MemoryOOG)
}
