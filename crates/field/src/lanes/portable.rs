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

    #[inline(always)]
    fn add_product(self, sum: Self::Sum, a: Self::Tight, b: Self::Tight) -> Self::Sum {
        let product = <Self as Lanes<M>>::times(self, a, b);
        <Self as Lanes<M>>::tighten(self, <Self as Lanes<M>>::add(self, sum, product))
    }

    #[inline(always)]
    fn total(self, sum: Self::Sum) -> Self::Tight {
        sum
    }

    #[inline(always)]
    fn begin(self, a: Self::Loose, b: Self::Tight) -> Self::Tight {
        <Self as Lanes<M>>::mul(self, a, b)
    }

    #[inline(always)]
    fn turn(
        self,
        begun: Self::Tight,
        a: Self::Loose,
        b: Self::Tight,
    ) -> (Self::Tight, Self::Tight) {
        (begun, <Self as Lanes<M>>::mul(self, a, b))
    }

    #[inline(always)]
    fn turn_square(self, begun: Self::Tight, a: Self::Tight) -> (Self::Tight, Self::Tight) {
        (begun, <Self as Lanes<M>>::square(self, a))
    }

    #[inline(always)]
    fn settle(self, product: Self::Tight) -> Self::Tight {
        product
    }

    #[inline(always)]
    fn less(self, product: Self::Tight, b: Self::Tight) -> Self::Tight {
        let difference = <Self as Lanes<M>>::sub(self, product, b);
        <Self as Lanes<M>>::tighten(self, difference)
    }

    #[inline(always)]
    fn less_two(self, product: Self::Tight, b: Self::Tight, c: Self::Tight) -> Self::Tight {
        let difference = <Self as Lanes<M>>::sub_two(self, product, b, c);
        <Self as Lanes<M>>::tighten(self, difference)
    }

    #[inline(always)]
    fn tighten(self, a: Self::Loose) -> Self::Tight {
        a
    }

    #[inline(always)]
    fn loosen(self, a: Self::Tight) -> Self::Loose {
        a
    }
}
