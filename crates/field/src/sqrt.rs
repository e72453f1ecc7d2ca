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

/// x^((m-1)/2), the costly part of a root: 222 squarings and 49 multiplications.
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
    finish(x, power(x))
}

/// The rest of a root once `w` = x^((m-1)/2) is known: some 40 multiplications.
pub(crate) fn finish(x: Fp, w: Fp) -> Option<Fp> {
    arbor_metrics::SQUARE_ROOTS.add(1);
    let roots = &**ROOTS;
    let mut root = x * w;
    let v = root * w;
    // levels[i] = v^(2^(8i)), and what is divided away from each as the logarithm becomes known.
    let mut levels = [v; WINDOWS];
    for i in 1..WINDOWS {
        levels[i] = levels[i - 1].square_times(8);
    }
    let mut logarithm = 0u32;
    for window in 0..WINDOWS {
        let mut rest = levels[WINDOWS - 1 - window];
        for earlier in 0..window {
            let digit = logarithm >> (8 * earlier) & 0xff;
            rest *= roots.inverse[WINDOWS - 1 - window + earlier][digit as usize];
        }
        logarithm |= u32::from(roots.logarithms[slot(&rest)]) << (8 * window);
    }
    if x.is_zero() {
        return Some(x);
    }
    if logarithm & 1 == 1 {
        return None;
    }
    let half = logarithm / 2;
    for (window, row) in roots.inverse.iter().enumerate() {
        root *= row[(half >> (8 * window) & 0xff) as usize];
    }
    Some(root)
}

/// [`sqrt`] of many: the powers in lanes.
#[must_use]
pub fn sqrt_all(elements: &[Fp]) -> Vec<Option<Fp>> {
    if elements.len() < 3 {
        return elements.iter().map(|&x| sqrt(x)).collect();
    }
    let powers = Wide::detect().run(Powers { elements });
    elements
        .iter()
        .zip(powers)
        .map(|(&x, w)| finish(x, w))
        .collect()
}

/// [`power`] in lanes.
struct Powers<'a> {
    elements: &'a [Fp],
}

impl Job<Base> for Powers<'_> {
    type Output = Vec<Fp>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Fp> {
        let mut powers = Vec::with_capacity(self.elements.len());
        for chunk in self.elements.chunks(LANES) {
            let stored: [Limbs; LANES] =
                std::array::from_fn(|lane| lanes.enter(*chunk.get(lane).unwrap_or(&Fp::ZERO)));
            let x = lanes.load(stored.each_ref());
            let square = lanes.square(x);
            let mut odd = [x; 16];
            for i in 1..16 {
                odd[i] = lanes.times(odd[i - 1], square);
            }
            let mut result = lanes.splat(&lanes.enter(Fp::ONE));
            for &(squarings, digit) in STEPS.iter() {
                for _ in 0..squarings {
                    result = lanes.square(result);
                }
                if digit != 0 {
                    result = lanes.times(result, odd[usize::from(digit / 2)]);
                }
            }
            let stored = lanes.store(result);
            powers.extend(stored[..chunk.len()].iter().map(|power| lanes.leave(power)));
        }
        powers
    }
}
