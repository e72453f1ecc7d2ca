//! Points of curves y^2 = x^3 + b with formulas that hold for all of them: zero, equal and opposite ones included.

use super::tower::{Element, Field, Fp, Fp2};
use super::{Body, Layout, Slot, Slots};
use crate::reference::U384;

/// A coordinate of a point: an element of Fp with b a small number, or of Fp2 with b that number times xi.
pub trait Coordinate<'b>: Field<'b> {
    /// The element at an offset in memory.
    fn load(body: &'b Body, from: u32) -> Self;
    /// Puts it there.
    fn store(self, body: &'b Body, to: u32);
    /// 1.
    fn one(body: &'b Body, numbers: &Numbers) -> Self;
    /// What the curve's equation adds.
    fn b(body: &'b Body, numbers: &Numbers) -> Self;
    /// 3 b x.
    #[must_use]
    fn times_three_b(self, body: &'b Body, numbers: &Numbers) -> Self;
    /// A residue that is zero exactly if the element is, and from whose inverse [`Self::inverse`] makes that of the element.
    fn norm(self) -> Fp<'b>;
    /// 1 / x, given that of the norm.
    #[must_use]
    fn inverse(self, of_norm: Fp<'b>) -> Self;
    /// Each residue times a factor.
    #[must_use]
    fn scale(self, factor: Fp<'b>) -> Self;
}

/// Constants of the formulas.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// 1.
    pub one: Slot,
    b: Slot,
    three_b: Slot,
    small_three_b: u64,
    /// The radix squared: multiplied by it, a residue takes Montgomery form.
    pub radix_squared: Slot,
    /// 1, not in Montgomery form: multiplied by it, a residue loses that form.
    pub plain_one: Slot,
}

impl Numbers {
    /// Those for a curve with this b.
    #[must_use]
    pub fn new(layout: &mut Layout, b: u64) -> Self {
        let radix_squared = layout.montgomery(layout.montgomery(U384::ONE));
        Self {
            one: layout.number(U384::ONE),
            b: layout.number(U384::from(b)),
            three_b: layout.number(U384::from(3 * b)),
            small_three_b: 3 * b,
            radix_squared: layout.constant(radix_squared),
            plain_one: layout.constant(U384::ONE),
        }
    }

    /// 3 b x, by a multiplication or by additions, for b the small number.
    fn times_three_b<'b, F: Field<'b>>(
        &self,
        body: &'b Body,
        x: F,
        multiplied: impl Fn(Fp<'b>) -> F,
    ) -> F {
        if body.choose() {
            return multiplied(body.input(self.three_b));
        }
        let bits = self.small_three_b.ilog2();
        (0..bits).rev().fold(x, |sum, bit| {
            let doubled = sum.double();
            if self.small_three_b >> bit & 1 == 1 {
                doubled + x
            } else {
                doubled
            }
        })
    }
}

/// x = X / Z, y = Y / Z; zero has X = Z = 0.
#[derive(Clone, Copy, Debug)]
pub struct Point<F> {
    /// X.
    pub x: F,
    /// Y.
    pub y: F,
    /// Z.
    pub z: F,
}

/// Renes, Costello and Batina ("Complete addition formulas for prime order elliptic curves", 2015), algorithms 7 and 9. They are complete where no point has
/// order two.
impl<'b, F: Coordinate<'b>> Point<F> {
    /// The point whose coordinates are at these offsets.
    pub fn load(body: &'b Body, [x, y, z]: [u32; 3]) -> Self {
        let [x, y, z] = [x, y, z].map(|at| F::load(body, at));
        Self { x, y, z }
    }

    /// Puts its coordinates there.
    pub fn store(self, body: &'b Body, [x, y, z]: [u32; 3]) {
        self.x.store(body, x);
        self.y.store(body, y);
        self.z.store(body, z);
    }

    /// 2 P.
    #[must_use]
    pub fn double(self, body: &'b Body, numbers: &Numbers) -> Self {
        let Self { x, y, z } = self;
        let yy = y.square();
        let eightfold = yy.double().double().double();
        let t = z.square().times_three_b(body, numbers);
        let u = yy - (t.double() + t);
        Self {
            x: (u * (x * y)).double(),
            y: u * (yy + t) + t * eightfold,
            z: (y * z) * eightfold,
        }
    }

    /// P + Q.
    #[must_use]
    pub fn add(self, other: Self, body: &'b Body, numbers: &Numbers) -> Self {
        let (p, q) = (self, other);
        let cross = |a: (F, F), b: (F, F), products: F| (a.0 + a.1) * (b.0 + b.1) - products;
        let (xx, yy, zz) = (p.x * q.x, p.y * q.y, p.z * q.z);
        let xy = cross((p.x, p.y), (q.x, q.y), xx + yy);
        let yz = cross((p.y, p.z), (q.y, q.z), yy + zz);
        let xz = cross((p.x, p.z), (q.x, q.z), xx + zz).times_three_b(body, numbers);
        let xx = xx.double() + xx;
        let t = zz.times_three_b(body, numbers);
        let (plus, minus) = (yy + t, yy - t);
        Self {
            x: xy * minus - yz * xz,
            y: minus * plus + xz * xx,
            z: plus * yz + xx * xy,
        }
    }
}

impl<'b> Coordinate<'b> for Fp<'b> {
    fn load(body: &'b Body, from: u32) -> Self {
        body.load(Slots::<1>::at(from))
    }

    fn store(self, body: &'b Body, to: u32) {
        body.store(Slots::<1>::at(to), self);
    }

    fn one(body: &'b Body, numbers: &Numbers) -> Self {
        body.input(numbers.one)
    }

    fn b(body: &'b Body, numbers: &Numbers) -> Self {
        body.input(numbers.b)
    }

    fn times_three_b(self, body: &'b Body, numbers: &Numbers) -> Self {
        numbers.times_three_b(body, self, |three_b| self * three_b)
    }

    fn norm(self) -> Fp<'b> {
        self
    }

    fn inverse(self, of_norm: Fp<'b>) -> Self {
        of_norm
    }

    fn scale(self, factor: Fp<'b>) -> Self {
        self * factor
    }
}

impl<'b> Coordinate<'b> for Fp2<'b> {
    fn load(body: &'b Body, from: u32) -> Self {
        body.load(Slots::<2>::at(from))
    }

    fn store(self, body: &'b Body, to: u32) {
        body.store(Slots::<2>::at(to), self);
    }

    fn one(body: &'b Body, numbers: &Numbers) -> Self {
        Self::from_parts([body.input(numbers.one), body.zero()])
    }

    fn b(body: &'b Body, numbers: &Numbers) -> Self {
        Self::from_parts([body.input(numbers.b), body.input(numbers.b)])
    }

    fn times_three_b(self, body: &'b Body, numbers: &Numbers) -> Self {
        let x = self.times_xi();
        numbers.times_three_b(body, x, |three_b| Coordinate::scale(x, three_b))
    }

    fn norm(self) -> Fp<'b> {
        self.c0.square() + self.c1.square()
    }

    fn inverse(self, of_norm: Fp<'b>) -> Self {
        self.conjugate().scale(of_norm)
    }

    fn scale(self, factor: Fp<'b>) -> Self {
        Self::scale(self, factor)
    }
}
