//! Eight elements, one after the other. Nothing is lazy here: every value is below the prime.

use super::{LANES, Lanes};
use crate::{Element, Limbs, Modulus};
use std::array;

#[derive(Clone, Copy)]
pub(super) struct Portable;

impl<M: Modulus> Lanes<M> for Portable {
    type Tight = [Element<M>; LANES];
    type Loose = [Element<M>; LANES];
    type Sum = Self::Tight;
    type Begun = Self::Tight;
    type Product = Self::Tight;
    const RADIX_BITS: u32 = 256;

    #[inline(always)]
    fn load(self, from: [&Limbs; LANES]) -> Self::Tight {
        array::from_fn(|lane| Element::from_montgomery(*from[lane]))
    }

    #[inline(always)]
    fn store(self, value: Self::Tight) -> [Limbs; LANES] {
        array::from_fn(|lane| *value[lane].montgomery())
    }

    #[inline(always)]
    fn splat(self, value: &Limbs) -> Self::Tight {
        [Element::from_montgomery(*value); LANES]
    }

    #[inline(always)]
    fn add(self, a: Self::Tight, b: Self::Tight) -> Self::Loose {
        array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    fn sub(self, a: Self::Tight, b: Self::Tight) -> Self::Loose {
        array::from_fn(|lane| a[lane] - b[lane])
    }

    #[inline(always)]
    fn sub_two(self, a: Self::Tight, b: Self::Tight, c: Self::Tight) -> Self::Loose {
        array::from_fn(|lane| a[lane] - b[lane] - c[lane])
    }

    #[inline(always)]
    fn negate_where(self, a: Self::Tight, lanes: u8) -> Self::Tight {
        array::from_fn(|lane| {
            if lanes >> lane & 1 == 1 {
                -a[lane]
            } else {
                a[lane]
            }
        })
    }

    #[inline(always)]
    fn mul(self, a: Self::Loose, b: Self::Tight) -> Self::Tight {
        array::from_fn(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    fn nothing(self) -> Self::Sum {
        [Element::ZERO; LANES]
    }

    made_at_once!();

    #[inline(always)]
    fn tighten(self, a: Self::Loose) -> Self::Tight {
        a
    }

    #[inline(always)]
    fn loosen(self, a: Self::Tight) -> Self::Loose {
        a
    }
}
