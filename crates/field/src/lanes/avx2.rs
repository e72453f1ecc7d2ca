//! Twice four lanes of nine 29-bit limbs, in AVX2.
//!
//! Its multiplier makes 64 bits of 32 by 32 bits in four lanes, two per cycle on current processors. Limbs of 29 bits leave room to add nine products of a
//! loose and a tight limb and nine of quotient and prime before anything is carried:
//! 9 * (3 * 2^30) * 2^29 + 9 * 2^29 * 2^29 is 63/64 of 2^64. Both primes' low limb has its inverse in a constant; the radix is 2^261.
//!
//! Intrinsics stand in functions that are always inlined, and never in closures: the compiler makes closures, and what the library
//! does with them, without these instructions, and then each intrinsic is a call through memory.

use super::{Job, LANES, Lanes};
use crate::{Limbs, Modulus};
use std::{
    arch::asm,
    arch::x86_64::{
        __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi64,
        _mm256_loadu_si256, _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set_epi64x,
        _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64,
        _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_unpackhi_epi64,
        _mm256_unpacklo_epi64,
    },
    marker::PhantomData,
};

const LIMBS: usize = 9;
const BITS: usize = 29;
const MASK: u64 = (1 << BITS) - 1;

/// Limbs of one half, four lanes each.
type Half = [__m256i; LIMBS];

/// Both halves. Tight: limbs below 2^29, value below two primes. Loose: limbs below 3 * 2^30, value below eight primes.
#[derive(Clone, Copy)]
pub(super) struct Vector([Half; 2]);

#[derive(Clone, Copy)]
pub(super) struct Avx2<M> {
    field: PhantomData<M>,
}

/// # Safety
///
/// The processor has AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn run<M: Modulus, J: Job<M>>(job: J) -> J::Output {
    job.run(Avx2::<M> { field: PhantomData })
}

/// What follows from the prime.
struct Constants<M>(PhantomData<M>);

impl<M: Modulus> Constants<M> {
    const PRIME: [u64; LIMBS] = split(&M::MODULUS);
    const PRIME_IN_LANES: &'static Half = &in_all_lanes(Self::PRIME);
    const NEGATIVE_INVERSE: u64 = M::NEGATIVE_INVERSE & MASK;
    /// Two primes, with 2^30 lent to each limb: never less than a tight value, limb by limb, but for the topmost, which carries come to.
    const TWO: [u64; LIMBS] = lend(times(2, Self::PRIME), 1);
    /// Four primes, with 2^30 lent to each limb: minuends for one tight subtrahend.
    const FOUR: [u64; LIMBS] = lend(times(4, Self::PRIME), 1);
    /// Six primes, with 2^31 lent to each limb: minuends for two. The topmost limb stays positive even if both are nearly two primes.
    const SIX: [u64; LIMBS] = lend(times(6, Self::PRIME), 2);
    /// Zero, with 2^40 lent to each limb, so that seven primes can be subtracted limb by limb.
    const BIAS: [u64; LIMBS] = lend([0; LIMBS], 11);
    /// A value's bits from here up say how often 2^BITS is in it, and the prime is nearly that power: 0.9058 of it, both of them.
    const QUOTIENT_SHIFT: u64 = M::BITS as u64 - (8 * BITS) as u64;
}

const fn in_all_lanes(limbs: [u64; LIMBS]) -> Half {
    let mut lanes = [[0; 4]; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        lanes[i] = [limbs[i]; 4];
        i += 1;
    }
    // SAFETY: both have nine times 256 bits, and any bits are a vector.
    unsafe { std::mem::transmute(lanes) }
}

const fn split(n: &Limbs) -> [u64; LIMBS] {
    let mut limbs = [0; LIMBS];
    let mut i = 0;
    while i < LIMBS {
        let (word, shift) = (i * BITS / 64, i * BITS % 64);
        let mut limb = n[word] >> shift;
        if shift > 64 - BITS && word < 3 {
            limb |= n[word + 1] << (64 - shift);
        }
        limbs[i] = limb & MASK;
        i += 1;
    }
    limbs
}

const fn times(factor: u64, mut n: [u64; LIMBS]) -> [u64; LIMBS] {
    let mut carry = 0;
    let mut i = 0;
    while i < LIMBS {
        let limb = factor * n[i] + carry;
        n[i] = if i + 1 < LIMBS { limb & MASK } else { limb };
        carry = limb >> BITS;
        i += 1;
    }
    n
}

/// Adds 2^(29 + bits) to each limb but the topmost, and takes 2^bits away from the next one for it. The topmost may wrap below zero.
const fn lend(mut n: [u64; LIMBS], bits: u32) -> [u64; LIMBS] {
    let mut i = 0;
    while i + 1 < LIMBS {
        n[i] = n[i].wrapping_add(1 << (BITS as u32 + bits));
        n[i + 1] = n[i + 1].wrapping_sub(1 << bits);
        i += 1;
    }
    n
}

/// The same word in all lanes.
#[inline(always)]
fn all(word: u64) -> __m256i {
    // SAFETY: reached only through an `Avx2`, whose existence proves the instructions. So in all of this file.
    unsafe { _mm256_set1_epi64x(word.cast_signed()) }
}

/// Propagates carries; every limb must be non-negative when the carry from below is added.
#[inline(always)]
fn carried(mut t: Half) -> Half {
    // SAFETY: as in `all`.
    unsafe {
        let mask = all(MASK);
        for i in 0..LIMBS - 1 {
            let carry = _mm256_srli_epi64::<{ BITS as i32 }>(t[i]);
            t[i] = _mm256_and_si256(t[i], mask);
            t[i + 1] = _mm256_add_epi64(t[i + 1], carry);
        }
        t
    }
}

/// Limb by limb, without carries.
#[inline(always)]
fn minus(mut a: Half, b: &Half) -> Half {
    for i in 0..LIMBS {
        // SAFETY: as in `all`.
        a[i] = unsafe { _mm256_sub_epi64(a[i], b[i]) };
    }
    a
}

#[inline(always)]
fn plus(mut a: Half, b: &Half) -> Half {
    for i in 0..LIMBS {
        // SAFETY: as in `all`.
        a[i] = unsafe { _mm256_add_epi64(a[i], b[i]) };
    }
    a
}

/// The same limbs in all lanes.
#[inline(always)]
fn all_limbs(limbs: &[u64; LIMBS]) -> Half {
    let mut half = [all(0); LIMBS];
    for i in 0..LIMBS {
        half[i] = all(limbs[i]);
    }
    half
}

/// The products of the lower halves of four words each.
///
/// Assembly, because the compiler knows `_mm256_mul_epu32` as a product of 64-bit words whose upper halves are zero. Where it forgets that they are, in another
/// block than the one that made them so, it multiplies all 64 bits with three instructions of this kind.
///
/// # Safety
///
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn product(a: __m256i, b: __m256i) -> __m256i {
    let product;
    // SAFETY: registers alone; the instruction is this function's contract.
    unsafe {
        asm!(
            "vpmuludq {product}, {a}, {b}",
            product = lateout(ymm_reg) product,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    product
}

/// [`product`] with one of nine limbs in memory, for constants: no instruction is spent on loading what registers have no room for.
///
/// # Safety
///
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn product_with<const LIMB: usize>(a: __m256i, limbs: &Half) -> __m256i {
    let product;
    // SAFETY: reads one of nine vectors, which are aligned; the instruction is this function's contract.
    unsafe {
        asm!(
            "vpmuludq {product}, {a}, ymmword ptr [{limbs} + {at}]",
            product = lateout(ymm_reg) product,
            a = in(ymm_reg) a,
            limbs = in(reg) limbs,
            at = const LIMB * size_of::<__m256i>(),
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    product
}

#[inline(always)]
fn multiply<M: Modulus>(a: &Half, b: &Half) -> Half {
    // SAFETY: as in `all`.
    unsafe {
        let zero = _mm256_setzero_si256();
        let (mask, inverse) = (all(MASK), all(Constants::<M>::NEGATIVE_INVERSE));
        let prime = Constants::<M>::PRIME_IN_LANES;
        let mut t = [zero; LIMBS];
        for b in b {
            for (t, a) in t.iter_mut().zip(a) {
                *t = _mm256_add_epi64(*t, product(*a, *b));
            }
            let (q, lowest);
            if Constants::<M>::PRIME[0] == 1 {
                // The base field: -1/p is -1, and neither needs a multiplication.
                q = _mm256_and_si256(_mm256_sub_epi64(zero, t[0]), mask);
                lowest = _mm256_add_epi64(t[0], q);
            } else {
                q = _mm256_and_si256(product(t[0], inverse), mask);
                lowest = _mm256_add_epi64(t[0], product_with::<0>(q, prime));
            }
            let carry = _mm256_srli_epi64::<{ BITS as i32 }>(lowest);
            macro_rules! add_multiples {
                ($($limb:literal)*) => {
                    $(t[$limb - 1] = _mm256_add_epi64(t[$limb], product_with::<$limb>(q, prime));)*
                };
            }
            add_multiples!(1 2 3 4 5 6 7 8);
            t[0] = _mm256_add_epi64(t[0], carry);
            t[LIMBS - 1] = zero;
        }
        carried(t)
    }
}

/// Below two primes, from below eight.
#[inline(always)]
fn reduce<M: Modulus>(a: Half) -> Half {
    let t = carried(a);
    // SAFETY: as in `all`.
    unsafe {
        // x / 2^BITS rounded down, at most 7: what is left is below 2^BITS + 7 (2^BITS - p) < 1.84 p.
        let quotient = _mm256_srlv_epi64(t[LIMBS - 1], all(Constants::<M>::QUOTIENT_SHIFT));
        let mut t = plus(t, &all_limbs(&Constants::<M>::BIAS));
        for (t, prime) in t.iter_mut().zip(Constants::<M>::PRIME) {
            *t = _mm256_sub_epi64(*t, product(quotient, all(prime)));
        }
        carried(t)
    }
}

/// Two primes less the value in the lanes whose bits are set.
#[inline(always)]
fn negate_half<M: Modulus>(a: Half, lanes: u8) -> Half {
    // SAFETY: as in `all`.
    unsafe {
        let bits = _mm256_set_epi64x(8, 4, 2, 1);
        let chosen = _mm256_cmpeq_epi64(_mm256_and_si256(all(u64::from(lanes)), bits), bits);
        let negative = carried(minus(all_limbs(&Constants::<M>::TWO), &a));
        let mut t = a;
        for i in 0..LIMBS {
            t[i] = _mm256_blendv_epi8(a[i], negative[i], chosen);
        }
        t
    }
}

#[inline(always)]
fn read(from: &Limbs) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read; instructions as in `all`.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline(always)]
fn write(row: __m256i, to: &mut Limbs) {
    // SAFETY: the array has the 32 bytes that are written; instructions as in `all`.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), row) }
}

/// Columns to rows and back: word `i` of four residues.
#[inline(always)]
fn transpose(r: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: as in `all`.
    unsafe {
        let low01 = _mm256_unpacklo_epi64(r[0], r[1]);
        let high01 = _mm256_unpackhi_epi64(r[0], r[1]);
        let low23 = _mm256_unpacklo_epi64(r[2], r[3]);
        let high23 = _mm256_unpackhi_epi64(r[2], r[3]);
        [
            _mm256_permute2x128_si256::<0x20>(low01, low23),
            _mm256_permute2x128_si256::<0x20>(high01, high23),
            _mm256_permute2x128_si256::<0x31>(low01, low23),
            _mm256_permute2x128_si256::<0x31>(high01, high23),
        ]
    }
}

/// 64-bit words to limbs of 29 bits.
#[inline(always)]
fn unpack(w: [__m256i; 4]) -> Half {
    macro_rules! limb {
        ($index:literal) => {{
            const WORD: usize = $index * BITS / 64;
            const SHIFT: i32 = ($index * BITS % 64) as i32;
            let low = _mm256_srli_epi64::<SHIFT>(w[WORD]);
            let limb = if SHIFT > (64 - BITS) as i32 && WORD < 3 {
                _mm256_or_si256(
                    low,
                    _mm256_slli_epi64::<{ (64 - SHIFT) & 63 }>(w[(WORD + 1) % 4]),
                )
            } else {
                low
            };
            _mm256_and_si256(limb, all(MASK))
        }};
    }
    // SAFETY: as in `all`.
    unsafe {
        [
            limb!(0),
            limb!(1),
            limb!(2),
            limb!(3),
            limb!(4),
            limb!(5),
            limb!(6),
            limb!(7),
            limb!(8),
        ]
    }
}

/// Limbs of 29 bits to 64-bit words; for values below 2^256.
#[inline(always)]
fn pack(t: &Half) -> [__m256i; 4] {
    macro_rules! up {
        ($limb:literal, $shift:literal) => {
            _mm256_slli_epi64::<$shift>(t[$limb])
        };
    }
    macro_rules! down {
        ($limb:literal, $shift:literal) => {
            _mm256_srli_epi64::<$shift>(t[$limb])
        };
    }
    // SAFETY: as in `all`.
    unsafe {
        // Limb i begins at bit 29 i: 0, 29, 58 | 87 - 64 = 23, 52 | 145 - 128 = 17, 46 | 203 - 192 = 11, 40.
        [
            _mm256_or_si256(_mm256_or_si256(t[0], up!(1, 29)), up!(2, 58)),
            _mm256_or_si256(_mm256_or_si256(down!(2, 6), up!(3, 23)), up!(4, 52)),
            _mm256_or_si256(_mm256_or_si256(down!(4, 12), up!(5, 17)), up!(6, 46)),
            _mm256_or_si256(_mm256_or_si256(down!(6, 18), up!(7, 11)), up!(8, 40)),
        ]
    }
}

impl<M: Modulus> Lanes<M> for Avx2<M> {
    type Tight = Vector;
    type Loose = Vector;
    type Sum = Self::Tight;
    type Begun = Self::Tight;
    type Product = Self::Tight;
    const RADIX_BITS: u32 = (LIMBS * BITS) as u32;

    #[inline(always)]
    fn load(self, from: [&Limbs; LANES]) -> Vector {
        let [a0, a1, a2, a3, a4, a5, a6, a7] = from;
        let low = [read(a0), read(a1), read(a2), read(a3)];
        let high = [read(a4), read(a5), read(a6), read(a7)];
        Vector([unpack(transpose(low)), unpack(transpose(high))])
    }

    #[inline(always)]
    fn store(self, value: Vector) -> [Limbs; LANES] {
        let mut to = [[0; 4]; LANES];
        for half in 0..2 {
            let rows = transpose(pack(&value.0[half]));
            for lane in 0..4 {
                write(rows[lane], &mut to[4 * half + lane]);
            }
        }
        to
    }

    #[inline(always)]
    fn splat(self, value: &Limbs) -> Vector {
        let half = unpack([all(value[0]), all(value[1]), all(value[2]), all(value[3])]);
        Vector([half; 2])
    }

    #[inline(always)]
    fn add(self, a: Vector, b: Vector) -> Vector {
        Vector([plus(a.0[0], &b.0[0]), plus(a.0[1], &b.0[1])])
    }

    #[inline(always)]
    fn sub(self, a: Vector, b: Vector) -> Vector {
        let four = all_limbs(&Constants::<M>::FOUR);
        Vector([
            minus(plus(a.0[0], &four), &b.0[0]),
            minus(plus(a.0[1], &four), &b.0[1]),
        ])
    }

    #[inline(always)]
    fn sub_two(self, a: Vector, b: Vector, c: Vector) -> Vector {
        let six = all_limbs(&Constants::<M>::SIX);
        Vector([
            minus(minus(plus(a.0[0], &six), &b.0[0]), &c.0[0]),
            minus(minus(plus(a.0[1], &six), &b.0[1]), &c.0[1]),
        ])
    }

    #[inline(always)]
    fn negate_where(self, a: Vector, lanes: u8) -> Vector {
        Vector([
            negate_half::<M>(a.0[0], lanes),
            negate_half::<M>(a.0[1], lanes >> 4),
        ])
    }

    #[inline(always)]
    fn mul(self, a: Vector, b: Vector) -> Vector {
        Vector([
            multiply::<M>(&a.0[0], &b.0[0]),
            multiply::<M>(&a.0[1], &b.0[1]),
        ])
    }

    #[inline(always)]
    fn nothing(self) -> Self::Sum {
        Vector([[all(0); LIMBS]; 2])
    }

    made_at_once!();

    #[inline(always)]
    fn tighten(self, a: Vector) -> Vector {
        Vector([reduce::<M>(a.0[0]), reduce::<M>(a.0[1])])
    }

    #[inline(always)]
    fn loosen(self, a: Vector) -> Vector {
        a
    }
}
