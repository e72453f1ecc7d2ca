//! Plain EVM words as expressions: what control flow around the arithmetic is written in.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Shl, Shr, Sub};

use alloy_primitives::U256;
use revm::bytecode::opcode;

use super::code::Code;
use super::label::Label;
use super::layout::Variable;

/// A word to be computed: a tree of instructions, evaluated anew wherever it is written.
#[derive(Clone, Debug)]
pub enum Word {
    /// A number.
    Number(U256),
    /// A word on the stack of a subroutine, by its position from the subroutine's lowest.
    Local(usize),
    /// Position of a label in the code.
    Position(Label),
    /// An instruction that leaves one word, and what it pops, the top of the stack first.
    Computed(u8, Vec<Word>),
}

impl Word {
    fn binary(opcode: u8, first: impl Into<Self>, second: impl Into<Self>) -> Self {
        Self::Computed(opcode, vec![first.into(), second.into()])
    }

    /// The word of memory at an address.
    pub fn memory(at: impl Into<Self>) -> Self {
        Self::Computed(opcode::MLOAD, vec![at.into()])
    }

    /// The word of calldata at an offset.
    pub fn calldata(at: impl Into<Self>) -> Self {
        Self::Computed(opcode::CALLDATALOAD, vec![at.into()])
    }

    /// Length of calldata.
    #[must_use]
    pub const fn calldata_size() -> Self {
        Self::Computed(opcode::CALLDATASIZE, Vec::new())
    }

    /// 1 if `self` is zero, else 0.
    #[must_use]
    pub fn is_zero(self) -> Self {
        Self::Computed(opcode::ISZERO, vec![self])
    }

    /// 1 if both are equal, else 0.
    #[must_use]
    pub fn is(self, other: impl Into<Self>) -> Self {
        Self::binary(opcode::EQ, self, other)
    }

    /// 1 if `self` is less, else 0.
    #[must_use]
    pub fn below(self, other: impl Into<Self>) -> Self {
        Self::binary(opcode::LT, self, other)
    }

    /// 1 if `self` is more, else 0.
    #[must_use]
    pub fn above(self, other: impl Into<Self>) -> Self {
        Self::binary(opcode::GT, self, other)
    }

    /// 1 if `self` is negative in two's complement, else 0.
    #[must_use]
    pub fn is_negative(self) -> Self {
        Self::binary(opcode::SLT, self, 0)
    }

    /// Its byte of this index, from the most significant.
    #[must_use]
    pub fn byte(self, index: impl Into<Self>) -> Self {
        Self::binary(opcode::BYTE, index, self)
    }

    /// self + other modulo `modulus`.
    #[must_use]
    pub fn add_mod(self, other: impl Into<Self>, modulus: impl Into<Self>) -> Self {
        Self::Computed(opcode::ADDMOD, vec![self, other.into(), modulus.into()])
    }

    /// self other modulo `modulus`.
    #[must_use]
    pub fn mul_mod(self, other: impl Into<Self>, modulus: impl Into<Self>) -> Self {
        Self::Computed(opcode::MULMOD, vec![self, other.into(), modulus.into()])
    }

    pub(super) fn write(&self, code: &mut Code) {
        self.write_above(code, 0);
    }

    /// Writes it where the stack of a subroutine has so many words.
    ///
    /// # Panics
    ///
    /// If it takes a local word that is not there, or more than sixteen words deep.
    pub(super) fn write_above(&self, code: &mut Code, height: usize) {
        match self {
            Self::Number(number) => code.push_bytes(&number.to_be_bytes::<32>()),
            Self::Local(index) => {
                assert!((1..=16).contains(&(height - index)), "within reach of DUP");
                code.ops(&[opcode::DUP1 + (height - index) as u8 - 1]);
            }
            Self::Position(label) => code.push_label(*label),
            Self::Computed(opcode, operands) => {
                for (above, operand) in operands.iter().rev().enumerate() {
                    operand.write_above(code, height + above);
                }
                code.ops(&[*opcode]);
            }
        }
    }
}

impl Variable {
    /// What it holds.
    #[must_use]
    pub fn get(self) -> Word {
        Word::memory(self.0)
    }
}

impl From<Variable> for Word {
    fn from(variable: Variable) -> Self {
        variable.get()
    }
}

impl From<U256> for Word {
    fn from(number: U256) -> Self {
        Self::Number(number)
    }
}

impl From<Label> for Word {
    fn from(label: Label) -> Self {
        Self::Position(label)
    }
}

macro_rules! from_integers {
    ($($integer:ty),+) => {
        $(impl From<$integer> for Word {
            fn from(number: $integer) -> Self {
                Self::Number(U256::from(number))
            }
        })+
    };
}

from_integers!(i32, u32, u64, usize);

macro_rules! operators {
    ($($operator:ident $method:ident $opcode:ident),+) => {
        $(impl<T: Into<Word>> $operator<T> for Word {
            type Output = Word;

            fn $method(self, other: T) -> Word {
                Word::binary(opcode::$opcode, self, other)
            }
        })+
    };
}

operators!(
    Add add ADD,
    Sub sub SUB,
    Mul mul MUL,
    Div div DIV,
    Rem rem MOD,
    BitAnd bitand AND,
    BitOr bitor OR,
    BitXor bitxor XOR
);

impl<T: Into<Word>> Shl<T> for Word {
    type Output = Word;

    fn shl(self, bits: T) -> Word {
        Word::binary(opcode::SHL, bits, self)
    }
}

impl<T: Into<Word>> Shr<T> for Word {
    type Output = Word;

    fn shr(self, bits: T) -> Word {
        Word::binary(opcode::SHR, bits, self)
    }
}
