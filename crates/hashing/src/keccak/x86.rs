//! The permutation in AVX2 and AVX-512 registers.

use super::{
    lanes::Lanes,
    permutation::permute,
    sponge::{Permutation, Rows},
};
use std::arch::x86_64::{
    __m256i, __m512i, _mm256_andnot_si256, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi64x,
    _mm256_shuffle_epi8, _mm256_slli_epi64, _mm256_srli_epi64, _mm256_xor_si256, _mm512_rol_epi64,
    _mm512_set1_epi64, _mm512_ternarylogic_epi64, _mm512_xor_si512,
};

/// One state; needs BMI1 and BMI2.
pub struct Bmi;

impl Permutation<1> for Bmi {
    type One = Self;

    #[inline(always)]
    unsafe fn permute(rows: &mut Rows<1>) {
        // SAFETY: the caller's contract.
        unsafe { permute_bmi(rows) }
    }
}

/// Four states; needs AVX2, and BMI1 and BMI2 for one.
pub struct Avx2;

impl Permutation<4> for Avx2 {
    type One = Bmi;

    #[inline(always)]
    unsafe fn permute(rows: &mut Rows<4>) {
        // SAFETY: the caller's contract.
        unsafe { permute_avx2(rows) }
    }
}

/// Eight states; needs AVX-512F, and BMI1 and BMI2 for one.
pub struct Avx512;

impl Permutation<8> for Avx512 {
    type One = Bmi;

    #[inline(always)]
    unsafe fn permute(rows: &mut Rows<8>) {
        // SAFETY: the caller's contract.
        unsafe { permute_avx512(rows) }
    }
}

/// One state, with the three-operand `andn` and `rorx` of BMI.
///
/// # Safety
///
/// The processor has BMI1 and BMI2.
#[target_feature(enable = "bmi1,bmi2")]
unsafe fn permute_bmi(state: &mut Rows<1>) {
    // SAFETY: `u64` needs no particular instructions.
    unsafe { permute(state.lanes_mut()) }
}

/// # Safety
///
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn permute_avx2(states: &mut Rows<4>) {
    let lanes: *mut [__m256i; 25] = (&raw mut states.0).cast();
    // SAFETY: `Rows` is aligned to 64 bytes, and 25 rows of 4 words have the size and, all bits being
    // valid in both, the validity of 25 vectors; the borrow is unique. AVX2 is the caller's contract.
    unsafe { permute(&mut *lanes) }
}

/// # Safety
///
/// The processor has AVX-512F.
#[target_feature(enable = "avx512f")]
unsafe fn permute_avx512(states: &mut Rows<8>) {
    let lanes: *mut [__m512i; 25] = (&raw mut states.0).cast();
    // SAFETY: as in `permute_avx2`, with rows of 8 words, and AVX-512F.
    unsafe { permute(&mut *lanes) }
}

/// Four states; needs AVX2.
impl Lanes for __m256i {
    #[inline(always)]
    unsafe fn splat(w: u64) -> Self {
        // SAFETY: the trait's contract: the processor has AVX2.
        unsafe { _mm256_set1_epi64x(w.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn xor(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn xor3(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm256_xor_si256(a, _mm256_xor_si256(b, c)) }
    }

    #[inline(always)]
    unsafe fn chi(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm256_xor_si256(a, _mm256_andnot_si256(b, c)) }
    }

    /// Two shifts and an or; a single shuffle if `LEFT` is whole bytes.
    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 64 && LEFT > 0 && RIGHT > 0) };
        // SAFETY: as in `splat`.
        unsafe {
            if LEFT % 8 == 0 {
                let [low, high] = const { byte_rotation(LEFT.cast_unsigned()) };
                _mm256_shuffle_epi8(self, _mm256_set_epi64x(high, low, high, low))
            } else {
                _mm256_or_si256(
                    _mm256_slli_epi64::<LEFT>(self),
                    _mm256_srli_epi64::<RIGHT>(self),
                )
            }
        }
    }
}

/// Eight states; needs AVX-512F.
impl Lanes for __m512i {
    #[inline(always)]
    unsafe fn splat(w: u64) -> Self {
        // SAFETY: the trait's contract: the processor has AVX-512F.
        unsafe { _mm512_set1_epi64(w.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn xor(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn xor3(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_ternarylogic_epi64::<XOR3>(a, b, c) }
    }

    #[inline(always)]
    unsafe fn chi(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_ternarylogic_epi64::<CHI>(a, b, c) }
    }

    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 64) };
        // SAFETY: as in `splat`.
        unsafe { _mm512_rol_epi64::<LEFT>(self) }
    }
}

/// Truth table of `a ^ b ^ c` for `vpternlogq`.
const XOR3: i32 = truth_table(false);

/// Truth table of `a ^ (!b & c)` for `vpternlogq`.
const CHI: i32 = truth_table(true);

/// Bit `4 * a + 2 * b + c` is the function's value: `a ^ (!b & c)` if `chi`, otherwise `a ^ b ^ c`.
const fn truth_table(chi: bool) -> i32 {
    let mut table = 0;
    let mut row = 0;
    while row < 8 {
        let (a, b, c) = (row >> 2, row >> 1 & 1, row & 1);
        let value = if chi { a ^ ((b ^ 1) & c) } else { a ^ b ^ c };
        table |= value << row;
        row += 1;
    }
    table
}

/// Byte indices for `vpshufb` that rotate both 64-bit halves of 128 bits left by `bits`, a multiple of 8.
const fn byte_rotation(bits: u32) -> [i64; 2] {
    // Byte i of a lane comes from byte i - bits / 8, modulo 8; as a number, the identity's indices rotated.
    let low = 0x0706_0504_0302_0100_u64.rotate_left(bits);
    let high = low | 0x0808_0808_0808_0808;
    [low.cast_signed(), high.cast_signed()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_tables_are_those_of_the_manual() {
        assert_eq!(XOR3, 0x96, "the usual three-way xor");
        assert_eq!(CHI, 0xd2);
    }

    #[test]
    fn wide_lanes_equal_the_portable_permutation() {
        let start: [[u64; 8]; 25] = std::array::from_fn(|i| {
            std::array::from_fn(|lane| {
                (1 + i as u64 * 8 + lane as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            })
        });
        let portable: [[u64; 25]; 8] = std::array::from_fn(|lane| {
            let mut state = start.map(|row| row[lane]);
            // SAFETY: `u64` needs no particular instructions.
            unsafe { permute(&mut state) };
            state
        });
        let expected: [[u64; 8]; 25] =
            std::array::from_fn(|i| std::array::from_fn(|lane| portable[lane][i]));
        if crate::Backend::Avx2.is_available() {
            let mut states = Rows(start.map(|row| [row[0], row[1], row[2], row[3]]));
            // SAFETY: checked above.
            unsafe { permute_avx2(&mut states) };
            assert_eq!(
                states.0,
                expected.map(|row| [row[0], row[1], row[2], row[3]])
            );
            let mut state = Rows(start).extract(5);
            // SAFETY: checked above: the backend includes BMI1 and BMI2.
            unsafe { permute_bmi(&mut state) };
            assert_eq!(*state.lanes_mut(), portable[5]);
        }
        if crate::Backend::Avx512.is_available() {
            let mut states = Rows(start);
            // SAFETY: checked above.
            unsafe { permute_avx512(&mut states) };
            assert_eq!(states.0, expected);
        }
    }
}
