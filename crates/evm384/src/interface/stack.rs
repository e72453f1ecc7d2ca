//! The interfaces of 2020, whose offsets are on the stack: packed into one word (version 7), and before that a word for each, and one for the inverse (version 2).

use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::resize_memory;
use revm::interpreter::interpreter_types::StackTr;
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
    SharedMemory,
};
use revm::primitives::U256;

use super::{execute, insert_operations};
use crate::arithmetic::Arithmetic;
use crate::{GasSchedule, MULMODMONT384, MULTIPLICATION_MODULUS_BYTES, OPERAND_BYTES, Offsets};

pub(super) fn install_packed<A, W, H>(instructions: &mut EthInstructions<W, H>, gas: GasSchedule)
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host,
{
    insert_operations!(instructions, gas, packed);
}

pub(super) fn install_apart<A, W, H>(instructions: &mut EthInstructions<W, H>, gas: GasSchedule)
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host,
{
    insert_operations!(instructions, gas, apart);
}

fn packed<A, const OPCODE: u8, W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host,
{
    let Some([word]) = context.interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let [low, high, ..] = *word.as_limbs();
    let offsets = Offsets::from_word(u128::from(high) << 64 | u128::from(low));
    execute::<A, OPCODE, W, H>(context, offsets, None)
}

fn apart<A, const OPCODE: u8, W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host,
{
    let interpreter = &mut *context.interpreter;
    let Some([out, x, y, modulus]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let offsets = Offsets {
        out: offset(out)?,
        x: offset(x)?,
        y: offset(y)?,
        modulus: offset(modulus)?,
    };
    if OPCODE != MULMODMONT384 {
        return execute::<A, OPCODE, W, H>(context, offsets, None);
    }
    let Some([inverse]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let at = offsets.modulus as usize;
    let (gas, memory) = (&mut interpreter.gas, &mut interpreter.memory);
    resize_memory(gas, memory, context.host.gas_params(), at, OPERAND_BYTES)?;
    let mut modulus = [0; MULTIPLICATION_MODULUS_BYTES];
    modulus[..OPERAND_BYTES].copy_from_slice(&memory.slice_len(at, OPERAND_BYTES));
    modulus[OPERAND_BYTES..].copy_from_slice(&inverse.as_limbs()[0].to_le_bytes());
    execute::<A, OPCODE, W, H>(context, offsets, Some(&modulus))
}

/// No gas pays for memory beyond.
fn offset(word: U256) -> Result<u32, InstructionResult> {
    u32::try_from(word).map_err(|_| InstructionResult::MemoryOOG)
}
