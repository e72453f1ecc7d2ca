//! Square roots in the base field, whose multiplicative group has 2^32 as a factor.
//!
//! Write p - 1 = 2^32 m. For x, let v = x^m, a 2^32-th root of unity: v = z^k for the fixed z of that order. Then x^((m+1)/2) z^(-k/2) squared is
//! x, if k is even; if k is odd, x is no square. So a root is one power, x^((m-1)/2), and a discrete logarithm k in a group of order 2^32,
//! which is found eight bits at a time (Pohlig and Hellman; Sarkar, "Computing square roots faster than the Tonelli-Shanks/Bernstein
//! algorithm", eprint 2020/1407): the lowest eight bits of k from v^(2^24), which has order 256 and is looked up; they are divided away, and so on.

use crate::{Base, Element, Job, LANES, Lanes, Limbs, Modulus, Wide};
use std::sync::LazyLock;

type Fp = Element<Base>;

/// m = (p - 1) / 2^32.
const ODD: Limbs = {
    let p = Base::MODULUS;
    [
        p[0] >> 32 | p[1] << 32,
        p[1] >> 32 | p[2] << 32,
        p[2] >> 32 | p[3] << 32,
        p[3] >> 32,
    ]
};

/// (m - 1) / 2, below 2^223.
pub(crate) const EXPONENT: Limbs = crate::limbs::halve(ODD);

/// 7 generates the multiplicative group, as for every implementation of BLS12-381.
const GENERATOR: Limbs = [7, 0, 0, 0];

const WINDOWS: usize = 4;

/// Powers of z, the generator's m-th power.
struct Roots {
    /// `inverse[i][j]` = z^(-j 2^(8i)).
    inverse: [[Fp; 256]; WINDOWS],
    /// From [`slot`] of an element of order dividing 256 to its logarithm to the base z^(2^24).
    logarithms: [u8; SLOTS],
}

/// Slots of the table of logarithms. The lowest bits of the middle limbs tell all 256 elements apart, which building the table asserts.
const SLOTS: usize = 1 << 16;

fn slot(element: &Fp) -> usize {
    (element.montgomery()[1] & (SLOTS as u64 - 1)) as usize
}

impl Roots {
    /// Of an element of order dividing 256, to the base z^(2^24).
    fn logarithm(&self, element: &Fp) -> u32 {
        self.logarithms[slot(element)].into()
    }
}

static ROOTS: LazyLock<Box<Roots>> = LazyLock::new(|| {
    let z = Fp::constant(GENERATOR).pow(&ODD);
    let mut inverse = [[Fp::ONE; 256]; WINDOWS];
    let mut base = z.inverse();
    for row in &mut inverse {
        for j in 1..256 {
            row[j] = row[j - 1] * base;
        }
        base = row[255] * base;
    }
    let mut logarithms = [0; SLOTS];
    let root = z.square_times(24);
    let mut power = Fp::ONE;
    let mut seen = std::collections::HashSet::new();
    for logarithm in 0..=255 {
        assert!(seen.insert(slot(&power)), "two roots share a slot");
        logarithms[slot(&power)] = logarithm;
        power *= root;
    }
    Box::new(Roots {
        inverse,
        logarithms,
    })
});

/// x^((m-1)/2), the costly part of a root: 220 squarings and 52 multiplications.
fn power(x: Fp) -> Fp {
    // Odd powers x, x^3, ... x^31, then the exponent's bits in windows of up to five that end in a one.
    let square = x.square();
    let mut odd = [x; 16];
    for i in 1..16 {
        odd[i] = odd[i - 1] * square;
    }
    let mut result: Option<Fp> = None;
    for &(squarings, digit) in STEPS.iter() {
        let advanced = result.map(|power| power.square_times(usize::from(squarings)));
        result = match (advanced, digit) {
            (None, digit) => Some(odd[usize::from(digit / 2)]),
            (Some(power), 0) => Some(power),
            (Some(power), digit) => Some(power * odd[usize::from(digit / 2)]),
        };
    }
    result.unwrap_or(Fp::ONE)
}

/// [`EXPONENT`] from its top as (squarings, odd digit to multiply with; 0 for none).
pub(crate) static STEPS: LazyLock<Vec<(u8, u8)>> = LazyLock::new(|| {
    let bit = |i: i32| i >= 0 && EXPONENT[i as usize / 64] >> (i % 64) & 1 == 1;
    let mut steps = Vec::new();
    let mut squarings = 0;
    let mut i = 255;
    while i >= 0 {
        if !bit(i) {
            squarings += 1;
            i -= 1;
            continue;
        }
        let end = ((i - 4).max(0)..=i).find(|&end| bit(end)).unwrap_or(i);
        let digit = (end..=i)
            .rev()
            .fold(0u8, |digit, j| digit * 2 + u8::from(bit(j)));
        steps.push((squarings + (i - end + 1) as u8, digit));
        squarings = 0;
        i = end - 1;
    }
    if squarings > 0 {
        steps.push((squarings, 0));
    }
    steps
});

/// A square root of `x`, or none if it is not a square. Which of the two is not specified.
#[must_use]
pub fn sqrt(x: Fp) -> Option<Fp> {
    arbor_metrics::SQUARE_ROOTS.add(1);
    let w = power(x);
    let mut root = x * w;
    // v^(2^(8i)), where v = x^m.
    let mut levels = [root * w; WINDOWS];
    for i in 1..WINDOWS {
        levels[i] = levels[i - 1].square_times(8);
    }
    let roots = &**ROOTS;
    let mut logarithm = 0u32;
    for window in 0..WINDOWS {
        let mut rest = levels[WINDOWS - 1 - window];
        for earlier in 0..window {
            let row = &roots.inverse[WINDOWS - 1 - window + earlier];
            rest *= row[eight_bits(logarithm, 8 * earlier)];
        }
        logarithm |= roots.logarithm(&rest) << (8 * window);
    }
    if x.is_zero() {
        return Some(x);
    }
    if logarithm & 1 == 1 {
        return None;
    }
    for (window, row) in roots.inverse.iter().enumerate() {
        // Of half the logarithm.
        root *= row[eight_bits(logarithm, 8 * window + 1)];
    }
    Some(root)
}

#[inline(always)]
fn eight_bits(logarithm: u32, from: usize) -> usize {
    (logarithm >> from & 0xff) as usize
}

/// [`sqrt`] of many: but for look-ups, in lanes.
#[must_use]
pub fn sqrt_all(elements: &[Fp]) -> Vec<Option<Fp>> {
    if elements.len() < 3 {
        return elements.iter().map(|&x| sqrt(x)).collect();
    }
    arbor_metrics::SQUARE_ROOTS.add(elements.len() as u64);
    Wide::detect().run(SqrtAll { elements })
}

/// Whether each is a square and not zero. In IFMA lanes by a power, which takes less there than [`Element::legendre`].
#[must_use]
pub fn are_squares(elements: &[Fp]) -> Vec<bool> {
    let wide = Wide::detect();
    if elements.len() < LANES || !wide.has_ifma() {
        return elements.iter().map(|x| x.legendre() == 1).collect();
    }
    wide.run(AreSquares { elements })
}

/// Elements of two vectors, which have their powers made side by side.
const SIDE_BY_SIDE: usize = 2 * LANES;

/// Up to two vectors in lanes, and zeros.
#[inline(always)]
fn entered<L: Lanes<Base>>(lanes: L, elements: &[Fp]) -> [L::Tight; 2] {
    let mut all = [[Fp::ZERO; LANES]; 2];
    all.as_flattened_mut()[..elements.len()].copy_from_slice(elements);
    [lanes.enter_all(all[0]), lanes.enter_all(all[1])]
}

/// [`power`] in lanes.
#[inline(always)]
fn powers<L: Lanes<Base>>(lanes: L, x: [L::Tight; 2]) -> [L::Tight; 2] {
    let square = lanes.square_two(x);
    let mut odd = [x; 16];
    for i in 1..16 {
        odd[i] = lanes.times_two(odd[i - 1], square);
    }
    let mut steps = STEPS.iter();
    // What is squared before the first digit is one.
    let first = steps.next().map_or(0, |&(_, digit)| digit);
    let mut power = odd[usize::from(first / 2)];
    for &(squarings, digit) in steps {
        power = square_times(lanes, power, squarings.into());
        if digit != 0 {
            power = lanes.times_two(power, odd[usize::from(digit / 2)]);
        }
    }
    power
}

#[inline(always)]
fn square_times<L: Lanes<Base>>(lanes: L, mut x: [L::Tight; 2], squarings: usize) -> [L::Tight; 2] {
    for _ in 0..squarings {
        x = lanes.square_two(x);
    }
    x
}

/// [`sqrt`] in lanes.
struct SqrtAll<'a> {
    elements: &'a [Fp],
}

impl Job<Base> for SqrtAll<'_> {
    type Output = Vec<Option<Fp>>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let roots = &**ROOTS;
        let mut all = Vec::with_capacity(self.elements.len());
        for chunk in self.elements.chunks(SIDE_BY_SIDE) {
            let x = entered(lanes, chunk);
            let power = powers(lanes, x);
            let mut root = lanes.times_two(x, power);
            let mut levels = [lanes.times_two(root, power); WINDOWS];
            for i in 1..WINDOWS {
                levels[i] = square_times(lanes, levels[i - 1], 8);
            }
            let mut logarithms = [[0u32; LANES]; 2];
            for window in 0..WINDOWS {
                let mut rest = levels[WINDOWS - 1 - window];
                for earlier in 0..window {
                    let row = &roots.inverse[WINDOWS - 1 - window + earlier];
                    let factors = chosen(lanes, row, &logarithms, 8 * earlier);
                    rest = lanes.times_two(rest, factors);
                }
                for (logarithms, rest) in logarithms.iter_mut().zip(rest) {
                    let rest = lanes.leave_all(rest);
                    for (logarithm, rest) in logarithms.iter_mut().zip(&rest) {
                        *logarithm |= roots.logarithm(rest) << (8 * window);
                    }
                }
            }
            for (window, row) in roots.inverse.iter().enumerate() {
                // Of half the logarithm.
                let factors = chosen(lanes, row, &logarithms, 8 * window + 1);
                root = lanes.times_two(root, factors);
            }
            let root = [lanes.leave_all(root[0]), lanes.leave_all(root[1])];
            let (root, logarithms) = (root.as_flattened(), logarithms.as_flattened());
            for ((x, root), logarithm) in chunk.iter().zip(root).zip(logarithms) {
                all.push((x.is_zero() || logarithm & 1 == 0).then_some(*root));
            }
        }
        all
    }
}

/// For each logarithm the element of a row of [`Roots::inverse`] that stands for its eight bits from one on.
#[inline(always)]
fn chosen<L: Lanes<Base>>(
    lanes: L,
    row: &[Fp; 256],
    logarithms: &[[u32; LANES]; 2],
    from: usize,
) -> [L::Tight; 2] {
    let mut factors = [[Fp::ZERO; LANES]; 2];
    let flat = factors.as_flattened_mut().iter_mut();
    for (factor, logarithm) in flat.zip(logarithms.as_flattened()) {
        *factor = row[eight_bits(*logarithm, from)];
    }
    [lanes.enter_all(factors[0]), lanes.enter_all(factors[1])]
}

/// Euler's criterion in lanes: whether x^((p-1)/2) is one.
struct AreSquares<'a> {
    elements: &'a [Fp],
}

impl Job<Base> for AreSquares<'_> {
    type Output = Vec<bool>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let mut all = Vec::with_capacity(self.elements.len());
        for chunk in self.elements.chunks(SIDE_BY_SIDE) {
            let x = entered(lanes, chunk);
            // (p - 1) / 2 = 2^31 m, and m is twice the power's exponent and one more.
            let power = powers(lanes, x);
            let power = lanes.times_two(lanes.square_two(power), x);
            let [first, second] = square_times(lanes, power, 31);
            let symbols = [lanes.leave_all(first), lanes.leave_all(second)];
            let symbols = &symbols.as_flattened()[..chunk.len()];
            all.extend(symbols.iter().map(|symbol| *symbol == Fp::ONE));
        }
        all
    }
}
