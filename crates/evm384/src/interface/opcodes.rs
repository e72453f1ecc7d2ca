//! The opcodes of each interface, for whoever writes or reads code.

use super::{ADDMOD384, Interface, MULMODMONT384, SUBMOD384, registers, setmod};

/// An opcode that an interface adds to the EVM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// The byte in code.
    pub byte: u8,
    /// Its name.
    pub mnemonic: &'static str,
    /// What follows it in code.
    pub immediates: &'static [Immediate],
}

/// A little-endian number behind an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Immediate {
    /// What it says.
    pub name: &'static str,
    /// Its length.
    pub bytes: usize,
}

const fn immediate(name: &'static str, bytes: usize) -> Immediate {
    Immediate { name, bytes }
}

const FOUR_OFFSETS: &[Immediate] = &[
    immediate("out", 4),
    immediate("x", 4),
    immediate("y", 4),
    immediate("modulus", 4),
];

const THREE_OFFSETS: &[Immediate] = &[immediate("out", 2), immediate("x", 2), immediate("y", 2)];

const REGISTERS: &[Immediate] = &[
    immediate("out", 1),
    immediate("out_stride", 1),
    immediate("x", 1),
    immediate("x_stride", 1),
    immediate("y", 1),
    immediate("y_stride", 1),
    immediate("count", 1),
];

const fn opcode(byte: u8, mnemonic: &'static str, immediates: &'static [Immediate]) -> Opcode {
    Opcode {
        byte,
        mnemonic,
        immediates,
    }
}

const fn on_memory(immediates: &'static [Immediate]) -> [Opcode; 3] {
    [
        opcode(ADDMOD384, "ADDMOD384", immediates),
        opcode(SUBMOD384, "SUBMOD384", immediates),
        opcode(MULMODMONT384, "MULMODMONT384", immediates),
    ]
}

const V7: [Opcode; 3] = on_memory(&[]);
const IMMEDIATE: [Opcode; 3] = on_memory(FOUR_OFFSETS);
const SETMOD: [Opcode; 4] = {
    let [add, sub, mul] = on_memory(THREE_OFFSETS);
    [add, sub, mul, opcode(setmod::SETMOD, "SETMOD", &[])]
};
const EIP_6690: [Opcode; 6] = [
    opcode(registers::SETMODX, "SETMODX", &[]),
    opcode(registers::LOADX, "LOADX", &[]),
    opcode(registers::STOREX, "STOREX", &[]),
    opcode(registers::ADDMODX, "ADDMODX", REGISTERS),
    opcode(registers::SUBMODX, "SUBMODX", REGISTERS),
    opcode(registers::MULMODX, "MULMODX", REGISTERS),
];

impl Interface {
    /// The opcodes that it adds.
    #[must_use]
    pub const fn opcodes(self) -> &'static [Opcode] {
        match self {
            Self::V7 | Self::Stack => &V7,
            Self::Immediate => &IMMEDIATE,
            Self::SetMod => &SETMOD,
            Self::Registers => &EIP_6690,
        }
    }
}
