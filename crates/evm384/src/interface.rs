//! How the operations take their operands: named interfaces that can be switched on in any revm.

pub(crate) mod immediate;
mod memory_gas;
mod opcodes;
pub(crate) mod registers;
pub(crate) mod setmod;
mod stack;

use std::{fmt, str::FromStr};

use revm::bytecode::{Bytecode, JumpTable, opcode};
use revm::handler::instructions::EthInstructions;
use revm::interpreter::interpreter::{ExtBytecode, resize_memory};
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InstructionResult, Interpreter,
    InterpreterTypes, SharedMemory,
};
use revm::primitives::Bytes;

use crate::arithmetic::{Arithmetic, Backend, with_arithmetic};
use crate::{GasSchedule, HasFrames, Offsets, Operation};
pub use opcodes::{Immediate, Opcode};

/// Opcode of ADDMOD384, where operands are in memory.
pub const ADDMOD384: u8 = 0xc0;
/// Opcode of SUBMOD384.
pub const SUBMOD384: u8 = 0xc1;
/// Opcode of MULMODMONT384.
pub const MULMODMONT384: u8 = 0xc2;

impl Operation {
    /// Its opcode, where operands are in memory.
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

/// Where an operation finds what it works on.
///
/// Under all but v7 immediate data follows opcodes, and code must be brought in by [`Interface::analyze`]; in other code such opcodes halt as
/// unknown ones. Bytes missing at the end of the code are zero, as for pushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interface {
    /// Four offsets in the low 128 bits of one stack word, most significant first: usually `PUSH16` and the opcode, 18 bytes.
    #[default]
    V7,
    /// Four offsets in the 16 bytes behind the opcode, little-endian `u32`: 17 bytes, and no push to pay for.
    Immediate,
    /// Three offsets in the 6 bytes behind the opcode, little-endian `u16`. The modulus is set before, by SETMOD.
    SetMod,
    /// EIP-6690: registers apart from memory, moduli of up to 768 bits, several operations for one opcode.
    Registers,
    /// Version 2 of 2020: out, x, y and modulus as words on the stack, the first on top, and for a multiplication the inverse below them. Here to be compared with v7; the
    /// command line, the vectors and the engine leave it out.
    Stack,
}

impl Interface {
    /// All interfaces that are worth having.
    pub const ALL: [Self; 4] = [Self::V7, Self::Immediate, Self::SetMod, Self::Registers];

    /// Those whose operands lie in memory: the forms that programs for EVM384 can take.
    pub const ON_MEMORY: [Self; 3] = [Self::V7, Self::Immediate, Self::SetMod];

    /// The name that the command line uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V7 => "v7",
            Self::Immediate => "immediate",
            Self::SetMod => "setmod",
            Self::Registers => "eip-6690",
            Self::Stack => "v2",
        }
    }

    /// Enters the opcodes and their gas into an instruction table. What EIP-6690's operations cost by the length of the modulus stands in the
    /// host's [`crate::Frames`].
    pub fn install<W, H>(
        self,
        instructions: &mut EthInstructions<W, H>,
        gas: GasSchedule,
        backend: Backend,
    ) where
        W: InterpreterTypes<Memory = SharedMemory, Bytecode = ExtBytecode>,
        H: Host + HasFrames,
    {
        with_arithmetic!(backend, A => match self {
            Self::V7 => stack::install_packed::<A, W, H>(instructions, gas),
            Self::Immediate => immediate::install::<A, W, H>(instructions, gas),
            Self::SetMod => setmod::install::<A, W, H>(instructions, gas),
            Self::Registers => registers::install::<A, W, H>(instructions, gas.registers),
            Self::Stack => stack::install_apart::<A, W, H>(instructions, gas),
        });
    }

    /// Gas of bringing an operation its operands, in a program, whose modulus lies at 0.
    #[must_use]
    pub const fn push_gas(self, operation: Operation) -> u64 {
        match (self, operation) {
            (Self::V7, _) => 3,
            (Self::Immediate | Self::SetMod | Self::Registers, _) => 0,
            (Self::Stack, Operation::Add | Operation::Sub) => 3 * 3 + 2,
            (Self::Stack, Operation::Mul) => 3 * 3 + 2 + 3,
        }
    }

    /// Bytes of immediate data behind an opcode under this interface.
    #[must_use]
    pub fn immediate_bytes(self, opcode: u8) -> usize {
        match (opcode, self) {
            (opcode::PUSH1..=opcode::PUSH32, _) => usize::from(opcode - opcode::PUSH0),
            (ADDMOD384..=MULMODMONT384, Self::Immediate) => immediate::IMMEDIATE_BYTES,
            (ADDMOD384..=MULMODMONT384, Self::SetMod) => setmod::IMMEDIATE_BYTES,
            (registers::ADDMODX..=registers::MULMODX, Self::Registers) => {
                registers::IMMEDIATE_BYTES
            }
            _ => 0,
        }
    }

    /// Whether opcodes are followed by immediate data, of which revm's own analysis knows nothing.
    #[must_use]
    pub const fn has_immediates(self) -> bool {
        !matches!(self, Self::V7 | Self::Stack)
    }

    /// Code with its jump destinations, of which none lies in immediate data.
    #[must_use]
    pub fn analyze(self, code: Bytes) -> Bytecode {
        if !self.has_immediates() {
            return Bytecode::new_legacy(code);
        }
        let mut jumps = vec![0u8; code.len().div_ceil(8)];
        let mut position = 0;
        while let Some(&opcode) = code.get(position) {
            if opcode == opcode::JUMPDEST {
                jumps[position / 8] |= 1 << (position % 8);
            }
            position += 1 + self.immediate_bytes(opcode);
        }
        let mut padded = Vec::with_capacity(code.len() + PADDING);
        padded.extend_from_slice(&code);
        padded.resize(code.len() + PADDING, opcode::STOP);
        let table = JumpTable::from_slice(&jumps, code.len());
        // SAFETY: the table marks only JUMPDEST opcodes within the code, and the padding is longer than any
        // immediate with its opcode, so that no instruction reads beyond it and execution ends at a STOP.
        unsafe { Bytecode::new_analyzed(padded.into(), code.len(), table) }
    }
}

/// For operands that no gas would make acceptable: a modulus that is too long or of no field, registers or memory that are not there. EIP-6690 calls it a failed assertion; of
/// revm's words this one says that an operand is out of range.
const REFUSED: InstructionResult = InstructionResult::OutOfOffset;

/// Zeros behind analyzed code: an opcode and the longest immediate, which a truncated push reads, and a STOP. revm's own
/// analysis appends fewer, which tells its code from ours.
const PADDING: usize = 64;

/// Whether [`Interface::analyze`] made it: code that revm analyzed takes immediates for opcodes, and to go on behind one would leave what its padding was
/// made for.
#[inline(always)]
pub(crate) fn is_analyzed(code: &Bytecode) -> bool {
    code.bytes_ref().len() >= code.len() + PADDING
}

/// The immediate data of the opcode before the current position, which the position then lies behind. The padding of analyzed code has what the code lacks.
#[inline(always)]
fn take_immediate<const N: usize>(code: &mut ExtBytecode) -> Result<[u8; N], InstructionResult> {
    use revm::interpreter::interpreter_types::{Immediates, Jumps};
    const { assert!(N < PADDING) };
    if !is_analyzed(code) {
        return Err(InstructionResult::OpcodeNotFound);
    }
    let bytes = code.read_slice(N).first_chunk();
    let bytes = *bytes.ok_or(InstructionResult::OpcodeNotFound)?;
    code.relative_jump(N as isize);
    Ok(bytes)
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
#[error("'{0}' is not an interface; there are: v7, immediate, setmod, eip-6690")]
pub struct UnknownInterface(String);

/// Applies the operation with this opcode, once memory has grown to what its operands need and that is paid for; `modulus` is where it lies if that is not in memory.
#[inline(always)]
fn execute<A, const OPCODE: u8, W, H>(
    InstructionContext { interpreter, host }: InstructionContext<'_, H, W>,
    offsets: Offsets,
    modulus: Option<&[u8; crate::MULTIPLICATION_MODULUS_BYTES]>,
) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host + ?Sized,
{
    let end = memory_end::<OPCODE>(offsets, modulus.is_some());
    let Some(operands) = bytes_to(&mut interpreter.memory, end) else {
        // The last thing done, and with offsets as a number, so that on the usual way neither registers nor they are put on the stack.
        let word = offsets.to_word();
        return grow_and_execute::<A, OPCODE, W, H>(interpreter, host, word, modulus);
    };
    // SAFETY: `operands` has all bytes up to the end of the furthest operand, of which nobody else knows before this is over; `install` has asked
    // the processor.
    unsafe {
        let operation = const { operation_of(OPCODE) };
        match modulus {
            None => A::apply(operation, operands, offsets),
            Some(modulus) => A::apply_modulo(operation, operands, offsets, modulus.as_ptr()),
        }
    }
    Ok(())
}

/// The length that memory must have, with or without the modulus.
#[inline(always)]
fn memory_end<const OPCODE: u8>(offsets: Offsets, modulus_elsewhere: bool) -> usize {
    if modulus_elsewhere {
        offsets.operands_end()
    } else {
        offsets.memory_end(const { operation_of(OPCODE) })
    }
}

/// The frame's memory, if it has so many bytes, all of which are then paid for.
#[inline(always)]
fn bytes_to(memory: &mut SharedMemory, end: usize) -> Option<*mut u8> {
    let mut memory = memory.context_memory_mut();
    memory.get_mut(..end).map(<[u8]>::as_mut_ptr)
}

#[cold]
#[inline(never)]
fn grow_and_execute<A, const OPCODE: u8, W, H>(
    interpreter: &mut Interpreter<W>,
    host: &mut H,
    word: u128,
    modulus: Option<&[u8; crate::MULTIPLICATION_MODULUS_BYTES]>,
) -> InstructionExecResult
where
    A: Arithmetic,
    W: InterpreterTypes<Memory = SharedMemory>,
    H: Host + ?Sized,
{
    let offsets = Offsets::from_word(word);
    let end = memory_end::<OPCODE>(offsets, modulus.is_some());
    let (gas, memory) = (&mut interpreter.gas, &mut interpreter.memory);
    resize_memory(gas, memory, host.gas_params(), 0, end)?;
    if bytes_to(memory, end).is_none() {
        return Err(InstructionResult::MemoryOOG);
    }
    let context = InstructionContext { interpreter, host };
    execute::<A, OPCODE, W, H>(context, offsets, modulus)
}

/// Enters the three operations, each of them the function with its opcode, where `A`, `W` and `H` are arithmetic, interpreter types and host.
macro_rules! insert_operations {
    ($instructions:ident, $gas:ident, $instruction:ident) => {{
        use revm::interpreter::Instruction;
        use $crate::{ADDMOD384, MULMODMONT384, SUBMOD384};
        let add = Instruction::new($instruction::<A, ADDMOD384, W, H>);
        let sub = Instruction::new($instruction::<A, SUBMOD384, W, H>);
        let mul = Instruction::new($instruction::<A, MULMODMONT384, W, H>);
        $instructions.insert_instruction(ADDMOD384, add, $gas.add);
        $instructions.insert_instruction(SUBMOD384, sub, $gas.sub);
        $instructions.insert_instruction(MULMODMONT384, mul, $gas.mul);
    }};
}
use insert_operations;

const fn operation_of(opcode: u8) -> Operation {
    match Operation::from_opcode(opcode) {
        Some(operation) => operation,
        None => panic!("only for the opcodes above"),
    }
}
