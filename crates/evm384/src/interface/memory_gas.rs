//! Registers count as memory (EIP-6690): what is charged for memory that grows is for memory and registers together.
//!
//! revm charges for memory alone. As the price is quadratic, a frame with registers pays more for every further word of memory; instructions that can make memory
//! grow charge that difference first and then do what they do without registers.

use revm::bytecode::opcode::*;
use revm::context_interface::cfg::GasParams;
use revm::handler::instructions::EthInstructions;
use revm::interpreter::instructions::instruction_table;
use revm::interpreter::interpreter::{ExtBytecode, num_words};
use revm::interpreter::interpreter_types::{InputsTr, StackTr};
use revm::interpreter::{
    Gas, Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult,
    InterpreterTypes, SharedMemory,
};
use revm::primitives::U256;

use crate::HasFrames;

/// A part of memory that an instruction may make memory grow to: where on the stack its offset is, and its length.
#[derive(Clone, Copy)]
struct Operand {
    offset: usize,
    length: Length,
}

#[derive(Clone, Copy)]
enum Length {
    OnStack(usize),
    Fixed(u64),
}

const fn on_stack(offset: usize, length: usize) -> Operand {
    Operand {
        offset,
        length: Length::OnStack(length),
    }
}

const fn fixed(bytes: u64) -> Operand {
    Operand {
        offset: 0,
        length: Length::Fixed(bytes),
    }
}

/// The parts of memory that an instruction takes.
const fn operands(opcode: u8) -> &'static [Operand] {
    match opcode {
        KECCAK256 | LOG0..=LOG4 | RETURN | REVERT => const { &[on_stack(0, 1)] },
        CALLDATACOPY | CODECOPY | RETURNDATACOPY => const { &[on_stack(0, 2)] },
        EXTCODECOPY => const { &[on_stack(1, 3)] },
        MLOAD | MSTORE => const { &[fixed(32)] },
        MSTORE8 => const { &[fixed(1)] },
        MCOPY => const { &[on_stack(0, 2), on_stack(1, 2)] },
        CREATE | CREATE2 => const { &[on_stack(1, 2)] },
        CALL | CALLCODE => const { &[on_stack(3, 4), on_stack(5, 6)] },
        DELEGATECALL | STATICCALL => const { &[on_stack(2, 3), on_stack(4, 5)] },
        _ => &[],
    }
}

/// Replaces the instructions that can make memory grow; what they cost otherwise stays as it is.
pub(super) fn install<W, H>(instructions: &mut EthInstructions<W, H>)
where
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    macro_rules! replace {
        ($($opcode:ident)*) => {
            $({
                let gas = instructions.gas_table()[usize::from($opcode)];
                let instruction = Instruction::new(growing::<$opcode, W, H>);
                instructions.insert_instruction($opcode, instruction, gas);
            })*
        };
    }
    replace!(KECCAK256 LOG0 LOG1 LOG2 LOG3 LOG4 RETURN REVERT CALLDATACOPY CODECOPY RETURNDATACOPY EXTCODECOPY);
    replace!(MLOAD MSTORE MSTORE8 MCOPY CREATE CREATE2 CALL CALLCODE DELEGATECALL STATICCALL);
}

/// What memory of so many words and registers of so many bytes cost together.
fn cost(prices: &GasParams, words: usize, register_bytes: usize) -> u64 {
    prices.memory_cost(words.saturating_add(num_words(register_bytes)))
}

/// Charges for registers that are added to those that a frame has.
pub(super) fn charge(
    gas: &mut Gas,
    prices: &GasParams,
    old_bytes: usize,
    bytes: usize,
) -> InstructionExecResult {
    let words = gas.memory().words_num;
    let added = cost(prices, words, bytes) - cost(prices, words, old_bytes);
    if gas.record_regular_cost(added) {
        Ok(())
    } else {
        Err(InstructionResult::MemoryOOG)
    }
}

fn growing<const OPCODE: u8, W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let InstructionContext { interpreter, host } = context;
    let depth = interpreter.input.depth();
    let frame = host.frames().and_then(|frames| frames.get(depth));
    let bytes = frame.map_or(0, |frame| frame.fields.bytes());
    if bytes > 0 {
        let wanted = words(interpreter.stack.data(), const { operands(OPCODE) });
        let gas = &mut interpreter.gas;
        let now = gas.memory().words_num;
        if wanted > now {
            let prices = host.gas_params();
            let together = cost(prices, wanted, bytes) - cost(prices, now, bytes);
            let alone = cost(prices, wanted, 0) - cost(prices, now, 0);
            // Roundings may make it one less for both together.
            gas.erase_cost(alone.saturating_sub(together));
            if !gas.record_regular_cost(together.saturating_sub(alone)) {
                return Err(InstructionResult::MemoryOOG);
            }
        }
    }
    let original = const { instruction_table::<W, H>()[OPCODE as usize] };
    original.execute(InstructionContext { interpreter, host })
}

/// Words that memory must have for these; operands that are not there, or too large for any memory, are left to the instruction itself.
fn words(stack: &[U256], operands: &[Operand]) -> usize {
    let word = |index: usize| {
        let position = stack.len().checked_sub(index + 1)?;
        u32::try_from(stack[position]).ok().map(u64::from)
    };
    let end = |operand: &Operand| {
        let length = match operand.length {
            Length::OnStack(index) => word(index)?,
            Length::Fixed(bytes) => bytes,
        };
        if length == 0 {
            return None;
        }
        Some(word(operand.offset)? + length)
    };
    let furthest = operands.iter().filter_map(end).max().unwrap_or(0);
    num_words(usize::try_from(furthest).unwrap_or(usize::MAX))
}
