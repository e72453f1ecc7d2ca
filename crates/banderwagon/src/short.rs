//! The same curve in short Weierstrass form, in which adding affine points costs least.
//!
//! With k = (a - d) / 4 and c = (a + d) / 6, a point (x, y) of the Edwards curve goes to X = k (1 + y) / (1 - y) + c, Y = (X - c) / x on
//! Y^2 = X^3 + (k^2 - 3 c^2) X + ...: the usual way over the Montgomery form, scaled so that x = (X - c) / Y without a factor. Adding two points takes the slope
//! (Y2 - Y1) / (X2 - X1) and nothing that depends on the curve: five multiplications and a squaring, if inverses are made in batches.
//!
//! The neutral element has no affine coordinates there, but in Banderwagon's quotient group the point of order two is as good: (c, 0).
//! It is added like any other. What needs care is only equal X: the same point twice, or a point and its negative.

use crate::{Point, curve::Short, extended::constant};
use arbor_field::{Base, Fp, Job, LANES, Lanes, Limbs, Wide, invert_all, invert_lanes};

/// Affine coordinates in the stored form of lanes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Stored {
    pub(crate) x: Limbs,
    pub(crate) y: Limbs,
}

impl Stored {
    /// Whether this is the neutral element; not if a sum became it, whose zero may be the prime.
    pub(crate) fn is_identity(&self) -> bool {
        self.y == [0; 4]
    }
}

impl Stored {
    /// Many points, with one inversion.
    pub(crate) fn from_points(wide: Wide, points: &[Point]) -> Vec<Self> {
        wide.run(EnterPoints { points })
    }
}

/// A point as the tables of a [`FixedBase`](crate::FixedBase) hold it: affine, in the form of its lanes. It means nothing to tables with other lanes.
#[derive(Clone, Copy, Debug)]
pub struct TablePoint(pub(crate) Stored);

/// [`Affine::from_points`] in the lanes' form.
struct EnterPoints<'a> {
    points: &'a [Point],
}

impl Job<Base> for EnterPoints<'_> {
    type Output = Vec<Stored>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let Short { scale, shift, .. } = *Short::get();
        let (scale, shift) = (constant(lanes, scale), constant(lanes, shift));
        let (idle, identity) = (Point::generator(), Affine::identity().enter(lanes));
        let points = self.points;
        let count = points.len().div_ceil(LANES);
        // Coordinates are loaded as multiples by the same factor, which the quotients lose. Of the denominators (Z - Y) X the products of those before are kept.
        let mut before = Vec::with_capacity(count);
        let mut product = lanes.splat(&lanes.enter(Fp::ONE));
        for chunk in points.chunks(LANES) {
            let (x, _, difference, _) = parts(lanes, chunk, idle);
            before.push(product);
            product = lanes.times(lanes.times(difference, x), product);
        }
        // Only the neutral element has X = 0 or Z = Y. Coordinates that were trusted, and are not of the curve, mean nothing in any form.
        let Some(mut rest) = invert_lanes(lanes, product, |total| lanes.enter(total)) else {
            let affine = Affine::from_points(points);
            return affine.iter().map(|point| point.enter(lanes)).collect();
        };
        let mut stored = vec![identity; points.len()];
        let chunks = points.chunks(LANES).zip(stored.chunks_mut(LANES));
        for ((chunk, stored), before) in chunks.zip(before).rev() {
            let (x, sum, difference, z) = parts(lanes, chunk, idle);
            let [inverse, denominator] = lanes.times_two([rest, difference], [before, x]);
            // 1 / (Z - Y) and 1 / X.
            let [by_difference, by_x] = lanes.times_two([inverse; 2], [x, difference]);
            let [scaled, next] = lanes.times_two([sum, rest], [scale, denominator]);
            rest = next;
            let [u, v] = lanes.times_two([scaled, z], [by_difference, by_x]);
            let y = lanes.store(lanes.times(u, v));
            let x = lanes.store(lanes.tighten(lanes.add(u, shift)));
            for (lane, (to, point)) in stored.iter_mut().zip(chunk).enumerate() {
                if !point.x.is_zero() {
                    *to = Stored {
                        x: x[lane],
                        y: y[lane],
                    };
                }
            }
        }
        stored
    }
}

/// X, Z + Y, Z - Y and Z of up to eight points; beyond, and in place of neutral elements, those of an idle one.
#[inline(always)]
fn parts<L: Lanes<Base>>(
    lanes: L,
    points: &[Point],
    idle: Point,
) -> (L::Tight, L::Tight, L::Tight, L::Tight) {
    let mut all = [idle; LANES];
    for (to, point) in all.iter_mut().zip(points) {
        if !point.x.is_zero() {
            *to = *point;
        }
    }
    let x = lanes.load_multiples(all.map(|point| point.x));
    let y = lanes.load_multiples(all.map(|point| point.y));
    let z = lanes.load_multiples(all.map(|point| point.z));
    let sum = lanes.tighten(lanes.add(z, y));
    let difference = lanes.tighten(lanes.sub(z, y));
    (x, sum, difference, z)
}

/// Affine coordinates as field elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Affine {
    pub(crate) x: Fp,
    pub(crate) y: Fp,
}

impl Affine {
    pub(crate) fn identity() -> Self {
        Self {
            x: Short::get().shift,
            y: Fp::ZERO,
        }
    }

    pub(crate) fn enter<L: Lanes<Base>>(self, lanes: L) -> Stored {
        Stored {
            x: lanes.enter(self.x),
            y: lanes.enter(self.y),
        }
    }

    pub(crate) fn leave<L: Lanes<Base>>(stored: &Stored, lanes: L) -> Self {
        Self {
            x: lanes.leave(&stored.x),
            y: lanes.leave(&stored.y),
        }
    }

    /// Many points, with one inversion.
    pub(crate) fn from_points(points: &[Point]) -> Vec<Self> {
        let Short { scale, shift, .. } = *Short::get();
        // X - c = k (Z + Y) / (Z - Y) and Y = (X - c) Z / X. Both denominators are zero for the neutral element alone.
        let mut inverses: Vec<_> = points
            .iter()
            .map(|point| (point.z - point.y) * point.x)
            .collect();
        invert_all(&mut inverses);
        let convert = |(point, inverse): (&Point, Fp)| {
            if point.is_identity() {
                return Self::identity();
            }
            let x = scale * (point.z + point.y) * inverse * point.x;
            let y = x * point.z * (point.z - point.y) * inverse;
            Self { x: x + shift, y }
        };
        points.iter().zip(inverses).map(convert).collect()
    }

    /// The denominator of the slope of a sum or, for equal points, of the tangent; none if the sum is the neutral element.
    pub(crate) fn slope_denominator(self, other: Self) -> Option<Fp> {
        if self.x != other.x {
            Some(other.x - self.x)
        } else if self.y == other.y && !self.y.is_zero() {
            Some(self.y.double())
        } else {
            None
        }
    }

    /// The sum, given the inverse of [`Self::slope_denominator`].
    pub(crate) fn add_with(self, other: Self, inverse: Fp) -> Self {
        let numerator = if self.x == other.x {
            let xx = self.x.square();
            xx.double() + xx + Short::get().linear
        } else {
            other.y - self.y
        };
        let slope = numerator * inverse;
        let x = slope.square() - self.x - other.x;
        let y = slope * (self.x - x) - self.y;
        Self { x, y }
    }
}

impl std::ops::Neg for Affine {
    type Output = Self;

    fn neg(self) -> Self {
        Self { y: -self.y, ..self }
    }
}

/// A running sum without inversions: x = X/ZZ, y = Y/ZZZ with ZZ^3 = ZZZ^2 (the "XYZZ" coordinates of the Explicit-Formulas Database).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    x: Fp,
    y: Fp,
    zz: Fp,
    zzz: Fp,
}

impl From<Affine> for Running {
    fn from(point: Affine) -> Self {
        Self {
            x: point.x,
            y: point.y,
            zz: Fp::ONE,
            zzz: Fp::ONE,
        }
    }
}

impl Running {
    /// Adds an affine point: eight multiplications and two squarings (madd-2008-s).
    pub(crate) fn add(&mut self, other: Affine) {
        let p = other.x * self.zz - self.x;
        let r = other.y * self.zzz - self.y;
        if p.is_zero() {
            *self = if r.is_zero() && !other.y.is_zero() {
                Self::twice(other)
            } else {
                Affine::identity().into()
            };
            return;
        }
        let pp = p.square();
        let ppp = p * pp;
        let q = self.x * pp;
        let x = r.square() - ppp - q.double();
        *self = Self {
            x,
            y: r * (q - x) - self.y * ppp,
            zz: self.zz * pp,
            zzz: self.zzz * ppp,
        };
    }

    /// Twice an affine point (mdbl-2008-s-1).
    fn twice(point: Affine) -> Self {
        let u = point.y.double();
        let v = u.square();
        let w = u * v;
        let s = point.x * v;
        let xx = point.x.square();
        let m = xx.double() + xx + Short::get().linear;
        let x = m.square() - s.double();
        Self {
            x,
            y: m * (s - x) - w * point.y,
            zz: v,
            zzz: w,
        }
    }

    /// Extended Edwards coordinates, without an inversion.
    pub(crate) fn to_point(self) -> Point {
        if self.y.is_zero() {
            return Point::IDENTITY;
        }
        let Short { scale, shift, .. } = *Short::get();
        let x = self.x - shift * self.zz;
        let offset = scale * self.zz;
        let (plus, minus) = (x + offset, x - offset);
        let (x, y) = (x * self.zzz, self.y * self.zz);
        Point {
            x: x * plus,
            y: y * minus,
            z: y * plus,
            t: x * minus,
        }
    }
}
