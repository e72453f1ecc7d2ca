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
    pub(crate) type __m256i = [u64; 4];

    const LOW: u64 = (1 << 52) - 1;

    pub(crate) unsafe fn pinned_here(x: __m512i) -> __m512i {
        x
    }

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

    pub(crate) unsafe fn _mm512_mask_sub_epi64(
        other: __m512i,
        lanes: u8,
        a: __m512i,
        b: __m512i,
    ) -> __m512i {
        let difference = |i: usize| a[i].wrapping_sub(b[i]);
        from_fn(|i| {
            if lanes >> i & 1 == 1 {
                difference(i)
            } else {
                other[i]
            }
        })
    }

    pub(crate) unsafe fn _mm512_and_si512(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| a[i] & b[i])
    }

    pub(crate) unsafe fn _mm512_andnot_si512(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| !a[i] & b[i])
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

    pub(crate) unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
        from.read_unaligned()
    }

    pub(crate) unsafe fn _mm512_permutexvar_epi64(order: __m512i, a: __m512i) -> __m512i {
        order.map(|at| a[(at & 7) as usize])
    }

    pub(crate) unsafe fn _mm512_shrdi_epi64<const N: i32>(low: __m512i, high: __m512i) -> __m512i {
        from_fn(|i| ((u128::from(high[i]) << 64 | u128::from(low[i])) >> N) as u64)
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

    pub(crate) unsafe fn _mm512_unpacklo_epi64(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| if i % 2 == 0 { a[i] } else { b[i - 1] })
    }

    pub(crate) unsafe fn _mm512_unpackhi_epi64(a: __m512i, b: __m512i) -> __m512i {
        from_fn(|i| if i % 2 == 0 { a[i + 1] } else { b[i] })
    }

    pub(crate) unsafe fn _mm512_shuffle_i64x2<const ORDER: i32>(a: __m512i, b: __m512i) -> __m512i {
        // Two bits for each quarter of the result: which one of `a`, twice, then of `b`.
        from_fn(|i| {
            let quarter = (ORDER >> (i / 2 * 2) & 3) as usize;
            (if i < 4 { a } else { b })[2 * quarter + i % 2]
        })
    }

    pub(crate) unsafe fn _mm512_permutex2var_epi64(
        a: __m512i,
        order: __m512i,
        b: __m512i,
    ) -> __m512i {
        order.map(|at| (if at & 8 == 0 { a } else { b })[(at & 7) as usize])
    }

    pub(crate) unsafe fn _mm512_castsi256_si512(a: __m256i) -> __m512i {
        // What the upper half is, nobody may rely upon.
        from_fn(|i| a.get(i).copied().unwrap_or(0xdead_beef))
    }

    pub(crate) unsafe fn _mm512_castsi512_si256(a: __m512i) -> __m256i {
        from_fn(|i| a[i])
    }

    pub(crate) unsafe fn _mm512_inserti64x4<const AT: i32>(a: __m512i, b: __m256i) -> __m512i {
        from_fn(|i| if (i / 4) as i32 == AT { b[i % 4] } else { a[i] })
    }

    pub(crate) unsafe fn _mm512_extracti64x4_epi64<const AT: i32>(a: __m512i) -> __m256i {
        from_fn(|i| a[4 * AT as usize + i])
    }

    pub(crate) unsafe fn _mm256_loadu_si256(from: *const __m256i) -> __m256i {
        from.read_unaligned()
    }

    pub(crate) unsafe fn _mm256_storeu_si256(to: *mut __m256i, a: __m256i) {
        to.write_unaligned(a);
    }
}
