//! Bytecode with labels.

use alloy_primitives::U256;
use revm::bytecode::opcode;

use super::label::Label;
use super::layout::{Layout, Slots};
use super::routine::Routine;
use crate::interface::setmod;
use crate::{Interface, OPERAND_BYTES};

/// Code being written, one instruction after the other.
#[derive(Debug)]
pub struct Code {
    pub(super) interface: Interface,
    pub(super) bytes: Vec<u8>,
    positions: Vec<Option<usize>>,
    /// Where two bytes wait for a label's position.
    references: Vec<(usize, Label)>,
    /// -1/m modulo 2^64, where it is no operand in memory.
    pub(super) inverse: u64,
    /// What operations take instead of an interface's.
    pub(super) words: Option<Words>,
}

/// What stands for the operations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Words {
    /// The EVM's own arithmetic modulo this.
    One(U256),
    /// Subroutines, placed by [`Code::arithmetic`].
    Two(TwoWords),
}

/// Arithmetic modulo a number between 2^256 and 2^383, by subroutines.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwoWords {
    pub(super) high: U256,
    pub(super) low: U256,
    /// -1/m modulo 2^256.
    pub(super) inverse: U256,
    /// Of each operation.
    pub(super) subroutines: [Label; 3],
}

impl Code {
    /// No code yet; operations will take the form of `interface`.
    #[must_use]
    pub const fn new(interface: Interface) -> Self {
        Self {
            interface,
            bytes: Vec::new(),
            positions: Vec::new(),
            references: Vec::new(),
            inverse: 0,
            words: None,
        }
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Plain instructions, without immediate data.
    pub fn ops(&mut self, opcodes: &[u8]) {
        self.bytes.extend_from_slice(opcodes);
    }

    /// Pushes a number with the shortest push.
    pub fn push(&mut self, number: u64) {
        let bytes = number.to_be_bytes();
        self.push_bytes(&bytes);
    }

    /// Pushes a number of up to 32 bytes, most significant first, with the shortest push.
    ///
    /// # Panics
    ///
    /// If it has more than 32 bytes.
    pub fn push_bytes(&mut self, number: &[u8]) {
        let zeros = number.iter().take_while(|&&byte| byte == 0).count();
        let digits = &number[zeros..];
        assert!(digits.len() <= 32, "a word has 32 bytes");
        self.bytes.push(opcode::PUSH0 + digits.len() as u8);
        self.bytes.extend_from_slice(digits);
    }

    /// A label for a place to come.
    pub fn label(&mut self) -> Label {
        self.positions.push(None);
        Label(self.positions.len() - 1)
    }

    /// The label's place is here; a jump can come here.
    pub fn place(&mut self, label: Label) {
        self.mark(label);
        self.bytes.push(opcode::JUMPDEST);
    }

    /// The label's place is here, where data begins.
    pub fn mark(&mut self, label: Label) {
        self.positions[label.0] = Some(self.bytes.len());
    }

    /// A label that is placed here.
    pub fn here(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    /// Pushes a label's position.
    pub fn push_label(&mut self, label: Label) {
        self.bytes.push(opcode::PUSH2);
        self.references.push((self.bytes.len(), label));
        self.bytes.extend_from_slice(&[0, 0]);
    }

    /// Goes on at a label.
    pub fn jump(&mut self, label: Label) {
        self.push_label(label);
        self.bytes.push(opcode::JUMP);
    }

    /// Pops a word and goes on at a label unless it is zero.
    pub fn jump_if(&mut self, label: Label) {
        self.push_label(label);
        self.bytes.push(opcode::JUMPI);
    }

    /// Goes to a subroutine, which finds the way back on top of the stack.
    pub fn call(&mut self, subroutine: Label) {
        let back = self.label();
        self.push_label(back);
        self.jump(subroutine);
        self.place(back);
    }

    /// Returns from a subroutine.
    pub fn ret(&mut self) {
        self.bytes.push(opcode::JUMP);
    }

    /// A routine as a subroutine: its label, its operations, and the way back.
    pub fn subroutine(&mut self, label: Label, routine: &Routine, layout: &Layout) {
        self.place(label);
        self.routine(routine, layout);
        self.ret();
    }

    /// A routine's operations, here.
    pub fn routine(&mut self, routine: &Routine, layout: &Layout) {
        for (operation, offsets) in routine.operations(layout) {
            self.operation(operation, offsets);
        }
    }

    /// Sets the modulus, which the layout's constants have in memory by now, where that is not an operand of each operation.
    pub fn set_modulus(&mut self, layout: &Layout) {
        if self.interface == Interface::SetMod {
            self.push(OPERAND_BYTES as u64);
            self.push(u64::from(layout.modulus()));
            self.ops(&[setmod::SETMOD]);
        }
    }

    /// Copies slots.
    pub fn copy<const N: usize>(&mut self, to: Slots<N>, from: Slots<N>) {
        self.push(u64::from(Slots::<N>::BYTES));
        self.push(u64::from(from.offset()));
        self.push(u64::from(to.offset()));
        self.ops(&[opcode::MCOPY]);
    }

    /// Bytes that are not instructions; to lie behind a halt.
    pub fn data(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The code, with all labels in their places.
    ///
    /// # Panics
    ///
    /// If a label that is used was never placed, or lies beyond 65,535.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        for &(at, label) in &self.references {
            let position = self.positions[label.0].expect("every label that is used is placed");
            let position = u16::try_from(position).expect("code is shorter than 64 KiB");
            self.bytes[at..at + 2].copy_from_slice(&position.to_be_bytes());
        }
        self.bytes
    }
}
