//! Sums of products with points that were not known before: Pippenger's buckets.

use crate::{
    Point,
    bits::{Signed, digits_of, for_digits},
    short::{Affine, Stored},
    sums::{Enter, Sums},
};
use arbor_field::{Fr, Wide};
use rayon::prelude::*;

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
    assert_eq!(points.len(), scalars.len(), "a scalar for each point");
    let wide = Wide::detect();
    let stored = wide.run(Enter(&Affine::from_points(points)));
    let signed: Vec<_> = scalars.iter().map(|&scalar| Signed::from(scalar)).collect();
    let bits = bucket_bits(points.len());
    let positions = digits_of(bits);

    // digits[position][i]
    let mut digits = vec![0i16; positions * points.len()];
    for (i, scalar) in signed.iter().enumerate() {
        for_digits(scalar, bits, |position, digit| {
            digits[position * points.len() + i] = digit as i16;
        });
    }
    let threads = rayon::current_num_threads();
    let share = positions.div_ceil(threads).max(1);
    let windows: Vec<Point> = if threads == 1 || points.len() < 16 {
        window_sums(wide, &stored, &digits, bits)
    } else {
        digits
            .par_chunks(share * points.len())
            .flat_map_iter(|digits| window_sums(wide, &stored, digits, bits))
            .collect()
    };
    let join = |sum: Point, window: &Point| sum.double_times(bits) + *window;
    windows.iter().rev().fold(Point::IDENTITY, join)
}

/// Bits of a digit that make the fewest additions: a position costs one for each point and two for each bucket.
fn bucket_bits(points: usize) -> usize {
    let cost = |bits: &usize| digits_of(*bits) * (points + (2 << (bits - 1)));
    (2..14).min_by_key(cost).unwrap_or(2)
}

/// The sum of digit times point for some positions.
fn window_sums(wide: Wide, points: &[Stored], digits: &[i16], bits: usize) -> Vec<Point> {
    if points.is_empty() {
        return Vec::new();
    }
    let buckets = 1usize << (bits - 1);
    let positions = digits.len() / points.len();
    let mut sums = Sums::new(wide);
    for digits in digits.chunks(points.len()) {
        // Points in order of their buckets, by counting.
        let mut ends = vec![0u32; buckets + 1];
        for digit in digits {
            ends[usize::from(digit.unsigned_abs())] += 1;
        }
        ends[0] = 0;
        for bucket in 1..=buckets {
            ends[bucket] += ends[bucket - 1];
        }
        let used = ends[buckets] as usize;
        let mut order = vec![0u32; used];
        for (i, digit) in digits.iter().enumerate().rev() {
            if *digit != 0 {
                let end = &mut ends[usize::from(digit.unsigned_abs())];
                *end -= 1;
                order[*end as usize] = i as u32;
            }
        }
        // ends[b] is now where bucket b begins.
        for bucket in 1..=buckets {
            let end = ends.get(bucket + 1).map_or(used, |&end| end as usize);
            for &i in &order[ends[bucket] as usize..end] {
                sums.push(&points[i as usize], digits[i as usize] < 0);
            }
            sums.close();
        }
    }
    // Bucket k of a position is now at index k - 1. Odd k are at even indices; the pair (2i, 2i + 1) becomes bucket i of the next round.
    let mut buckets = sums.into_stored();
    let mut aside = Vec::new();
    while !buckets.is_empty() {
        let size = buckets.len() / positions;
        let (mut odd, mut joined) = (Sums::new(wide), Sums::new(wide));
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
