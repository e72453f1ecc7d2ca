//! Points of both groups with formulas that hold for all of them: zero, equal and opposite ones included.

use super::constants::{beta, inverse_frobenius, montgomery, radix_squared};
use crate::build::tower::{Element, Field, Fp, Fp2};
use crate::build::{Body, Layout, Slot, Slots};
use crate::reference::U384;

/// A coordinate of a point: an element of Fp or Fp2, with what the curve over it needs.
pub(super) trait Coordinate<'b>: Field<'b> {
    /// The element at an offset in memory.
    fn load(body: &'b Body, from: u32) -> Self;
    /// Puts it there.
    fn store(self, body: &'b Body, to: u32);
    /// 1.
    fn one(body: &'b Body, numbers: &Numbers) -> Self;
    /// What the curve's equation y^2 = x^3 + b adds: 4, or 4 xi.
    fn b(body: &'b Body, numbers: &Numbers) -> Self;
    /// 3 b x.
    fn times_three_b(self, body: &'b Body, numbers: &Numbers) -> Self;
    /// The endomorphism of the curve that multiplies points of order r by a power of |z|: by z^2 over Fp, by |z| over Fp2.
    fn endomorphism(point: Point<Self>, body: &'b Body, numbers: &Numbers) -> Point<Self>;
    /// A residue that is zero exactly if the element is, and from whose inverse [`Self::inverse`] makes that of the element.
    fn norm(self) -> Fp<'b>;
    /// 1 / x, given that of the norm.
    fn inverse(self, of_norm: Fp<'b>) -> Self;
    /// x from Montgomery form, or to it: each residue times `factor`.
    fn scale(self, factor: Fp<'b>) -> Self;
}

/// Constants of the formulas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) one: Slot,
    pub(super) four: Slot,
    pub(super) twelve: Slot,
    /// 2^768 modulo p.
    pub(super) radix_squared: Slot,
    /// 1, not in Montgomery form.
    pub(super) plain_one: Slot,
    pub(super) beta: Slot,
    pub(super) untwist_x: [Slot; 2],
    pub(super) untwist_y: [Slot; 2],
}

impl Numbers {
    pub(super) fn new(layout: &mut Layout) -> Self {
        let small =
            |layout: &mut Layout, number: u64| layout.constant(montgomery(U384::from(number)));
        let pair =
            |layout: &mut Layout, number: [U384; 2]| number.map(|part| layout.constant(part));
        Self {
            one: small(layout, 1),
            four: small(layout, 4),
            twelve: small(layout, 12),
            radix_squared: layout.constant(radix_squared()),
            plain_one: layout.constant(U384::ONE),
            beta: layout.constant(montgomery(beta())),
            untwist_x: pair(layout, inverse_frobenius(2).montgomery()),
            untwist_y: pair(layout, inverse_frobenius(3).montgomery()),
        }
    }
}

/// x = X / Z, y = Y / Z; zero has X = Z = 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point<F> {
    pub(super) x: F,
    pub(super) y: F,
    pub(super) z: F,
}

/// Renes, Costello and Batina ("Complete addition formulas for prime order elliptic curves", 2015), algorithms 7 and 9. They are complete where no point has
/// order two, and both curves have an odd number of points.
impl<'b, F: Coordinate<'b>> Point<F> {
    pub(super) fn load(body: &'b Body, [x, y, z]: [u32; 3]) -> Self {
        let [x, y, z] = [x, y, z].map(|at| F::load(body, at));
        Self { x, y, z }
    }

    pub(super) fn store(self, body: &'b Body, [x, y, z]: [u32; 3]) {
        self.x.store(body, x);
        self.y.store(body, y);
        self.z.store(body, z);
    }

    pub(super) fn double(self, body: &'b Body, numbers: &Numbers) -> Self {
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

    pub(super) fn add(self, other: Self, body: &'b Body, numbers: &Numbers) -> Self {
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
        body.input(numbers.four)
    }

    fn times_three_b(self, body: &'b Body, numbers: &Numbers) -> Self {
        if body.choose() {
            self * body.input(numbers.twelve)
        } else {
            (self.double() + self).double().double()
        }
    }

    fn endomorphism(point: Point<Self>, body: &'b Body, numbers: &Numbers) -> Point<Self> {
        Point {
            x: point.x * body.input(numbers.beta),
            y: -point.y,
            z: point.z,
        }
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
        Self::from_parts([body.input(numbers.four), body.input(numbers.four)])
    }

    fn times_three_b(self, body: &'b Body, numbers: &Numbers) -> Self {
        if body.choose() {
            self.times_xi().scale(body.input(numbers.twelve))
        } else {
            self.times_xi().triple().double().double()
        }
    }

    fn endomorphism(point: Point<Self>, body: &'b Body, numbers: &Numbers) -> Point<Self> {
        Point {
            x: point.x.conjugate()
                * Self::from_parts(numbers.untwist_x.map(|slot| body.input(slot))),
            y: -(point.y.conjugate()
                * Self::from_parts(numbers.untwist_y.map(|slot| body.input(slot)))),
            z: point.z.conjugate(),
        }
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
