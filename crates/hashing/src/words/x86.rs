//! Words of eight messages in AVX2 registers, of sixteen or twice sixteen in AVX-512 registers.

use super::{Block, Job, WIDEST, Words};
use crate::{states::Digest, width::Lanes};
use std::arch::x86_64::{
    __m256i, __m512i, __mmask16, _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castsi256_ps, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set_epi64x, _mm256_set1_epi32, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_srlv_epi32,
    _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32,
    _mm256_unpacklo_epi64, _mm256_xor_si256, _mm512_add_epi32, _mm512_and_si512,
    _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cmplt_epi32_mask,
    _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_blend_epi32,
    _mm512_ror_epi32, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_srlv_epi32,
    _mm512_storeu_si512, _mm512_xor_si512,
};

/// # Safety
///
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
unsafe fn enter_avx2<J: Job<__m256i>>(job: J) -> J::Output {
    // SAFETY: the caller's contract.
    unsafe { job.run() }
}

/// # Safety
///
/// The processor has AVX-512F and AVX2.
#[target_feature(enable = "avx512f,avx2")]
unsafe fn enter_avx512<W, J: Job<W>>(job: J) -> J::Output {
    // SAFETY: the caller's contract.
    unsafe { job.run() }
}

/// Eight messages; needs AVX2.
impl Words for __m256i {
    type Width = Lanes<8>;

    type Choice = Self;

    #[inline(always)]
    unsafe fn enter<J: Job<Self>>(job: J) -> J::Output {
        // SAFETY: the trait's contract.
        unsafe { enter_avx2(job) }
    }

    #[inline(always)]
    unsafe fn splat(w: u32) -> Self {
        // SAFETY: the trait's contract: the processor has AVX2.
        unsafe { _mm256_set1_epi32(w.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn from_words(words: &[u32; 8]) -> Self {
        // SAFETY: as in `splat`; the array has the 32 bytes that are read.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn to_words(self) -> [u32; 8] {
        let mut words = [0; 8];
        // SAFETY: as in `splat`; the array has room for the 32 bytes that are written.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self) };
        words
    }

    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn xor(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn and(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn shift_right(self, bits: u32) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm256_srlv_epi32(self, Self::splat(bits)) }
    }

    /// Two shifts and an or; a single shuffle if `RIGHT` is whole bytes.
    #[inline(always)]
    unsafe fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 32 && LEFT > 0 && RIGHT > 0) };
        // SAFETY: as in `splat`.
        unsafe {
            if RIGHT % 8 == 0 {
                let [low, high] = const { byte_rotation(RIGHT.cast_unsigned()) };
                _mm256_shuffle_epi8(self, _mm256_set_epi64x(high, low, high, low))
            } else {
                _mm256_or_si256(
                    _mm256_srli_epi32::<RIGHT>(self),
                    _mm256_slli_epi32::<LEFT>(self),
                )
            }
        }
    }

    #[inline(always)]
    unsafe fn top_bits(self) -> Self {
        self
    }

    #[inline(always)]
    unsafe fn choose(choice: Self, a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe {
            _mm256_castps_si256(_mm256_blendv_ps(
                _mm256_castsi256_ps(a),
                _mm256_castsi256_ps(b),
                _mm256_castsi256_ps(choice),
            ))
        }
    }

    #[inline(always)]
    unsafe fn load(blocks: &[&Block; WIDEST]) -> [Self; 16] {
        // SAFETY: as in `splat`; half a block is the 32 bytes that are read.
        unsafe {
            let (mut low, mut high) = ([_mm256_setzero_si256(); 8], [_mm256_setzero_si256(); 8]);
            for j in 0..8 {
                low[j] = _mm256_loadu_si256(blocks[j][..32].as_ptr().cast());
                high[j] = _mm256_loadu_si256(blocks[j][32..].as_ptr().cast());
            }
            concat(transpose(low), transpose(high))
        }
    }

    #[inline(always)]
    unsafe fn store(state: [Self; 8], digests: &mut [Digest]) {
        // SAFETY: as in `splat`; a digest is the 32 bytes that are written.
        unsafe {
            for (digest, row) in digests.iter_mut().zip(transpose(state)) {
                _mm256_storeu_si256(digest.as_mut_ptr().cast(), row);
            }
        }
    }
}

/// Sixteen messages; needs AVX-512F and AVX2.
impl Words for __m512i {
    type Width = Lanes<16>;

    type Choice = __mmask16;

    #[inline(always)]
    unsafe fn enter<J: Job<Self>>(job: J) -> J::Output {
        // SAFETY: the trait's contract.
        unsafe { enter_avx512(job) }
    }

    #[inline(always)]
    unsafe fn splat(w: u32) -> Self {
        // SAFETY: the trait's contract: the processor has AVX-512F.
        unsafe { _mm512_set1_epi32(w.cast_signed()) }
    }

    #[inline(always)]
    unsafe fn from_words(words: &[u32; 16]) -> Self {
        // SAFETY: as in `splat`; the array has the 64 bytes that are read.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn to_words(self) -> [u32; 16] {
        let mut words = [0; 16];
        // SAFETY: as in `splat`; the array has room for the 64 bytes that are written.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self) };
        words
    }

    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn xor(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn and(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn shift_right(self, bits: u32) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_srlv_epi32(self, Self::splat(bits)) }
    }

    #[inline(always)]
    unsafe fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 32) };
        // SAFETY: as in `splat`.
        unsafe { _mm512_ror_epi32::<RIGHT>(self) }
    }

    #[inline(always)]
    unsafe fn top_bits(self) -> __mmask16 {
        // SAFETY: as in `splat`.
        unsafe { _mm512_cmplt_epi32_mask(self, _mm512_setzero_si512()) }
    }

    #[inline(always)]
    unsafe fn choose(choice: __mmask16, a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { _mm512_mask_blend_epi32(choice, a, b) }
    }

    /// Two transposes of eight blocks, whose rows are then put side by side.
    #[inline(always)]
    unsafe fn load(blocks: &[&Block; WIDEST]) -> [Self; 16] {
        // SAFETY: as in `splat`; a processor with AVX-512F has AVX2.
        unsafe {
            let mut upper = *blocks;
            upper[..8].copy_from_slice(&blocks[8..16]);
            let low = <__m256i as Words>::load(blocks);
            let high = <__m256i as Words>::load(&upper);
            let mut both = [_mm512_setzero_si512(); 16];
            for i in 0..16 {
                both[i] = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low[i]), high[i]);
            }
            both
        }
    }

    #[inline(always)]
    unsafe fn store(state: [Self; 8], digests: &mut [Digest]) {
        // SAFETY: as in `splat`; a processor with AVX-512F has AVX2.
        unsafe {
            let (low, high) = digests.split_at_mut(digests.len().min(8));
            let mut first = [_mm512_castsi512_si256(state[0]); 8];
            let mut second = [_mm512_extracti64x4_epi64::<1>(state[0]); 8];
            for i in 1..8 {
                first[i] = _mm512_castsi512_si256(state[i]);
                second[i] = _mm512_extracti64x4_epi64::<1>(state[i]);
            }
            <__m256i as Words>::store(first, low);
            <__m256i as Words>::store(second, high);
        }
    }
}

/// Twice sixteen messages; needs AVX-512F and AVX2. Without closures, which would not be inlined into code for wide registers.
impl Words for [__m512i; 2] {
    type Width = Lanes<32>;

    type Choice = [__mmask16; 2];

    #[inline(always)]
    unsafe fn enter<J: Job<Self>>(job: J) -> J::Output {
        // SAFETY: the trait's contract.
        unsafe { enter_avx512(job) }
    }

    #[inline(always)]
    unsafe fn splat(w: u32) -> Self {
        // SAFETY: the trait's contract: the processor has AVX-512F.
        unsafe { [<__m512i as Words>::splat(w); 2] }
    }

    #[inline(always)]
    unsafe fn from_words(words: &[u32; 32]) -> Self {
        let [low, high] = [&words[..16], &words[16..]];
        // SAFETY: as in `splat`; each half of the array has the 64 bytes that are read.
        unsafe {
            [
                _mm512_loadu_si512(low.as_ptr().cast()),
                _mm512_loadu_si512(high.as_ptr().cast()),
            ]
        }
    }

    #[inline(always)]
    unsafe fn to_words(self) -> [u32; 32] {
        let mut words = [0; 32];
        let (low, high) = words.split_at_mut(16);
        // SAFETY: as in `splat`; each half of the array has room for the 64 bytes that are written.
        unsafe {
            _mm512_storeu_si512(low.as_mut_ptr().cast(), self[0]);
            _mm512_storeu_si512(high.as_mut_ptr().cast(), self[1]);
        }
        words
    }

    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { [Words::add(a[0], b[0]), Words::add(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn xor(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { [Words::xor(a[0], b[0]), Words::xor(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn and(a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe { [Words::and(a[0], b[0]), Words::and(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn shift_right(self, bits: u32) -> Self {
        let [a, b] = self;
        // SAFETY: as in `splat`.
        unsafe { [a.shift_right(bits), b.shift_right(bits)] }
    }

    #[inline(always)]
    unsafe fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self {
        let [a, b] = self;
        // SAFETY: as in `splat`.
        unsafe { [a.rotate::<RIGHT, LEFT>(), b.rotate::<RIGHT, LEFT>()] }
    }

    #[inline(always)]
    unsafe fn top_bits(self) -> Self::Choice {
        // SAFETY: as in `splat`.
        unsafe { [self[0].top_bits(), self[1].top_bits()] }
    }

    #[inline(always)]
    unsafe fn choose(choice: Self::Choice, a: Self, b: Self) -> Self {
        // SAFETY: as in `splat`.
        unsafe {
            [
                Words::choose(choice[0], a[0], b[0]),
                Words::choose(choice[1], a[1], b[1]),
            ]
        }
    }

    #[inline(always)]
    unsafe fn load(blocks: &[&Block; WIDEST]) -> [Self; 16] {
        let mut upper = *blocks;
        upper[..16].copy_from_slice(&blocks[16..]);
        // SAFETY: as in `splat`.
        unsafe {
            let low = <__m512i as Words>::load(blocks);
            let high = <__m512i as Words>::load(&upper);
            let mut both = [[low[0], high[0]]; 16];
            for i in 1..16 {
                both[i] = [low[i], high[i]];
            }
            both
        }
    }

    #[inline(always)]
    unsafe fn store(state: [Self; 8], digests: &mut [Digest]) {
        let (low, high) = digests.split_at_mut(digests.len().min(16));
        let (mut first, mut second) = ([state[0][0]; 8], [state[0][1]; 8]);
        for i in 1..8 {
            [first[i], second[i]] = state[i];
        }
        // SAFETY: as in `splat`.
        unsafe {
            Words::store(first, low);
            Words::store(second, high);
        }
    }
}

/// Rows and columns of eight by eight words exchanged.
///
/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
unsafe fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    // SAFETY: AVX2 is the caller's contract.
    unsafe {
        let [a, b, c, d, e, f, g, h] = rows;
        let (upper, lower) = (weave([a, b, c, d]), weave([e, f, g, h]));
        std::array::from_fn(|i| {
            let (upper, lower) = (upper[i % 4], lower[i % 4]);
            if i < 4 {
                _mm256_permute2x128_si256::<0x20>(upper, lower)
            } else {
                _mm256_permute2x128_si256::<0x31>(upper, lower)
            }
        })
    }
}

/// Four rows of eight words woven: four words of column `i` in the lower half of element `i`, of column `i + 4` in its upper half.
///
/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
unsafe fn weave(rows: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: AVX2 is the caller's contract.
    unsafe {
        let [a, b, c, d] = rows;
        let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (ab2, cd2) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        [
            _mm256_unpacklo_epi64(ab, cd),
            _mm256_unpackhi_epi64(ab, cd),
            _mm256_unpacklo_epi64(ab2, cd2),
            _mm256_unpackhi_epi64(ab2, cd2),
        ]
    }
}

#[inline(always)]
fn concat(low: [__m256i; 8], high: [__m256i; 8]) -> [__m256i; 16] {
    std::array::from_fn(|i| if i < 8 { low[i] } else { high[i - 8] })
}

/// Byte indices for `vpshufb` that rotate all four words of 128 bits right by `bits`, a multiple of 8.
const fn byte_rotation(bits: u32) -> [i64; 2] {
    // Byte i of a word comes from its byte i + bits / 8, modulo 4: as a number, the identity's indices rotated.
    let first = 0x0302_0100_u32.rotate_right(bits) as i64;
    let low = first | (first + 0x0404_0404) << 32;
    [low, low + 0x0808_0808_0808_0808]
}
