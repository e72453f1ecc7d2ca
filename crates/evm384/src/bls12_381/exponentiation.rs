//! The final exponentiation, to 3 (p^12 - 1) / r, times nine.

use super::constants::{MODULUS, RUNS};
use super::program::{Labels, Writer};
use crate::build::Label;
use crate::reference::U384;
use crate::{Offsets, Operation};

/// Bits of a window of the exponent p - 2: the powers needed are the odd ones below 2^WINDOW.
const WINDOW: usize = 5;
/// How many odd powers that is.
pub(super) const ODD_POWERS: usize = 1 << (WINDOW - 1);
/// Longest sequence of squarings that one call makes.
const LADDER: usize = 8;

impl Writer {
    /// f = 9 f^(3 (p^12 - 1) / r): the easy part, then Hayashida, Hayasaka and Teruya's decomposition of the hard part ("Efficient final exponentiation
    /// via cyclotomic structure", 2020), (z - 1)^2 (z + p) (z^2 + p^2 - 1) + 3.
    pub(super) fn final_exponentiation(&mut self) {
        let after = self.code.label();
        let power = self.code.label();
        self.easy_part();
        self.hard_part(power);
        self.code.jump(after);
        self.power_subroutine(power);
        self.code.place(after);
    }

    /// f = f^((p^6 - 1) (p^2 + 1)), with conj(f) for f^(p^6) and 1 / f = conj(f) / (f conj(f)), where the norm f conj(f) lies in Fp6.
    fn easy_part(&mut self) {
        let v = self.variables;
        let labels = self.labels;
        self.code.copy(v.g, v.f);
        self.code.call(labels.conjugate);
        self.code.copy(v.saved, v.f);
        self.code.call(labels.mul);
        self.inline("norm of the norm");
        self.invert_residue();
        self.inline("inverse of the norm");
        self.code.copy(v.f, v.saved);
        self.code.call(labels.mul);
        self.code.copy(v.g, v.saved);
        self.code.call(labels.mul);
        self.code.copy(v.g, v.f);
        self.code.call(labels.frobenius_twice);
        self.code.call(labels.mul);
    }

    /// f = 9 f^((z - 1)^2 (z + p) (z^2 + p^2 - 1) + 3), with z = -|z|, and conj(x) = 1 / x.
    ///
    /// f is three times what is meant from here on, because that makes squarings cheaper; g is what is meant, and so f g is tripled again.
    fn hard_part(&mut self, power: Label) {
        let v = self.variables;
        let labels = self.labels;
        self.code.copy(v.g, v.f);
        self.inline("triple");
        self.code.copy(v.saved, v.f);
        self.square_times(1);
        self.code.call(labels.mul);
        self.code.copy(v.cube, v.f);
        self.code.copy(v.f, v.saved);
        // f^(|z| + 1), twice: f^((z - 1)^2).
        for _ in 0..2 {
            self.code.call(power);
            self.code.call(labels.mul);
        }
        // f^z f^p
        self.code.call(power);
        self.inline("Frobenius map");
        self.code.call(labels.conjugate);
        self.code.call(labels.mul);
        // f^(z^2) f^(p^2) / f
        self.code.call(power);
        self.code.copy(v.saved, v.g);
        self.code.call(power);
        self.code.copy(v.g, v.saved);
        self.code.call(labels.frobenius_twice);
        self.code.call(labels.mul);
        self.code.call(labels.conjugate);
        self.code.copy(v.g, v.saved);
        self.code.call(labels.mul);
        self.code.call(labels.conjugate);
        // The third power of what the hard part began with is tripled, too.
        self.code.copy(v.g, v.cube);
        self.code.call(labels.mul);
    }

    /// A subroutine: g = f / 3, f = 3 g^|z|.
    fn power_subroutine(&mut self, power: Label) {
        let labels = self.labels;
        self.code.place(power);
        self.inline("a third");
        for (zeros, one) in RUNS {
            self.square_times(zeros);
            if one {
                self.code.call(labels.mul);
            }
        }
        self.code.ret();
        self.code.place(labels.cyclotomic_squares);
        if self.squarings == 2 {
            self.inline("cyclotomic square");
            self.code.place(labels.cyclotomic_square);
        }
        self.inline("cyclotomic square");
        self.repeat(labels.cyclotomic_squares);
    }

    /// Squares f so many times.
    fn square_times(&mut self, times: u64) {
        let Labels {
            cyclotomic_squares,
            cyclotomic_square,
            ..
        } = self.labels;
        let odd = !times.is_multiple_of(self.squarings);
        let entry = if odd {
            cyclotomic_square
        } else {
            cyclotomic_squares
        };
        self.call_times(times.div_ceil(self.squarings), entry);
    }

    /// inverse = power[0]^(p - 2), by windows over a table of odd powers; squarings are entered as far from their end as many are needed.
    fn invert_residue(&mut self) {
        let v = self.variables;
        let rungs: [Label; LADDER] = std::array::from_fn(|_| self.code.label());
        let after = self.code.label();
        let (inverse, powers) = (v.inverse.offset(), v.powers.each());
        let multiply = |x: u32, y: u32| Offsets {
            out: inverse,
            x,
            y,
            modulus: 0,
        };
        self.inline("odd powers");
        let (first, windows) = windows(MODULUS - U384::from(2));
        self.code.copy(v.inverse, v.powers.part::<1>(first / 2));
        for (squarings, digit) in windows {
            let mut left = squarings;
            while left > 0 {
                let now = left.min(LADDER);
                self.code.call(rungs[LADDER - now]);
                left -= now;
            }
            if let Some(digit) = digit {
                let operands = multiply(inverse, powers[digit / 2].0);
                self.code.operation(Operation::Mul, operands);
            }
        }
        self.code.jump(after);
        for rung in rungs {
            self.code.place(rung);
            self.code
                .operation(Operation::Mul, multiply(inverse, inverse));
        }
        self.code.ret();
        self.code.place(after);
    }
}

/// An exponent from its top: an odd digit, then so many squarings and an odd digit to multiply by, again and again.
fn windows(exponent: U384) -> (usize, Vec<(usize, Option<usize>)>) {
    let mut digits = Vec::new();
    let mut squarings = 0;
    let mut bit = exponent.bit_len();
    while bit > 0 {
        if !exponent.bit(bit - 1) {
            bit -= 1;
            squarings += 1;
            continue;
        }
        // The longest window that ends in a one.
        let mut low = bit.saturating_sub(WINDOW);
        while !exponent.bit(low) {
            low += 1;
        }
        let digit = (low..bit).rev().fold(0, |digit, index| {
            digit << 1 | usize::from(exponent.bit(index))
        });
        digits.push((squarings + bit - low, Some(digit)));
        squarings = 0;
        bit = low;
    }
    if squarings > 0 {
        digits.push((squarings, None));
    }
    let (_, first) = digits.remove(0);
    (first.unwrap_or(1), digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_spell_the_exponent() {
        for exponent in [
            MODULUS - U384::from(2),
            U384::from(1),
            U384::from(0b1_0000_0110),
        ] {
            let (first, windows) = windows(exponent);
            let spelled = windows
                .iter()
                .fold(U384::from(first), |number, &(squarings, digit)| {
                    (number << squarings) + U384::from(digit.unwrap_or(0))
                });
            assert_eq!(spelled, exponent);
            assert!(
                windows
                    .iter()
                    .all(|(_, digit)| digit.is_none_or(|d| d % 2 == 1 && d < 2 * ODD_POWERS))
            );
        }
    }
}
