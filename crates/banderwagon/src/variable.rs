//! Sums of products with points that were not known before: Pippenger's buckets.

use crate::{
    Point,
    bits::{Digit, Raised, Signed, digits_of},
    pairs::Addend,
    short::Stored,
    sums::Sums,
};
use arbor_cpu::threads::{self, prelude::*};
use arbor_field::{Fr, Wide, to_limbs_all};
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
const ITEMS_CONVERTED_TOGETHER: usize = 512;

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
        let shares = points.par_chunks_mut(ITEMS_CONVERTED_TOGETHER).enumerate();
        shares.for_each(|(share, to)| {
            let from = share * ITEMS_CONVERTED_TOGETHER;
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
        let raised = Raised::new(bits);
        // For each share of the scalars, position by position, the digits of all.
        let shares: Vec<Vec<Digit>> = scalars
            .par_chunks(ITEMS_CONVERTED_TOGETHER)
            .map(|scalars| {
                let mut digits = vec![0; positions * scalars.len()];
                for (i, number) in to_limbs_all(scalars).into_iter().enumerate() {
                    let to = digits[i..].iter_mut().step_by(scalars.len());
                    let digits = raised.digits(Signed::from(number));
                    to.zip(digits).for_each(|(to, digit)| *to = digit);
                }
                digits
            })
            .collect();
        let threads = match points.len() {
            0..16 => 1,
            _ => threads::current_num_threads(),
        };
        let share = positions.div_ceil(threads);
        let digits = |position: usize| {
            shares.iter().flat_map(move |digits| {
                let count = digits.len() / positions;
                &digits[position * count..][..count]
            })
        };
        let firsts = (0..positions).into_par_iter().step_by(share);
        let windows: Vec<Point> = firsts
            .flat_map_iter(|first| {
                let positions = first..positions.min(first + share);
                window_sums(*wide, points, digits, positions, bits)
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

/// The sum of digit times point for each of these positions, given the points' digits there.
fn window_sums<'d, D: Iterator<Item = &'d Digit>>(
    wide: Wide,
    points: &[Stored],
    digits: impl Fn(usize) -> D,
    positions: Range<usize>,
    bits: usize,
) -> Vec<Point> {
    if points.is_empty() {
        return Vec::new();
    }
    let buckets = 1usize << (bits - 1);
    let mut sums = Sums::new(wide, buckets * positions.len());
    // A point's number times two, and one more for a negative digit.
    let mut order = vec![0u32; points.len()];
    for position in positions.clone() {
        // Points in order of their buckets, by counting; where each bucket begins, and then ends.
        let mut ends = vec![0usize; buckets + 2];
        digits(position).for_each(|digit| ends[usize::from(digit >> 1) + 1] += 1);
        ends[1] = 0;
        for bucket in 1..=buckets {
            ends[bucket + 1] += ends[bucket];
        }
        digits(position).enumerate().for_each(|(i, &digit)| {
            let bucket = usize::from(digit >> 1);
            if bucket != 0 {
                order[ends[bucket]] = (i as u32) << 1 | u32::from(digit & 1);
                ends[bucket] += 1;
            }
        });
        let ends = &ends[1..=buckets];
        sums.push_lists(&order[..ends[buckets - 1]], ends, |&point| Addend {
            point: &points[(point >> 1) as usize],
            negative: point & 1 == 1,
        });
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
