//! Many inverses for the price of one.

use crate::{Element, Job, LANES, Lanes, Limbs, Modulus, Wide, limbs};

/// Replaces every element by its inverse, zero by zero: one inversion and three multiplications each (Montgomery's trick).
pub fn invert_all<M: Modulus>(elements: &mut [Element<M>]) {
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
        let mut totals = lanes.store(product).map(|total| lanes.leave(&total));
        if totals.iter().any(Element::is_zero) {
            return None;
        }
        invert_all(&mut totals);
        let mut rest = lanes.load(totals.map(form).each_ref());
        let mut quotients = vec![[0; 4]; fractions.len()];
        let chunks = fractions.chunks(LANES).zip(quotients.chunks_mut(LANES));
        for ((chunk, quotients), before) in chunks.zip(before).rev() {
            let inverse = lanes.times(rest, before);
            rest = lanes.times(load(lanes, chunk, |f| f.1), rest);
            let quotient = lanes.store(lanes.times(load(lanes, chunk, |f| f.0), inverse));
            for (to, stored) in quotients.iter_mut().zip(quotient) {
                *to = limbs::reduce_once(&stored, &M::MODULUS);
            }
        }
        Some(quotients)
    }
}

/// Numerators or denominators of up to eight fractions, and ones.
#[inline(always)]
fn load<M: Modulus, L: Lanes<M>>(
    lanes: L,
    fractions: &[Fraction<M>],
    part: fn(&Fraction<M>) -> Element<M>,
) -> L::Tight {
    let mut limbs = [Element::<M>::ONE.to_montgomery(); LANES];
    for (to, fraction) in limbs.iter_mut().zip(fractions) {
        *to = part(fraction).to_montgomery();
    }
    lanes.load(limbs.each_ref())
}
