//! Points in extended coordinates in lanes: sums of eight pairs, where no inversion is worth its time.
//!
//! All four coordinates may have a common factor, so that elements are loaded and left as they are, whatever the lanes' radix.

use crate::{Point, curve::D};
use arbor_field::{Base, Fp, Job, LANES, Lanes, Wide};

/// Points from which on lanes take less time than single additions.
const ENOUGH: usize = 3;

impl Point {
    /// Adds to each point another.
    ///
    /// # Panics
    ///
    /// If the slices' lengths differ.
    pub fn add_all(points: &mut [Self], others: &[Self]) {
        Self::add_all_on(Wide::detect(), points, others);
    }

    /// As [`Self::add_all`], with lanes of the caller's choice.
    pub fn add_all_on(wide: Wide, points: &mut [Self], others: &[Self]) {
        assert_eq!(points.len(), others.len(), "another point for each");
        for (points, others) in points.chunks_mut(LANES).zip(others.chunks(LANES)) {
            if points.len() < ENOUGH {
                for (point, other) in points.iter_mut().zip(others) {
                    *point += *other;
                }
            } else {
                wide.run(AddAll { points, others });
            }
        }
    }

    /// For each list the sum of its points times powers of two: the last one once, the one before twice, and so on.
    pub(crate) fn join_all(wide: Wide, lists: &[&[Self]]) -> Vec<Self> {
        let join = |sum: Self, point: &Self| sum.double() + *point;
        let (long, short): (Vec<usize>, _) = (0..lists.len()).partition(|&i| lists[i].len() > 1);
        let mut sums = vec![Self::IDENTITY; lists.len()];
        for i in short {
            sums[i] = lists[i].first().copied().unwrap_or_default();
        }
        for some in long.chunks(LANES) {
            let lists: Vec<_> = some.iter().map(|&i| lists[i]).collect();
            let joined = if lists.len() < ENOUGH {
                let joined = lists.iter();
                joined
                    .map(|list| list.iter().fold(Self::IDENTITY, join))
                    .collect()
            } else {
                wide.run(JoinAll { lists: &lists })
            };
            for (&i, sum) in some.iter().zip(joined) {
                sums[i] = sum;
            }
        }
        sums
    }
}

/// Eight points.
#[derive(Clone, Copy)]
pub(crate) struct Eight<T> {
    pub(crate) x: T,
    pub(crate) y: T,
    pub(crate) z: T,
    pub(crate) t: T,
}

/// Up to eight points, and neutral elements.
#[inline(always)]
pub(crate) fn eight(points: &[Point]) -> [Point; LANES] {
    let mut all = [Point::IDENTITY; LANES];
    all[..points.len()].copy_from_slice(points);
    all
}

#[inline(always)]
pub(crate) fn load<L: Lanes<Base>>(lanes: L, points: [Point; LANES]) -> Eight<L::Tight> {
    Eight {
        x: lanes.load_multiples(points.map(|point| point.x)),
        y: lanes.load_multiples(points.map(|point| point.y)),
        z: lanes.load_multiples(points.map(|point| point.z)),
        t: lanes.load_multiples(points.map(|point| point.t)),
    }
}

#[inline(always)]
pub(crate) fn leave<L: Lanes<Base>>(lanes: L, points: Eight<L::Tight>) -> [Point; LANES] {
    let (x, y) = (
        lanes.leave_multiples(points.x),
        lanes.leave_multiples(points.y),
    );
    let (z, t) = (
        lanes.leave_multiples(points.z),
        lanes.leave_multiples(points.t),
    );
    let mut all = [Point::IDENTITY; LANES];
    for (lane, point) in all.iter_mut().enumerate() {
        *point = Point {
            x: x[lane],
            y: y[lane],
            z: z[lane],
            t: t[lane],
        };
    }
    all
}

/// As the addition of single points.
#[inline(always)]
pub(crate) fn add<L: Lanes<Base>>(
    lanes: L,
    a: Eight<L::Tight>,
    b: Eight<L::Tight>,
    d: L::Tight,
) -> Eight<L::Tight> {
    let [xx, yy] = lanes.times_two([a.x, a.y], [b.x, b.y]);
    let [tt, zz] = lanes.times_two([a.t, a.z], [b.t, b.z]);
    let sums = lanes.tighten(lanes.add(b.x, b.y));
    let [tt, sums] = lanes.mul_two([lanes.loosen(tt), lanes.add(a.x, a.y)], [d, sums]);
    let e = lanes.sub_two(sums, xx, yy);
    let f = lanes.tighten(lanes.sub(zz, tt));
    let g = lanes.tighten(lanes.add(zz, tt));
    let h = lanes.tighten(lanes.add(yy, times_five(lanes, xx)));
    let [x, t] = lanes.mul_two([e, e], [f, h]);
    let [y, z] = lanes.times_two([g, f], [h, g]);
    Eight { x, y, z, t }
}

/// As the doubling of single points.
#[inline(always)]
fn double<L: Lanes<Base>>(lanes: L, a: Eight<L::Tight>) -> Eight<L::Tight> {
    let [xx, yy] = lanes.square_two([a.x, a.y]);
    let sum = lanes.tighten(lanes.add(a.x, a.y));
    let [zz, sum] = lanes.square_two([a.z, sum]);
    let e = lanes.sub_two(sum, xx, yy);
    let axx = lanes.tighten(lanes.sub(lanes.splat(&[0; 4]), times_five(lanes, xx)));
    let g = lanes.tighten(lanes.add(axx, yy));
    let h = lanes.tighten(lanes.sub(axx, yy));
    let f = lanes.tighten(lanes.sub_two(g, zz, zz));
    let [x, t] = lanes.mul_two([e, e], [f, h]);
    let [y, z] = lanes.times_two([g, f], [h, g]);
    Eight { x, y, z, t }
}

#[inline(always)]
pub(crate) fn times_five<L: Lanes<Base>>(lanes: L, a: L::Tight) -> L::Tight {
    let twice = lanes.tighten(lanes.add(a, a));
    let four = lanes.tighten(lanes.add(twice, twice));
    lanes.tighten(lanes.add(four, a))
}

#[inline(always)]
pub(crate) fn constant<L: Lanes<Base>>(lanes: L, constant: Fp) -> L::Tight {
    lanes.splat(&lanes.enter(constant))
}

struct AddAll<'a> {
    points: &'a mut [Point],
    others: &'a [Point],
}

impl Job<Base> for AddAll<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) {
        let (a, b) = (
            load(lanes, eight(self.points)),
            load(lanes, eight(self.others)),
        );
        let sums = add(lanes, a, b, constant(lanes, D));
        let sums = leave(lanes, sums);
        self.points.copy_from_slice(&sums[..self.points.len()]);
    }
}

struct JoinAll<'a> {
    lists: &'a [&'a [Point]],
}

impl Job<Base> for JoinAll<'_> {
    type Output = Vec<Point>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Point> {
        let d = constant(lanes, D);
        let mut sum = load(lanes, [Point::IDENTITY; LANES]);
        let rows = self.lists.iter().map(|list| list.len()).max();
        for row in (0..rows.unwrap_or(0)).rev() {
            let mut points = [Point::IDENTITY; LANES];
            for (point, list) in points.iter_mut().zip(self.lists) {
                *point = list.iter().rev().nth(row).copied().unwrap_or_default();
            }
            sum = add(lanes, double(lanes, sum), load(lanes, points), d);
        }
        leave(lanes, sum)[..self.lists.len()].to_vec()
    }
}
