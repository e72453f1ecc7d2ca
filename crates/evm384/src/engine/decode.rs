//! From code to runs.

use std::ops::Range;

use revm::bytecode::{Bytecode, opcode};
use revm::interpreter::GasTable;

use crate::interface::{immediate, is_analyzed, setmod};
use crate::{Interface, Offsets, Operation};

/// Pushes that may bring an operand: with `out` below 64 KiB fourteen bytes are enough, below 256 thirteen. Shorter ones are common in other code
/// and would only be looked at in vain.
const OPERAND_PUSHES: Range<u8> = opcode::PUSH13..opcode::PUSH16 + 1;

/// Marks positions at which no run begins.
const NO_RUN: u16 = u16::MAX;

/// The runs of some code.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Opcodes at which the next instruction may be the first of a run.
    beginnings: Range<u8>,
    /// The run that begins at each position of the code, or [`NO_RUN`]; empty where there are no runs.
    at: Vec<u16>,
    runs: Vec<Run>,
    operations: Vec<(Operation, Offsets)>,
}

/// Operations one behind the other.
#[derive(Clone, Debug)]
pub(super) struct Run {
    operations: Range<u32>,
    code: Range<u32>,
    memory_end: u64,
    /// How many of each operation, in the order of the opcodes.
    counts: [u32; 3],
    /// How many pushes of each kind, in the order of [`OPERAND_PUSHES`].
    pushes: [u32; 4],
}

impl Decoded {
    /// Whether code under an interface can have runs. Operations on registers are left to the interpreter: there is no push to save, and an opcode does many of them.
    pub(super) const fn knows(interface: Interface) -> bool {
        !matches!(interface, Interface::Registers | Interface::Stack)
    }

    /// Finds the runs.
    #[must_use]
    pub fn new(interface: Interface, code: &Bytecode) -> Self {
        let analyzed = !interface.has_immediates() || is_analyzed(code);
        if !code.is_legacy() || !analyzed || !Self::knows(interface) {
            return Self::default();
        }
        let mut decoded = Self {
            beginnings: match interface {
                Interface::V7 => OPERAND_PUSHES,
                _ => crate::ADDMOD384..crate::MULMODMONT384 + 1,
            },
            ..Self::default()
        };
        let bytes = code.original_byte_slice();
        let mut position = 0;
        while position < bytes.len() {
            let start = position;
            let first = decoded.operations.len();
            while let Some((operation, next)) = operation_at(interface, bytes, position) {
                decoded.operations.push(operation);
                position = next;
            }
            if position > start {
                decoded.add_run(interface, bytes, start..position, first);
            } else {
                position += 1 + interface.immediate_bytes(bytes[position]);
            }
        }
        decoded
    }

    fn add_run(&mut self, interface: Interface, code: &[u8], range: Range<usize>, first: usize) {
        let index = self.runs.len();
        if index >= usize::from(NO_RUN) {
            self.operations.truncate(first);
            return;
        }
        if self.at.is_empty() {
            self.at = vec![NO_RUN; code.len()];
        }
        self.at[range.start] = index as u16;
        let operations = &self.operations[first..];
        let mut counts = [0; 3];
        for (operation, _) in operations {
            counts[*operation as usize] += 1;
        }
        let mut pushes = [0; 4];
        if interface == Interface::V7 {
            let mut position = range.start;
            while position < range.end {
                pushes[usize::from(code[position] - OPERAND_PUSHES.start)] += 1;
                position += 2 + interface.immediate_bytes(code[position]);
            }
        }
        let ends = operations
            .iter()
            .map(|(operation, offsets)| match interface {
                Interface::SetMod => offsets.operands_end() as u64,
                _ => offsets.memory_end(*operation) as u64,
            });
        self.runs.push(Run {
            memory_end: ends.max().unwrap_or(0),
            operations: first as u32..self.operations.len() as u32,
            code: range.start as u32..range.end as u32,
            counts,
            pushes,
        });
    }

    /// Whether there is anything to gain.
    #[must_use]
    pub fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// How many operations lie in runs.
    #[must_use]
    pub fn operation_count(&self) -> usize {
        self.operations.len()
    }

    /// What it occupies.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.at.capacity() * size_of::<u16>()
            + self.runs.capacity() * size_of::<Run>()
            + self.operations.capacity() * size_of::<(Operation, Offsets)>()
    }

    #[inline(always)]
    pub(super) fn may_begin_run(&self, opcode: u8) -> bool {
        self.beginnings.contains(&opcode)
    }

    #[inline(always)]
    pub(super) fn run_at(&self, position: usize) -> Option<&Run> {
        let index = *self.at.get(position)?;
        self.runs.get(usize::from(index))
    }

    #[inline(always)]
    pub(super) fn operations(&self, run: &Run) -> &[(Operation, Offsets)] {
        &self.operations[run.operations.start as usize..run.operations.end as usize]
    }
}

impl Run {
    /// Gas of everything but memory.
    #[inline(always)]
    pub(super) fn cost(&self, gas: &GasTable) -> u64 {
        let operations = Operation::ALL.map(|operation| gas[usize::from(operation.opcode())]);
        let pushes = [0, 1, 2, 3].map(|index| gas[usize::from(OPERAND_PUSHES.start) + index]);
        let sum = |counts: &[u32], costs: &[u16]| -> u64 {
            let products = counts.iter().zip(costs);
            products
                .map(|(&n, &cost)| u64::from(n) * u64::from(cost))
                .sum()
        };
        sum(&self.counts, &operations) + sum(&self.pushes, &pushes)
    }

    /// Length that memory must have.
    #[inline(always)]
    pub(super) fn memory_end(&self) -> usize {
        self.memory_end as usize
    }

    /// Words of stack that it needs for a moment.
    #[inline(always)]
    pub(super) fn stack_words(&self) -> usize {
        usize::from(self.pushes != [0; 4])
    }

    /// Length of its code.
    #[inline(always)]
    pub(super) fn code_bytes(&self) -> isize {
        (self.code.end - self.code.start) as isize
    }
}

/// The operation, with its push under v7, that begins here, and where the next instruction begins.
fn operation_at(
    interface: Interface,
    code: &[u8],
    position: usize,
) -> Option<((Operation, Offsets), usize)> {
    let first = *code.get(position)?;
    match interface {
        Interface::V7 => {
            if !OPERAND_PUSHES.contains(&first) {
                return None;
            }
            let end = position + 1 + interface.immediate_bytes(first);
            let operation = Operation::from_opcode(*code.get(end)?)?;
            let digits = code[position + 1..end].iter();
            let word = digits.fold(0u128, |word, &byte| word << 8 | u128::from(byte));
            Some(((operation, Offsets::from_word(word)), end + 1))
        }
        Interface::Immediate => {
            let operation = Operation::from_opcode(first)?;
            let (bytes, end) = immediate_at(code, position)?;
            Some(((operation, immediate::offsets(bytes)), end))
        }
        Interface::SetMod => {
            let operation = Operation::from_opcode(first)?;
            let (bytes, end) = immediate_at(code, position)?;
            Some(((operation, setmod::offsets(bytes)), end))
        }
        Interface::Registers | Interface::Stack => None,
    }
}

/// What follows the opcode at a position, and the position behind it. None where the code ends, which is left to the instruction.
fn immediate_at<const N: usize>(code: &[u8], position: usize) -> Option<([u8; N], usize)> {
    let bytes = code.get(position + 1..)?.first_chunk()?;
    let end = position + 1 + N;
    (end < code.len()).then_some((*bytes, end))
}
