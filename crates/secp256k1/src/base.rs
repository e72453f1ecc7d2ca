//! The base field, p = 2^256 - 2^32 - 977, in lanes: `N` vectors next to each other.
//!
//! A number has five limbs of 52 bits. A product has ten columns of 2^52 each; the upper five are
//! multiplied by 2^260 modulo p, which has 37 bits, and added to the lower five. The bits above 2^256
//! are multiplied by 2^256 modulo p and added again. No step needs Montgomery's form.
//!
//! # Bounds
//!
//! A number's *weight* is its bound, in units of 2^256 (1 + 2^-40). A product has weight 1. The factors
//! of a product have weights below 16, and the products of both weights, summed over the products
//! that are reduced together, stay below 256: then the topmost column is below 2^52.

use crate::vector::{LANES, Vector};
use arbor_field::{Inversion, Limbs};

/// Limbs of a number.
const LIMBS: usize = 5;
const BITS: u32 = 52;
const MASK: u64 = (1 << BITS) - 1;
/// Bits of the topmost limb below 2^256.
const TOP_BITS: u32 = 48;
const TOP_MASK: u64 = (1 << TOP_BITS) - 1;
/// 2^256 modulo the prime.
const COMPLEMENT: u64 = (1 << 32) + 977;
/// 2^260 modulo the prime.
const FOLD: u64 = COMPLEMENT << 4;

/// The prime, least significant word first.
pub(crate) const PRIME: Limbs = [COMPLEMENT.wrapping_neg(), u64::MAX, u64::MAX, u64::MAX];
const PRIME_LIMBS: [u64; LIMBS] = split(&PRIME);

const INVERSION: Inversion = Inversion::new(&PRIME);

/// A factor: limbs below 2^52, the value below 2^260.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number<V, const N: usize>([[V; LIMBS]; N]);

/// Limbs that are not carried yet, and may be negative.
#[derive(Clone, Copy)]
pub(crate) struct Open<V, const N: usize>([[V; LIMBS]; N]);

/// A sum of products, by powers of 2^52.
#[derive(Clone, Copy)]
pub(crate) struct Columns<V, const N: usize>([[V; 2 * LIMBS]; N]);

const fn split(n: &Limbs) -> [u64; LIMBS] {
    [
        n[0] & MASK,
        (n[0] >> 52 | n[1] << 12) & MASK,
        (n[1] >> 40 | n[2] << 24) & MASK,
        (n[2] >> 28 | n[3] << 36) & MASK,
        n[3] >> 16,
    ]
}

impl<V: Vector, const N: usize> Number<V, N> {
    /// The same number below 2^256 in all lanes.
    #[inline(always)]
    pub(crate) fn splat(number: &Limbs) -> Self {
        let limbs = split(number);
        let mut t = [[V::splat(0); LIMBS]; N];
        for n in 0..N {
            for i in 0..LIMBS {
                t[n][i] = V::splat(limbs[i]);
            }
        }
        Self(t)
    }

    /// Numbers below 2^256, as words of 64 bits.
    #[inline(always)]
    pub(crate) fn from_words(words: [[V; 4]; N]) -> Self {
        let mask = V::splat(MASK);
        let mut t = [[V::splat(0); LIMBS]; N];
        for n in 0..N {
            let w = words[n];
            t[n] = [
                w[0].and(mask),
                w[0].right::<52>().or(w[1].left::<12>()).and(mask),
                w[1].right::<40>().or(w[2].left::<24>()).and(mask),
                w[2].right::<28>().or(w[3].left::<36>()).and(mask),
                w[3].right::<16>(),
            ];
        }
        Self(t)
    }

    /// Words of 64 bits, for values below 2^256.
    #[inline(always)]
    pub(crate) fn words(&self) -> [[V; 4]; N] {
        let mut words = [[V::splat(0); 4]; N];
        for n in 0..N {
            let t = self.0[n];
            words[n] = [
                t[0].or(t[1].left::<52>()),
                t[1].right::<12>().or(t[2].left::<40>()),
                t[2].right::<24>().or(t[3].left::<28>()),
                t[3].right::<36>().or(t[4].left::<16>()),
            ];
        }
        words
    }

    /// The product.
    #[inline(always)]
    pub(crate) fn times(&self, other: &Self) -> Self {
        self.begin(other).reduced().carried()
    }

    /// The square.
    #[inline(always)]
    pub(crate) fn square(&self) -> Self {
        self.begin_square().reduced().carried()
    }

    /// The square of the square and so on.
    #[inline(always)]
    pub(crate) fn square_times(&self, count: usize) -> Self {
        let mut power = *self;
        for _ in 0..count {
            power = power.square();
        }
        power
    }

    /// The product, not reduced.
    #[inline(always)]
    pub(crate) fn begin(&self, other: &Self) -> Columns<V, N> {
        Columns([[V::splat(0); 2 * LIMBS]; N]).plus(self, other)
    }

    /// The square, not reduced.
    #[inline(always)]
    pub(crate) fn begin_square(&self) -> Columns<V, N> {
        let mut columns = [[V::splat(0); 2 * LIMBS]; N];
        for j in 1..LIMBS {
            for i in 0..j {
                for n in 0..N {
                    let (c, a, b) = (&mut columns[n], self.0[n][i], self.0[n][j]);
                    c[i + j] = c[i + j].add_low(a, b);
                    c[i + j + 1] = c[i + j + 1].add_high(a, b);
                }
            }
        }
        for i in 0..LIMBS {
            for n in 0..N {
                let (c, a) = (&mut columns[n], self.0[n][i]);
                // The lowest and the topmost column have no product of different limbs.
                if i > 0 {
                    c[2 * i] = c[2 * i].add(c[2 * i]);
                }
                if i + 1 < LIMBS {
                    c[2 * i + 1] = c[2 * i + 1].add(c[2 * i + 1]);
                }
                c[2 * i] = c[2 * i].add_low(a, a);
                c[2 * i + 1] = c[2 * i + 1].add_high(a, a);
            }
        }
        Columns(columns)
    }

    /// The number as one to add to.
    #[inline(always)]
    pub(crate) fn open(&self) -> Open<V, N> {
        Open(self.0)
    }

    /// `multiple` primes less the number: not negative if the number's weight is below `multiple`.
    #[inline(always)]
    pub(crate) fn negated(&self, multiple: u64) -> Open<V, N> {
        let mut t = self.0;
        for n in 0..N {
            for i in 0..LIMBS {
                t[n][i] = V::splat(multiple * PRIME_LIMBS[i]).sub(t[n][i]);
            }
        }
        Open(t)
    }

    /// The residue below the prime.
    #[inline(always)]
    pub(crate) fn canonical(&self) -> Self {
        let mut t = self.0;
        let mut less = t;
        for n in 0..N {
            // At most 15 times 2^256, replaced by as many complements: below 2^256 and 37 bits.
            let top = t[n][LIMBS - 1].right::<TOP_BITS>();
            t[n][LIMBS - 1] = t[n][LIMBS - 1].and(V::splat(TOP_MASK));
            t[n][0] = t[n][0].add_low(top, V::splat(COMPLEMENT));
            t[n] = carried(t[n]);
            // Less the prime, plus 2^256.
            less[n] = t[n];
            less[n][0] = less[n][0].add(V::splat(COMPLEMENT));
            less[n] = carried(less[n]);
            let below = less[n][LIMBS - 1].right::<TOP_BITS>().zeros();
            less[n][LIMBS - 1] = less[n][LIMBS - 1].and(V::splat(TOP_MASK));
            for i in 0..LIMBS {
                t[n][i] = less[n][i].replaced(below, t[n][i]);
            }
        }
        Self(t)
    }

    /// Lanes whose bits are set take another number.
    #[inline(always)]
    pub(crate) fn replaced(&self, lanes: [u8; N], other: &Self) -> Self {
        let mut t = self.0;
        for n in 0..N {
            for i in 0..LIMBS {
                t[n][i] = t[n][i].replaced(lanes[n], other.0[n][i]);
            }
        }
        Self(t)
    }

    /// A bit for each lane with zero. The number is canonical.
    #[inline(always)]
    pub(crate) fn zeros(&self) -> [u8; N] {
        let mut lanes = [0; N];
        for n in 0..N {
            let t = self.0[n];
            lanes[n] = t[0].or(t[1]).or(t[2]).or(t[3]).or(t[4]).zeros();
        }
        lanes
    }

    /// A bit for each lane with an even number. The number is canonical.
    #[inline(always)]
    pub(crate) fn evens(&self) -> [u8; N] {
        let mut lanes = [0; N];
        for n in 0..N {
            lanes[n] = self.0[n][0].and(V::splat(1)).zeros();
        }
        lanes
    }

    /// The number to the (p + 1) / 4: the square root of a square.
    ///
    /// The exponent in binary is 223 ones, a zero, 22 ones, four zeros, two ones and two zeros.
    #[inline(always)]
    pub(crate) fn root(&self) -> Self {
        // Squarings of the last power, and which earlier one then is multiplied. Comments say how many ones
        // the exponent ends in; from 223 on, the whole exponent.
        const STEPS: [(usize, usize); 13] = [
            (1, 0),  // 2, at 1
            (1, 0),  // 3, at 2
            (3, 2),  // 6
            (3, 2),  // 9
            (2, 1),  // 11, at 5
            (11, 5), // 22, at 6
            (22, 6), // 44, at 7
            (44, 7), // 88, at 8
            (88, 8), // 176
            (44, 7), // 220
            (3, 2),  // 223
            (23, 6), // 223, a zero, 22
            (6, 1),  // and four zeros, two ones
        ];
        let mut powers = [*self; STEPS.len() + 1];
        for (at, (squarings, factor)) in STEPS.into_iter().enumerate() {
            powers[at + 1] = powers[at].square_times(squarings).times(&powers[factor]);
        }
        powers[STEPS.len()].square_times(2)
    }

    #[inline(always)]
    fn one(self, n: usize) -> Number<V, 1> {
        Number([self.0[n]])
    }

    /// The inverses of all lanes, none of which is zero.
    #[inline(always)]
    pub(crate) fn inverse(&self) -> Self {
        let mut before = [self.one(0); N];
        let mut product = self.one(0);
        for n in 1..N {
            before[n] = product;
            product = product.times(&self.one(n));
        }
        let mut rest = inverse_of_lanes(product);
        let mut inverses = self.0;
        for n in (1..N).rev() {
            inverses[n] = rest.times(&before[n]).0[0];
            rest = rest.times(&self.one(n));
        }
        inverses[0] = rest.0[0];
        Self(inverses)
    }
}

/// The inverses of eight lanes by one inversion: each lane multiplies with its neighbour, then with the
/// other pair, then with the other four.
#[inline(always)]
fn inverse_of_lanes<V: Vector>(value: Number<V, 1>) -> Number<V, 1> {
    let others = exchanged::<V, 1>(value);
    let product = value.times(&others);
    let partner = exchanged::<V, 2>(product);
    let (product, others) = (product.times(&partner), others.times(&partner));
    let partner = exchanged::<V, 4>(product);
    let (product, others) = (product.times(&partner), others.times(&partner));
    // Every lane has the product of all.
    let [words] = product.canonical().words();
    let mut total = [0; 4];
    for (total, word) in total.iter_mut().zip(words) {
        let mut lanes = [0; LANES];
        word.write(&mut lanes);
        *total = lanes[0];
    }
    others.times(&Number::splat(&INVERSION.invert(&total)))
}

#[inline(always)]
fn exchanged<V: Vector, const DISTANCE: usize>(value: Number<V, 1>) -> Number<V, 1> {
    let mut t = value.0;
    for limb in &mut t[0] {
        *limb = limb.exchanged::<DISTANCE>();
    }
    Number(t)
}

/// Replaces numbers by their inverses, with one inversion. No lane is zero.
#[inline(always)]
pub(crate) fn invert_all<V: Vector, const N: usize>(numbers: &mut [Number<V, N>]) {
    let Some(last) = numbers.len().checked_sub(1) else {
        return;
    };
    let mut products = Vec::with_capacity(numbers.len());
    let mut product = numbers[0];
    for number in &numbers[1..] {
        products.push(product);
        product = product.times(number);
    }
    let mut rest = product.inverse();
    for at in (1..=last).rev() {
        let number = numbers[at];
        numbers[at] = rest.times(&products[at - 1]);
        rest = rest.times(&number);
    }
    numbers[0] = rest;
}

impl<V: Vector, const N: usize> Columns<V, N> {
    /// Adds a product.
    #[inline(always)]
    pub(crate) fn plus(mut self, a: &Number<V, N>, b: &Number<V, N>) -> Self {
        for j in 0..LIMBS {
            for i in 0..LIMBS {
                for n in 0..N {
                    let (c, a, b) = (&mut self.0[n], a.0[n][i], b.0[n][j]);
                    c[i + j] = c[i + j].add_low(a, b);
                    c[i + j + 1] = c[i + j + 1].add_high(a, b);
                }
            }
        }
        self
    }

    /// Twice.
    #[inline(always)]
    pub(crate) fn doubled(mut self) -> Self {
        for n in 0..N {
            for column in &mut self.0[n] {
                *column = column.add(*column);
            }
        }
        self
    }

    /// The residue, with weight 1: below 2^256 and 2^216, limbs not carried.
    #[inline(always)]
    pub(crate) fn reduced(mut self) -> Open<V, N> {
        let fold = V::splat(FOLD);
        // Carries among the upper columns; a product looks at 52 bits of them.
        for i in LIMBS..2 * LIMBS - 1 {
            for c in &mut self.0 {
                c[i + 1] = c[i + 1].add(c[i].right::<BITS>());
            }
        }
        let mut above = [V::splat(0); N];
        for i in 0..LIMBS {
            for n in 0..N {
                let c = &mut self.0[n];
                c[i] = c[i].add_low(c[LIMBS + i], fold);
                if i + 1 < LIMBS {
                    c[i + 1] = c[i + 1].add_high(c[LIMBS + i], fold);
                } else {
                    above[n] = V::splat(0).add_high(c[LIMBS + i], fold);
                }
            }
        }
        let mut t = [[V::splat(0); LIMBS]; N];
        for n in 0..N {
            let c = &self.0[n];
            let top = c[4].right::<TOP_BITS>().add(above[n].left::<4>());
            t[n] = [
                c[0].add_low(top, V::splat(COMPLEMENT)),
                c[1].add_high(top, V::splat(COMPLEMENT)),
                c[2],
                c[3],
                c[4].and(V::splat(TOP_MASK)),
            ];
        }
        Open(t)
    }
}

/// Propagates carries, which may be negative.
#[inline(always)]
fn carried<V: Vector>(mut t: [V; LIMBS]) -> [V; LIMBS] {
    for i in 0..LIMBS - 1 {
        t[i + 1] = t[i + 1].add(t[i].right_signed::<BITS>());
        t[i] = t[i].and(V::splat(MASK));
    }
    t
}

impl<V: Vector, const N: usize> Open<V, N> {
    /// The number as a factor: it is not negative, and its weight is below 16.
    #[inline(always)]
    pub(crate) fn carried(mut self) -> Number<V, N> {
        for i in 0..LIMBS - 1 {
            for t in &mut self.0 {
                t[i + 1] = t[i + 1].add(t[i].right_signed::<BITS>());
                t[i] = t[i].and(V::splat(MASK));
            }
        }
        Number(self.0)
    }

    /// The sum.
    #[inline(always)]
    pub(crate) fn plus(mut self, other: &Self) -> Self {
        for n in 0..N {
            for i in 0..LIMBS {
                self.0[n][i] = self.0[n][i].add(other.0[n][i]);
            }
        }
        self
    }

    /// The difference.
    #[inline(always)]
    pub(crate) fn minus(mut self, other: &Self) -> Self {
        for n in 0..N {
            for i in 0..LIMBS {
                self.0[n][i] = self.0[n][i].sub(other.0[n][i]);
            }
        }
        self
    }

    /// Adds `multiple` primes.
    #[inline(always)]
    pub(crate) fn plus_primes(mut self, multiple: u64) -> Self {
        for n in 0..N {
            for i in 0..LIMBS {
                self.0[n][i] = self.0[n][i].add(V::splat(multiple * PRIME_LIMBS[i]));
            }
        }
        self
    }

    /// Twice.
    #[inline(always)]
    pub(crate) fn doubled(self) -> Self {
        self.plus(&self)
    }

    /// `multiple` primes less the number.
    #[inline(always)]
    pub(crate) fn negated(mut self, multiple: u64) -> Self {
        for n in 0..N {
            for i in 0..LIMBS {
                self.0[n][i] = V::splat(multiple * PRIME_LIMBS[i]).sub(self.0[n][i]);
            }
        }
        self
    }

    /// `multiple` primes less the number, in the lanes whose bits are set.
    #[inline(always)]
    pub(crate) fn negated_where(mut self, lanes: [u8; N], multiple: u64) -> Self {
        let negative = self.negated(multiple);
        for n in 0..N {
            for i in 0..LIMBS {
                self.0[n][i] = self.0[n][i].replaced(lanes[n], negative.0[n][i]);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::Model;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    type Eight = Number<Model, 1>;

    /// The value of each lane, whatever its limbs.
    fn values(number: &Eight) -> Vec<BigUint> {
        let mut limbs = [[0; LANES]; LIMBS];
        for (to, limb) in limbs.iter_mut().zip(number.0[0]) {
            limb.write(to);
        }
        let lane = |lane: usize| {
            let high_first = limbs.iter().rev();
            high_first.fold(BigUint::ZERO, |sum, limb| (sum << BITS) + limb[lane])
        };
        (0..LANES).map(lane).collect()
    }

    fn prime() -> BigUint {
        (BigUint::from(1u8) << 256) - COMPLEMENT
    }

    /// Limbs at and near their bounds, and others; the topmost below `top`.
    fn number(top: u64) -> impl Strategy<Value = Eight> {
        let limb = |bound: u64| {
            prop_oneof![
                Just(0),
                Just(1),
                Just(bound - 1),
                Just(bound - COMPLEMENT.min(bound)),
                0..bound
            ]
        };
        let lanes = move |bound| prop::array::uniform8(limb(bound));
        let below = 1 << BITS;
        (
            lanes(below),
            lanes(below),
            lanes(below),
            lanes(below),
            lanes(top),
        )
            .prop_map(|(t0, t1, t2, t3, t4)| {
                Number([[t0, t1, t2, t3, t4].map(|limb| Model::read(&limb))])
            })
    }

    /// Weight 15 in the topmost limb.
    const WIDE: u64 = 15 << TOP_BITS;
    /// Weight 1.
    const TIGHT: u64 = 1 << TOP_BITS;

    fn is_reduced(number: &Eight) -> bool {
        let bound = (BigUint::from(1u8) << 256) + (BigUint::from(1u8) << 216);
        let mut limbs = [0; LANES];
        number.0[0].iter().take(4).all(|limb| {
            limb.write(&mut limbs);
            limbs.iter().all(|limb| *limb <= MASK)
        }) && values(number).iter().all(|value| *value < bound)
    }

    proptest! {
        /// Products of the widest factors are right and have weight 1.
        #[test]
        fn products_are_those_of_big_integers(a in number(WIDE), b in number(WIDE)) {
            let p = prime();
            let (product, square) = (a.times(&b), a.square());
            prop_assert!(is_reduced(&product) && is_reduced(&square));
            let all = values(&a).into_iter().zip(values(&b));
            for ((a, b), (ab, aa)) in all.zip(values(&product).iter().zip(values(&square))) {
                prop_assert_eq!(ab % &p, &a * b % &p);
                prop_assert_eq!(aa % &p, &a * &a % &p);
            }
        }

        /// As many products as the group's formulas reduce together, at the sum of their weights.
        #[test]
        fn sums_of_products_are_reduced_once(
            a in number(WIDE), b in number(4 << TOP_BITS), c in number(WIDE), d in number(4 << TOP_BITS),
        ) {
            let p = prime();
            let sum = a.begin(&b).plus(&c, &d).reduced().carried();
            let squares = b.begin_square().doubled().plus(&c, &d).reduced().carried();
            prop_assert!(is_reduced(&sum) && is_reduced(&squares));
            let lanes = values(&a).into_iter().zip(values(&b)).zip(values(&c)).zip(values(&d));
            for ((((a, b), c), d), (sum, squares)) in
                lanes.zip(values(&sum).iter().zip(values(&squares)))
            {
                prop_assert_eq!(sum % &p, (a * &b + &c * &d) % &p);
                prop_assert_eq!(squares % &p, (&b * &b * 2u8 + c * d) % &p);
            }
        }

        #[test]
        fn differences_and_canonical_forms(a in number(TIGHT), b in number(TIGHT), wide in number(WIDE)) {
            let p = prime();
            let difference = a.open().minus(&b.open()).plus_primes(2).carried();
            let canonical = wide.canonical();
            let words = canonical.words();
            let again = Eight::from_words(words);
            for (lane, value) in values(&canonical).into_iter().enumerate() {
                prop_assert_eq!(&value, &(&values(&wide)[lane] % &p));
                prop_assert_eq!(&values(&again)[lane], &value);
                prop_assert_eq!(
                    &values(&difference)[lane] % &p,
                    (&values(&a)[lane] + &p * 2u8 - &values(&b)[lane]) % &p
                );
            }
        }

        #[test]
        fn inverses_and_roots(a in number(WIDE), b in number(WIDE)) {
            let p = prime();
            let one = Eight::splat(&[1, 0, 0, 0]);
            let nonzero = |x: Eight| x.replaced(x.canonical().zeros(), &one);
            let numbers = [nonzero(a), nonzero(b), nonzero(a.times(&b))];
            let mut inverses = numbers;
            invert_all(&mut inverses);
            for (number, inverse) in numbers.iter().zip(&inverses) {
                for product in values(&number.times(inverse)) {
                    prop_assert_eq!(product % &p, BigUint::from(1u8));
                }
            }
            let exponent = (&p + 1u8) / 4u8;
            for (root, a) in values(&a.root()).iter().zip(values(&a)) {
                prop_assert_eq!(root % &p, a.modpow(&exponent, &p));
            }
        }
    }

    /// p, p - 1, p + 1, 2^256 and 15 primes: where `canonical` decides.
    #[test]
    fn the_edges_of_the_prime() {
        let split_big = |n: &BigUint| {
            let limb = |i: usize| {
                ((n >> (52 * i)) & BigUint::from(MASK))
                    .try_into()
                    .unwrap_or(0)
            };
            Number([[0, 1, 2, 3, 4].map(|i| Model::splat(limb(i)))])
        };
        let p = prime();
        for multiple in 0u8..15 {
            for (plus, minus) in [
                (0u64, 0u64),
                (1, 0),
                (0, 1),
                (COMPLEMENT, 0),
                (COMPLEMENT - 1, 0),
            ] {
                let n = &p * multiple + plus;
                if n < BigUint::from(minus) {
                    continue;
                }
                let n = n - minus;
                let number: Eight = split_big(&n);
                assert_eq!(values(&number.canonical())[3], &n % &p, "{n}");
            }
        }
    }
}
