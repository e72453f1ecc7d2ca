//! Sums of pairs of points, many with one inversion: a round of [`sums`](crate::sums), and what makes tables.

use crate::{
    curve::Short,
    short::{Affine, Stored},
};
use arbor_cpu::prefetch_early;
use arbor_field::{Base, Fp, Job, LANES, Lanes, Wide, invert_all, invert_lanes, negate_stored};
use arbor_metrics::POINT_ADDITIONS;

/// A point that is to be added, or subtracted, where it lies.
#[derive(Clone, Copy)]
pub(crate) struct Addend<'t> {
    pub(crate) point: &'t Stored,
    pub(crate) negative: bool,
}

impl<'t> From<&'t Stored> for Addend<'t> {
    fn from(point: &'t Stored) -> Self {
        Self {
            point,
            negative: false,
        }
    }
}

impl Addend<'_> {
    pub(crate) fn value(&self) -> Stored {
        let Stored { x, y } = *self.point;
        let y = if self.negative {
            negate_stored::<Base>(&y)
        } else {
            y
        };
        Stored { x, y }
    }
}

/// The sum of point `first` and its partner, so far behind it as the partners of all, goes to `to`.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) first: u32,
    pub(crate) to: u32,
}

/// Sums that are made with one inversion where there are many at once.
const SUMS_OF_AN_INVERSION: usize = 2048;

/// For each two places of a table the second gets the sum of the first and of what stands at `other` in the same row, a power of two long. No place gets a sum before it
/// is added itself.
pub(crate) fn add_in_rows(
    wide: Wide,
    table: &mut [Stored],
    row: usize,
    other: usize,
    places: impl Iterator<Item = (usize, usize)>,
) {
    let pair = |(first, to)| Pair {
        first: first as u32,
        to: to as u32,
    };
    let pairs: Vec<_> = places.map(pair).collect();
    for pairs in pairs.chunks(SUMS_OF_AN_INVERSION) {
        let rows = InRows {
            points: &mut *table,
            row,
            other,
        };
        add_pairs(wide, rows, pairs);
    }
}

/// All sums of pairs, with one inversion. A pair's target must not be the source of a later pair.
pub(crate) fn add_pairs(wide: Wide, points: impl Points, pairs: &[Pair]) {
    if !pairs.is_empty() {
        POINT_ADDITIONS.add(pairs.len() as u64);
        wide.run(AddPairs { points, pairs });
    }
}

/// Where pairs of points lie, and where their sums go.
pub(crate) trait Points {
    /// Whether points may be negative.
    const SIGNED: bool;
    /// Points `first` and its partner.
    fn pair(&self, first: u32) -> [&Stored; 2];
    /// Whether they count negative.
    fn negative(&self, first: u32) -> [bool; 2];
    fn set(&mut self, index: u32, point: Stored);
    /// Asks for points that will be read later, beside the sums of a vector.
    #[inline(always)]
    fn ask(&self, _vector: usize) {}
}

pub(crate) struct InPlace<'a> {
    pub(crate) points: &'a mut [Stored],
    /// How far apart the points of a pair lie.
    pub(crate) stride: usize,
}

impl Points for InPlace<'_> {
    const SIGNED: bool = false;

    #[inline(always)]
    fn pair(&self, first: u32) -> [&Stored; 2] {
        let points = &self.points[first as usize..];
        [&points[0], &points[self.stride]]
    }

    #[inline(always)]
    fn negative(&self, _first: u32) -> [bool; 2] {
        [false; 2]
    }

    #[inline(always)]
    fn set(&mut self, index: u32, point: Stored) {
        self.points[index as usize] = point;
    }
}

struct InRows<'a> {
    points: &'a mut [Stored],
    /// How long a row is: a power of two.
    row: usize,
    /// Where in a row its points' partner lies.
    other: usize,
}

impl Points for InRows<'_> {
    const SIGNED: bool = false;

    #[inline(always)]
    fn pair(&self, first: u32) -> [&Stored; 2] {
        let first = first as usize;
        let begin = first & !(self.row - 1);
        [&self.points[begin + self.other], &self.points[first]]
    }

    #[inline(always)]
    fn negative(&self, _first: u32) -> [bool; 2] {
        [false; 2]
    }

    #[inline(always)]
    fn set(&mut self, index: u32, point: Stored) {
        self.points[index as usize] = point;
    }
}

pub(crate) struct FromTables<'a, 't> {
    pub(crate) addends: &'a [Addend<'t>],
    /// Those of the next round.
    pub(crate) ahead: &'a [Addend<'t>],
    pub(crate) to: &'a mut [Stored],
}

impl Points for FromTables<'_, '_> {
    const SIGNED: bool = true;

    #[inline(always)]
    fn pair(&self, first: u32) -> [&Stored; 2] {
        let [a, b] = two(self.addends, first);
        [a.point, b.point]
    }

    #[inline(always)]
    fn negative(&self, first: u32) -> [bool; 2] {
        let [a, b] = two(self.addends, first);
        [a.negative, b.negative]
    }

    #[inline(always)]
    fn set(&mut self, index: u32, point: Stored) {
        self.to[index as usize] = point;
    }

    #[inline(always)]
    fn ask(&self, vector: usize) {
        let ahead = self.ahead.get(2 * LANES * vector..).unwrap_or_default();
        for addend in &ahead[..ahead.len().min(2 * LANES)] {
            prefetch_early(addend.point);
        }
    }
}

/// Two neighbours.
#[inline(always)]
fn two<T>(all: &[T], first: u32) -> &[T; 2] {
    let Some(two) = all[first as usize..].first_chunk() else {
        panic!("no pair at {first}");
    };
    two
}

struct AddPairs<'a, P> {
    points: P,
    pairs: &'a [Pair],
}

impl<P: Points> Job<Base> for AddPairs<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) {
        let Self { mut points, pairs } = self;
        let one = lanes.enter(Fp::ONE);
        let count = pairs.len().div_ceil(LANES);
        let pairs = Vectors::new(pairs);

        // Backwards: for each vector the product of the denominators of every second vector after it. So a product is not needed for the next one.
        let mut later = Vec::with_capacity(count);
        let one = lanes.splat(&one);
        let mut product = one;
        let mut begun = lanes.begin(lanes.loosen(one), one);
        for v in (0..count).rev() {
            let Operands { first, second, .. } = operands(&points, pairs.get(v));
            let (x1, x2) = (x_of(lanes, first), x_of(lanes, second));
            // So the compiler leaves out what makes room, a call before which all vectors would have to be put aside.
            assert!(later.len() < later.capacity(), "room for all vectors");
            later.push(product);
            let (done, next) = lanes.turn(begun, lanes.sub(x2, x1), product);
            (product, begun) = (lanes.settle(done), next);
        }
        let (done, _) = lanes.turn(begun, lanes.loosen(one), one);
        let products = [lanes.settle(done), product];
        let total = lanes.times(products[0], products[1]);
        let Some(total) = invert_lanes(lanes, total, |total| lanes.enter(total)) else {
            return add_pairs_carefully(points, self.pairs, lanes);
        };

        // Forwards: the inverses of the products of those and this vector's.
        let inverses = [
            lanes.times(total, products[1]),
            lanes.times(total, products[0]),
        ];
        if L::IN_TURN {
            sums_in_turn(lanes, &mut points, &pairs, &later, inverses);
        } else {
            sums(lanes, &mut points, &pairs, &later, inverses);
        }
    }
}

/// The sums of all pairs, vector by vector. `later` has for each vector, the last one first, the product of the denominators of every second vector after it; `inverses` are those of all of every second vector's together.
#[inline(always)]
fn sums<P: Points, L: Lanes<Base>>(
    lanes: L,
    points: &mut P,
    pairs: &Vectors<'_>,
    later: &[L::Tight],
    mut inverses: [L::Tight; 2],
) {
    for (v, later) in later.iter().rev().enumerate() {
        points.ask(v);
        let Operands {
            first,
            second,
            negative,
        } = operands(points, pairs.get(v));
        let (x1, x2) = (x_of(lanes, first), x_of(lanes, second));
        let inverse = &mut inverses[v % 2];
        let reciprocal = lanes.times(*inverse, *later);
        *inverse = lanes.mul(lanes.sub(x2, x1), *inverse);
        let (mut y1, mut y2) = (y_of(lanes, first), y_of(lanes, second));
        if P::SIGNED {
            y1 = lanes.negate_where(y1, negative[0]);
            y2 = lanes.negate_where(y2, negative[1]);
        }
        let slope = lanes.mul(lanes.sub(y2, y1), reciprocal);
        let x = lanes.tighten(lanes.sub_two(lanes.square(slope), x1, x2));
        let height = lanes.mul(lanes.sub(x1, x), slope);
        let y = lanes.tighten(lanes.sub(height, y1));
        set_sums(lanes, points, pairs.get(v), x, y);
    }
}

#[inline(always)]
fn set_sums<L: Lanes<Base>>(
    lanes: L,
    points: &mut impl Points,
    pairs: &[Pair; LANES],
    x: L::Tight,
    y: L::Tight,
) {
    let (x, y) = (lanes.store(x), lanes.store(y));
    for (lane, pair) in pairs.iter().enumerate() {
        let (x, y) = (x[lane], y[lane]);
        points.set(pair.to, Stored { x, y });
    }
}

/// The same where each product ends beside the beginning of the next.
///
/// So none may need the one just before it: the square of a vector's slope is begun one vector later, its y two vectors later.
#[inline(always)]
fn sums_in_turn<P: Points, L: Lanes<Base>>(
    lanes: L,
    points: &mut P,
    pairs: &Vectors<'_>,
    later: &[L::Tight],
    mut inverses: [L::Tight; 2],
) {
    let count = later.len();
    let zero = lanes.splat(&[0; 4]);
    let (x1, x2, y1, slope) = (zero, zero, zero, zero);
    // Three are open; a fourth makes the remainder cheap.
    let mut open = [Sum { x1, x2, y1, slope }; 4];
    let mut begun = lanes.begin(lanes.loosen(zero), zero);
    for v in 0..count + 2 {
        let Operands {
            first,
            second,
            negative,
        } = operands(points, pairs.get(v));
        let (x1, x2) = (x_of(lanes, first), x_of(lanes, second));
        let (last, before, chain) = ((v + 2) % 4, (v + 3) % 4, v % 2);
        let (square, reciprocal, inverse, height, slope);
        let later = later[count - 1 - v.min(count - 1)];
        (square, begun) = lanes.turn(begun, lanes.loosen(inverses[chain]), later);
        let last = &open[last];
        let x = lanes.less_two(square, last.x1, last.x2);
        (reciprocal, begun) = lanes.turn(begun, lanes.sub(x2, x1), inverses[chain]);
        let reciprocal = lanes.settle(reciprocal);
        let (mut y1, mut y2) = (y_of(lanes, first), y_of(lanes, second));
        if P::SIGNED {
            y1 = lanes.negate_where(y1, negative[0]);
            y2 = lanes.negate_where(y2, negative[1]);
        }
        (inverse, begun) = lanes.turn(begun, lanes.sub(last.x1, x), last.slope);
        inverses[chain] = lanes.settle(inverse);
        points.ask(v);
        (height, begun) = lanes.turn(begun, lanes.sub(y2, y1), reciprocal);
        let y = lanes.less(height, last.y1);
        if v >= 2 {
            set_sums(lanes, points, pairs.get(v - 2), x, y);
        }
        (slope, begun) = lanes.turn_square(begun, open[before].slope);
        let slope = lanes.settle(slope);
        open[v % 4] = Sum { x1, x2, y1, slope };
    }
}

/// Sums of one vector's pairs on their way: what is needed until the end.
#[derive(Clone, Copy)]
struct Sum<T> {
    x1: T,
    x2: T,
    y1: T,
    slope: T,
}

/// Pairs by vectors.
struct Vectors<'a> {
    full: &'a [[Pair; LANES]],
    /// The last vector, if need be with the last pair several times.
    last: [Pair; LANES],
}

impl<'a> Vectors<'a> {
    #[inline(always)]
    fn new(pairs: &'a [Pair]) -> Self {
        let count = pairs.len().div_ceil(LANES);
        let (full, _) = pairs.as_chunks();
        let some = &pairs[(count - 1) * LANES..];
        let mut last = [some[some.len() - 1]; LANES];
        last[..some.len()].copy_from_slice(some);
        Self { full, last }
    }

    /// Those of a vector; the last ones beyond.
    #[inline(always)]
    fn get(&self, vector: usize) -> &[Pair; LANES] {
        self.full.get(vector).unwrap_or(&self.last)
    }
}

/// The points of eight pairs.
struct Operands<'a> {
    first: [&'a Stored; LANES],
    second: [&'a Stored; LANES],
    /// Of the first and the second points, a bit for each lane: whether it counts negative.
    negative: [u8; 2],
}

#[inline(always)]
fn operands<'a, P: Points>(points: &'a P, pairs: &[Pair; LANES]) -> Operands<'a> {
    let [first, second] = points.pair(pairs[0].first);
    let mut operands = Operands {
        first: [first; LANES],
        second: [second; LANES],
        negative: [0; 2],
    };
    for (lane, pair) in pairs.iter().enumerate() {
        [operands.first[lane], operands.second[lane]] = points.pair(pair.first);
        if P::SIGNED {
            let [first, second] = points.negative(pair.first);
            operands.negative[0] |= u8::from(first) << lane;
            operands.negative[1] |= u8::from(second) << lane;
        }
    }
    operands
}

// These are functions, and not closures in the jobs, because closures are not compiled for the lanes' instructions.

#[inline(always)]
pub(crate) fn x_of<L: Lanes<Base>>(lanes: L, points: [&Stored; LANES]) -> L::Tight {
    let [a, b, c, d, e, f, g, h] = points;
    lanes.load([&a.x, &b.x, &c.x, &d.x, &e.x, &f.x, &g.x, &h.x])
}

#[inline(always)]
pub(crate) fn y_of<L: Lanes<Base>>(lanes: L, points: [&Stored; LANES]) -> L::Tight {
    let [a, b, c, d, e, f, g, h] = points;
    lanes.load([&a.y, &b.y, &c.y, &d.y, &e.y, &f.y, &g.y, &h.y])
}

/// As [`AddPairs`] where some pair has equal x: one by one, with tangents and neutral elements.
#[inline(never)]
fn add_pairs_carefully<L: Lanes<Base>>(mut points: impl Points, pairs: &[Pair], lanes: L) {
    let source = |point: &Stored, negative: bool| {
        let point = Affine::leave(point, lanes);
        if negative { -point } else { point }
    };
    let sources: Vec<(Affine, Affine)> = pairs
        .iter()
        .map(|pair| {
            let ([a, b], negative) = (points.pair(pair.first), points.negative(pair.first));
            (source(a, negative[0]), source(b, negative[1]))
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
        let inverse = invert_lanes(lanes, product, |total| lanes.enter(total));
        let mut inverse = inverse.expect("invariant: twice a point is not the neutral element");
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
pub(crate) fn some<'a>(points: &'a [Stored], idle: &'a Stored) -> [&'a Stored; LANES] {
    let mut all = [idle; LANES];
    for (to, point) in all.iter_mut().zip(points) {
        *to = point;
    }
    all
}
