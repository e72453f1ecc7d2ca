//! One element of the group, in extended coordinates.

use crate::bits::{Signed, digits_of, for_digits, modulo_order};
use crate::curve::{D, GENERATOR_X, GENERATOR_Y, times_five};
use arbor_field::{Fp, Fr, Limbs};
use arbor_metrics::NORMALISATIONS;
use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Mul, Neg, Sub},
};

/// An element of Banderwagon: a point of the subgroup, or that point plus the point of order two (0, -1), which are the same element.
///
/// Extended twisted Edwards coordinates (Hisil, Wong, Carter and Dawson, eprint 2008/522): x = X/Z, y = Y/Z, T = XY/Z, Z not zero.
/// Equality is that of the quotient group, X1 Y2 = X2 Y1, whatever the representatives and denominators.
#[derive(Clone, Copy)]
pub struct Point {
    pub(crate) x: Fp,
    pub(crate) y: Fp,
    pub(crate) z: Fp,
    pub(crate) t: Fp,
}

impl Point {
    /// The neutral element.
    pub const IDENTITY: Self = Self {
        x: Fp::ZERO,
        y: Fp::ONE,
        z: Fp::ONE,
        t: Fp::ZERO,
    };

    /// The generator that the specification names, also the point Q of the inner product argument.
    #[must_use]
    pub fn generator() -> Self {
        Self::from_affine(GENERATOR_X, GENERATOR_Y)
    }

    /// From affine coordinates that are known to satisfy the curve's equation.
    #[inline]
    pub(crate) fn from_affine(x: Fp, y: Fp) -> Self {
        Self {
            x,
            y,
            z: Fp::ONE,
            t: x * y,
        }
    }

    /// Whether this is the neutral element.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.x.is_zero()
    }

    /// Twice this: eight multiplications (dbl-2008-hwcd).
    #[inline]
    #[must_use]
    pub fn double(&self) -> Self {
        let (doubled, e, h) = self.double_but_t();
        Self {
            t: e * h,
            ..doubled
        }
    }

    /// Twice this with a T that is not right, and its factors. No doubling reads T, so that only the last of several need compute it.
    #[inline]
    fn double_but_t(&self) -> (Self, Fp, Fp) {
        let (xx, yy) = (self.x.square(), self.y.square());
        let zz = self.z.square().double();
        let e = (self.x + self.y).square() - xx - yy;
        let axx = -times_five(xx);
        let (g, h) = (axx + yy, axx - yy);
        let f = g - zz;
        let doubled = Self {
            x: e * f,
            y: g * h,
            z: f * g,
            t: Fp::ZERO,
        };
        (doubled, e, h)
    }

    /// Twice this, `count` times.
    #[must_use]
    pub fn double_times(mut self, count: usize) -> Self {
        for _ in 1..count {
            self = self.double_but_t().0;
        }
        match count {
            0 => self,
            _ => self.double(),
        }
    }

    /// x/y as a number, modulo the group's order: the field element that stands for this element in a parent node. 0 for the neutral element.
    #[must_use]
    pub fn map_to_field(&self) -> Fr {
        Fr::reduced((self.x * self.y.inverse()).to_limbs())
    }

    /// [`Self::map_to_field`] of many, with one inversion, in lanes.
    #[must_use]
    pub fn map_to_field_batch(points: &[Self]) -> Vec<Fr> {
        arbor_field::reduce_all(&Self::images(points))
    }

    /// [`Self::map_to_field_batch`], as numbers below the group's order.
    #[must_use]
    pub fn map_to_numbers(points: &[Self]) -> Vec<Limbs> {
        Self::images(points).iter().map(modulo_order).collect()
    }

    /// x/y of each as a number below the base field's prime.
    pub(crate) fn images(points: &[Self]) -> Vec<Limbs> {
        if points.is_empty() {
            return Vec::new();
        }
        let fractions: Vec<_> = points.iter().map(|point| (point.x, point.y)).collect();
        arbor_field::divide_all_to_limbs(&fractions)
    }

    /// The affine coordinates of many points, with one inversion.
    #[must_use]
    pub fn to_affine_batch(points: &[Self]) -> Vec<(Fp, Fp)> {
        NORMALISATIONS.add(points.len() as u64);
        let mut inverses: Vec<_> = points.iter().map(|point| point.z).collect();
        arbor_field::invert_all(&mut inverses);
        let affine = |(point, inverse): (&Self, Fp)| (point.x * inverse, point.y * inverse);
        points.iter().zip(inverses).map(affine).collect()
    }
}

impl Add for Point {
    type Output = Self;

    /// Ten multiplications (add-2008-hwcd); right for all pairs of elements, equal ones included.
    #[inline]
    fn add(self, other: Self) -> Self {
        let xx = self.x * other.x;
        let yy = self.y * other.y;
        let tt = self.t * other.t * D;
        let zz = self.z * other.z;
        let e = (self.x + self.y) * (other.x + other.y) - xx - yy;
        let (f, g) = (zz - tt, zz + tt);
        let h = yy + times_five(xx);
        Self {
            x: e * f,
            y: g * h,
            z: f * g,
            t: e * h,
        }
    }
}

impl Neg for Point {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        Self {
            x: -self.x,
            t: -self.t,
            ..self
        }
    }
}

impl Sub for Point {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl AddAssign for Point {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Point {
    fn sum<I: Iterator<Item = Self>>(points: I) -> Self {
        points.fold(Self::IDENTITY, Add::add)
    }
}

impl Mul<Fr> for Point {
    type Output = Self;

    /// From the highest signed digit of four bits down: four doublings and an addition for each.
    fn mul(self, scalar: Fr) -> Self {
        const BITS: usize = 4;
        let mut multiples = [self; 1 << (BITS - 1)];
        for k in 1..multiples.len() {
            multiples[k] = multiples[k - 1] + self;
        }
        let mut digits = [0; digits_of(BITS)];
        let mut used = 0;
        for_digits(&Signed::from(scalar), BITS, |position, digit| {
            digits[position] = digit;
            used = position + 1;
        });
        digits[..used]
            .iter()
            .rev()
            .fold(Self::IDENTITY, |sum, digit| {
                let sum = sum.double_times(BITS);
                let Some(of) = digit.unsigned_abs().checked_sub(1) else {
                    return sum;
                };
                match digit.is_negative() {
                    false => sum + multiples[of as usize],
                    true => sum - multiples[of as usize],
                }
            })
    }
}

impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.x * other.y == other.x * self.y
    }
}

impl Eq for Point {}

impl Default for Point {
    fn default() -> Self {
        Self::IDENTITY
    }
}

impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Point(0x")?;
        for byte in self.to_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}
