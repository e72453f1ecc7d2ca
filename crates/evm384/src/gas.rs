//! What the opcodes cost.

/// Gas of each operation, besides that of the push that brings its operand and of memory that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GasSchedule {
    /// ADDMOD384.
    pub add: u16,
    /// SUBMOD384.
    pub sub: u16,
    /// MULMODMONT384.
    pub mul: u16,
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

    const fn of(add: u16, mul: u16) -> Self {
        Self { add, sub: add, mul }
    }

    /// The cost of one operation.
    #[must_use]
    pub const fn cost(self, operation: crate::Operation) -> u16 {
        match operation {
            crate::Operation::Add => self.add,
            crate::Operation::Sub => self.sub,
            crate::Operation::Mul => self.mul,
        }
    }
}

impl Default for GasSchedule {
    fn default() -> Self {
        Self::DRAFT
    }
}
