//! Sums of products with points that were not known before: Pippenger's buckets.

use crate::{
    Point,
    bits::{Raised, Signed, digits_of},
    short::Stored,
    sums::Sums,
};
use arbor_field::{Fr, Wide, to_limbs_all};
use rayon::prelude::*;
use std::ops::Range;

/// The sum of `scalars[i] * points[i]`, on all threads of the current pool.
///
/// In signed digits of w bits, each digit position adds a point to the bucket of its digit's size; a bucket is one list of points to sum. Then the sum of
/// k times bucket k is made by halving: the odd buckets' sum is put aside, neighbours are joined, and what is put aside in round r counts 2^r times.
///
/// # Panics
///
/// If the slices' lengths differ.
#[must_use]
pub fn sum_of_products(points: &[Point], scalars: &[Fr]) -> Point {
    VariableBase::new(points.len(), |i| points[i]).sum(scalars)
}

/// Points that were not known before, ready for a sum of products. Making it takes most of the work that does not depend on the scalars.
pub struct VariableBase {
    wide: Wide,
    points: Vec<Stored>,
}

/// Points or scalars that are brought into another form together, on one thread.
const TOGETHER: usize = 512;

impl VariableBase {
    /// `count` points, on all threads of the current pool.
    #[must_use]
    pub fn new(count: usize, point: impl Fn(usize) -> Point + Sync) -> Self {
        Self::on(Wide::detect(), count, point)
    }

    /// As [`Self::new`], with lanes of the caller's choice.
    #[must_use]
    pub fn on(wide: Wide, count: usize, point: impl Fn(usize) -> Point + Sync) -> Self {
        let mut points = vec![Stored::default(); count];
        let shares = points.par_chunks_mut(TOGETHER).enumerate();
        shares.for_each(|(share, to)| {
            let from = share * TOGETHER;
            let points: Vec<_> = (from..from + to.len()).map(&point).collect();
            to.copy_from_slice(&Stored::from_points(wide, &points));
        });
        Self { wide, points }
    }

    /// How many points there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The sum of the points' products with these scalars, on all threads of the current pool.
    ///
    /// # Panics
    ///
    /// If there is not one scalar for each point.
    #[must_use]
    pub fn sum(&self, scalars: &[Fr]) -> Point {
        let Self { wide, points } = self;
        assert_eq!(points.len(), scalars.len(), "a scalar for each point");
        let bits = bucket_bits(points.len());
        let positions = digits_of(bits);
        let offset = Raised::offset(bits);
        let mut raised = vec![Raised::default(); scalars.len()];
        let shares = scalars
            .par_chunks(TOGETHER)
            .zip(raised.par_chunks_mut(TOGETHER));
        shares.for_each(|(scalars, raised)| {
            for (to, number) in raised.iter_mut().zip(to_limbs_all(scalars)) {
                *to = Raised::new(&Signed::from(number), &offset);
            }
        });
        let threads = match points.len() {
            0..16 => 1,
            _ => rayon::current_num_threads(),
        };
        let share = positions.div_ceil(threads);
        let shares = (0..positions).into_par_iter().step_by(share);
        let windows: Vec<Point> = shares
            .flat_map_iter(|first| {
                let positions = first..positions.min(first + share);
                window_sums(*wide, points, &raised, positions, bits)
            })
            .collect();
        let join = |sum: Point, window: &Point| sum.double_times(bits) + *window;
        windows.iter().rev().fold(Point::IDENTITY, join)
    }
}

/// Bits of a digit that make the fewest additions: a position costs one for each point and two for each bucket.
fn bucket_bits(points: usize) -> usize {
    let cost = |bits: &usize| digits_of(*bits) * (points + (2 << (bits - 1)));
    (2..14).min_by_key(cost).unwrap_or(2)
}

/// The sum of digit times point for each of these positions.
fn window_sums(
    wide: Wide,
    points: &[Stored],
    scalars: &[Raised],
    positions: Range<usize>,
    bits: usize,
) -> Vec<Point> {
    if points.is_empty() {
        return Vec::new();
    }
    let buckets = 1usize << (bits - 1);
    let mut sums = Sums::new(wide, buckets * positions.len());
    let mut digits = Vec::with_capacity(points.len());
    // A number times two, and one more for a negative digit.
    let mut order = vec![0u32; points.len()];
    for position in positions.clone() {
        // Points in order of their buckets, by counting.
        digits.clear();
        let mut ends = vec![0u32; buckets + 1];
        for scalar in scalars {
            let (size, negative) = scalar.digit(position, bits);
            ends[size] += 1;
            digits.push((size << 1) as u32 | u32::from(negative));
        }
        ends[0] = 0;
        for bucket in 1..=buckets {
            ends[bucket] += ends[bucket - 1];
        }
        let used = ends[buckets] as usize;
        for (i, digit) in digits.iter().enumerate().rev() {
            let size = (digit >> 1) as usize;
            if size != 0 {
                ends[size] -= 1;
                order[ends[size] as usize] = (i as u32) << 1 | digit & 1;
            }
        }
        // ends[b] is now where bucket b begins.
        for bucket in 1..=buckets {
            let end = ends.get(bucket + 1).map_or(used, |&end| end as usize);
            for i in &order[ends[bucket] as usize..end] {
                sums.push(&points[(i >> 1) as usize], i & 1 == 1);
            }
            sums.close();
        }
    }
    let positions = positions.len();
    // Bucket k of a position is now at index k - 1. Odd k are at even indices; the pair (2i, 2i + 1) becomes bucket i of the next round.
    let mut buckets = sums.into_stored();
    let mut aside = Vec::new();
    while !buckets.is_empty() {
        let size = buckets.len() / positions;
        let mut odd = Sums::new(wide, positions);
        let mut joined = Sums::new(wide, size / 2 * positions);
        for buckets in buckets.chunks(size) {
            // Without empty buckets: of two of those the sum would be that of equal points.
            let filled = |k: &usize| buckets.get(*k).is_some_and(|bucket| !bucket.is_identity());
            for k in (0..size).step_by(2).filter(filled) {
                odd.push(&buckets[k], false);
            }
            odd.close();
            for i in 1..=size / 2 {
                for k in [2 * i - 1, 2 * i].iter().filter(|k| filled(k)) {
                    joined.push(&buckets[*k], false);
                }
                joined.close();
            }
        }
        aside.push(odd.into_points());
        buckets = if size == 1 {
            Vec::new()
        } else {
            joined.into_stored()
        };
    }
    (0..positions)
        .map(|position| {
            let rounds = aside.iter().rev();
            rounds.fold(Point::IDENTITY, |sum, round| sum.double() + round[position])
        })
        .collect()
}
