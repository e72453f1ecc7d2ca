//! Many inverses for the price of one.

use crate::{Element, Job, LANES, Lanes, Limbs, Modulus, Wide, lanes::Radix};

/// From how many elements on lanes pay for going into them and for the products that their one inversion takes.
const IN_LANES_FROM: usize = 4 * LANES;

/// Replaces every element by its inverse, zero by zero: one inversion and three multiplications each (Montgomery's trick), those of
/// many elements in lanes.
pub fn invert_all<M: Modulus>(elements: &mut [Element<M>]) {
    if elements.len() >= IN_LANES_FROM && Wide::detect().run(Inversions(elements)) {
        return;
    }
    invert_in_turn(elements);
}

fn invert_in_turn<M: Modulus>(elements: &mut [Element<M>]) {
    let mut before = Vec::with_capacity(elements.len());
    let mut product = Element::ONE;
    for element in elements.iter() {
        before.push(product);
        if !element.is_zero() {
            product *= *element;
        }
    }
    let mut rest = product.inverse();
    for (element, before) in elements.iter_mut().zip(before).rev() {
        if !element.is_zero() {
            (*element, rest) = (rest * before, rest * *element);
        }
    }
}

/// The inverses of eight lanes in the stored form that `form` makes of an element, with one inversion; none if a lane is zero.
///
/// Each lane multiplies up with its neighbour, then with the other pair, then with the other four: eight products in lanes, beside the inversion.
#[inline(always)]
pub fn invert_lanes<M: Modulus, L: Lanes<M>>(
    lanes: L,
    value: L::Tight,
    form: impl Fn(Element<M>) -> Limbs,
) -> Option<L::Tight> {
    let mut others = exchanged(lanes, value, 1);
    let mut product = lanes.times(value, others);
    for distance in [2, 4] {
        let partner = exchanged(lanes, product, distance);
        [product, others] = lanes.times_two([product, others], [partner, partner]);
    }
    // Now every lane has the product of all.
    let total = lanes.leave(&lanes.store(product)[0]);
    if total.is_zero() {
        return None;
    }
    Some(lanes.times(others, lanes.splat(&form(total.inverse()))))
}

/// Each lane's value in the lane so far away from it: 1, 2 or 4.
#[inline(always)]
fn exchanged<M: Modulus, L: Lanes<M>>(lanes: L, value: L::Tight, distance: usize) -> L::Tight {
    let stored = lanes.store(value);
    let mut from = stored.each_ref();
    for (lane, from) in from.iter_mut().enumerate() {
        *from = &stored[lane ^ distance];
    }
    lanes.load(from)
}

/// [`invert_all`], or `false` and nothing done if an element is zero. For the forms see [`Divisions`].
struct Inversions<'a, M>(&'a mut [Element<M>]);

impl<M: Modulus> Job<M> for Inversions<'_, M> {
    type Output = bool;

    #[inline(always)]
    fn run<L: Lanes<M>>(self, lanes: L) -> bool {
        let elements = self.0;
        let mut product = lanes.splat(&lanes.enter(Element::ONE));
        let mut before = Vec::with_capacity(elements.len().div_ceil(LANES));
        for chunk in elements.chunks(LANES) {
            before.push(product);
            product = lanes.times(load(lanes, chunk, |element| *element), product);
        }
        // Elements were loaded 2^256 / 2^RADIX_BITS times too large for the lanes, and so will their inverses be.
        let correction = lanes.leave(Element::<M>::ONE.montgomery());
        let corrected = |total: Element<M>| (total * correction).to_montgomery();
        let Some(mut rest) = invert_lanes(lanes, product, corrected) else {
            return false;
        };
        for (chunk, before) in elements.chunks_mut(LANES).zip(before).rev() {
            let inverses = lanes.store_reduced(lanes.times(rest, before));
            rest = lanes.times(load(lanes, chunk, |element| *element), rest);
            for (to, stored) in chunk.iter_mut().zip(inverses) {
                *to = Element::from_montgomery(stored);
            }
        }
        true
    }
}

/// Numbers below 2^256 modulo the prime, in lanes: [`Element::reduced`] of each.
#[must_use]
pub fn reduce_all<M: Modulus>(numbers: &[Limbs]) -> Vec<Element<M>> {
    let residues = Wide::detect().run::<M, _>(Rescaled::<true>(numbers));
    residues.into_iter().map(Element::from_montgomery).collect()
}

/// Elements as numbers below the prime, in lanes: [`Element::to_limbs`] of each.
#[must_use]
pub fn to_limbs_all<M: Modulus>(elements: &[Element<M>]) -> Vec<Limbs> {
    let residues: Vec<_> = elements
        .iter()
        .map(|element| element.to_montgomery())
        .collect();
    Wide::detect().run::<M, _>(Rescaled::<false>(&residues))
}

/// Numbers times 2^256, or divided by it, modulo the prime.
struct Rescaled<'a, const TIMES: bool>(&'a [Limbs]);

impl<M: Modulus, const TIMES: bool> Job<M> for Rescaled<'_, TIMES> {
    type Output = Vec<Limbs>;

    #[inline(always)]
    fn run<L: Lanes<M>>(self, lanes: L) -> Vec<Limbs> {
        let power = lanes.splat(if TIMES {
            &Radix::<M, L>::TIMES_2_256
        } else {
            &Radix::<M, L>::BY_2_256
        });
        let mut products = Vec::with_capacity(self.0.len());
        for chunk in self.0.chunks(LANES) {
            let mut numbers = [[0; 4]; LANES];
            numbers[..chunk.len()].copy_from_slice(chunk);
            // As second factor a number need not be below the prime.
            let reduced = lanes.store_reduced(lanes.times(power, lanes.load(numbers.each_ref())));
            products.extend_from_slice(&reduced[..chunk.len()]);
        }
        products
    }
}

/// A numerator and a denominator.
pub type Fraction<M> = (Element<M>, Element<M>);

/// Numerator by denominator for each fraction, in lanes, with one inversion; zero where the denominator is.
#[must_use]
pub fn divide_all<M: Modulus>(fractions: &[Fraction<M>]) -> Vec<Element<M>> {
    let quotients = divide(fractions, Element::to_montgomery);
    quotients
        .into_iter()
        .map(Element::from_montgomery)
        .collect()
}

/// [`divide_all`] as numbers below the prime, least significant limb first.
#[must_use]
pub fn divide_all_to_limbs<M: Modulus>(fractions: &[Fraction<M>]) -> Vec<Limbs> {
    divide(fractions, Element::to_limbs)
}

/// The quotients in the form that `form` makes of an element: a multiple by a constant.
fn divide<M: Modulus>(fractions: &[Fraction<M>], form: fn(Element<M>) -> Limbs) -> Vec<Limbs> {
    if fractions.len() >= LANES
        && let Some(quotients) = Wide::detect().run(Divisions { fractions, form })
    {
        return quotients;
    }
    let mut inverses: Vec<_> = fractions.iter().map(|fraction| fraction.1).collect();
    invert_all(&mut inverses);
    let quotient = |(fraction, inverse): (&Fraction<M>, _)| form(fraction.0 * inverse);
    fractions.iter().zip(inverses).map(quotient).collect()
}

/// [`divide`], or none if a denominator is zero.
///
/// The elements' limbs are loaded as they are, with the radix 2^256, which may not be the lanes': to the lanes they are multiples by some constant, and it leaves
/// the quotients. The inverse of all denominators is loaded in the form asked for, so that its constant stays in every quotient.
struct Divisions<'a, M> {
    fractions: &'a [Fraction<M>],
    form: fn(Element<M>) -> Limbs,
}

impl<M: Modulus> Job<M> for Divisions<'_, M> {
    type Output = Option<Vec<Limbs>>;

    #[inline(always)]
    fn run<L: Lanes<M>>(self, lanes: L) -> Self::Output {
        let Self { fractions, form } = self;
        let mut product = lanes.splat(&lanes.enter(Element::ONE));
        let mut before = Vec::with_capacity(fractions.len().div_ceil(LANES));
        for chunk in fractions.chunks(LANES) {
            before.push(product);
            product = lanes.times(load(lanes, chunk, |f| f.1), product);
        }
        let mut rest = invert_lanes(lanes, product, form)?;
        let mut quotients = vec![[0; 4]; fractions.len()];
        let chunks = fractions.chunks(LANES).zip(quotients.chunks_mut(LANES));
        for ((chunk, quotients), before) in chunks.zip(before).rev() {
            let inverse = lanes.times(rest, before);
            rest = lanes.times(load(lanes, chunk, |f| f.1), rest);
            let quotient = lanes.store_reduced(lanes.times(load(lanes, chunk, |f| f.0), inverse));
            quotients.copy_from_slice(&quotient[..chunk.len()]);
        }
        Some(quotients)
    }
}

/// Up to eight elements, numerators or denominators of fractions, and ones.
#[inline(always)]
fn load<T, M: Modulus, L: Lanes<M>>(lanes: L, from: &[T], part: fn(&T) -> Element<M>) -> L::Tight {
    let mut limbs = [Element::<M>::ONE.to_montgomery(); LANES];
    for (to, from) in limbs.iter_mut().zip(from) {
        *to = part(from).to_montgomery();
    }
    lanes.load(limbs.each_ref())
}
