//! Arithmetic that shows what products take.

use std::hint::black_box;
use std::marker::PhantomData;

use super::{Arithmetic, Backend, OPERAND_BYTES};

/// Other arithmetic, with each product made a second time.
pub(crate) struct Twice<A>(PhantomData<A>);

impl<A: Arithmetic> Arithmetic for Twice<A> {
    const BACKEND: Backend = Backend::ProductsTwice;

    #[inline(always)]
    unsafe fn add(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: the caller's.
        unsafe { A::add(out, x, y, m) }
    }

    #[inline(always)]
    unsafe fn sub(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: the caller's.
        unsafe { A::sub(out, x, y, m) }
    }

    #[inline(always)]
    unsafe fn mul(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        let mut unused = [0; OPERAND_BYTES];
        // SAFETY: the caller's; the product of the exchanged operands, lest one be taken for both, goes to memory of its own.
        unsafe {
            A::mul(unused.as_mut_ptr(), y, x, m);
            black_box(&unused);
            A::mul(out, x, y, m);
        }
    }
}
