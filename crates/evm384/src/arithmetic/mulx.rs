//! Assembly. Products by `mulx`, their low and high halves added by two independent chains of carries; sums and differences reduced by conditional moves, of
//! which compilers make branches that cannot be predicted.

use core::arch::asm;

use super::{Arithmetic, Backend, Portable};

/// `mulx`, `adcx` and `adox`.
pub(crate) struct MulxAdx;

impl Arithmetic for MulxAdx {
    const BACKEND: Backend = Backend::MulxAdx;

    #[inline(always)]
    unsafe fn add(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        let (r0, r1, r2, r3, r4, r5): (u64, u64, u64, u64, u64, u64);
        // SAFETY: reads 48 bytes at x, y and m, which the caller vouches for, and writes nothing.
        unsafe {
            asm!(
                "mov {s0}, [{x}]",
                "add {s0}, [{y}]",
                "mov {s1}, [{x} + 8]",
                "adc {s1}, [{y} + 8]",
                "mov {s2}, [{x} + 16]",
                "adc {s2}, [{y} + 16]",
                "mov {s3}, [{x} + 24]",
                "adc {s3}, [{y} + 24]",
                "mov {s4}, [{x} + 32]",
                "adc {s4}, [{y} + 32]",
                "mov {s5}, [{x} + 40]",
                "adc {s5}, [{y} + 40]",
                // All ones if the sum has a 385th bit: then the borrow below is no borrow.
                "sbb {carry}, {carry}",
                "mov {x}, {s0}",
                "sub {s0}, [{m}]",
                "mov {y}, {s1}",
                "sbb {s1}, [{m} + 8]",
                "mov {t2}, {s2}",
                "sbb {s2}, [{m} + 16]",
                "mov {t3}, {s3}",
                "sbb {s3}, [{m} + 24]",
                "mov {t4}, {s4}",
                "sbb {s4}, [{m} + 32]",
                "movq {t5}, {s5}",
                "sbb {s5}, [{m} + 40]",
                "sbb {carry}, 0",
                "movq {m}, {t5}",
                "cmovc {s0}, {x}",
                "cmovc {s1}, {y}",
                "cmovc {s2}, {t2}",
                "cmovc {s3}, {t3}",
                "cmovc {s4}, {t4}",
                "cmovc {s5}, {m}",
                x = inout(reg) x => _,
                y = inout(reg) y => _,
                m = inout(reg) m => _,
                carry = out(reg) _,
                t2 = out(reg) _,
                t3 = out(reg) _,
                t4 = out(reg) _,
                t5 = out(xmm_reg) _,
                s0 = out(reg) r0,
                s1 = out(reg) r1,
                s2 = out(reg) r2,
                s3 = out(reg) r3,
                s4 = out(reg) r4,
                s5 = out(reg) r5,
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: the caller vouches for 48 bytes at `out`.
        unsafe { write(out, [r0, r1, r2, r3, r4, r5]) }
    }

    #[inline(always)]
    unsafe fn sub(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        let (r0, r1, r2, r3, r4, r5): (u64, u64, u64, u64, u64, u64);
        // SAFETY: reads 48 bytes at x, y and m, which the caller vouches for, and writes nothing.
        unsafe {
            asm!(
                "mov {d0}, [{x}]",
                "sub {d0}, [{y}]",
                "mov {d1}, [{x} + 8]",
                "sbb {d1}, [{y} + 8]",
                "mov {d2}, [{x} + 16]",
                "sbb {d2}, [{y} + 16]",
                "mov {d3}, [{x} + 24]",
                "sbb {d3}, [{y} + 24]",
                "mov {d4}, [{x} + 32]",
                "sbb {d4}, [{y} + 32]",
                "mov {d5}, [{x} + 40]",
                "sbb {d5}, [{y} + 40]",
                // m if it is negative, else 0.
                "sbb {mask}, {mask}",
                "mov {x}, [{m}]",
                "and {x}, {mask}",
                "mov {y}, [{m} + 8]",
                "and {y}, {mask}",
                "mov {t2}, [{m} + 16]",
                "and {t2}, {mask}",
                "mov {t3}, [{m} + 24]",
                "and {t3}, {mask}",
                "mov {t4}, [{m} + 32]",
                "and {t4}, {mask}",
                "and {mask}, [{m} + 40]",
                "add {d0}, {x}",
                "adc {d1}, {y}",
                "adc {d2}, {t2}",
                "adc {d3}, {t3}",
                "adc {d4}, {t4}",
                "adc {d5}, {mask}",
                x = inout(reg) x => _,
                y = inout(reg) y => _,
                m = in(reg) m,
                mask = out(reg) _,
                t2 = out(reg) _,
                t3 = out(reg) _,
                t4 = out(reg) _,
                d0 = out(reg) r0,
                d1 = out(reg) r1,
                d2 = out(reg) r2,
                d3 = out(reg) r3,
                d4 = out(reg) r4,
                d5 = out(reg) r5,
                options(pure, readonly, nostack),
            );
        }
        // SAFETY: the caller vouches for 48 bytes at `out`.
        unsafe { write(out, [r0, r1, r2, r3, r4, r5]) }
    }

    #[inline(always)]
    unsafe fn mul(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: the caller's, for 48 bytes at `x` and `m`.
        let top = unsafe {
            x.add(40).cast::<u64>().read_unaligned() | m.add(40).cast::<u64>().read_unaligned()
        };
        // SAFETY: the caller's.
        unsafe {
            if top >> 63 == 0 {
                multiply(out, x, y, m);
            } else {
                multiply_any(out, x, y, m);
            }
        }
    }
}

/// The rare operands for which seven limbs do not hold all intermediate results.
///
/// # Safety
///
/// As [`Arithmetic::mul`].
#[cold]
#[inline(never)]
unsafe fn multiply_any(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
    // SAFETY: the caller's.
    unsafe { Portable::mul(out, x, y, m) }
}

/// t += rdx * the six limbs at `$source`: low halves along CF, high halves along OF, the last carry into the seventh limb.
macro_rules! add_product {
    ($source:literal, $t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal, $t5:literal, $t6:literal) => {
        concat!(
            "mulx {hi}, {lo}, [{",
            $source,
            "}]\n",
            "adcx {",
            $t0,
            "}, {lo}\n",
            "adox {",
            $t1,
            "}, {hi}\n",
            "mulx {hi}, {lo}, [{",
            $source,
            "} + 8]\n",
            "adcx {",
            $t1,
            "}, {lo}\n",
            "adox {",
            $t2,
            "}, {hi}\n",
            "mulx {hi}, {lo}, [{",
            $source,
            "} + 16]\n",
            "adcx {",
            $t2,
            "}, {lo}\n",
            "adox {",
            $t3,
            "}, {hi}\n",
            "mulx {hi}, {lo}, [{",
            $source,
            "} + 24]\n",
            "adcx {",
            $t3,
            "}, {lo}\n",
            "adox {",
            $t4,
            "}, {hi}\n",
            "mulx {hi}, {lo}, [{",
            $source,
            "} + 32]\n",
            "adcx {",
            $t4,
            "}, {lo}\n",
            "adox {",
            $t5,
            "}, {hi}\n",
            "mulx {hi}, {lo}, [{",
            $source,
            "} + 40]\n",
            "adcx {",
            $t5,
            "}, {lo}\n",
            "adox {",
            $t6,
            "}, {hi}\n",
            "mov {lo:e}, 0\n",
            "adcx {",
            $t6,
            "}, {lo}\n",
        )
    };
}

/// Adds the multiple of m that makes the lowest limb zero (for a true inverse); that limb is not used any more.
macro_rules! reduce {
    ($t0:literal, $($t:literal),*) => {
        concat!(
            "mov rdx, {", $t0, "}\n",
            "imul rdx, [{m} + 48]\n",
            "xor {lo:e}, {lo:e}\n",
            add_product!("m", $t0, $($t),*),
        )
    };
}

/// One limb of y: t += x * y[i], then a step of reduction. The seventh limb comes in empty.
macro_rules! row {
    ($offset:literal, $t0:literal, $t1:literal, $t2:literal, $t3:literal, $t4:literal, $t5:literal, $t6:literal) => {
        concat!(
            "mov rdx, [{y} + ",
            $offset,
            "]\n",
            "xor {",
            $t6,
            ":e}, {",
            $t6,
            ":e}\n",
            add_product!("x", $t0, $t1, $t2, $t3, $t4, $t5, $t6),
            reduce!($t0, $t1, $t2, $t3, $t4, $t5, $t6),
        )
    };
}

/// Montgomery's multiplication where x and m are below 2^383.
///
/// Then t < 2^384 before every row: (t + (x + m)(2^64 - 1)) / 2^64 < (2^384 + 2^384 (2^64 - 1)) / 2^64. Within a row it stays below 2^448, so that
/// seven limbs hold it and no carry leaves the seventh. `y` and the inverse may be anything.
///
/// # Safety
///
/// As [`Arithmetic::mul`]; the processor has BMI2 and ADX.
#[inline(always)]
unsafe fn multiply(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
    let (r0, r1, r2, r3, r4, r5): (u64, u64, u64, u64, u64, u64);
    // SAFETY: reads 48 bytes at x and y and 56 at m, which the caller vouches for, and writes nothing.
    unsafe {
        asm!(
            // The first row has nothing to add to.
            "mov rdx, [{y}]",
            "mulx {t1}, {t0}, [{x}]",
            "mulx {t2}, {lo}, [{x} + 8]",
            "add {t1}, {lo}",
            "mulx {t3}, {lo}, [{x} + 16]",
            "adc {t2}, {lo}",
            "mulx {t4}, {lo}, [{x} + 24]",
            "adc {t3}, {lo}",
            "mulx {t5}, {lo}, [{x} + 32]",
            "adc {t4}, {lo}",
            "mulx {t6}, {lo}, [{x} + 40]",
            "adc {t5}, {lo}",
            "adc {t6}, 0",
            reduce!("t0", "t1", "t2", "t3", "t4", "t5", "t6"),
            row!("8", "t1", "t2", "t3", "t4", "t5", "t6", "t0"),
            row!("16", "t2", "t3", "t4", "t5", "t6", "t0", "t1"),
            row!("24", "t3", "t4", "t5", "t6", "t0", "t1", "t2"),
            row!("32", "t4", "t5", "t6", "t0", "t1", "t2", "t3"),
            row!("40", "t5", "t6", "t0", "t1", "t2", "t3", "t4"),
            // t - m, kept unless it is negative.
            "mov {lo}, {t6}",
            "sub {lo}, [{m}]",
            "mov {hi}, {t0}",
            "sbb {hi}, [{m} + 8]",
            "mov rdx, {t1}",
            "sbb rdx, [{m} + 16]",
            "mov {t5}, {t2}",
            "sbb {t5}, [{m} + 24]",
            "mov {x}, {t3}",
            "sbb {x}, [{m} + 32]",
            "mov {y}, {t4}",
            "sbb {y}, [{m} + 40]",
            "cmovnc {t6}, {lo}",
            "cmovnc {t0}, {hi}",
            "cmovnc {t1}, rdx",
            "cmovnc {t2}, {t5}",
            "cmovnc {t3}, {x}",
            "cmovnc {t4}, {y}",
            x = inout(reg) x => _,
            y = inout(reg) y => _,
            m = in(reg) m,
            lo = out(reg) _,
            hi = out(reg) _,
            t0 = out(reg) r1,
            t1 = out(reg) r2,
            t2 = out(reg) r3,
            t3 = out(reg) r4,
            t4 = out(reg) r5,
            t5 = out(reg) _,
            t6 = out(reg) r0,
            out("rdx") _,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: the caller vouches for 48 bytes at `out`.
    unsafe { write(out, [r0, r1, r2, r3, r4, r5]) }
}

/// # Safety
///
/// `to` is valid for 48 bytes.
#[inline(always)]
unsafe fn write(to: *mut u8, limbs: [u64; 6]) {
    // SAFETY: the caller's.
    unsafe { to.cast::<[u64; 6]>().write_unaligned(limbs) }
}
