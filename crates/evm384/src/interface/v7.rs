//! The interface of the 2020 talk: one stack word with four offsets.

use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter_types::StackTr;
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
    SharedMemory,
};

use super::{execute, insert_operations, operation_of};
use crate::arithmetic::Arithmetic;
use crate::{GasSchedule, Offsets};

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
    let interpreter = context.interpreter;
    let Some([word]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let [low, high, ..] = *word.as_limbs();
    let offsets = Offsets::from_word(u128::from(high) << 64 | u128::from(low));
    let machine = (&mut interpreter.gas, &mut interpreter.memory);
    execute::<A, H>(
        const { operation_of(OPCODE) },
        offsets,
        None,
        machine,
        context.host,
    )
}
