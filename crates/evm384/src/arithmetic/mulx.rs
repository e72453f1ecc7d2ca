//! Assembly, with registers by name: left to choose them, the compiler takes some more for the addresses of operands, and saves others in turn. Products by `mulx`, their low and high halves added by two independent chains of carries; sums and differences reduced by a number that is chosen without a branch, which
//! could not be predicted.

#[macro_use]
mod kernels;

use core::arch::asm;

use super::{Arithmetic, Backend, Portable};

/// `mulx`, `adcx` and `adox`.
pub(crate) struct MulxAdx;

/// What sums and differences that need no reduction are reduced by.
static ZERO: [u64; 6] = [0; 6];

impl Arithmetic for MulxAdx {
    const BACKEND: Backend = Backend::MulxAdx;

    #[inline(always)]
    unsafe fn add(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: reads 48 bytes at x, y and m and then writes as many at out, which the caller vouches for.
        unsafe {
            asm!(
                sum!(),
                zero = sym ZERO,
                out = in(reg) out,
                inout("rsi") x => _,
                inout("rdi") y => _,
                inout("rcx") m => _,
                out("rax") _,
                out("rdx") _,
                out("r8") _,
                out("r9") _,
                out("r10") _,
                out("r11") _,
                options(nostack),
            );
        }
    }

    #[inline(always)]
    unsafe fn sub(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: reads 48 bytes at x, y and m and then writes as many at out, which the caller vouches for.
        unsafe {
            asm!(
                difference!(),
                zero = sym ZERO,
                out = in(reg) out,
                in("rsi") x,
                inout("rdi") y => _,
                inout("rcx") m => _,
                out("rax") _,
                out("rdx") _,
                out("r8") _,
                out("r9") _,
                out("r10") _,
                out("r11") _,
                options(nostack),
            );
        }
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
            product!(),
            inout("rsi") x => _,
            inout("rdi") y => _,
            in("rcx") m,
            out("rax") _,
            out("rdx") _,
            out("r8") r1,
            out("r9") r2,
            out("r10") r3,
            out("r11") r4,
            out("r12") r5,
            out("r13") _,
            out("r14") r0,
            out("r15") _,
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
