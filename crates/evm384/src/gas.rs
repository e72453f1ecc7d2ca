//! What the opcodes cost.

use crate::Operation;

/// Gas of each operation, besides that of the push that brings its operand and of memory that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GasSchedule {
    /// ADDMOD384.
    pub add: u16,
    /// SUBMOD384.
    pub sub: u16,
    /// MULMODMONT384.
    pub mul: u16,
    /// SETMOD.
    pub set_modulus: u16,
    /// The opcodes of EIP-6690.
    pub registers: RegisterGas,
}

impl GasSchedule {
    /// 3, 3, 6: the draft of 2020.
    pub const DRAFT: Self = Self::of(3, 6);
    /// 2, 2, 6: model A of the 2020 measurements.
    pub const MODEL_A: Self = Self::of(2, 6);
    /// 1, 1, 3: model B, which takes an EVM near native speed for granted.
    pub const MODEL_B: Self = Self::of(1, 3);
    /// The schedules that have names, as the command line spells them.
    pub const NAMED: [(&'static str, Self); 3] = [
        ("draft", Self::DRAFT),
        ("a", Self::MODEL_A),
        ("b", Self::MODEL_B),
    ];

    /// SETMOD, whose inverse takes six multiplications of a limb, at the price of a multiplication.
    const fn of(add: u16, mul: u16) -> Self {
        Self {
            add,
            sub: add,
            mul,
            set_modulus: mul,
            registers: RegisterGas::EIP_6690,
        }
    }

    /// The name of a schedule that has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let mut named = Self::NAMED.into_iter();
        let found = named.find(|(_, schedule)| *schedule == self);
        found.map(|(name, _)| name)
    }

    /// The cost of one operation.
    #[must_use]
    pub const fn cost(self, operation: Operation) -> u16 {
        match operation {
            Operation::Add => self.add,
            Operation::Sub => self.sub,
            Operation::Mul => self.mul,
        }
    }
}

impl Default for GasSchedule {
    fn default() -> Self {
        Self::DRAFT
    }
}

/// What the opcodes on registers cost. Tables go by the modulus's length: 64 bits first, 768 last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterGas {
    /// SETMODX, which also pays for memory of the registers' size.
    pub set_modulus: u16,
    /// LOADX and STOREX, besides each value's share.
    pub transfer: u16,
    /// Added for a new field with an odd modulus.
    pub odd_modulus: [u16; 12],
    /// Each sum and difference.
    pub add: [u16; 12],
    /// Each product, and each value that LOADX or STOREX converts.
    pub mul: [u16; 12],
}

impl RegisterGas {
    /// EIP-6690's tables.
    pub const EIP_6690: Self = Self {
        set_modulus: 1,
        transfer: 1,
        odd_modulus: [23, 26, 29, 32, 36, 39, 42, 45, 48, 51, 54, 58],
        add: [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2],
        mul: [1, 1, 1, 2, 2, 3, 4, 5, 7, 8, 10, 12],
    };

    /// The cost of one operation modulo a number of so many limbs.
    pub(crate) fn cost(&self, operation: Operation, limbs: usize) -> u64 {
        let table = match operation {
            Operation::Add | Operation::Sub => &self.add,
            Operation::Mul => &self.mul,
        };
        u64::from(table[limbs - 1])
    }
}

impl Default for RegisterGas {
    fn default() -> Self {
        Self::EIP_6690
    }
}
