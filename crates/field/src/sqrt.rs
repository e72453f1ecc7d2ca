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
    Almost::new(x).root()
}

/// A root but for a root of unity.
#[derive(Clone, Copy)]
struct Almost {
    x: Fp,
    /// x^((m+1)/2).
    root: Fp,
    /// v^(2^(8i)), where v = x^m.
    levels: [Fp; WINDOWS],
}

impl Almost {
    fn new(x: Fp) -> Self {
        let w = power(x);
        let root = x * w;
        let mut levels = [root * w; WINDOWS];
        for i in 1..WINDOWS {
            levels[i] = levels[i - 1].square_times(8);
        }
        Self { x, root, levels }
    }

    /// The rest: some 10 multiplications.
    fn root(self) -> Option<Fp> {
        arbor_metrics::SQUARE_ROOTS.add(1);
        let Self {
            x,
            mut root,
            levels,
        } = self;
        let roots = &**ROOTS;
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

    /// Whether x has a root and is not zero: whether v's logarithm is even.
    fn is_square(&self) -> bool {
        let v = self.levels[WINDOWS - 1];
        v.square_times(31 - 8 * (WINDOWS - 1)) == Fp::ONE
    }
}

/// [`sqrt`] of many: but for look-ups, in lanes.
#[must_use]
pub fn sqrt_all(elements: &[Fp]) -> Vec<Option<Fp>> {
    if elements.len() < 3 {
        return elements.iter().map(|&x| sqrt(x)).collect();
    }
    let almost = Wide::detect().run(AlmostAll { elements });
    almost.into_iter().map(Almost::root).collect()
}

/// Whether each is a square and not zero. In IFMA lanes by a power, which takes less there than [`Element::legendre`].
#[must_use]
pub fn are_squares(elements: &[Fp]) -> Vec<bool> {
    let wide = Wide::detect();
    if elements.len() < LANES || !wide.has_ifma() {
        return elements.iter().map(|x| x.legendre() == 1).collect();
    }
    let almost = wide.run(AlmostAll { elements });
    almost.iter().map(Almost::is_square).collect()
}

/// [`Almost::new`] in lanes, two vectors side by side.
struct AlmostAll<'a> {
    elements: &'a [Fp],
}

impl Job<Base> for AlmostAll<'_> {
    type Output = Vec<Almost>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Almost> {
        let mut all = Vec::with_capacity(self.elements.len());
        for chunk in self.elements.chunks(2 * LANES) {
            let mut stored = [[[0; 4]; LANES]; 2];
            for (to, x) in stored.as_flattened_mut().iter_mut().zip(chunk) {
                *to = lanes.enter(*x);
            }
            let x = [
                lanes.load(stored[0].each_ref()),
                lanes.load(stored[1].each_ref()),
            ];
            let square = lanes.square_two(x);
            let mut odd = [x; 16];
            for i in 1..16 {
                odd[i] = lanes.times_two(odd[i - 1], square);
            }
            let mut power = [lanes.splat(&lanes.enter(Fp::ONE)); 2];
            for &(squarings, digit) in STEPS.iter() {
                for _ in 0..squarings {
                    power = lanes.square_two(power);
                }
                if digit != 0 {
                    power = lanes.times_two(power, odd[usize::from(digit / 2)]);
                }
            }
            let root = lanes.times_two(x, power);
            let mut levels = [lanes.times_two(root, power); WINDOWS];
            for i in 1..WINDOWS {
                let mut level = levels[i - 1];
                for _ in 0..8 {
                    level = lanes.square_two(level);
                }
                levels[i] = level;
            }
            for (vector, elements) in chunk.chunks(LANES).enumerate() {
                let root = lanes.leave_all(root[vector]);
                let mut columns = [root; WINDOWS];
                for i in 0..WINDOWS {
                    columns[i] = lanes.leave_all(levels[i][vector]);
                }
                for (lane, &x) in elements.iter().enumerate() {
                    let mut levels = [Fp::ZERO; WINDOWS];
                    for i in 0..WINDOWS {
                        levels[i] = columns[i][lane];
                    }
                    all.push(Almost {
                        x,
                        root: root[lane],
                        levels,
                    });
                }
            }
        }
        all
    }
}
