//! The vector in a register of AVX-512, with IFMA.

use super::{Job, LANES, Vector};
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_loadu_si512, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_mask_blend_epi64, _mm512_or_si512, _mm512_permutexvar_epi64,
    _mm512_set1_epi64, _mm512_shuffle_i64x2, _mm512_slli_epi64, _mm512_srai_epi64,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64, _mm512_testn_epi64_mask,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

/// Values exist only below [`run`], whose caller vouches for the instructions.
#[derive(Clone, Copy)]
pub(crate) struct Ifma(__m512i);

/// Runs a job with this vector.
///
/// # Safety
///
/// The processor has AVX-512 F, DQ, VL, VBMI2 and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512vbmi2,avx512ifma,avx2,bmi1,bmi2,adx")]
pub(crate) unsafe fn run<J: Job>(job: J) -> Vec<u8> {
    job.run::<Ifma>()
}

// SAFETY of all blocks below: values exist only below `run`, so the processor has the instructions.
impl Vector for Ifma {
    #[inline(always)]
    fn splat(word: u64) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_set1_epi64(word.cast_signed()) })
    }

    #[inline(always)]
    fn read(from: &[u64; LANES]) -> Self {
        // SAFETY: as above; the array has the 64 bytes that are read.
        Self(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }

    #[inline(always)]
    fn write(self, to: &mut [u64; LANES]) {
        // SAFETY: as above; the array has the 64 bytes that are written.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_sub_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_and_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_or_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn left<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_slli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn right<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_srli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn right_signed<const BITS: u32>(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_srai_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn add_low(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_madd52lo_epu64(self.0, a.0, b.0) })
    }

    #[inline(always)]
    fn add_high(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_madd52hi_epu64(self.0, a.0, b.0) })
    }

    #[inline(always)]
    fn replaced(self, lanes: u8, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_mask_blend_epi64(lanes, self.0, other.0) })
    }

    #[inline(always)]
    fn zeros(self) -> u8 {
        // SAFETY: as above.
        unsafe { _mm512_testn_epi64_mask(self.0, self.0) }
    }

    #[inline(always)]
    fn exchanged<const DISTANCE: usize>(self) -> Self {
        const { assert!(DISTANCE == 1 || DISTANCE == 2 || DISTANCE == 4) };
        let order = const {
            let mut order = [0; LANES];
            let mut lane = 0;
            while lane < LANES {
                order[lane] = (lane ^ DISTANCE) as u64;
                lane += 1;
            }
            order
        };
        let order = Self::read(&order);
        // SAFETY: as above.
        Self(unsafe { _mm512_permutexvar_epi64(order.0, self.0) })
    }

    #[inline(always)]
    fn transposed(rows: [Self; LANES]) -> [Self; LANES] {
        let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
        // SAFETY: as above.
        unsafe {
            // Pairs of rows: words 0, 2, 4, 6 of both, then words 1, 3, 5, 7.
            let (a0, b0) = pair(r0, r1);
            let (a1, b1) = pair(r2, r3);
            let (a2, b2) = pair(r4, r5);
            let (a3, b3) = pair(r6, r7);
            let [w0, w2, w4, w6] = quarters([a0, a1, a2, a3]);
            let [w1, w3, w5, w7] = quarters([b0, b1, b2, b3]);
            [w0, w1, w2, w3, w4, w5, w6, w7]
        }
    }
}

/// Words with even numbers of two rows, and those with odd ones.
///
/// # Safety
///
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn pair(low: Ifma, high: Ifma) -> (__m512i, __m512i) {
    // SAFETY: this function's contract.
    unsafe {
        (
            _mm512_unpacklo_epi64(low.0, high.0),
            _mm512_unpackhi_epi64(low.0, high.0),
        )
    }
}

/// Quarter i of each of four rows, as one row.
///
/// # Safety
///
/// The processor has AVX-512 F.
#[inline(always)]
unsafe fn quarters(r: [__m512i; 4]) -> [Ifma; 4] {
    // SAFETY: this function's contract.
    unsafe {
        let even01 = _mm512_shuffle_i64x2::<0b10_00_10_00>(r[0], r[1]);
        let odd01 = _mm512_shuffle_i64x2::<0b11_01_11_01>(r[0], r[1]);
        let even23 = _mm512_shuffle_i64x2::<0b10_00_10_00>(r[2], r[3]);
        let odd23 = _mm512_shuffle_i64x2::<0b11_01_11_01>(r[2], r[3]);
        [
            Ifma(_mm512_shuffle_i64x2::<0b10_00_10_00>(even01, even23)),
            Ifma(_mm512_shuffle_i64x2::<0b10_00_10_00>(odd01, odd23)),
            Ifma(_mm512_shuffle_i64x2::<0b11_01_11_01>(even01, even23)),
            Ifma(_mm512_shuffle_i64x2::<0b11_01_11_01>(odd01, odd23)),
        ]
    }
}
