//! Sums of many independent lists of points: what all commitments come down to.
//!
//! Points are added in pairs, affine with affine, the lists of a batch together, again and again until each list is one point. One round's slopes are
//! divided with a single inversion (Montgomery's trick in eight lanes), so that an addition costs five multiplications and a squaring. When
//! fewer than [`FEW`] pairs are left, an inversion would cost more than it saves: what remains is added without.

use crate::{
    Point,
    short::{Affine, Running, Stored},
};
use arbor_field::{Base, Fp, Job, LANES, Lanes, Wide, invert_all, negate_stored};
use arbor_metrics::POINT_ADDITIONS;

/// Terms that are collected before a round is made: 128 KiB of points, which stay in the second cache together with the products.
const CAPACITY: usize = 2048;

/// Pairs from which on a round with an inversion pays.
const FEW: usize = 10;

/// The sum of points `first` and `second` goes to `to`.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    pub(crate) to: u32,
}

/// Lists of points that are being summed.
pub(crate) struct Sums {
    wide: Wide,
    /// The lists' terms one after another; shorter after every round.
    terms: Vec<Stored>,
    /// Where each list that is not in `done` begins; the last one is open.
    starts: Vec<usize>,
    /// Sums of the first lists.
    done: Vec<Stored>,
    /// The sum of an empty list.
    identity: Stored,
    /// Length of `terms` at which the next round is made.
    limit: usize,
    pairs: Vec<Pair>,
}

impl Sums {
    pub(crate) fn new(wide: Wide) -> Self {
        Self {
            wide,
            terms: Vec::with_capacity(CAPACITY),
            starts: vec![0],
            done: Vec::new(),
            identity: wide.run(Enter(&[Affine::identity()]))[0],
            limit: CAPACITY,
            pairs: Vec::new(),
        }
    }

    /// Adds a term to the open list.
    #[inline]
    pub(crate) fn push(&mut self, term: &Stored) {
        if self.terms.len() >= self.limit {
            self.make_room();
        }
        self.terms.push(*term);
    }

    /// Adds or subtracts terms of tables.
    ///
    /// Tables are larger than any cache, and signs are random. So all terms are touched first, whose loads wait for memory together, and signs are
    /// applied without a branch.
    #[inline]
    pub(crate) fn push_signed(&mut self, terms: &[(&Stored, bool)]) {
        for terms in terms.chunks(64) {
            let touch = |sum: u64, (term, _): &(&Stored, bool)| sum ^ term.x[0];
            std::hint::black_box(terms.iter().fold(0, touch));
            for (term, negative) in terms {
                let mask = u64::from(*negative).wrapping_neg();
                let opposite = negate_stored::<Base>(&term.y);
                let y = std::array::from_fn(|i| term.y[i] ^ (term.y[i] ^ opposite[i]) & mask);
                self.push(&Stored { x: term.x, y });
            }
        }
    }

    /// Ends the open list and opens the next.
    pub(crate) fn close(&mut self) {
        self.starts.push(self.terms.len());
    }

    /// The sums of all closed lists.
    pub(crate) fn into_points(mut self) -> Vec<Point> {
        self.rounds(0, FEW);
        let wide = self.wide;
        wide.run(Finish { sums: self })
    }

    /// The sums of all closed lists in affine form.
    pub(crate) fn into_stored(mut self) -> Vec<Stored> {
        self.rounds(0, 1);
        self.put_aside(self.starts.len() - 1);
        self.done
    }

    /// Copies the sums of the first lists, which have one term or none, to `done`.
    fn put_aside(&mut self, lists: usize) {
        for ends in self.starts[..=lists].windows(2) {
            let sum = self.terms[ends[0]..ends[1]].first();
            self.done.push(*sum.unwrap_or(&self.identity));
        }
    }

    #[cold]
    fn make_room(&mut self) {
        self.rounds(CAPACITY / 8, FEW);
        // Finished lists at the front are put aside, empty ones among them: one that stayed would hold up all behind it.
        let closed = self.starts.windows(2);
        let finished = closed.take_while(|ends| ends[1] <= ends[0] + 1).count();
        self.put_aside(finished);
        let moved = self.starts[finished];
        self.terms.drain(..moved);
        self.starts.drain(..finished);
        self.starts.iter_mut().for_each(|start| *start -= moved);
        self.limit = CAPACITY.max(2 * self.terms.len());
    }

    /// Makes rounds while there are more than `target` terms and at least `few` pairs.
    fn rounds(&mut self, target: usize, few: usize) {
        while self.terms.len() > target {
            let mut odd = Vec::new();
            let mut to = 0;
            self.pairs.clear();
            let lists = self.starts.len();
            let mut starts = Vec::with_capacity(lists);
            for list in 0..lists {
                let start = self.starts[list];
                let end = self
                    .starts
                    .get(list + 1)
                    .copied()
                    .unwrap_or(self.terms.len());
                starts.push(to as usize);
                let mut first = start;
                while first + 1 < end {
                    self.pairs.push(Pair {
                        first: first as u32,
                        second: first as u32 + 1,
                        to,
                    });
                    first += 2;
                    to += 1;
                }
                if first < end {
                    odd.push((to, self.terms[first]));
                    to += 1;
                }
            }
            if self.pairs.len() < few {
                return;
            }
            add_pairs(self.wide, &mut self.terms, &self.pairs);
            for (to, term) in odd {
                self.terms[to as usize] = term;
            }
            self.terms.truncate(to as usize);
            self.starts = starts;
        }
    }
}

/// Adds what is left of each list one by one, without inversions.
struct Finish {
    sums: Sums,
}

impl Job<Base> for Finish {
    type Output = Vec<Point>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Point> {
        let Sums {
            terms,
            starts,
            done,
            ..
        } = self.sums;
        let mut points: Vec<_> = done
            .iter()
            .map(|sum| Affine::leave(sum, lanes).to_point())
            .collect();
        for ends in starts.windows(2) {
            let list = &terms[ends[0]..ends[1]];
            points.push(match list {
                [] => Point::IDENTITY,
                [only] => Affine::leave(only, lanes).to_point(),
                [first, rest @ ..] => {
                    POINT_ADDITIONS.add(rest.len() as u64);
                    let mut sum = Running::from(Affine::leave(first, lanes));
                    for term in rest {
                        sum.add(Affine::leave(term, lanes));
                    }
                    sum.to_point()
                }
            });
        }
        points
    }
}

/// Brings points into the lanes' form.
pub(crate) struct Enter<'a>(pub(crate) &'a [Affine]);

impl Job<Base> for Enter<'_> {
    type Output = Vec<Stored>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Stored> {
        self.0.iter().map(|point| point.enter(lanes)).collect()
    }
}

/// All sums of pairs, with one inversion. A pair's target must not be the source of a later pair.
pub(crate) fn add_pairs(wide: Wide, points: &mut [Stored], pairs: &[Pair]) {
    POINT_ADDITIONS.add(pairs.len() as u64);
    wide.run(AddPairs { points, pairs });
}

struct AddPairs<'a> {
    points: &'a mut [Stored],
    pairs: &'a [Pair],
}

impl Job<Base> for AddPairs<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) {
        let Self { points, pairs } = self;
        let one = lanes.enter(Fp::ONE);
        // Idle lanes of the last vector add these two, whose difference is one.
        let idle = [Stored::default(), Stored { x: one, y: [0; 4] }];

        // Backwards: the product of all later denominators beside each vector.
        let mut later = Vec::with_capacity(pairs.len().div_ceil(LANES));
        let mut product = lanes.splat(&one);
        for chunk in pairs.chunks(LANES).rev() {
            let [first, second] = sources(points, chunk, &idle);
            let (x1, x2) = (load_x(lanes, first), load_x(lanes, second));
            later.push(product);
            product = lanes.mul(lanes.sub(x2, x1), product);
        }
        let mut totals = lanes.store(product).map(|total| lanes.leave(&total));
        if totals.iter().any(Fp::is_zero) {
            return add_pairs_carefully(points, pairs, lanes);
        }
        invert_all(&mut totals);
        let totals = totals.map(|total| lanes.enter(total));

        // Forwards: the inverse of the product of this vector's and all later denominators.
        let mut inverse = lanes.load(totals.each_ref());
        for (chunk, later) in pairs.chunks(LANES).zip(later.into_iter().rev()) {
            let [first, second] = sources(points, chunk, &idle);
            let (x1, x2) = (load_x(lanes, first), load_x(lanes, second));
            let (y1, y2) = (load_y(lanes, first), load_y(lanes, second));
            let reciprocal = lanes.times(inverse, later);
            inverse = lanes.mul(lanes.sub(x2, x1), inverse);
            let slope = lanes.mul(lanes.sub(y2, y1), reciprocal);
            let x = lanes.tighten(lanes.sub_two(lanes.square(slope), x1, x2));
            let y = lanes.tighten(lanes.sub(lanes.mul(lanes.sub(x1, x), slope), y1));
            let (x, y) = (lanes.store(x), lanes.store(y));
            for (lane, pair) in chunk.iter().enumerate() {
                points[pair.to as usize] = Stored {
                    x: x[lane],
                    y: y[lane],
                };
            }
        }
    }
}

/// The points of eight pairs; `idle` where there are fewer.
#[inline(always)]
fn sources<'a>(
    points: &'a [Stored],
    pairs: &[Pair],
    idle: &'a [Stored; 2],
) -> [[&'a Stored; LANES]; 2] {
    let mut sources = [[&idle[0]; LANES], [&idle[1]; LANES]];
    for (lane, pair) in pairs.iter().enumerate() {
        sources[0][lane] = &points[pair.first as usize];
        sources[1][lane] = &points[pair.second as usize];
    }
    sources
}

// These are functions, and not closures in the jobs, because closures are not compiled for the lanes' instructions.

#[inline(always)]
fn load_x<L: Lanes<Base>>(lanes: L, points: [&Stored; LANES]) -> L::Tight {
    let [a, b, c, d, e, f, g, h] = points;
    lanes.load([&a.x, &b.x, &c.x, &d.x, &e.x, &f.x, &g.x, &h.x])
}

#[inline(always)]
fn load_y<L: Lanes<Base>>(lanes: L, points: [&Stored; LANES]) -> L::Tight {
    let [a, b, c, d, e, f, g, h] = points;
    lanes.load([&a.y, &b.y, &c.y, &d.y, &e.y, &f.y, &g.y, &h.y])
}

/// As [`AddPairs`] where some pair has equal x: one by one, with tangents and neutral elements.
#[inline(never)]
fn add_pairs_carefully<L: Lanes<Base>>(points: &mut [Stored], pairs: &[Pair], lanes: L) {
    let sources: Vec<(Affine, Affine)> = pairs
        .iter()
        .map(|pair| {
            let source = |index: u32| Affine::leave(&points[index as usize], lanes);
            (source(pair.first), source(pair.second))
        })
        .collect();
    let denominator = |(a, b): &(Affine, Affine)| a.slope_denominator(*b);
    let denominators: Vec<_> = sources.iter().map(denominator).collect();
    let mut inverses: Vec<_> = denominators.iter().map(|d| d.unwrap_or(Fp::ONE)).collect();
    invert_all(&mut inverses);
    for (i, pair) in pairs.iter().enumerate() {
        let (a, b) = sources[i];
        let sum = match denominators[i] {
            Some(_) => a.add_with(b, inverses[i]),
            None => Affine::identity(),
        };
        points[pair.to as usize] = sum.enter(lanes);
    }
}

/// Doubles points in place, with one inversion; none may be the neutral element.
pub(crate) fn double_all(wide: Wide, points: &mut [Stored]) {
    POINT_ADDITIONS.add(points.len() as u64);
    wide.run(DoubleAll { points });
}

struct DoubleAll<'a> {
    points: &'a mut [Stored],
}

impl Job<Base> for DoubleAll<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) {
        let points = self.points;
        let one = lanes.enter(Fp::ONE);
        let linear = lanes.splat(&lanes.enter(crate::curve::Short::get().linear));
        let idle = Stored { x: one, y: one };
        let mut later = Vec::with_capacity(points.len().div_ceil(LANES));
        let mut product = lanes.splat(&one);
        for chunk in points.chunks(LANES).rev() {
            later.push(product);
            let y = load_y(lanes, some(chunk, &idle));
            product = lanes.mul(lanes.add(y, y), product);
        }
        let mut totals = lanes.store(product).map(|total| lanes.leave(&total));
        invert_all(&mut totals);
        let totals = totals.map(|total| lanes.enter(total));
        let mut inverse = lanes.load(totals.each_ref());
        for (chunk, later) in points.chunks_mut(LANES).zip(later.into_iter().rev()) {
            let sources = some(chunk, &idle);
            let (x, y) = (load_x(lanes, sources), load_y(lanes, sources));
            let reciprocal = lanes.times(inverse, later);
            inverse = lanes.mul(lanes.add(y, y), inverse);
            let xx = lanes.square(x);
            let twice = lanes.tighten(lanes.add(xx, xx));
            let tangent = lanes.tighten(lanes.add(lanes.tighten(lanes.add(twice, xx)), linear));
            let slope = lanes.times(tangent, reciprocal);
            let doubled = lanes.tighten(lanes.sub_two(lanes.square(slope), x, x));
            let height = lanes.mul(lanes.sub(x, doubled), slope);
            let height = lanes.store(lanes.tighten(lanes.sub(height, y)));
            for ((point, x), y) in chunk.iter_mut().zip(lanes.store(doubled)).zip(height) {
                *point = Stored { x, y };
            }
        }
    }
}

/// Up to eight points, and `idle` ones.
#[inline(always)]
fn some<'a>(points: &'a [Stored], idle: &'a Stored) -> [&'a Stored; LANES] {
    let mut all = [idle; LANES];
    for (to, point) in all.iter_mut().zip(points) {
        *to = point;
    }
    all
}
