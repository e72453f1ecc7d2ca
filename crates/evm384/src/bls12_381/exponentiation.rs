//! The final exponentiation, to 3 (p^12 - 1) / r, times nine.

use super::constants::{MODULUS, RUNS};
use super::program::{Labels, Writer};
use crate::build::Label;
use crate::reference::U384;

impl Writer {
    /// f = 9 f^(3 (p^12 - 1) / r): the easy part, then Hayashida, Hayasaka and Teruya's decomposition of the hard part ("Efficient final exponentiation
    /// via cyclotomic structure", 2020), (z - 1)^2 (z + p) (z^2 + p^2 - 1) + 3.
    pub(super) fn final_exponentiation(&mut self) {
        let after = self.contract.code.label();
        let power = self.contract.code.label();
        self.easy_part();
        self.hard_part(power);
        self.contract.code.jump(after);
        self.power_subroutine(power);
        self.contract.code.place(after);
    }

    /// f = f^((p^6 - 1) (p^2 + 1)), with conj(f) for f^(p^6) and 1 / f = conj(f) / (f conj(f)), where the norm f conj(f) lies in Fp6.
    fn easy_part(&mut self) {
        let v = self.variables;
        let labels = self.labels;
        self.contract.code.copy(v.g, v.f);
        self.contract.code.call(labels.conjugate);
        self.contract.code.copy(v.saved, v.f);
        self.contract.code.call(labels.mul);
        self.contract.inline("norm of the norm");
        self.contract
            .power(v.inverse, v.powers, MODULUS - U384::from(2));
        self.contract.inline("inverse of the norm");
        self.contract.code.copy(v.f, v.saved);
        self.contract.code.call(labels.mul);
        self.contract.code.copy(v.g, v.saved);
        self.contract.code.call(labels.mul);
        self.contract.code.copy(v.g, v.f);
        self.contract.code.call(labels.frobenius_twice);
        self.contract.code.call(labels.mul);
    }

    /// f = 9 f^((z - 1)^2 (z + p) (z^2 + p^2 - 1) + 3), with z = -|z|, and conj(x) = 1 / x.
    ///
    /// f is three times what is meant from here on, because that makes squarings cheaper; g is what is meant, and so f g is tripled again.
    fn hard_part(&mut self, power: Label) {
        let v = self.variables;
        let labels = self.labels;
        self.contract.code.copy(v.g, v.f);
        self.contract.inline("triple");
        self.contract.code.copy(v.saved, v.f);
        self.square_times(1);
        self.contract.code.call(labels.mul);
        self.contract.code.copy(v.cube, v.f);
        self.contract.code.copy(v.f, v.saved);
        // f^(|z| + 1), twice: f^((z - 1)^2).
        for _ in 0..2 {
            self.contract.code.call(power);
            self.contract.code.call(labels.mul);
        }
        // f^z f^p
        self.contract.code.call(power);
        self.contract.inline("Frobenius map");
        self.contract.code.call(labels.conjugate);
        self.contract.code.call(labels.mul);
        // f^(z^2) f^(p^2) / f
        self.contract.code.call(power);
        self.contract.code.copy(v.saved, v.g);
        self.contract.code.call(power);
        self.contract.code.copy(v.g, v.saved);
        self.contract.code.call(labels.frobenius_twice);
        self.contract.code.call(labels.mul);
        self.contract.code.call(labels.conjugate);
        self.contract.code.copy(v.g, v.saved);
        self.contract.code.call(labels.mul);
        self.contract.code.call(labels.conjugate);
        // The third power of what the hard part began with is tripled, too.
        self.contract.code.copy(v.g, v.cube);
        self.contract.code.call(labels.mul);
    }

    /// A subroutine: g = f / 3, f = 3 g^|z|.
    fn power_subroutine(&mut self, power: Label) {
        let labels = self.labels;
        self.contract.code.place(power);
        self.contract.inline("a third");
        for (zeros, one) in RUNS {
            self.square_times(zeros);
            if one {
                self.contract.code.call(labels.mul);
            }
        }
        self.contract.code.ret();
        self.contract.code.place(labels.cyclotomic_squares);
        if self.squarings == 2 {
            self.contract.inline("cyclotomic square");
            self.contract.code.place(labels.cyclotomic_square);
        }
        self.contract.inline("cyclotomic square");
        self.contract.repeat(labels.cyclotomic_squares);
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
        self.contract
            .call_times(times.div_ceil(self.squarings), entry);
    }
}
