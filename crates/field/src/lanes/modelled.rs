//! The IFMA lanes over a model of the instructions that they use.
//!
//! Few processors have AVX-512 with IFMA, and emulators that know it are rare. The lanes' code is compiled a second time, with this module's functions in
//! the place of the intrinsics of the same names; each does in plain Rust what Intel's manual says of its instruction.

use super::Job;
use crate::Modulus;

// Twice is the point: `super::arch` in it is the module below.
#[allow(clippy::duplicate_mod)]
#[path = "ifma.rs"]
mod ifma;

pub(super) fn run<M: Modulus, J: Job<M>>(job: J) -> J::Output {
    // SAFETY: no instruction is used that a processor could lack.
    job.run(unsafe { ifma::Ifma::<M>::new() })
}

/// The model. Functions are unsafe where the intrinsics are.
#[allow(
    non_camel_case_types,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks
)]
mod arch {
    use std::array::from_fn;

    pub(crate) type __m512i = [u64; 8];

    const LOW: u64 = (1 << 52) - 1;

    fn product(b: u64, c: u64) -> u128 {
        u128::from(b & LOW) * u128::from(c & LOW)
    }

    pub(crate) unsafe fn _mm512_madd52lo_epu64(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        from_fn(|i| a[i].wrapping_add(product(b[i], c[i]) as u64 & LOW))
    }

    pub(crate) unsafe fn _mm512_madd52hi_epu64(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        from_fn(|i| a[i].wrapping_add((product(b[i], c[i]) >> 52) as u64))
    }

    pub(crate) unsafe fn _mm512_add_epi64(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| a[i].wrapping_add(b[i]))
    }

    pub(crate) unsafe fn _mm512_sub_epi64(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| a[i].wrapping_sub(b[i]))
    }

    pub(crate) unsafe fn _mm512_and_si512(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| a[i] & b[i])
    }

    pub(crate) unsafe fn _mm512_or_si512(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| a[i] | b[i])
    }

    pub(crate) unsafe fn _mm512_slli_epi64<const N: u32>(a: __m512i) -> __m512i {
        a.map(|lane| lane.checked_shl(N).unwrap_or(0))
    }

    pub(crate) unsafe fn _mm512_srli_epi64<const N: u32>(a: __m512i) -> __m512i {
        a.map(|lane| lane.checked_shr(N).unwrap_or(0))
    }

    pub(crate) unsafe fn _mm512_srai_epi64<const N: u32>(a: __m512i) -> __m512i {
        a.map(|lane| (lane.cast_signed() >> N.min(63)).cast_unsigned())
    }

    pub(crate) unsafe fn _mm512_srlv_epi64(a: __m512i, count: __m512i) -> __m512i {
        from_fn(|i| a[i].checked_shr(count[i] as u32).unwrap_or(0))
    }

    pub(crate) unsafe fn _mm512_set1_epi64(a: i64) -> __m512i {
        [a.cast_unsigned(); 8]
    }

    pub(crate) unsafe fn _mm512_setzero_si512() -> __m512i {
        [0; 8]
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) unsafe fn _mm512_set_epi64(
        e7: i64,
        e6: i64,
        e5: i64,
        e4: i64,
        e3: i64,
        e2: i64,
        e1: i64,
        e0: i64,
    ) -> __m512i {
        [e0, e1, e2, e3, e4, e5, e6, e7].map(i64::cast_unsigned)
    }

    pub(crate) unsafe fn _mm512_i64gather_epi64<const SCALE: i32>(
        offsets: __m512i,
        base: *const i64,
    ) -> __m512i {
        // The lanes pass whole addresses: base null, scale one.
        assert!(base.is_null() && SCALE == 1);
        offsets.map(|address| *std::ptr::with_exposed_provenance::<u64>(address as usize))
    }

    pub(crate) unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
        to.write_unaligned(a);
    }
}
