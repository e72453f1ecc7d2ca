//! The operations without EVM384: on one word by ADDMOD and MULMOD, or on two by subroutines.
//!
//! A number of two words lies in its 48 bytes most significant byte first, and products are Montgomery's with R = 2^384, so that all constants of EVM384's programs
//! hold. Operands are below the modulus.

use alloy_primitives::U256;
use revm::bytecode::opcode::*;

use super::code::{Code, TwoWords};
use super::label::Label;
use super::word::Word;
use crate::reference::U384;
use crate::{Offsets, Operation};

/// Stack positions of what a subroutine finds: the way back is below them.
const OUT: Word = Word::Local(1);
const X: Word = Word::Local(2);
const Y: Word = Word::Local(3);
const ARGUMENTS: usize = 4;

/// The lower 128 bits.
fn low_half() -> U256 {
    U256::MAX >> 128
}

impl TwoWords {
    pub(super) fn new(code: &mut Code, modulus: U384) -> Self {
        let low = U256::from(modulus & U384::from(U256::MAX));
        // Newton's iteration from one bit that is right, as the modulus is odd.
        let inverse = (0..8).fold(U256::ONE, |inverse, _| {
            let error = U256::from(2).wrapping_sub(low.wrapping_mul(inverse));
            inverse.wrapping_mul(error)
        });
        Self {
            high: U256::from(modulus >> 256),
            low,
            inverse: inverse.wrapping_neg(),
            subroutines: [code.label(), code.label(), code.label()],
        }
    }

    /// Calls an operation's subroutine.
    pub(super) fn call(&self, code: &mut Code, operation: Operation, offsets: Offsets) {
        let back = code.label();
        code.push_label(back);
        for offset in [offsets.out, offsets.x, offsets.y] {
            code.push(u64::from(offset));
        }
        code.jump(self.subroutines[operation as usize]);
        code.place(back);
    }

    pub(super) fn place(&self, code: &mut Code) {
        self.addition(code);
        self.subtraction(code);
        self.multiplication(code);
    }

    fn addition(&self, code: &mut Code) {
        let mut frame = Frame::begin(code, self.subroutines[Operation::Add as usize]);
        let x = frame.bind(low_word(X));
        let y = frame.bind(low_word(Y));
        let low = frame.bind(x.clone() + y);
        let high = frame.bind(high_word(X) + high_word(Y) + low.clone().below(x));
        frame.keep(2, 2);
        let (low, high) = (low.down(2), high.down(2));
        self.reduced(frame, low, high);
    }

    fn subtraction(&self, code: &mut Code) {
        let mut frame = Frame::begin(code, self.subroutines[Operation::Sub as usize]);
        let x = frame.bind(low_word(X));
        let y = frame.bind(low_word(Y));
        let low = frame.bind(x.clone() - y.clone());
        let high = frame.bind(high_word(X) - high_word(Y) - x.below(y));
        frame.keep(2, 2);
        let (low, high) = (low.down(2), high.down(2));
        let done = frame.code.label();
        frame.jump_if(high.clone().is_negative().is_zero(), done);
        let sum = frame.bind(low.clone() + self.low);
        frame.bind(high + self.high + sum.below(low));
        frame.keep(2, 2);
        frame.code.place(done);
        frame.end();
    }

    /// t = x y, then twice the multiple of m that makes the low end of t zero, which falls away: first 256 bits, then 128.
    fn multiplication(&self, code: &mut Code) {
        let mut frame = Frame::begin(code, self.subroutines[Operation::Mul as usize]);
        let x0 = frame.bind(low_word(X));
        let y0 = frame.bind(low_word(Y));
        let t0 = frame.bind(x0.clone() * y0.clone());
        let h = frame.bind_high(&x0, &y0, &t0);
        let x1 = frame.bind(high_word(X));
        let y1 = frame.bind(high_word(Y));
        let a = frame.bind(x0.clone() * y1.clone());
        let a_high = frame.bind_high(&x0, &y1, &a);
        let b = frame.bind(x1.clone() * y0.clone());
        let b_high = frame.bind_high(&x1, &y0, &b);
        let sum = frame.bind(h.clone() + a);
        let t0 = frame.bind(t0);
        let t1 = frame.bind(sum.clone() + b.clone());
        let carries = sum.below(h) + t1.clone().below(b);
        let t2 = frame.bind(x1 * y1 + a_high + b_high + carries);
        frame.keep(3, 11);
        let [t0, t1, t2] = [t0, t1, t2].map(|word| word.down(11));

        let m = frame.bind(t0.clone() * self.inverse);
        // The low end of m m0 is -t0: together they are zero, with a carry unless both are.
        let low = frame.bind(Word::from(0) - t0.clone());
        let c = frame.bind_high(&m, &self.low.into(), &low);
        let d = frame.bind(m.clone() * self.high);
        let d_high = frame.bind_high(&m, &self.high.into(), &d);
        let c = frame.bind(c + t0.is_zero().is_zero());
        let sum = frame.bind(t1.clone() + c);
        let u0 = frame.bind(sum.clone() + d.clone());
        let carries = sum.below(t1) + u0.clone().below(d);
        let u1 = frame.bind(t2 + d_high + carries);

        // Products of halves fit one word, sums included.
        let m = frame.bind((u0.clone() * self.inverse) & low_half());
        let zero = m.clone() * (self.low & low_half()) + (u0.clone() & low_half());
        let v0 = frame.bind((zero >> 128) + (u0 >> 128) + m.clone() * (self.low >> 128));
        let v1 = frame.bind(u1 + m * self.high);
        frame.keep(2, 13);
        let [v0, v1] = [v0, v1].map(|word| word.down(13));
        let low = frame.bind((v1.clone() << 128) + v0.clone());
        let high = frame.bind((v1 >> 128) + low.clone().below(v0));
        frame.keep(2, 2);
        let (low, high) = (low.down(2), high.down(2));
        self.reduced(frame, low, high);
    }

    /// Ends a subroutine with a number below 2 m, less m unless it is below that.
    fn reduced(&self, mut frame: Frame<'_>, low: Word, high: Word) {
        let [done, smaller] = [frame.code.label(), frame.code.label()];
        frame.jump_if(high.clone().below(self.high), done);
        frame.bind(low.clone() - self.low);
        let difference = frame.bind(high - self.high - low.below(self.low));
        frame.jump_if(difference.is_negative(), smaller);
        frame.keep(2, 2);
        frame.code.place(done);
        let code = frame.end();
        code.place(smaller);
        code.ops(&[POP, POP]);
        code.jump(done);
    }
}

/// The words on the stack of a subroutine, each bound once.
struct Frame<'c> {
    code: &'c mut Code,
    height: usize,
}

impl<'c> Frame<'c> {
    fn begin(code: &'c mut Code, label: Label) -> Self {
        code.place(label);
        Self {
            code,
            height: ARGUMENTS,
        }
    }

    /// Puts a word on the stack, where it stays.
    fn bind(&mut self, word: impl Into<Word>) -> Word {
        word.into().write_above(self.code, self.height);
        self.height += 1;
        Word::Local(self.height - 1)
    }

    /// The upper half of a product whose lower half is known: modulo 2^256 - 1 the product is the sum of both.
    fn bind_high(&mut self, x: &Word, y: &Word, low: &Word) -> Word {
        let sum = x.clone().mul_mod(y.clone(), U256::MAX);
        sum.write_above(self.code, self.height);
        low.write_above(self.code, self.height + 1);
        // sum - (sum < low) - low
        self.code.ops(&[DUP2, LT, SWAP1, SUB]);
        low.write_above(self.code, self.height + 1);
        self.code.ops(&[SWAP1, SUB]);
        self.height += 1;
        Word::Local(self.height - 1)
    }

    fn jump_if(&mut self, condition: impl Into<Word>, to: Label) {
        condition.into().write_above(self.code, self.height);
        self.code.jump_if(to);
    }

    /// Keeps so many of the uppermost words, and drops so many below them, which must not be fewer.
    fn keep(&mut self, kept: usize, dropped: usize) {
        for index in 0..dropped {
            if index < kept {
                self.code.ops(&[SWAP1 + dropped as u8 - 1]);
            }
            self.code.ops(&[POP]);
        }
        self.height -= dropped;
    }

    /// Writes the two uppermost words, the upper end on top, to where the result goes, and returns.
    fn end(self) -> &'c mut Code {
        let Self { code, height } = self;
        code.push(128);
        code.ops(&[SHL]);
        OUT.write_above(code, height);
        code.ops(&[MSTORE]);
        (OUT + 16).write_above(code, height - 1);
        code.ops(&[MSTORE, POP, POP, POP]);
        code.ret();
        code
    }
}

fn low_word(at: Word) -> Word {
    Word::memory(at + 16)
}

fn high_word(at: Word) -> Word {
    Word::memory(at) >> 128
}

impl Word {
    /// A local word after so many below it were dropped.
    fn down(self, dropped: usize) -> Self {
        match self {
            Self::Local(index) => Self::Local(index - dropped),
            other => other,
        }
    }
}

/// One operation on words of memory.
pub(super) fn on_one_word(code: &mut Code, operation: Operation, at: Offsets, modulus: U256) {
    let [x, y] = [at.x, at.y].map(Word::memory);
    let result = match operation {
        Operation::Add => x.add_mod(y, modulus),
        Operation::Sub => x.add_mod(Word::from(modulus) - y, modulus),
        Operation::Mul => x.mul_mod(y, modulus),
    };
    result.write(code);
    code.push(u64::from(at.out));
    code.ops(&[MSTORE]);
}
