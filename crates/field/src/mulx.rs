//! Montgomery multiplication with `mulx`, `adcx` and `adox`.
//!
//! The same alternation of multiplication and reduction as in `portable`, with two chains of carries at once: `adox` adds the low
//! halves of the products, `adcx` the high halves, and neither waits for the other's flag. rustc does not emit these two
//! instructions from plain code, hence assembly.

use crate::{Limbs, Modulus, backend, portable};

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{mul_base, mul_scalar};

/// The multiplication of the process's backend: `a * b / 2^256` modulo the prime, reduced, for reduced `a` and any `b` below 2^256.
#[inline(always)]
pub(crate) fn mul<M: Modulus>(a: &Limbs, b: &Limbs) -> Limbs {
    if backend::has_mulx() {
        // SAFETY: the processor has been asked.
        unsafe { M::mul_mulx(a, b) }
    } else {
        portable::mul::<M>(a, b)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod elsewhere {
    use crate::{Base, Limbs, Scalar, portable};

    pub(crate) unsafe fn mul_base(a: &Limbs, b: &Limbs) -> Limbs {
        portable::mul::<Base>(a, b)
    }

    pub(crate) unsafe fn mul_scalar(a: &Limbs, b: &Limbs) -> Limbs {
        portable::mul::<Scalar>(a, b)
    }
}
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use elsewhere::{mul_base, mul_scalar};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::{Base, Limbs, Modulus, Scalar};
    use std::arch::asm;

    /// The prime in memory, for instructions that take one operand from there.
    static BASE: Limbs = Base::MODULUS;
    static SCALAR: Limbs = Scalar::MODULUS;

    /// The first row: `t = a * b[0]`, five limbs.
    macro_rules! multiply_first {
        ($t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal) => {
            concat!(
                "mov rdx, [{b}]\n",
                "mulx {",
                $t1,
                "}, {",
                $t0,
                "}, [{a}]\n",
                "mulx {",
                $t2,
                "}, {lo}, [{a} + 8]\n",
                "add {",
                $t1,
                "}, {lo}\n",
                "mulx {",
                $t3,
                "}, {lo}, [{a} + 16]\n",
                "adc {",
                $t2,
                "}, {lo}\n",
                "mulx {",
                $t4,
                "}, {lo}, [{a} + 24]\n",
                "adc {",
                $t3,
                "}, {lo}\n",
                "adc {",
                $t4,
                "}, 0\n",
            )
        };
    }

    /// Another row: `t += a * b[offset]`, where `t4` is free before.
    macro_rules! multiply_add {
        ($offset:literal, $t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal) => {
            concat!(
                "mov rdx, [{b} + ",
                $offset,
                "]\n",
                "xor {",
                $t4,
                ":e}, {",
                $t4,
                ":e}\n",
                "mulx {hi}, {lo}, [{a}]\n",
                "adcx {",
                $t0,
                "}, {lo}\n",
                "adox {",
                $t1,
                "}, {hi}\n",
                "mulx {hi}, {lo}, [{a} + 8]\n",
                "adcx {",
                $t1,
                "}, {lo}\n",
                "adox {",
                $t2,
                "}, {hi}\n",
                "mulx {hi}, {lo}, [{a} + 16]\n",
                "adcx {",
                $t2,
                "}, {lo}\n",
                "adox {",
                $t3,
                "}, {hi}\n",
                "mulx {hi}, {lo}, [{a} + 24]\n",
                "adcx {",
                $t3,
                "}, {lo}\n",
                "adox {",
                $t4,
                "}, {hi}\n",
                "mov {lo:e}, 0\n",
                "adcx {",
                $t4,
                "}, {lo}\n",
            )
        };
    }

    /// `t += q * m` with the `q` that makes the lowest limb zero. The quotient by 2^64 is then in `t1` to `t4`, and `t0` is free:
    /// the next row has the names moved by one, so that no register is ever copied.
    macro_rules! reduce {
        ($t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal) => {
            concat!(
                "mov rdx, {inverse}\n",
                "imul rdx, {",
                $t0,
                "}\n",
                "xor {lo:e}, {lo:e}\n",
                "mulx {hi}, {lo}, [rip + {m}]\n",
                "adox {",
                $t0,
                "}, {lo}\n",
                "adcx {",
                $t1,
                "}, {hi}\n",
                "mulx {hi}, {lo}, [rip + {m} + 8]\n",
                "adox {",
                $t1,
                "}, {lo}\n",
                "adcx {",
                $t2,
                "}, {hi}\n",
                "mulx {hi}, {lo}, [rip + {m} + 16]\n",
                "adox {",
                $t2,
                "}, {lo}\n",
                "adcx {",
                $t3,
                "}, {hi}\n",
                "mulx {hi}, {lo}, [rip + {m} + 24]\n",
                "adox {",
                $t3,
                "}, {lo}\n",
                "adcx {",
                $t4,
                "}, {hi}\n",
                // t0 is zero here and serves to add the last carry.
                "adox {",
                $t4,
                "}, {",
                $t0,
                "}\n",
            )
        };
    }

    /// Subtracts the modulus from the four limbs unless the result would be negative.
    macro_rules! subtract_modulus {
        ($t0:literal, $t1:literal, $t2:literal, $t3:literal, $free:literal) => {
            concat!(
                "mov {lo}, {",
                $t0,
                "}\n",
                "mov {hi}, {",
                $t1,
                "}\n",
                "mov {",
                $free,
                "}, {",
                $t2,
                "}\n",
                "mov rdx, {",
                $t3,
                "}\n",
                "sub {lo}, [rip + {m}]\n",
                "sbb {hi}, [rip + {m} + 8]\n",
                "sbb {",
                $free,
                "}, [rip + {m} + 16]\n",
                "sbb rdx, [rip + {m} + 24]\n",
                "cmovnc {",
                $t0,
                "}, {lo}\n",
                "cmovnc {",
                $t1,
                "}, {hi}\n",
                "cmovnc {",
                $t2,
                "}, {",
                $free,
                "}\n",
                "cmovnc {",
                $t3,
                "}, rdx\n",
            )
        };
    }

    macro_rules! multiplication {
        ($name:ident, $field:ty, $modulus:ident) => {
            /// `a * b / 2^256`, reduced.
            ///
            /// # Safety
            ///
            /// The processor has BMI2 and ADX.
            #[inline(always)]
            pub(crate) unsafe fn $name(a: &Limbs, b: &Limbs) -> Limbs {
                let (t0, t1, t2, t3): (u64, u64, u64, u64);
                // SAFETY: reads 32 bytes behind each of `a`, `b` and the static, which are borrowed arrays of that size, and writes
                // registers that are declared. That the processor has the instructions is this function's contract.
                unsafe {
                    asm!(
                        multiply_first!("t0", "t1", "t2", "t3", "t4"),
                        reduce!("t0", "t1", "t2", "t3", "t4"),
                        multiply_add!("8", "t1", "t2", "t3", "t4", "t0"),
                        reduce!("t1", "t2", "t3", "t4", "t0"),
                        multiply_add!("16", "t2", "t3", "t4", "t0", "t1"),
                        reduce!("t2", "t3", "t4", "t0", "t1"),
                        multiply_add!("24", "t3", "t4", "t0", "t1", "t2"),
                        reduce!("t3", "t4", "t0", "t1", "t2"),
                        subtract_modulus!("t4", "t0", "t1", "t2", "t3"),
                        a = in(reg) a.as_ptr(),
                        b = in(reg) b.as_ptr(),
                        m = sym $modulus,
                        inverse = const <$field as Modulus>::NEGATIVE_INVERSE as i64,
                        t4 = out(reg) t0, t0 = out(reg) t1, t1 = out(reg) t2, t2 = out(reg) t3,
                        t3 = out(reg) _, lo = out(reg) _, hi = out(reg) _,
                        out("rdx") _,
                        options(pure, readonly, nostack),
                    );
                }
                [t0, t1, t2, t3]
            }
        };
    }

    multiplication!(mul_base, Base, BASE);
    multiplication!(mul_scalar, Scalar, SCALAR);
}
