//! The bound that everything is held against: products of field elements in lanes.

use crate::measure::Budget;
use arbor_field::{Base, Fp, Job, LANES, Lanes, Limbs, Wide};

/// Products of an addition of affine points in a batch: five, and a square.
pub(super) const PRODUCTS_OF_AN_ADDITION: f64 = 6.0;

/// One product in the lanes of the process, four independent chains of vectors at a time.
pub(super) fn lane_product_ns(budget: Budget) -> f64 {
    let stored: [Limbs; LANES] = std::array::from_fn(|i| *Fp::from(i as u64 + 3).montgomery());
    let sample = budget.sample(4 * ROUNDS * LANES, || Wide::detect().run(Products(stored)));
    sample.ns
}

const ROUNDS: usize = 256;

struct Products([Limbs; LANES]);

impl Job<Base> for Products {
    type Output = [Limbs; LANES];

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let a = lanes.load(self.0.each_ref());
        let mut x = [a, lanes.square(a), lanes.tighten(lanes.add(a, a)), a];
        for _ in 0..ROUNDS {
            for x in &mut x {
                *x = lanes.times(*x, a);
            }
        }
        let left = lanes.tighten(lanes.add(x[0], x[1]));
        let right = lanes.tighten(lanes.add(x[2], x[3]));
        lanes.store(lanes.times(left, right))
    }
}
