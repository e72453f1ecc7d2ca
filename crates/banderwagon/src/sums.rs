//! Sums of many independent lists of points: what all commitments come down to.
//!
//! Points are added in pairs, affine with affine, the lists of a batch together, again and again until each list is one point. One round's slopes are
//! divided with a single inversion (Montgomery's trick in eight lanes), so that an addition costs five multiplications and a squaring. When
//! fewer than [`FEW`] pairs are left, an inversion would cost more than it saves: what remains is added without.

use crate::{
    Point,
    curve::Short,
    short::{Affine, Running, Stored},
};
use arbor_field::{Base, Fp, Job, LANES, Lanes, Wide, invert_all, negate_stored};
use arbor_metrics::POINT_ADDITIONS;

/// Addends that are collected before they are read: by then the last ones of them, too, have come from memory.
const BLOCK: usize = 2048;

/// Partial sums from which on rounds are made: 256 KiB, which stay in the second cache together with the products.
const CAPACITY: usize = 4096;

/// Pairs from which on a round with an inversion pays.
const FEW: usize = 10;

/// A point that is to be added, or subtracted, where it lies.
#[derive(Clone, Copy)]
pub(crate) struct Addend<'t> {
    pub(crate) point: &'t Stored,
    pub(crate) negative: bool,
}

impl Addend<'_> {
    fn value(&self) -> Stored {
        let Stored { x, y } = *self.point;
        let y = if self.negative {
            negate_stored::<Base>(&y)
        } else {
            y
        };
        Stored { x, y }
    }
}

/// The sum of points `first` and `second` goes to `to`.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    pub(crate) to: u32,
}

/// Lists of points that are being summed.
pub(crate) struct Sums<'t> {
    wide: Wide,
    /// What was not read yet, and where in it lists end.
    addends: Vec<Addend<'t>>,
    ends: Vec<usize>,
    /// Partial sums of the lists, one list after another; fewer after every round.
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

impl<'t> Sums<'t> {
    pub(crate) fn new(wide: Wide) -> Self {
        Self {
            wide,
            addends: Vec::with_capacity(BLOCK),
            ends: Vec::new(),
            terms: Vec::with_capacity(CAPACITY + BLOCK),
            starts: vec![0],
            done: Vec::new(),
            identity: wide.run(Enter(&[Affine::identity()]))[0],
            limit: CAPACITY,
            pairs: Vec::with_capacity(CAPACITY),
        }
    }

    /// Adds a point to the open list, or subtracts it.
    ///
    /// Tables are larger than any cache: the point is asked for now and read later, when its block is full.
    #[inline]
    pub(crate) fn push(&mut self, point: &'t Stored, negative: bool) {
        arbor_cpu::prefetch(point);
        if self.addends.len() == BLOCK {
            self.absorb();
        }
        self.addends.push(Addend { point, negative });
    }

    /// Ends the open list and opens the next.
    pub(crate) fn close(&mut self) {
        self.ends.push(self.addends.len());
    }

    /// Adds addends in pairs, so that they become terms.
    fn absorb(&mut self) {
        let few = self.addends.len() < 2 * FEW;
        self.pairs.clear();
        let mut to = self.terms.len();
        self.terms.resize(to + self.addends.len(), self.identity);
        let mut first = 0;
        let closed = self.ends.len();
        let open = self.addends.len();
        for (list, end) in self.ends.drain(..).chain([open]).enumerate() {
            while first < end {
                if first + 1 == end || few {
                    self.terms[to] = self.addends[first].value();
                    first += 1;
                } else {
                    self.pairs.push(Pair {
                        first: first as u32,
                        second: first as u32 + 1,
                        to: to as u32,
                    });
                    first += 2;
                }
                to += 1;
            }
            if list < closed {
                self.starts.push(to);
            }
        }
        add_pairs_of(
            self.wide,
            FromTables {
                addends: &self.addends,
                to: &mut self.terms,
            },
            &self.pairs,
        );
        self.terms.truncate(to);
        self.addends.clear();
        if self.terms.len() >= self.limit {
            self.make_room();
        }
    }

    /// The sums of all closed lists.
    pub(crate) fn into_points(mut self) -> Vec<Point> {
        self.absorb();
        self.rounds(0, FEW);
        let wide = self.wide;
        wide.run(Finish { sums: self })
    }

    /// The sums of all closed lists in affine form.
    pub(crate) fn into_stored(mut self) -> Vec<Stored> {
        self.absorb();
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

/// Adds what is left of each list one by one, without inversions, and brings all sums into extended Edwards coordinates.
struct Finish<'t> {
    sums: Sums<'t>,
}

impl Job<Base> for Finish<'_> {
    type Output = Vec<Point>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Point> {
        let Sums {
            terms,
            starts,
            mut done,
            identity,
            ..
        } = self.sums;
        let mut several = Vec::new();
        for ends in starts.windows(2) {
            let list = &terms[ends[0]..ends[1]];
            done.push(*list.first().unwrap_or(&identity));
            if let [first, rest @ ..] = list
                && !rest.is_empty()
            {
                POINT_ADDITIONS.add(rest.len() as u64);
                let mut sum = Running::from(Affine::leave(first, lanes));
                for term in rest {
                    sum.add(Affine::leave(term, lanes));
                }
                several.push((done.len() - 1, sum.to_point()));
            }
        }
        let mut points = to_points(lanes, &done);
        for (list, sum) in several {
            points[list] = sum;
        }
        points
    }
}

/// Extended Edwards coordinates, without an inversion: x = X'/Y and y = (X' - k) / (X' + k), where X' = X - c.
#[inline(always)]
fn to_points<L: Lanes<Base>>(lanes: L, stored: &[Stored]) -> Vec<Point> {
    let Short { scale, shift, .. } = *Short::get();
    let (scale, shift) = (
        lanes.splat(&lanes.enter(scale)),
        lanes.splat(&lanes.enter(shift)),
    );
    let idle = Stored::default();
    let mut points = Vec::with_capacity(stored.len());
    for chunk in stored.chunks(LANES) {
        let sources = some(chunk, &idle);
        let x = lanes.tighten(lanes.sub(x_of(lanes, sources), shift));
        let y = y_of(lanes, sources);
        let [px, py] = lanes.mul_two([lanes.add(x, scale); 2], [x, y]);
        let [mx, my] = lanes.mul_two([lanes.sub(x, scale); 2], [x, y]);
        let (px, py) = (lanes.leave_all(px), lanes.leave_all(py));
        let (mx, my) = (lanes.leave_all(mx), lanes.leave_all(my));
        for lane in 0..chunk.len() {
            points.push(if py[lane].is_zero() {
                Point::IDENTITY
            } else {
                Point {
                    x: px[lane],
                    y: my[lane],
                    z: py[lane],
                    t: mx[lane],
                }
            });
        }
    }
    points
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
    add_pairs_of(wide, InPlace(points), pairs);
}

fn add_pairs_of(wide: Wide, points: impl Points, pairs: &[Pair]) {
    if !pairs.is_empty() {
        POINT_ADDITIONS.add(pairs.len() as u64);
        wide.run(AddPairs { points, pairs });
    }
}

/// Where pairs of points lie, and where their sums go.
trait Points {
    /// Whether points may be negative.
    const SIGNED: bool;
    fn get(&self, index: u32) -> &Stored;
    fn is_negative(&self, index: u32) -> bool;
    fn set(&mut self, index: u32, point: Stored);
}

struct InPlace<'a>(&'a mut [Stored]);

impl Points for InPlace<'_> {
    const SIGNED: bool = false;

    #[inline(always)]
    fn get(&self, index: u32) -> &Stored {
        &self.0[index as usize]
    }

    #[inline(always)]
    fn is_negative(&self, _index: u32) -> bool {
        false
    }

    #[inline(always)]
    fn set(&mut self, index: u32, point: Stored) {
        self.0[index as usize] = point;
    }
}

struct FromTables<'a, 't> {
    addends: &'a [Addend<'t>],
    to: &'a mut [Stored],
}

impl Points for FromTables<'_, '_> {
    const SIGNED: bool = true;

    #[inline(always)]
    fn get(&self, index: u32) -> &Stored {
        self.addends[index as usize].point
    }

    #[inline(always)]
    fn is_negative(&self, index: u32) -> bool {
        self.addends[index as usize].negative
    }

    #[inline(always)]
    fn set(&mut self, index: u32, point: Stored) {
        self.to[index as usize] = point;
    }
}

struct AddPairs<'a, P> {
    points: P,
    pairs: &'a [Pair],
}

/// Pairs that are worked on at a time: while one vector's product is waited for, the other's is made.
const TWO_VECTORS: usize = 2 * LANES;

impl<P: Points> Job<Base> for AddPairs<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) {
        let Self { mut points, pairs } = self;
        let one = lanes.enter(Fp::ONE);
        // Idle lanes of the last vectors add these two, whose difference is one.
        let idle = [Stored::default(), Stored { x: one, y: [0; 4] }];

        // Backwards: the product of all later denominators beside each two vectors.
        let mut later = Vec::with_capacity(pairs.len().div_ceil(TWO_VECTORS));
        let mut product = [lanes.splat(&one); 2];
        for chunk in pairs.chunks(TWO_VECTORS).rev() {
            let Operands { first, second, .. } = operands(&points, chunk, &idle);
            let (x1, x2) = (load_x(lanes, first), load_x(lanes, second));
            later.push(product);
            product = lanes.mul_two(sub(lanes, x2, x1), product);
        }
        let mut totals = lanes.leave_all(lanes.times(product[0], product[1]));
        if totals.iter().any(Fp::is_zero) {
            return add_pairs_carefully(points, pairs, lanes);
        }
        invert_all(&mut totals);
        let totals = totals.map(|total| lanes.enter(total));

        // Forwards: the inverses of the products of these two vectors' and all later denominators.
        let total = lanes.load(totals.each_ref());
        let mut inverse = [
            lanes.times(total, product[1]),
            lanes.times(total, product[0]),
        ];
        for (chunk, later) in pairs.chunks(TWO_VECTORS).zip(later.into_iter().rev()) {
            let operands = operands(&points, chunk, &idle);
            let x1 = load_x(lanes, operands.first);
            let x2 = load_x(lanes, operands.second);
            let mut y1 = load_y(lanes, operands.first);
            let mut y2 = load_y(lanes, operands.second);
            if P::SIGNED {
                let [first, second] = operands.negative;
                y1 = negate_where(lanes, y1, first);
                y2 = negate_where(lanes, y2, second);
            }
            let reciprocal = lanes.times_two(inverse, later);
            inverse = lanes.mul_two(sub(lanes, x2, x1), inverse);
            let slope = lanes.mul_two(sub(lanes, y2, y1), reciprocal);
            let x = lanes.square_two_less(slope, x1, x2);
            let y = lanes.mul_two_less(sub(lanes, x1, x), slope, y1);
            for (half, pairs) in chunk.chunks(LANES).enumerate() {
                let (x, y) = (lanes.store(x[half]), lanes.store(y[half]));
                for (lane, pair) in pairs.iter().enumerate() {
                    points.set(
                        pair.to,
                        Stored {
                            x: x[lane],
                            y: y[lane],
                        },
                    );
                }
            }
        }
    }
}

/// The points of sixteen pairs, in two vectors each.
struct Operands<'a> {
    first: [[&'a Stored; LANES]; 2],
    second: [[&'a Stored; LANES]; 2],
    /// Of the first and the second points of both vectors, a bit for each lane: whether it counts negative.
    negative: [[u8; 2]; 2],
}

impl<'a> Operands<'a> {
    #[inline(always)]
    fn put<P: Points>(&mut self, i: usize, points: &'a P, pair: &Pair) {
        let (vector, lane) = (i / LANES, i % LANES);
        self.first[vector][lane] = points.get(pair.first);
        self.second[vector][lane] = points.get(pair.second);
        if P::SIGNED {
            self.negative[0][vector] |= u8::from(points.is_negative(pair.first)) << lane;
            self.negative[1][vector] |= u8::from(points.is_negative(pair.second)) << lane;
        }
    }
}

/// `idle` where there are fewer pairs.
#[inline(always)]
fn operands<'a, P: Points>(points: &'a P, pairs: &[Pair], idle: &'a [Stored; 2]) -> Operands<'a> {
    let mut operands = Operands {
        first: [[&idle[0]; LANES]; 2],
        second: [[&idle[1]; LANES]; 2],
        negative: [[0; 2]; 2],
    };
    // All but the last have sixteen: a loop of known length is unrolled.
    if let Ok(pairs) = <&[Pair; TWO_VECTORS]>::try_from(pairs) {
        for (i, pair) in pairs.iter().enumerate() {
            operands.put(i, points, pair);
        }
    } else {
        for (i, pair) in pairs.iter().enumerate() {
            operands.put(i, points, pair);
        }
    }
    operands
}

// These are functions, and not closures in the jobs, because closures are not compiled for the lanes' instructions.

#[inline(always)]
fn load_x<L: Lanes<Base>>(lanes: L, points: [[&Stored; LANES]; 2]) -> [L::Tight; 2] {
    [x_of(lanes, points[0]), x_of(lanes, points[1])]
}

#[inline(always)]
fn load_y<L: Lanes<Base>>(lanes: L, points: [[&Stored; LANES]; 2]) -> [L::Tight; 2] {
    [y_of(lanes, points[0]), y_of(lanes, points[1])]
}

#[inline(always)]
fn x_of<L: Lanes<Base>>(lanes: L, points: [&Stored; LANES]) -> L::Tight {
    let [a, b, c, d, e, f, g, h] = points;
    lanes.load([&a.x, &b.x, &c.x, &d.x, &e.x, &f.x, &g.x, &h.x])
}

#[inline(always)]
fn y_of<L: Lanes<Base>>(lanes: L, points: [&Stored; LANES]) -> L::Tight {
    let [a, b, c, d, e, f, g, h] = points;
    lanes.load([&a.y, &b.y, &c.y, &d.y, &e.y, &f.y, &g.y, &h.y])
}

#[inline(always)]
fn sub<L: Lanes<Base>>(lanes: L, a: [L::Tight; 2], b: [L::Tight; 2]) -> [L::Loose; 2] {
    [lanes.sub(a[0], b[0]), lanes.sub(a[1], b[1])]
}

#[inline(always)]
fn negate_where<L: Lanes<Base>>(lanes: L, a: [L::Tight; 2], where_: [u8; 2]) -> [L::Tight; 2] {
    [
        lanes.negate_where(a[0], where_[0]),
        lanes.negate_where(a[1], where_[1]),
    ]
}

/// As [`AddPairs`] where some pair has equal x: one by one, with tangents and neutral elements.
#[inline(never)]
fn add_pairs_carefully<L: Lanes<Base>>(mut points: impl Points, pairs: &[Pair], lanes: L) {
    let source = |index: u32| {
        let point = Affine::leave(points.get(index), lanes);
        if points.is_negative(index) {
            -point
        } else {
            point
        }
    };
    let sources: Vec<(Affine, Affine)> = pairs
        .iter()
        .map(|pair| (source(pair.first), source(pair.second)))
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
        points.set(pair.to, sum.enter(lanes));
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
        let linear = lanes.splat(&lanes.enter(Short::get().linear));
        let idle = Stored { x: one, y: one };
        let mut later = Vec::with_capacity(points.len().div_ceil(LANES));
        let mut product = lanes.splat(&one);
        for chunk in points.chunks(LANES).rev() {
            later.push(product);
            let y = y_of(lanes, some(chunk, &idle));
            product = lanes.mul(lanes.add(y, y), product);
        }
        let mut totals = lanes.leave_all(product);
        invert_all(&mut totals);
        let totals = totals.map(|total| lanes.enter(total));
        let mut inverse = lanes.load(totals.each_ref());
        for (chunk, later) in points.chunks_mut(LANES).zip(later.into_iter().rev()) {
            let sources = some(chunk, &idle);
            let (x, y) = (x_of(lanes, sources), y_of(lanes, sources));
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
