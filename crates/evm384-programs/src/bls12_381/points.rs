//! Points of the two curves, y^2 = x^3 + 4 over Fp and y^2 = x^3 + 4 xi over Fp2, as values.

use arbor_evm384::build::tower::{Element, Fp, Fp2, Line};

/// x and y of a point of the twist.
#[derive(Clone, Copy, Debug)]
pub(super) struct Affine2<'b> {
    pub(super) x: Fp2<'b>,
    pub(super) y: Fp2<'b>,
}

/// A point of the twist: x = X / Z, y = Y / Z. Once Z is zero it stays so, whatever is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Projective2<'b> {
    pub(super) x: Fp2<'b>,
    pub(super) y: Fp2<'b>,
    pub(super) z: Fp2<'b>,
}

/// x and y of a point over Fp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Affine1<'b> {
    pub(super) x: Fp<'b>,
    pub(super) y: Fp<'b>,
}

/// A point over Fp: x = X / Z^2, y = Y / Z^3. Once Z is zero it stays so, whatever is added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jacobian1<'b> {
    pub(super) x: Fp<'b>,
    pub(super) y: Fp<'b>,
    pub(super) z: Fp<'b>,
}

impl<'b> Projective2<'b> {
    /// 2 T and the tangent at T in P, given `tangent` = (3 x, y) of P: Aranha et al. ("Faster explicit formulas for computing pairings over
    /// ordinary curves", 2011), with coordinates -4 times as large, which saves halving and negating.
    pub(super) fn double(self, tangent: Affine1<'b>, twelve: Fp<'b>) -> (Self, Line<'b>) {
        let Self { x, y, z } = self;
        let b = y.square();
        let c = z.square();
        // e = 3 b' c with the curve's constant b' = 4 xi.
        let e = if x.c0.choose() {
            c.times_xi().scale(twelve)
        } else {
            c.times_xi().triple().double().double()
        };
        let e2 = e.double();
        let f = e2 + e;
        let minus_2yz = if x.c0.choose() {
            -(y * z).double()
        } else {
            (b + c) - (y + z).square()
        };
        let doubled = Self {
            x: (x * y * (f - b)).double(),
            y: e2.square().triple() - (b + f).square(),
            z: (b * minus_2yz).double().double(),
        };
        let line = Line {
            a: e - b,
            b: x.square().scale(tangent.x),
            c: minus_2yz.scale(tangent.y),
        };
        (doubled, line)
    }

    /// T + Q and the line through T and Q, in `p`.
    pub(super) fn add(self, q: Affine2<'b>, p: Affine1<'b>) -> (Self, Line<'b>) {
        let Self { x, y, z } = self;
        let theta = y - q.y * z;
        let lambda = x - q.x * z;
        let d = lambda.square();
        let e = lambda * d;
        let g = x * d;
        let h = e + z * theta.square() - g.double();
        let sum = Self {
            x: lambda * h,
            y: theta * (g - h) - e * y,
            z: z * e,
        };
        let line = Line {
            a: theta * q.x - lambda * q.y,
            b: -theta.scale(p.x),
            c: lambda.scale(p.y),
        };
        (sum, line)
    }
}

impl<'b> Jacobian1<'b> {
    /// 2 T ("dbl-2009-l" of the Explicit-Formulas Database).
    pub(super) fn double(self) -> Self {
        let Self { x, y, z } = self;
        let a = x.square();
        let b = y.square();
        let c = b.square();
        let d = (x * b).double().double();
        let e = a.double() + a;
        let x3 = e.square() - d.double();
        Self {
            x: x3,
            y: e * (d - x3) - c.double().double().double(),
            z: (y * z).double(),
        }
    }

    /// T + (X2, Y2, Z2) where T and it are neither equal nor opposite, or zero.
    pub(super) fn add(self, other: Self) -> Self {
        let (z1z1, z2z2) = (self.z.square(), other.z.square());
        let (u1, u2) = (self.x * z2z2, other.x * z1z1);
        let (s1, s2) = (self.y * (other.z * z2z2), other.y * (self.z * z1z1));
        let h = u2 - u1;
        let r = s2 - s1;
        let hh = h.square();
        let hhh = h * hh;
        let v = u1 * hh;
        let x = r.square() - hhh - v.double();
        Self {
            x,
            y: r * (v - x) - s1 * hhh,
            z: self.z * other.z * h,
        }
    }
}

/// Elements that are two or three others, one after the other.
macro_rules! coordinates {
    ($name:ident: $count:literal slots, $($field:ident: $part:ident from $at:literal),+) => {
        impl<'b> Element<'b, $count> for $name<'b> {
            fn from_parts(parts: [Fp<'b>; $count]) -> Self {
                Self { $($field: $part::from_parts(std::array::from_fn(|index| parts[$at + index]))),+ }
            }

            fn parts(self) -> [Fp<'b>; $count] {
                let parts = [$(self.$field.parts()),+].concat();
                std::array::from_fn(|index| parts[index])
            }
        }
    };
}

coordinates!(Affine2: 4 slots, x: Fp2 from 0, y: Fp2 from 2);
coordinates!(Projective2: 6 slots, x: Fp2 from 0, y: Fp2 from 2, z: Fp2 from 4);
coordinates!(Affine1: 2 slots, x: Fp from 0, y: Fp from 1);
coordinates!(Jacobian1: 3 slots, x: Fp from 0, y: Fp from 1, z: Fp from 2);
