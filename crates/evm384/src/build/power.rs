//! Powers with a fixed exponent, by windows.

use super::contract::Contract;
use super::label::Label;
use super::layout::{Slot, Slots};
use crate::reference::U384;
use crate::{Offsets, Operation};

/// Bits of a window of the exponent: the powers needed are the odd ones below 2^WINDOW.
const WINDOW: usize = 5;
/// How many odd powers that is.
pub const ODD_POWERS: usize = 1 << (WINDOW - 1);
/// Longest sequence of squarings that one call makes.
const LADDER: usize = 9;

impl Contract {
    /// result = (the first of the powers)^exponent. The others of `powers` become the base's odd powers; squarings are entered as far from their end as many are needed.
    pub fn power(&mut self, result: Slots<1>, powers: Slots<ODD_POWERS>, exponent: U384) {
        let rungs: [Label; LADDER] = std::array::from_fn(|_| self.code.label());
        let mut entered = [false; LADDER];
        let after = self.code.label();
        let (result, powers) = (Slot(result.offset()), powers.each());
        self.multiply(result, powers[0], powers[0]);
        for index in 1..ODD_POWERS {
            self.multiply(powers[index], powers[index - 1], result);
        }
        let (first, windows) = windows(exponent);
        self.copy(result.0, powers[first / 2].0, Slots::<1>::BYTES);
        for (squarings, digit) in windows {
            let mut left = squarings;
            while left > 0 {
                let now = left.min(LADDER);
                self.code.call(rungs[LADDER - now]);
                entered[LADDER - now] = true;
                left -= now;
            }
            if let Some(digit) = digit {
                self.multiply(result, result, powers[digit / 2]);
            }
        }
        self.code.jump(after);
        for (rung, entered) in rungs.into_iter().zip(entered) {
            // Every pass would pay for a destination.
            if entered {
                self.code.place(rung);
            }
            self.multiply(result, result, result);
        }
        self.code.ret();
        self.code.place(after);
    }

    fn multiply(&mut self, out: Slot, x: Slot, y: Slot) {
        let offsets = Offsets {
            out: out.0,
            x: x.0,
            y: y.0,
            modulus: 0,
        };
        self.code.operation(Operation::Mul, offsets);
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
            U384::MAX,
            U384::MAX / U384::from(3),
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
