//! Polynomials of degree below 256, given by their values at 0 to 255.

use crate::crs::WIDTH;
use arbor_banderwagon::Fr;
use arbor_cpu::threads::{self, prelude::*};
use arbor_field::{Job, LANES, Lanes, SUMMED, Scalar, Wide, invert_all};
use std::sync::LazyLock;

/// A polynomial by its values at 0 to 255.
pub type Polynomial = [Fr; WIDTH];

/// What depends on the domain alone. A(X) is the product of X - i.
pub(crate) struct Domain {
    /// A'(i), the product of i - j over all other j.
    derivatives: Vec<Fr>,
    /// 1 / A'(i).
    derivative_inverses: Vec<Fr>,
    /// 1 / d for differences d from -255 to 255, and 0 for 0.
    difference_inverses: Vec<Fr>,
}

static DOMAIN: LazyLock<Domain> = LazyLock::new(|| {
    let points: Vec<_> = (0..WIDTH as u64).map(Fr::from).collect();
    let derivative = |&i: &Fr| {
        points
            .iter()
            .map(|&j| i - j)
            .filter(|d| !d.is_zero())
            .product()
    };
    let derivatives: Vec<Fr> = points.iter().map(derivative).collect();
    let mut derivative_inverses = derivatives.clone();
    invert_all(&mut derivative_inverses);
    let negative = points.iter().skip(1).rev().map(|&d| -d);
    let mut difference_inverses: Vec<_> = negative.chain(points.iter().copied()).collect();
    invert_all(&mut difference_inverses);
    Domain {
        derivatives,
        derivative_inverses,
        difference_inverses,
    }
});

impl Domain {
    pub(crate) fn get() -> &'static Self {
        &DOMAIN
    }

    /// The vector b with f(z) = <f, b> for all f: Lagrange's coefficients, a unit vector inside the domain.
    pub(crate) fn evaluation_vector(&self, z: Fr) -> Vec<Fr> {
        let mut factors: Vec<_> = (0..WIDTH as u64).map(|i| z - Fr::from(i)).collect();
        let product: Fr = factors.iter().copied().product();
        if product.is_zero() {
            let unit = |factor: &Fr| if factor.is_zero() { Fr::ONE } else { Fr::ZERO };
            return factors.iter().map(unit).collect();
        }
        invert_all(&mut factors);
        let coefficients = factors.iter().zip(&self.derivative_inverses);
        coefficients
            .map(|(&factor, &inverse)| product * factor * inverse)
            .collect()
    }

    /// The sum of the polynomials (f(X) - f(z)) / (X - z), for some z and f.
    pub(crate) fn sum_of_quotients(
        &self,
        polynomials: &[(usize, Box<Polynomial>)],
    ) -> Box<Polynomial> {
        let share = polynomials
            .len()
            .div_ceil(threads::current_num_threads())
            .max(16);
        let wide = Wide::detect();
        let parts = polynomials.par_chunks(share).map(|polynomials| {
            wide.run(SumOfQuotients {
                domain: self,
                polynomials,
            })
        });
        parts.reduce(zero, |a, b| add(a, &b))
    }
}

pub(crate) fn zero() -> Box<Polynomial> {
    Box::new([Fr::ZERO; WIDTH])
}

pub(crate) fn add(mut a: Box<Polynomial>, b: &Polynomial) -> Box<Polynomial> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += *b);
    a
}

/// In lanes. Elements are loaded in their own radix, and the factors which that makes are taken out at the end.
struct SumOfQuotients<'a> {
    domain: &'a Domain,
    polynomials: &'a [(usize, Box<Polynomial>)],
}

impl Job<Scalar> for SumOfQuotients<'_> {
    type Output = Box<Polynomial>;

    #[inline(always)]
    fn run<L: Lanes<Scalar>>(self, lanes: L) -> Box<Polynomial> {
        let Domain {
            derivatives,
            derivative_inverses,
            difference_inverses,
        } = self.domain;
        let factor = lanes.leave(Fr::ONE.montgomery()).inverse();
        let twice = lanes.splat(&lanes.enter(factor.square()));
        let thrice = lanes.splat(&lanes.enter(factor.square() * factor));
        let mut sums = [lanes.splat(&[0; 4]); WIDTH / LANES];
        let mut result = zero();
        for (z, polynomial) in self.polynomials {
            let at_z = lanes.splat(polynomial[*z].montgomery());
            let mut diagonal = lanes.nothing();
            // 1 / (j - z) for j from 0 on. At z itself numerator and inverse are zero.
            let (inverses, _) = difference_inverses[WIDTH - 1 - z..].as_chunks::<LANES>();
            let (weights, _) = derivative_inverses.as_chunks::<LANES>();
            let (values, _) = polynomial.as_chunks::<LANES>();
            const { assert!(WIDTH / LANES <= SUMMED) };
            for i in 0..WIDTH / LANES {
                let numerator = lanes.sub(load(lanes, &values[i]), at_z);
                let quotient = lanes.mul(numerator, load(lanes, &inverses[i]));
                sums[i] = lanes.tighten(lanes.add(sums[i], quotient));
                diagonal = lanes.add_product(diagonal, quotient, load(lanes, &weights[i]));
            }
            let diagonal: Fr = lanes
                .leave_all(lanes.times(lanes.total(diagonal), thrice))
                .into_iter()
                .sum();
            result[*z] -= diagonal * derivatives[*z];
        }
        for (result, sum) in result.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
            let sum = lanes.leave_all(lanes.times(sum, twice));
            for (result, sum) in result.iter_mut().zip(sum) {
                *result += sum;
            }
        }
        result
    }
}

/// Elements as they are.
#[inline(always)]
pub(crate) fn load<L: Lanes<Scalar>>(lanes: L, elements: &[Fr; LANES]) -> L::Tight {
    let [a, b, c, d, e, f, g, h] = elements;
    lanes.load([a, b, c, d, e, f, g, h].map(Fr::montgomery))
}

/// The sum of products.
pub(crate) fn inner_product(a: &[Fr], b: &[Fr]) -> Fr {
    a.iter().zip(b).map(|(&a, &b)| a * b).sum()
}
