//! Field elements as Rust values with operators: `Fp`, `Fp2 = Fp[i]/(i^2 + 1)`, `Fp6 = Fp2[v]/(v^3 - xi)`, `Fp12 = Fp6[w]/(w^2 - v)`, with `xi = 1 + i`, as
//! BLS12-381 has them.
//!
//! Elements are in Montgomery form and stay below the modulus.

use std::ops::{Add, Mul, Neg, Sub};

use super::body::Body;
pub use super::body::{Element, Fp};
use crate::Operation;

/// The arithmetic that formulas for points are written in.
pub trait Field<'b>:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// x + x.
    #[must_use]
    fn double(self) -> Self {
        self + self
    }

    /// x x.
    #[must_use]
    fn square(self) -> Self;
}

impl<'b> Field<'b> for Fp<'b> {
    fn square(self) -> Self {
        Fp::square(self)
    }
}

impl<'b> Field<'b> for Fp2<'b> {
    fn square(self) -> Self {
        Fp2::square(self)
    }
}

/// c0 + c1 i.
#[derive(Clone, Copy, Debug)]
pub struct Fp2<'b> {
    /// Coefficient of 1.
    pub c0: Fp<'b>,
    /// Coefficient of i.
    pub c1: Fp<'b>,
}

/// c0 + c1 s with s^2 = xi: the subfield of Fp12 in which s = w^3.
#[derive(Clone, Copy, Debug)]
pub struct Fp4<'b> {
    /// Coefficient of 1.
    pub c0: Fp2<'b>,
    /// Coefficient of s.
    pub c1: Fp2<'b>,
}

/// c0 + c1 v + c2 v^2.
#[derive(Clone, Copy, Debug)]
pub struct Fp6<'b> {
    /// Coefficient of 1.
    pub c0: Fp2<'b>,
    /// Coefficient of v.
    pub c1: Fp2<'b>,
    /// Coefficient of v^2.
    pub c2: Fp2<'b>,
}

/// c0 + c1 w.
#[derive(Clone, Copy, Debug)]
pub struct Fp12<'b> {
    /// Coefficient of 1.
    pub c0: Fp6<'b>,
    /// Coefficient of w.
    pub c1: Fp6<'b>,
}

impl<'b> Fp<'b> {
    /// x + x.
    #[must_use]
    pub fn double(self) -> Self {
        self + self
    }

    /// x x.
    #[must_use]
    pub fn square(self) -> Self {
        self * self
    }

    /// [`Body::choose`] of the body that it belongs to.
    #[must_use]
    pub fn choose(self) -> bool {
        self.body.choose()
    }
}

impl<'b> Add for Fp<'b> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.body.compute(Operation::Add, self.id, other.id)
    }
}

impl<'b> Sub for Fp<'b> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.body.compute(Operation::Sub, self.id, other.id)
    }
}

impl<'b> Mul for Fp<'b> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        self.body.compute(Operation::Mul, self.id, other.id)
    }
}

impl<'b> Neg for Fp<'b> {
    type Output = Self;

    fn neg(self) -> Self {
        self.body.zero() - self
    }
}

impl<'b> Element<'b, 1> for Fp<'b> {
    fn from_parts([value]: [Fp<'b>; 1]) -> Self {
        value
    }

    fn parts(self) -> [Fp<'b>; 1] {
        [self]
    }
}

/// Addition, subtraction and negation by coordinates.
macro_rules! coordinatewise {
    ($name:ident { $($part:ident),+ }) => {
        impl<'b> Add for $name<'b> {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                Self { $($part: self.$part + other.$part),+ }
            }
        }

        impl<'b> Sub for $name<'b> {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                Self { $($part: self.$part - other.$part),+ }
            }
        }

        impl<'b> Neg for $name<'b> {
            type Output = Self;

            fn neg(self) -> Self {
                Self { $($part: -self.$part),+ }
            }
        }

        impl<'b> $name<'b> {
            /// x + x.
            #[must_use]
            pub fn double(self) -> Self {
                self + self
            }
        }
    };
}

coordinatewise!(Fp2 { c0, c1 });
coordinatewise!(Fp4 { c0, c1 });
coordinatewise!(Fp6 { c0, c1, c2 });
coordinatewise!(Fp12 { c0, c1 });

impl<'b> Fp2<'b> {
    /// c0 - c1 i: the Frobenius map of Fp2.
    #[must_use]
    pub fn conjugate(self) -> Self {
        Self {
            c0: self.c0,
            c1: -self.c1,
        }
    }

    /// x x: (c0 + c1)(c0 - c1) + 2 c0 c1 i.
    #[must_use]
    pub fn square(self) -> Self {
        let Self { c0, c1 } = self;
        Self {
            c0: (c0 + c1) * (c0 - c1),
            c1: (c0 * c1).double(),
        }
    }

    /// x xi.
    #[must_use]
    pub fn times_xi(self) -> Self {
        Self {
            c0: self.c0 - self.c1,
            c1: self.c0 + self.c1,
        }
    }

    /// x times a residue.
    #[must_use]
    pub fn scale(self, by: Fp<'b>) -> Self {
        Self {
            c0: self.c0 * by,
            c1: self.c1 * by,
        }
    }

    /// 3 x.
    #[must_use]
    pub fn triple(self) -> Self {
        self.double() + self
    }
}

impl<'b> Mul for Fp2<'b> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let low = self.c0 * other.c0;
        let high = self.c1 * other.c1;
        let cross = if self.c0.body.choose() {
            self.c0 * other.c1 + self.c1 * other.c0
        } else {
            (self.c0 + self.c1) * (other.c0 + other.c1) - (low + high)
        };
        Self {
            c0: low - high,
            c1: cross,
        }
    }
}

impl<'b> Element<'b, 2> for Fp2<'b> {
    fn from_parts([c0, c1]: [Fp<'b>; 2]) -> Self {
        Self { c0, c1 }
    }

    fn parts(self) -> [Fp<'b>; 2] {
        [self.c0, self.c1]
    }
}

impl<'b> Fp4<'b> {
    /// x x, where squares of a, b and, unless the product is taken directly, of a + b share their sums, and doubled operands
    /// stand for doubled products.
    #[must_use]
    pub fn square(self) -> Self {
        let Self { c0: a, c1: b } = self;
        let real = |x: Fp2<'b>| (x.c0 + x.c1) * (x.c0 - x.c1);
        let imaginary = |x: Fp2<'b>| x.c0.double() * x.c1;
        let (b_real, b_imaginary) = (real(b), imaginary(b));
        let reals = real(a) + b_real;
        let imaginaries = imaginary(a) + b_imaginary;
        let c0 = Fp2 {
            c0: reals - b_imaginary,
            c1: imaginaries + b_real,
        };
        let c1 = if a.c0.choose() {
            a * b.double()
        } else {
            Fp2 {
                c0: real(a + b) - reals,
                c1: imaginary(a + b) - imaginaries,
            }
        };
        Self { c0, c1 }
    }

    /// x s.
    #[must_use]
    pub fn times_s(self) -> Self {
        Self {
            c0: self.c1.times_xi(),
            c1: self.c0,
        }
    }
}

impl<'b> Mul for Fp4<'b> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let low = self.c0 * other.c0;
        let high = self.c1 * other.c1;
        let both = (self.c0 + self.c1) * (other.c0 + other.c1);
        Self {
            c0: low + high.times_xi(),
            c1: both - (low + high),
        }
    }
}

impl<'b> Fp6<'b> {
    /// 0.
    #[must_use]
    pub fn zero(body: &'b Body) -> Self {
        Self::from_parts([body.zero(); 6])
    }

    /// x v.
    #[must_use]
    pub fn times_v(self) -> Self {
        Self {
            c0: self.c2.times_xi(),
            c1: self.c0,
            c2: self.c1,
        }
    }

    /// x times an element of Fp2.
    #[must_use]
    pub fn scale(self, by: Fp2<'b>) -> Self {
        Self {
            c0: self.c0 * by,
            c1: self.c1 * by,
            c2: self.c2 * by,
        }
    }

    /// x (a + b v), in five multiplications of Fp2.
    #[must_use]
    pub fn times_sparse(self, a: Fp2<'b>, b: Fp2<'b>) -> Self {
        let low = self.c0 * a;
        let middle = self.c1 * b;
        Self {
            c0: low + (self.c2 * b).times_xi(),
            c1: (self.c0 + self.c1) * (a + b) - (low + middle),
            c2: self.c2 * a + middle,
        }
    }
}

impl<'b> Mul for Fp6<'b> {
    type Output = Self;

    /// Karatsuba's method for three terms: six multiplications of Fp2.
    fn mul(self, other: Self) -> Self {
        let (x, y) = (self, other);
        let v0 = x.c0 * y.c0;
        let v1 = x.c1 * y.c1;
        let v2 = x.c2 * y.c2;
        let v12 = (x.c1 + x.c2) * (y.c1 + y.c2) - (v1 + v2);
        let v01 = (x.c0 + x.c1) * (y.c0 + y.c1) - (v0 + v1);
        let v02 = (x.c0 + x.c2) * (y.c0 + y.c2) - (v0 + v2);
        Self {
            c0: v0 + v12.times_xi(),
            c1: v01 + v2.times_xi(),
            c2: v02 + v1,
        }
    }
}

impl<'b> Element<'b, 6> for Fp6<'b> {
    fn from_parts([a, b, c, d, e, f]: [Fp<'b>; 6]) -> Self {
        Self {
            c0: Fp2 { c0: a, c1: b },
            c1: Fp2 { c0: c, c1: d },
            c2: Fp2 { c0: e, c1: f },
        }
    }

    fn parts(self) -> [Fp<'b>; 6] {
        let [[a, b], [c, d], [e, f]] = [self.c0.parts(), self.c1.parts(), self.c2.parts()];
        [a, b, c, d, e, f]
    }
}

impl<'b> Fp12<'b> {
    /// c0 - c1 w: the inverse of an element of the cyclotomic subgroup, and the map x -> x^(p^6) of any.
    #[must_use]
    pub fn conjugate(self) -> Self {
        Self {
            c0: self.c0,
            c1: -self.c1,
        }
    }

    /// The coefficients of 1, w, w^2 up to w^5.
    #[must_use]
    pub fn powers_of_w(self) -> [Fp2<'b>; 6] {
        let Self { c0, c1 } = self;
        [c0.c0, c1.c0, c0.c1, c1.c1, c0.c2, c1.c2]
    }

    /// The inverse of [`Self::powers_of_w`].
    #[must_use]
    pub fn from_powers_of_w([g0, g1, g2, g3, g4, g5]: [Fp2<'b>; 6]) -> Self {
        Self {
            c0: Fp6 {
                c0: g0,
                c1: g2,
                c2: g4,
            },
            c1: Fp6 {
                c0: g1,
                c1: g3,
                c2: g5,
            },
        }
    }

    /// The three elements of Fp4 with x = a + b w + c w^2.
    fn over_fp4(self) -> [Fp4<'b>; 3] {
        let [g0, g1, g2, g3, g4, g5] = self.powers_of_w();
        [(g0, g3), (g1, g4), (g2, g5)].map(|(c0, c1)| Fp4 { c0, c1 })
    }

    fn from_fp4([a, b, c]: [Fp4<'b>; 3]) -> Self {
        Self::from_powers_of_w([a.c0, b.c0, c.c0, a.c1, b.c1, c.c1])
    }

    /// x x for any x, over Fp4: Chung and Hasan's second method ("Asymmetric squaring formulae", 2007), three squarings and two multiplications.
    #[must_use]
    pub fn square(self) -> Self {
        let [a, b, c] = self.over_fp4();
        let s0 = a.square();
        let s1 = a * b.double();
        let s2 = (a - b + c).square();
        let s3 = c * b.double();
        let s4 = c.square();
        Self::from_fp4([
            s0 + s3.times_s(),
            s1 + s4.times_s(),
            s1 + s2 + s3 - (s0 + s4),
        ])
    }

    /// 3 x x from 3 x, for x in the cyclotomic subgroup: Granger and Scott ("Faster squaring in the cyclotomic subgroup", 2010), three
    /// squarings of Fp4.
    ///
    /// They give 3 s - 2 x or 3 s + 2 x for each square s. The product of two tripled values is nine times that of the values, which is three
    /// times the tripled one: so it is s that comes out tripled, at no cost.
    #[must_use]
    pub fn tripled_cyclotomic_square(self) -> Self {
        let [a, b, c] = self.over_fp4();
        let (aa, bb, ccs) = (a.square(), b.square(), c.square().times_s());
        let fp4 = |c0, c1| Fp4 { c0, c1 };
        Self::from_fp4([
            fp4(aa.c0 - a.c0.double(), aa.c1 + a.c1.double()),
            fp4(ccs.c0 + b.c0.double(), ccs.c1 - b.c1.double()),
            fp4(bb.c0 - c.c0.double(), bb.c1 + c.c1.double()),
        ])
    }

    /// Each coordinate times a residue.
    #[must_use]
    pub fn scale(self, by: Fp<'b>) -> Self {
        Self::from_parts(self.parts().map(|part| part * by))
    }

    /// x (a + b v + c v w): a line of the Miller loop on a twist of type M, in thirteen multiplications of Fp2.
    #[must_use]
    pub fn times_line(self, line: Line<'b>) -> Self {
        let Line { a, b, c } = line;
        let low = self.c0.times_sparse(a, b);
        let high = Fp6 {
            c0: (self.c1.c2 * c).times_xi(),
            c1: self.c1.c0 * c,
            c2: self.c1.c1 * c,
        };
        let both = (self.c0 + self.c1).times_sparse(a, b + c);
        Self {
            c0: low + high.times_v(),
            c1: both - (low + high),
        }
    }
}

impl<'b> Mul for Fp12<'b> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let low = self.c0 * other.c0;
        let high = self.c1 * other.c1;
        let both = (self.c0 + self.c1) * (other.c0 + other.c1);
        Self {
            c0: low + high.times_v(),
            c1: both - (low + high),
        }
    }
}

impl<'b> Element<'b, 12> for Fp12<'b> {
    fn from_parts(parts: [Fp<'b>; 12]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = parts;
        Self {
            c0: Fp6::from_parts([a, b, c, d, e, f]),
            c1: Fp6::from_parts([g, h, i, j, k, l]),
        }
    }

    fn parts(self) -> [Fp<'b>; 12] {
        let [a, b, c, d, e, f] = self.c0.parts();
        let [g, h, i, j, k, l] = self.c1.parts();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }
}

/// a + b v + c v w.
#[derive(Clone, Copy, Debug)]
pub struct Line<'b> {
    /// Coefficient of 1.
    pub a: Fp2<'b>,
    /// Coefficient of v.
    pub b: Fp2<'b>,
    /// Coefficient of v w.
    pub c: Fp2<'b>,
}

impl<'b> Element<'b, 6> for Line<'b> {
    fn from_parts([a, b, c, d, e, f]: [Fp<'b>; 6]) -> Self {
        Self {
            a: Fp2 { c0: a, c1: b },
            b: Fp2 { c0: c, c1: d },
            c: Fp2 { c0: e, c1: f },
        }
    }

    fn parts(self) -> [Fp<'b>; 6] {
        let [[a, b], [c, d], [e, f]] = [self.a.parts(), self.b.parts(), self.c.parts()];
        [a, b, c, d, e, f]
    }
}
