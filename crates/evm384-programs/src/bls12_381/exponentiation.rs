//! The final exponentiation, to 3 (p^12 - 1) / r, times nine.

use super::constants::{MODULUS, RUNS};
use super::writer::Writer;
use arbor_evm384::build::Label;
use arbor_evm384::reference::U384;

/// Where the subroutine for powers begins.
#[derive(Clone, Copy)]
struct Power {
    whole: Label,
    /// If g is what is meant already.
    with_g: Label,
}

impl Writer {
    /// f = 9 conj(f)^(3 (p^12 - 1) / r), conj(f) being the Miller loop's function with the sign of the parameter: the easy part, then Hayashida, Hayasaka and Teruya's decomposition of the hard part ("Efficient final exponentiation
    /// via cyclotomic structure", 2020), (z - 1)^2 (z + p) (z^2 + p^2 - 1) + 3.
    pub(super) fn final_exponentiation(&mut self) {
        let after = self.contract.code.label();
        let power = Power {
            whole: self.contract.code.label(),
            with_g: self.contract.code.label(),
        };
        self.easy_part();
        self.hard_part(power);
        self.contract.code.jump(after);
        self.power_subroutine(power);
        self.contract.code.place(after);
    }

    /// f = conj(f)^((p^6 - 1) (p^2 + 1)), with f for conj(f)^(p^6) and f / conj(f) = f f / (f conj(f)), where the norm f conj(f) lies in Fp6.
    fn easy_part(&mut self) {
        let v = self.variables;
        let labels = self.labels;
        self.contract.code.copy(v.g, v.f);
        self.contract.code.call(labels.conjugate);
        self.contract.code.call(labels.mul);
        self.contract.inline("norm of the norm");
        self.contract
            .power(v.inverse, v.powers, MODULUS - U384::from(2));
        self.contract.inline("inverse of the norm");
        self.contract.code.call(labels.mul);
        self.contract.code.call(labels.mul);
        self.contract.code.copy(v.saved, v.f);
        self.contract.code.call(labels.frobenius_twice);
        self.contract.code.call(labels.mul);
    }

    /// f = 9 f^((z - 1)^2 (z + p) (z^2 + p^2 - 1) + 3), with z = -|z|, and conj(x) = 1 / x.
    ///
    /// f is three times what is meant from here on, because that makes squarings cheaper; g is what is meant, and so f g is tripled again.
    fn hard_part(&mut self, power: Power) {
        let v = self.variables;
        let labels = self.labels;
        self.contract.code.copy(v.g, v.f);
        self.contract.inline("triple");
        self.contract.code.copy(v.saved, v.f);
        self.square_times(1);
        self.contract.code.call(labels.mul);
        self.contract.code.copy(v.cube, v.f);
        self.contract.code.copy(v.f, v.saved);
        // f^(|z| + 1), twice: f^((z - 1)^2). At first, g is a third of f already.
        self.contract.code.call(power.with_g);
        self.contract.code.call(labels.mul);
        self.contract.code.call(power.whole);
        self.contract.code.call(labels.mul);
        // f^z f^p
        self.contract.code.call(power.whole);
        self.contract.inline("Frobenius map");
        self.contract.code.call(labels.conjugate);
        self.contract.code.call(labels.mul);
        // f^(z^2) f^(p^2) / f
        self.contract.code.call(power.whole);
        self.contract.code.copy(v.saved, v.g);
        self.contract.code.call(power.whole);
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
    fn power_subroutine(&mut self, power: Power) {
        let labels = self.labels;
        self.contract.code.place(power.whole);
        self.contract.inline("a third");
        self.contract.code.place(power.with_g);
        for (zeros, one) in RUNS {
            self.square_times(zeros as usize);
            if one {
                self.contract.code.call(labels.mul);
            }
        }
        self.contract.code.ret();
        for entry in &labels.squares[..self.squarings] {
            self.contract.code.place(*entry);
            self.contract.inline("cyclotomic square");
        }
        self.contract.code.ret();
    }

    /// Squares f so many times.
    fn square_times(&mut self, times: usize) {
        let squares = self.labels.squares;
        let iterations = times.div_ceil(self.squarings);
        let entry = squares[iterations * self.squarings - times];
        self.contract
            .call_times(iterations as u64, entry, squares[0]);
    }
}
