//! Eight lanes of five 52-bit limbs, in AVX-512 with IFMA.
//!
//! `vpmadd52luq` and `vpmadd52huq` add the low or the high 52 bits of a product of two 52-bit limbs to a 64-bit lane. The instructions look at 52 bits of each
//! factor only, hence limbs must be normalised before a multiplication, which carries its loose factor. The radix is 2^260.
//!
//! A product's ten columns are summed first and reduced then: the three lowest at once, each by a power of 1 / 2^52, the next two one after the other. The end of a product waits for its own
//! results most of the time, so it is made beside the beginning of the next (`turn`), or two products side by side (docs/math/field.md).
//!
//! Without closures around intrinsics, as in the AVX2 lanes.

use super::arch::{
    __m256i, __m512i, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_add_epi64, _mm512_and_si512,
    _mm512_andnot_si512, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_extracti64x4_epi64,
    _mm512_inserti64x4, _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64,
    _mm512_mask_sub_epi64, _mm512_or_si512, _mm512_permutex2var_epi64, _mm512_permutexvar_epi64,
    _mm512_set_epi64, _mm512_set1_epi64, _mm512_shrdi_epi64, _mm512_shuffle_i64x2,
    _mm512_slli_epi64, _mm512_srai_epi64, _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_sub_epi64,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64, pinned_here,
};
use crate::{
    Limbs, Modulus,
    lanes::{LANES, Lanes},
};
use std::marker::PhantomData;

const LIMBS: usize = 5;
const BITS: u32 = 52;
const MASK: u64 = (1 << BITS) - 1;
/// Columns of a product that are reduced without waiting for each other.
const FOLDED: usize = 3;

/// Normalised limbs of a number that is at most two primes.
#[derive(Clone, Copy)]
pub(crate) struct Tight(Limbs52);

/// Limbs of less than 2^61 of a number that is at most two primes.
#[derive(Clone, Copy)]
pub(crate) struct Product(Limbs52);

/// Limbs of less than 2^61 of either sign, of a number below eight primes that is not negative.
#[derive(Clone, Copy)]
pub(crate) struct Loose(Limbs52);

#[derive(Clone, Copy)]
pub(crate) struct Ifma<M> {
    field: PhantomData<M>,
}

impl<M> Ifma<M> {
    /// # Safety
    ///
    /// The processor has AVX-512 F, VBMI2 and IFMA.
    pub(crate) unsafe fn new() -> Self {
        Self { field: PhantomData }
    }
}

struct Constants<M>(PhantomData<M>);

impl<M: Modulus> Constants<M> {
    const PRIME: [u64; LIMBS] = split(&M::MODULUS);
    const TWO: [u64; LIMBS] = times(2, Self::PRIME);
    const FOUR: [u64; LIMBS] = times(4, Self::PRIME);
    const SIX: [u64; LIMBS] = times(6, Self::PRIME);
    const NEGATIVE_INVERSE: u64 = M::NEGATIVE_INVERSE & MASK;
    /// 1 / 2^52, its square and its cube, modulo the prime.
    const INVERSES: [[u64; LIMBS]; FOLDED] = inverses(Self::PRIME, Self::NEGATIVE_INVERSE);
    /// As in the AVX2 lanes: bits of the topmost limb from here up are the quotient to reduce by.
    const QUOTIENT_SHIFT: u32 = M::BITS - 4 * BITS;
    /// Each limb of 0 to 7 times the prime.
    const MULTIPLES: &'static [[u64; LANES]; LIMBS] = &multiples(Self::PRIME);
}

const fn multiples(prime: [u64; LIMBS]) -> [[u64; LANES]; LIMBS] {
    let mut limbs = [[0; LANES]; LIMBS];
    let mut factor = 0;
    while factor < LANES {
        let multiple = times(factor as u64, prime);
        let mut i = 0;
        while i < LIMBS {
            limbs[i][factor] = multiple[i];
            i += 1;
        }
        factor += 1;
    }
    limbs
}

/// Powers of 1 / 2^52, below the prime: of a number the multiple of the prime is added that makes it divisible.
const fn inverses(prime: [u64; LIMBS], negative_inverse: u64) -> [[u64; LIMBS]; FOLDED] {
    let mut powers = [[0; LIMBS]; FOLDED];
    let mut power = [1, 0, 0, 0, 0];
    let mut i = 0;
    while i < FOLDED {
        let q = (power[0] as u128 * negative_inverse as u128) as u64 & MASK;
        let mut carry = 0;
        let mut j = 0;
        while j < LIMBS {
            let sum = power[j] as u128 + q as u128 * prime[j] as u128 + carry;
            if j > 0 {
                power[j - 1] = sum as u64 & MASK;
            }
            carry = sum >> BITS;
            j += 1;
        }
        power[LIMBS - 1] = carry as u64;
        powers[i] = power;
        i += 1;
    }
    powers
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

/// Where this stands, the vectors are computed, and what depends on them comes later: the compiler cannot move one over another.
#[inline(always)]
fn pin<const N: usize>(vectors: &mut [__m512i; N]) {
    for x in vectors {
        *x = pinned(*x);
    }
}

#[inline(always)]
fn pinned(x: __m512i) -> __m512i {
    // SAFETY: as in `all`.
    unsafe { pinned_here(x) }
}

/// The same word in all lanes.
#[inline(always)]
fn all(word: u64) -> __m512i {
    // SAFETY: reached only through an `Ifma`, whose existence proves the instructions. So in all of this file.
    unsafe { _mm512_set1_epi64(word.cast_signed()) }
}

/// Propagates carries, which may be negative.
#[inline(always)]
fn carried(mut t: Limbs52) -> Tight {
    // SAFETY: as in `all`.
    unsafe {
        let mask = all(MASK);
        for i in 0..LIMBS - 1 {
            let carry = _mm512_srai_epi64::<BITS>(t[i]);
            t[i] = _mm512_and_si512(t[i], mask);
            t[i + 1] = _mm512_add_epi64(t[i + 1], carry);
        }
        Tight(t)
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

/// Two residues, one behind the other.
#[inline(always)]
fn read(low: &Limbs, high: &Limbs) -> __m512i {
    // SAFETY: each array has the 32 bytes that are read; instructions as in `all`.
    unsafe {
        let low = _mm256_loadu_si256(low.as_ptr().cast());
        let high = _mm256_loadu_si256(high.as_ptr().cast());
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

#[inline(always)]
fn write(row: __m256i, to: &mut Limbs) {
    // SAFETY: the array has the 32 bytes that are written; instructions as in `all`.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), row) }
}

impl<M: Modulus> Lanes<M> for Ifma<M> {
    type Tight = Tight;
    type Loose = Loose;
    type Sum = Columns;
    type Begun = Begun;
    type Product = Product;
    const RADIX_BITS: u32 = LIMBS as u32 * BITS;
    const IN_TURN: bool = true;

    #[inline(always)]
    fn load(self, from: [&Limbs; LANES]) -> Tight {
        // Rows to columns: word i of all residues. Pairs are chosen so that lanes come out in order.
        let r02 = read(from[0], from[2]);
        let r13 = read(from[1], from[3]);
        let r46 = read(from[4], from[6]);
        let r57 = read(from[5], from[7]);
        // SAFETY: as in `all`.
        unsafe {
            let even = [
                _mm512_unpacklo_epi64(r02, r13),
                _mm512_unpacklo_epi64(r46, r57),
            ];
            let odd = [
                _mm512_unpackhi_epi64(r02, r13),
                _mm512_unpackhi_epi64(r46, r57),
            ];
            unpack([
                _mm512_shuffle_i64x2::<0b10_00_10_00>(even[0], even[1]),
                _mm512_shuffle_i64x2::<0b10_00_10_00>(odd[0], odd[1]),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(even[0], even[1]),
                _mm512_shuffle_i64x2::<0b11_01_11_01>(odd[0], odd[1]),
            ])
        }
    }

    #[inline(always)]
    fn store(self, value: Tight) -> [Limbs; LANES] {
        let [w0, w1, w2, w3] = pack(value.0);
        let mut to = [[0; 4]; LANES];
        // SAFETY: as in `all`.
        unsafe {
            let first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
            let second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
            let even = [_mm512_unpacklo_epi64(w0, w1), _mm512_unpacklo_epi64(w2, w3)];
            let odd = [_mm512_unpackhi_epi64(w0, w1), _mm512_unpackhi_epi64(w2, w3)];
            let r02 = _mm512_permutex2var_epi64(even[0], first, even[1]);
            let r13 = _mm512_permutex2var_epi64(odd[0], first, odd[1]);
            let r46 = _mm512_permutex2var_epi64(even[0], second, even[1]);
            let r57 = _mm512_permutex2var_epi64(odd[0], second, odd[1]);
            write(_mm512_castsi512_si256(r02), &mut to[0]);
            write(_mm512_castsi512_si256(r13), &mut to[1]);
            write(_mm512_extracti64x4_epi64::<1>(r02), &mut to[2]);
            write(_mm512_extracti64x4_epi64::<1>(r13), &mut to[3]);
            write(_mm512_castsi512_si256(r46), &mut to[4]);
            write(_mm512_castsi512_si256(r57), &mut to[5]);
            write(_mm512_extracti64x4_epi64::<1>(r46), &mut to[6]);
            write(_mm512_extracti64x4_epi64::<1>(r57), &mut to[7]);
        }
        to
    }

    #[inline(always)]
    fn store_reduced(self, value: Tight) -> [Limbs; LANES] {
        let less = carried(minus(value.0, &all_limbs(&Constants::<M>::PRIME))).0;
        let mut t = value.0;
        // SAFETY: as in `all`.
        unsafe {
            let below = _mm512_srai_epi64::<63>(less[LIMBS - 1]);
            for i in 0..LIMBS {
                let kept = _mm512_and_si512(below, t[i]);
                t[i] = _mm512_or_si512(kept, _mm512_andnot_si512(below, less[i]));
            }
        }
        <Self as Lanes<M>>::store(self, Tight(t))
    }

    #[inline(always)]
    fn splat(self, value: &Limbs) -> Tight {
        unpack([all(value[0]), all(value[1]), all(value[2]), all(value[3])])
    }

    #[inline(always)]
    fn add(self, a: Tight, b: Tight) -> Loose {
        Loose(plus(a.0, &b.0))
    }

    #[inline(always)]
    fn sub(self, a: Tight, b: Tight) -> Loose {
        let four = all_limbs(&Constants::<M>::FOUR);
        Loose(minus(plus(a.0, &four), &b.0))
    }

    #[inline(always)]
    fn sub_two(self, a: Tight, b: Tight, c: Tight) -> Loose {
        let six = all_limbs(&Constants::<M>::SIX);
        Loose(minus(minus(plus(a.0, &six), &b.0), &c.0))
    }

    #[inline(always)]
    fn negate_where(self, a: Tight, lanes: u8) -> Tight {
        let mut t = a.0;
        for (t, two) in t.iter_mut().zip(Constants::<M>::TWO) {
            // SAFETY: as in `all`.
            *t = unsafe { _mm512_mask_sub_epi64(*t, lanes, all(two), *t) };
        }
        carried(t)
    }

    #[inline(always)]
    fn mul(self, a: Loose, b: Tight) -> Tight {
        self.times(carried(a.0), b)
    }

    #[inline(always)]
    fn times(self, a: Tight, b: Tight) -> Tight {
        let [product] = reduced::<M, 1>(products(nothing(), [a], [b]));
        carried(product)
    }

    #[inline(always)]
    fn square(self, a: Tight) -> Tight {
        let [square] = reduced::<M, 1>(squares([a]));
        carried(square)
    }

    #[inline(always)]
    fn times_two(self, a: [Tight; 2], b: [Tight; 2]) -> [Tight; 2] {
        let [first, second] = reduced::<M, 2>(products(nothing(), a, b));
        [carried(first), carried(second)]
    }

    #[inline(always)]
    fn square_two(self, a: [Tight; 2]) -> [Tight; 2] {
        let [first, second] = reduced::<M, 2>(squares(a));
        [carried(first), carried(second)]
    }

    #[inline(always)]
    fn mul_two(self, a: [Loose; 2], b: [Tight; 2]) -> [Tight; 2] {
        <Self as Lanes<M>>::times_two(self, [carried(a[0].0), carried(a[1].0)], b)
    }

    #[inline(always)]
    fn nothing(self) -> Columns {
        let [none] = nothing();
        none
    }

    #[inline(always)]
    fn add_product(self, sum: Columns, a: Tight, b: Tight) -> Columns {
        let [sum] = products([sum], [a], [b]);
        sum
    }

    #[inline(always)]
    fn total(self, sum: Columns) -> Tight {
        // 32 products of numbers below 2 p are below 128 p^2: after the reduction 128 p / 2^260 p and one more, less than 5 p.
        let [total] = reduced::<M, 1>([sum]);
        <Self as Lanes<M>>::tighten(self, Loose(total))
    }

    #[inline(always)]
    fn begin(self, a: Loose, b: Tight) -> Begun {
        let (_, begun) = turn::<M>([all(0); REST], a, b);
        begun
    }

    #[inline(always)]
    fn turn(self, begun: Begun, a: Loose, b: Tight) -> (Product, Begun) {
        turn::<M>(begun, a, b)
    }

    #[inline(always)]
    fn turn_square(self, begun: Begun, a: Tight) -> (Product, Begun) {
        turn_square::<M>(begun, a)
    }

    #[inline(always)]
    fn settle(self, product: Product) -> Tight {
        carried(product.0)
    }

    #[inline(always)]
    fn less(self, product: Product, b: Tight) -> Tight {
        let difference = <Self as Lanes<M>>::sub(self, Tight(product.0), b);
        <Self as Lanes<M>>::tighten(self, difference)
    }

    #[inline(always)]
    fn less_two(self, product: Product, b: Tight, c: Tight) -> Tight {
        let difference = <Self as Lanes<M>>::sub_two(self, Tight(product.0), b, c);
        <Self as Lanes<M>>::tighten(self, difference)
    }

    #[inline(always)]
    fn tighten(self, a: Loose) -> Tight {
        let mut t = a.0;
        // SAFETY: the rows have the 64 bytes that are read; instructions as in `all`.
        unsafe {
            // Without carries the topmost limb may be a few units off: where that makes the quotient one less or more than it should be, what is left
            // is some 2^217 above 2^255, or at least 2^255 - p - 2^217.
            let quotient =
                _mm512_srlv_epi64(t[LIMBS - 1], all(Constants::<M>::QUOTIENT_SHIFT.into()));
            for (t, multiples) in t.iter_mut().zip(Constants::<M>::MULTIPLES) {
                let multiples = _mm512_loadu_si512(multiples.as_ptr().cast());
                *t = _mm512_sub_epi64(*t, _mm512_permutexvar_epi64(quotient, multiples));
            }
        }
        carried(t)
    }

    #[inline(always)]
    fn loosen(self, a: Tight) -> Loose {
        Loose(a.0)
    }
}

/// Sums of products, by powers of 2^52.
pub(crate) type Columns = [__m512i; 2 * LIMBS];

/// No products.
#[inline(always)]
fn nothing<const N: usize>() -> [Columns; N] {
    [[all(0); 2 * LIMBS]; N]
}

/// Adds products to columns.
#[inline(always)]
fn products<const N: usize>(
    mut columns: [Columns; N],
    a: [Tight; N],
    b: [Tight; N],
) -> [Columns; N] {
    for j in 0..LIMBS {
        for i in 0..LIMBS {
            for n in 0..N {
                let (c, a, b) = (&mut columns[n], a[n].0[i], b[n].0[j]);
                // SAFETY: as in `all`.
                unsafe {
                    c[i + j] = _mm512_madd52lo_epu64(c[i + j], a, b);
                    c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], a, b);
                }
            }
        }
    }
    columns
}

/// The columns of squares: products of different limbs, doubled, and those of equal ones.
#[inline(always)]
fn squares<const N: usize>(a: [Tight; N]) -> [Columns; N] {
    let mut columns = nothing();
    for j in 1..LIMBS {
        for n in 0..N {
            cross(&mut columns[n], &a[n].0, j);
        }
    }
    for n in 0..N {
        diagonal(&mut columns[n], &a[n].0);
    }
    columns
}

/// Products of limb j and those below it.
#[inline(always)]
fn cross(c: &mut Columns, a: &Limbs52, j: usize) {
    for i in 0..j {
        // SAFETY: as in `all`.
        unsafe {
            c[i + j] = _mm512_madd52lo_epu64(c[i + j], a[i], a[j]);
            c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], a[i], a[j]);
        }
    }
}

/// Doubles what is in the columns and adds the limbs' squares.
#[inline(always)]
fn diagonal(c: &mut Columns, a: &Limbs52) {
    for i in 0..LIMBS {
        // SAFETY: as in `all`.
        unsafe {
            // The lowest and the topmost column have no other product.
            if i > 0 {
                c[2 * i] = _mm512_add_epi64(c[2 * i], c[2 * i]);
            }
            if i + 1 < LIMBS {
                c[2 * i + 1] = _mm512_add_epi64(c[2 * i + 1], c[2 * i + 1]);
            }
            c[2 * i] = _mm512_madd52lo_epu64(c[2 * i], a[i], a[i]);
            c[2 * i + 1] = _mm512_madd52hi_epu64(c[2 * i + 1], a[i], a[i]);
        }
    }
}

/// Montgomery's reduction: columns divided by 2^260. Of one product what is left is below two primes.
#[inline(always)]
fn reduced<M: Modulus, const N: usize>(mut columns: [Columns; N]) -> [Limbs52; N] {
    for i in 0..FOLDED {
        for c in &mut columns {
            fold::<M>(c, i);
        }
    }
    let mut results = [[all(0); LIMBS]; N];
    let mut begun = [[all(0); REST]; N];
    for (begun, c) in begun.iter_mut().zip(&columns) {
        *begun = rest(c);
    }
    for i in 0..LIMBS - FOLDED {
        for c in &mut begun {
            let q = quotient::<M>(c, i);
            clear::<M>(c, i, q);
        }
    }
    for (result, c) in results.iter_mut().zip(&begun) {
        *result = upper(c);
    }
    results
}

/// Takes one of the lowest three columns to the fourth and those above: its low 52 bits times the power of 1/2^52 modulo the prime that does so. None of the three
/// waits for another's product, and together they add less than 2^-50 primes to the result.
#[inline(always)]
fn fold<M: Modulus>(c: &mut Columns, i: usize) {
    let power = &Constants::<M>::INVERSES[FOLDED - 1 - i];
    // SAFETY: as in `all`.
    unsafe {
        let limb = c[i];
        c[i + 1] = _mm512_add_epi64(c[i + 1], _mm512_srli_epi64::<BITS>(limb));
        for j in 0..LIMBS {
            c[FOLDED + j] = _mm512_madd52lo_epu64(c[FOLDED + j], limb, all(power[j]));
        }
        for j in 0..LIMBS {
            c[FOLDED + j + 1] = _mm512_madd52hi_epu64(c[FOLDED + j + 1], limb, all(power[j]));
        }
    }
}

/// The columns that are left when three are folded.
type Begun = [__m512i; REST];
const REST: usize = 2 * LIMBS - FOLDED;

#[inline(always)]
fn rest(c: &Columns) -> Begun {
    [c[3], c[4], c[5], c[6], c[7], c[8], c[9]]
}

#[inline(always)]
fn upper(c: &Begun) -> Limbs52 {
    [c[2], c[3], c[4], c[5], c[6]]
}

/// What times the prime clears this column; its carry goes to the next.
#[inline(always)]
fn quotient<M: Modulus>(c: &mut Begun, i: usize) -> __m512i {
    // SAFETY: as in `all`.
    unsafe {
        // With the low half of q p the lowest limb becomes the next multiple of 2^52.
        let carry = _mm512_srli_epi64::<BITS>(_mm512_add_epi64(c[i], all(MASK)));
        c[i + 1] = _mm512_add_epi64(c[i + 1], carry);
        negative_quotient::<M>(c[i])
    }
}

/// Adds `q` primes, without the low half of the lowest product.
#[inline(always)]
fn clear<M: Modulus>(c: &mut Begun, i: usize, q: __m512i) {
    let prime = all_limbs(&Constants::<M>::PRIME);
    // SAFETY: as in `all`.
    unsafe {
        c[i + 1] = _mm512_madd52hi_epu64(c[i + 1], q, prime[0]);
        for j in 1..LIMBS {
            c[i + j] = _mm512_madd52lo_epu64(c[i + j], q, prime[j]);
        }
        for j in 1..LIMBS {
            c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], q, prime[j]);
        }
    }
}

/// Ends one product and begins another, a few instructions of the one after a few of the other: the end of a product waits for its own results all the time, and the
/// processor, which looks some hundred vector instructions ahead, does not see enough of what follows to fill that time. The compiler would undo the order, hence the pins.
#[inline(always)]
fn turn<M: Modulus>(mut begun: Begun, a: Loose, b: Tight) -> (Product, Begun) {
    let mut a = a.0;
    let [mut c] = nothing();
    row(&mut c, &mut a, &b, 0);
    let q = pinned(quotient::<M>(&mut begun, 0));
    row(&mut c, &mut a, &b, 1);
    clear::<M>(&mut begun, 0, q);
    pin(&mut begun);
    row(&mut c, &mut a, &b, 2);
    row(&mut c, &mut a, &b, 3);
    let q = pinned(quotient::<M>(&mut begun, 1));
    row(&mut c, &mut a, &b, 4);
    folded_beside::<M>(begun, c, q)
}

/// [`turn`] for a square.
#[inline(always)]
fn turn_square<M: Modulus>(mut begun: Begun, a: Tight) -> (Product, Begun) {
    let [mut c] = nothing();
    cross(&mut c, &a.0, 1);
    pin(&mut c);
    cross(&mut c, &a.0, 2);
    pin(&mut c);
    let q = pinned(quotient::<M>(&mut begun, 0));
    cross(&mut c, &a.0, 3);
    pin(&mut c);
    clear::<M>(&mut begun, 0, q);
    pin(&mut begun);
    cross(&mut c, &a.0, 4);
    pin(&mut c);
    let q = pinned(quotient::<M>(&mut begun, 1));
    diagonal(&mut c, &a.0);
    pin(&mut c);
    folded_beside::<M>(begun, c, q)
}

/// The last part of a turn: the three lowest columns of the product that is begun are folded beside the last column of the other that is cleared.
#[inline(always)]
fn folded_beside<M: Modulus>(mut begun: Begun, mut c: Columns, q: __m512i) -> (Product, Begun) {
    fold::<M>(&mut c, 0);
    pin(&mut c);
    clear::<M>(&mut begun, 1, q);
    pin(&mut begun);
    fold::<M>(&mut c, 1);
    pin(&mut c);
    fold::<M>(&mut c, 2);
    pin(&mut c);
    (Product(upper(&begun)), rest(&c))
}

/// Adds the products with one limb of a to the columns; carries go to a's next limb.
#[inline(always)]
fn row(c: &mut Columns, a: &mut Limbs52, b: &Tight, i: usize) {
    // SAFETY: as in `all`.
    unsafe {
        for j in 0..LIMBS {
            c[i + j] = _mm512_madd52lo_epu64(c[i + j], a[i], b.0[j]);
        }
        for j in 0..LIMBS {
            c[i + j + 1] = _mm512_madd52hi_epu64(c[i + j + 1], a[i], b.0[j]);
        }
        if i + 1 < LIMBS {
            a[i + 1] = _mm512_add_epi64(a[i + 1], _mm512_srai_epi64::<BITS>(a[i]));
        }
    }
    pin(c);
}

/// What times the prime has the negative of the limb as its lowest 52 bits; other bits are of no meaning.
#[inline(always)]
fn negative_quotient<M: Modulus>(limb: __m512i) -> __m512i {
    // SAFETY: as in `all`.
    unsafe {
        if Constants::<M>::PRIME[0] == MASK - (1 << 32) + 2 {
            // The base field's prime is 1 - 2^32 modulo 2^52, whose inverse is 1 + 2^32.
            let inverse = _mm512_add_epi64(limb, _mm512_slli_epi64::<32>(limb));
            _mm512_sub_epi64(all(0), inverse)
        } else {
            _mm512_madd52lo_epu64(all(0), limb, all(Constants::<M>::NEGATIVE_INVERSE))
        }
    }
}

/// 64-bit words to limbs of 52 bits.
#[inline(always)]
fn unpack(w: [__m512i; 4]) -> Tight {
    // SAFETY: as in `all`.
    unsafe {
        let mut t = [
            w[0],
            _mm512_shrdi_epi64::<52>(w[0], w[1]),
            _mm512_shrdi_epi64::<40>(w[1], w[2]),
            _mm512_shrdi_epi64::<28>(w[2], w[3]),
            _mm512_srli_epi64::<16>(w[3]),
        ];
        for t in &mut t[..LIMBS - 1] {
            *t = _mm512_and_si512(*t, all(MASK));
        }
        Tight(t)
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
