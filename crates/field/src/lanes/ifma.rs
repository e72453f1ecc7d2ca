//! Eight lanes of five 52-bit limbs, in AVX-512 with IFMA.
//!
//! `vpmadd52luq` and `vpmadd52huq` add the low or the high 52 bits of a product of two 52-bit limbs to a 64-bit lane. The instructions look at 52 bits of each
//! factor only, hence limbs must be normalised before a multiplication: sums and differences are carried at once. The radix is 2^260.
//!
//! Without closures around intrinsics, as in the AVX2 lanes.

use super::arch::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_i64gather_epi64, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_or_si512, _mm512_set_epi64, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_slli_epi64, _mm512_srai_epi64, _mm512_srli_epi64,
    _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
};
use crate::{
    Limbs, Modulus,
    lanes::{LANES, Lanes},
};
use std::marker::PhantomData;

const LIMBS: usize = 5;
const BITS: u32 = 52;
const MASK: u64 = (1 << BITS) - 1;

/// Normalised limbs. Tight: below two primes. Loose: below eight.
#[derive(Clone, Copy)]
pub(crate) struct Vector(Limbs52);

#[derive(Clone, Copy)]
pub(crate) struct Ifma<M> {
    field: PhantomData<M>,
}

impl<M> Ifma<M> {
    /// # Safety
    ///
    /// The processor has AVX-512 F and IFMA.
    pub(crate) unsafe fn new() -> Self {
        Self { field: PhantomData }
    }
}

struct Constants<M>(PhantomData<M>);

impl<M: Modulus> Constants<M> {
    const PRIME: [u64; LIMBS] = split(&M::MODULUS);
    const FOUR: [u64; LIMBS] = times(4, Self::PRIME);
    const SIX: [u64; LIMBS] = times(6, Self::PRIME);
    const NEGATIVE_INVERSE: u64 = M::NEGATIVE_INVERSE & MASK;
    /// As in the AVX2 lanes: bits of the topmost limb from here up are the quotient to reduce by.
    const QUOTIENT_SHIFT: u64 = (M::BITS - 4 * BITS) as u64;
}

const fn split(n: &Limbs) -> [u64; LIMBS] {
    [
        n[0] & MASK,
        (n[0] >> 52 | n[1] << 12) & MASK,
        (n[1] >> 40 | n[2] << 24) & MASK,
        (n[2] >> 28 | n[3] << 36) & MASK,
        n[3] >> 16,
    ]
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

/// The same word in all lanes.
#[inline(always)]
fn all(word: u64) -> __m512i {
    // SAFETY: reached only through an `Ifma`, whose existence proves the instructions. So in all of this file.
    unsafe { _mm512_set1_epi64(word.cast_signed()) }
}

/// Propagates carries, which may be negative.
#[inline(always)]
fn carried(mut t: Limbs52) -> Vector {
    // SAFETY: as in `all`.
    unsafe {
        let mask = all(MASK);
        for i in 0..LIMBS - 1 {
            let carry = _mm512_srai_epi64::<BITS>(t[i]);
            t[i] = _mm512_and_si512(t[i], mask);
            t[i + 1] = _mm512_add_epi64(t[i + 1], carry);
        }
        Vector(t)
    }
}

type Limbs52 = [__m512i; LIMBS];

/// Limb by limb, without carries.
#[inline(always)]
fn minus(mut a: Limbs52, b: &Limbs52) -> Limbs52 {
    for i in 0..LIMBS {
        // SAFETY: as in `all`.
        a[i] = unsafe { _mm512_sub_epi64(a[i], b[i]) };
    }
    a
}

#[inline(always)]
fn plus(mut a: Limbs52, b: &Limbs52) -> Limbs52 {
    for i in 0..LIMBS {
        // SAFETY: as in `all`.
        a[i] = unsafe { _mm512_add_epi64(a[i], b[i]) };
    }
    a
}

/// The same limbs in all lanes.
#[inline(always)]
fn all_limbs(limbs: &[u64; LIMBS]) -> Limbs52 {
    let mut t = [all(0); LIMBS];
    for i in 0..LIMBS {
        t[i] = all(limbs[i]);
    }
    t
}

/// The words at an offset, in bytes, from each address.
///
/// # Safety
///
/// Each address with the offset is that of a word that may be read.
#[inline(always)]
unsafe fn gather(addresses: __m512i, offset: u64) -> __m512i {
    // SAFETY: this function's contract; instructions as in `all`.
    unsafe {
        let at = _mm512_add_epi64(addresses, all(offset));
        _mm512_i64gather_epi64::<1>(at, std::ptr::null::<i64>())
    }
}

#[inline(always)]
fn address(of: &Limbs) -> i64 {
    of.as_ptr().expose_provenance() as i64
}

impl<M: Modulus> Lanes<M> for Ifma<M> {
    type Tight = Vector;
    type Loose = Vector;
    const RADIX_BITS: u32 = LIMBS as u32 * BITS;

    #[inline(always)]
    fn load(self, from: [&Limbs; LANES]) -> Vector {
        let [a0, a1, a2, a3, a4, a5, a6, a7] = from;
        // SAFETY: each address is that of a borrowed array of four words, and the offsets stay within it; instructions as in `all`.
        unsafe {
            let at = _mm512_set_epi64(
                address(a7),
                address(a6),
                address(a5),
                address(a4),
                address(a3),
                address(a2),
                address(a1),
                address(a0),
            );
            unpack([gather(at, 0), gather(at, 8), gather(at, 16), gather(at, 24)])
        }
    }

    #[inline(always)]
    fn store(self, value: Vector) -> [Limbs; LANES] {
        let words = pack(value.0);
        let mut rows = [[0u64; LANES]; 4];
        for i in 0..4 {
            // SAFETY: each row has the 64 bytes that are written; instructions as in `all`.
            unsafe { _mm512_storeu_si512(rows[i].as_mut_ptr().cast(), words[i]) };
        }
        let mut to = [[0; 4]; LANES];
        for lane in 0..LANES {
            for i in 0..4 {
                to[lane][i] = rows[i][lane];
            }
        }
        to
    }

    #[inline(always)]
    fn splat(self, value: &Limbs) -> Vector {
        unpack([all(value[0]), all(value[1]), all(value[2]), all(value[3])])
    }

    #[inline(always)]
    fn add(self, a: Vector, b: Vector) -> Vector {
        carried(plus(a.0, &b.0))
    }

    #[inline(always)]
    fn sub(self, a: Vector, b: Vector) -> Vector {
        let four = all_limbs(&Constants::<M>::FOUR);
        carried(minus(plus(a.0, &four), &b.0))
    }

    #[inline(always)]
    fn sub_two(self, a: Vector, b: Vector, c: Vector) -> Vector {
        let six = all_limbs(&Constants::<M>::SIX);
        carried(minus(minus(plus(a.0, &six), &b.0), &c.0))
    }

    #[inline(always)]
    fn mul(self, a: Vector, b: Vector) -> Vector {
        // SAFETY: as in `all`.
        unsafe {
            let zero = _mm512_setzero_si512();
            let inverse = all(Constants::<M>::NEGATIVE_INVERSE);
            let prime = all_limbs(&Constants::<M>::PRIME);
            // Low halves and high halves are summed apart: two chains instead of one.
            let mut low = [zero; LIMBS];
            let mut high = [zero; LIMBS];
            for b in b.0 {
                for i in 0..LIMBS {
                    low[i] = _mm512_madd52lo_epu64(low[i], a.0[i], b);
                    high[i] = _mm512_madd52hi_epu64(high[i], a.0[i], b);
                }
                let q = _mm512_madd52lo_epu64(zero, low[0], inverse);
                for i in 0..LIMBS {
                    low[i] = _mm512_madd52lo_epu64(low[i], q, prime[i]);
                    high[i] = _mm512_madd52hi_epu64(high[i], q, prime[i]);
                }
                // The lowest limb is now a multiple of 2^52; the high halves belong one limb further up, which the division undoes.
                let carry = _mm512_srli_epi64::<BITS>(low[0]);
                for i in 0..LIMBS - 1 {
                    low[i] = _mm512_add_epi64(low[i + 1], high[i]);
                }
                low[LIMBS - 1] = high[LIMBS - 1];
                low[0] = _mm512_add_epi64(low[0], carry);
                high = [zero; LIMBS];
            }
            carried(low)
        }
    }

    #[inline(always)]
    fn tighten(self, a: Vector) -> Vector {
        // SAFETY: as in `all`.
        unsafe {
            let quotient = _mm512_srlv_epi64(a.0[LIMBS - 1], all(Constants::<M>::QUOTIENT_SHIFT));
            let zero = _mm512_setzero_si512();
            let mut t = a.0;
            for i in 0..LIMBS {
                let prime = all(Constants::<M>::PRIME[i]);
                t[i] = _mm512_sub_epi64(t[i], _mm512_madd52lo_epu64(zero, quotient, prime));
                if i + 1 < LIMBS {
                    let high = _mm512_madd52hi_epu64(zero, quotient, prime);
                    t[i + 1] = _mm512_sub_epi64(t[i + 1], high);
                }
            }
            carried(t)
        }
    }

    #[inline(always)]
    fn loosen(self, a: Vector) -> Vector {
        a
    }
}

/// 64-bit words to limbs of 52 bits.
#[inline(always)]
fn unpack(w: [__m512i; 4]) -> Vector {
    // SAFETY: as in `all`.
    unsafe {
        let mut t = [
            w[0],
            _mm512_or_si512(_mm512_srli_epi64::<52>(w[0]), _mm512_slli_epi64::<12>(w[1])),
            _mm512_or_si512(_mm512_srli_epi64::<40>(w[1]), _mm512_slli_epi64::<24>(w[2])),
            _mm512_or_si512(_mm512_srli_epi64::<28>(w[2]), _mm512_slli_epi64::<36>(w[3])),
            _mm512_srli_epi64::<16>(w[3]),
        ];
        for t in &mut t[..LIMBS - 1] {
            *t = _mm512_and_si512(*t, all(MASK));
        }
        Vector(t)
    }
}

/// Limbs of 52 bits to 64-bit words.
#[inline(always)]
fn pack(t: Limbs52) -> [__m512i; 4] {
    // Limb i begins at bit 52 i: 0, 52 | 104 - 64 = 40 | 156 - 128 = 28 | 208 - 192 = 16.
    // SAFETY: as in `all`.
    unsafe {
        [
            _mm512_or_si512(t[0], _mm512_slli_epi64::<52>(t[1])),
            _mm512_or_si512(_mm512_srli_epi64::<12>(t[1]), _mm512_slli_epi64::<40>(t[2])),
            _mm512_or_si512(_mm512_srli_epi64::<24>(t[2]), _mm512_slli_epi64::<28>(t[3])),
            _mm512_or_si512(_mm512_srli_epi64::<36>(t[3]), _mm512_slli_epi64::<16>(t[4])),
        ]
    }
}
