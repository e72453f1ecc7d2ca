//! EIP-6690: fields of up to 768 bits whose elements lie in registers of the frame.

use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::ExtBytecode;
use revm::interpreter::interpreter_types::{InputsTr, StackTr};
use revm::interpreter::{
    Gas, Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult,
    InterpreterTypes, SharedMemory,
};
use revm::primitives::U256;

use super::{REFUSED, memory_gas, take_immediate};
use crate::arithmetic::Arithmetic;
use crate::arithmetic::registers::{FRAME_BYTES, Field, MAX_LIMBS, Stride};
use crate::{HasFrames, Operation, RegisterGas};

/// Opcode that makes a field, or an earlier one, active.
pub(crate) const SETMODX: u8 = 0xc0;
/// From registers to memory.
pub(crate) const LOADX: u8 = 0xc1;
/// From memory to registers.
pub(crate) const STOREX: u8 = 0xc2;
/// Sums.
pub(crate) const ADDMODX: u8 = 0xc3;
/// Differences.
pub(crate) const SUBMODX: u8 = 0xc4;
/// Products.
pub(crate) const MULMODX: u8 = 0xc5;

/// Bytes behind the opcode of an arithmetic operation.
pub(crate) const IMMEDIATE_BYTES: usize = 7;

/// Highest name of a field.
const MAX_ID: usize = 256;
/// Most registers of a field.
const MAX_REGISTERS: usize = 256;
/// Gas of copying a word, as MCOPY has it.
const COPY_GAS: u64 = 3;

pub(super) fn install<A, W, H>(instructions: &mut EthInstructions<W, H>, gas: RegisterGas)
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let mut insert = |opcode, instruction, gas| {
        instructions.insert_instruction(opcode, instruction, gas);
    };
    insert(
        SETMODX,
        Instruction::new(set_modulus::<A, W, H>),
        gas.set_modulus,
    );
    insert(LOADX, Instruction::new(load::<W, H>), gas.transfer);
    insert(STOREX, Instruction::new(store::<W, H>), gas.transfer);
    insert(ADDMODX, Instruction::new(operate::<ADDMODX, W, H>), 0);
    insert(SUBMODX, Instruction::new(operate::<SUBMODX, W, H>), 0);
    insert(MULMODX, Instruction::new(operate::<MULMODX, W, H>), 0);
    memory_gas::install(instructions);
}

/// The active field of the frame at a depth, and what operations cost.
fn active<H: HasFrames>(
    host: &mut H,
    depth: usize,
) -> Result<(&mut Field, RegisterGas), InstructionResult> {
    let frames = host.frames().ok_or(InstructionResult::OpcodeNotFound)?;
    let gas = frames.gas();
    let field = frames.get(depth).and_then(|frame| frame.fields.active());
    Ok((field.ok_or(InstructionResult::NotActivated)?, gas))
}

/// A word as a number up to `most`.
fn number(word: U256, most: usize) -> Result<usize, InstructionResult> {
    let number = usize::try_from(word).ok().filter(|&number| number <= most);
    number.ok_or(REFUSED)
}

/// The bytes of memory as it is that begin at `offset`.
fn range(
    memory: &SharedMemory,
    offset: U256,
    bytes: usize,
) -> Result<std::ops::Range<usize>, InstructionResult> {
    let offset = number(offset, memory.len())?;
    let end = number(U256::from(offset) + U256::from(bytes), memory.len())?;
    Ok(offset..end)
}

fn charge(gas: &mut Gas, cost: u64) -> InstructionExecResult {
    if gas.record_regular_cost(cost) {
        Ok(())
    } else {
        Err(InstructionResult::OutOfGas)
    }
}

/// Pops a field's name, where its modulus lies and how long it is, and the number of its registers.
fn set_modulus<A, W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let InstructionContext { interpreter, host } = context;
    let depth = interpreter.input.depth();
    if host.frames().is_none() {
        return Err(InstructionResult::OpcodeNotFound);
    }
    let Some([id, offset, length, count]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let id = number(id, MAX_ID)? as u16;
    let frame = host.frames().and_then(|frames| frames.get(depth));
    let mut old_bytes = 0;
    if let Some(frame) = frame {
        if frame.fields.activate(id) {
            return Ok(());
        }
        old_bytes = frame.fields.bytes();
    }
    let length = number(length, MAX_LIMBS * 8)?;
    let range = range(&interpreter.memory, offset, length)?;
    let count = number(count, MAX_REGISTERS)?;
    let modulus = interpreter.memory.slice_range(range).to_vec();
    let bytes = old_bytes + count * Field::limbs_of(&modulus) * 8;
    if count == 0 || bytes > FRAME_BYTES {
        return Err(REFUSED);
    }
    // Before anything is allocated or computed.
    let prices = host.gas_params();
    memory_gas::charge(&mut interpreter.gas, prices, old_bytes, bytes)?;
    let field = Field::new(&modulus, count, A::BACKEND).ok_or(REFUSED)?;
    let Some(frames) = host.frames() else {
        return Err(InstructionResult::OpcodeNotFound);
    };
    if field.is_odd() {
        let cost = frames.gas().odd_modulus[field.limbs() - 1];
        charge(&mut interpreter.gas, cost.into())?;
    }
    frames.at(depth).fields.insert(id, field);
    Ok(())
}

/// What bringing so many values in or out costs: their conversion, or for a power of two, which needs none, a copy of their bytes.
fn transfer_cost(field: &Field, gas: RegisterGas, count: usize) -> u64 {
    if field.is_odd() {
        count as u64 * gas.cost(Operation::Mul, field.limbs())
    } else {
        (count * field.element_bytes()).div_ceil(32) as u64 * COPY_GAS
    }
}

/// Pops where in memory values go, the first register and the number of values.
fn load<W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let InstructionContext { interpreter, host } = context;
    let (field, gas) = active(host, interpreter.input.depth())?;
    let Some([to, first, count]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let first = number(first, field.len())?;
    let count = number(count, field.len() - first)?;
    let range = range(&interpreter.memory, to, count * field.element_bytes())?;
    charge(&mut interpreter.gas, transfer_cost(field, gas, count))?;
    field.load(first, &mut interpreter.memory.context_memory_mut()[range]);
    Ok(())
}

/// Pops the first register, where in memory values are, and their number.
fn store<W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let InstructionContext { interpreter, host } = context;
    let (field, gas) = active(host, interpreter.input.depth())?;
    let Some([first, from, count]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let first = number(first, field.len())?;
    let count = number(count, field.len() - first)?;
    charge(&mut interpreter.gas, transfer_cost(field, gas, count))?;
    let range = range(&interpreter.memory, from, count * field.element_bytes())?;
    if field.store(first, &interpreter.memory.slice_range(range)) {
        Ok(())
    } else {
        Err(REFUSED)
    }
}

fn operate<const OPCODE: u8, W, H>(context: InstructionContext<'_, H, W>) -> InstructionExecResult
where
    W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
    H: Host + HasFrames,
{
    let InstructionContext { interpreter, host } = context;
    let operation = const { Operation::ALL[(OPCODE - ADDMODX) as usize] };
    let [out, out_step, x, x_step, y, y_step, count] =
        take_immediate::<IMMEDIATE_BYTES>(&mut interpreter.bytecode)?;
    let (field, gas) = active(host, interpreter.input.depth())?;
    let strides = [(out, out_step), (x, x_step), (y, y_step)];
    let strides = strides.map(|(first, step)| Stride { first, step });
    let exist = strides.iter().all(|&stride| field.holds(stride, count));
    if !exist || out_step == 0 || count == 0 {
        return Err(REFUSED);
    }
    let cost = u64::from(count) * gas.cost(operation, field.limbs());
    charge(&mut interpreter.gas, cost)?;
    field.apply(operation, strides, count);
    Ok(())
}
