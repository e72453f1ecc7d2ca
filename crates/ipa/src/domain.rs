//! Polynomials of degree below 256, given by their values at 0 to 255.

use crate::crs::WIDTH;
use arbor_banderwagon::Fr;
use arbor_field::invert_all;
use std::sync::LazyLock;

/// What depends on the domain alone. A(X) is the product of X - i.
pub(crate) struct Domain {
    /// A'(i), the product of i - j over all other j.
    derivatives: Vec<Fr>,
    /// 1 / A'(i).
    derivative_inverses: Vec<Fr>,
    /// 1 / i, and 0 for 0.
    inverses: Vec<Fr>,
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
    let (mut derivative_inverses, mut inverses) = (derivatives.clone(), points);
    invert_all(&mut derivative_inverses);
    invert_all(&mut inverses);
    Domain {
        derivatives,
        derivative_inverses,
        inverses,
    }
});

impl Domain {
    pub(crate) fn get() -> &'static Self {
        &DOMAIN
    }

    /// 1 / (i - j) for different i and j.
    fn inverse_difference(&self, i: usize, j: usize) -> Fr {
        if i > j {
            self.inverses[i - j]
        } else {
            -self.inverses[j - i]
        }
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

    /// Adds (f(X) - f(z)) / (X - z), a polynomial, to `sum`.
    pub(crate) fn add_quotient(&self, f: &[Fr], z: usize, sum: &mut [Fr]) {
        let mut at_z = Fr::ZERO;
        for j in (0..WIDTH).filter(|&j| j != z) {
            let quotient = (f[j] - f[z]) * self.inverse_difference(j, z);
            sum[j] += quotient;
            at_z -= quotient * self.derivative_inverses[j];
        }
        sum[z] += at_z * self.derivatives[z];
    }
}

/// The sum of products.
pub(crate) fn inner_product(a: &[Fr], b: &[Fr]) -> Fr {
    a.iter().zip(b).map(|(&a, &b)| a * b).sum()
}
