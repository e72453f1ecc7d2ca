//! Points of y^2 = x^3 + 7 in lanes.
//!
//! Formulas are not complete. Every one of them gives z = 0 in a lane in which it does not apply (equal or
//! opposite points, or infinity), and whatever is computed from z = 0 has z = 0 again. So a result
//! with another z is right, and one with z = 0 must be computed in another way.

use crate::{
    base::{Number, invert_all},
    vector::Job,
    vector::{LANES, Vector},
};
use arbor_field::Limbs;

/// 7, the curve's constant.
const SEVEN: Limbs = [7, 0, 0, 0];
/// A third root of one: (beta x, y) is lambda times (x, y).
const BETA: Limbs = [
    0xc139_6c28_7195_01ee,
    0x9cf0_4975_12f5_8995,
    0x6e64_479e_ac34_34e9,
    0x7ae9_6a2b_657c_0710,
];
/// The generator.
pub(crate) const GENERATOR: Record = Record([
    0x59f2_815b_16f8_1798,
    0x029b_fcdb_2dce_28d9,
    0x55a0_6295_ce87_0b07,
    0x79be_667e_f9dc_bbac,
    0x9c47_d08f_fb10_d4b8,
    0xfd17_b448_a685_5419,
    0x5da4_fbfc_0e11_08a8,
    0x483a_da77_26a3_c465,
]);

/// A point of one lane in memory: x and y below the prime, least significant word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Record(pub(crate) [u64; 8]);

impl Record {
    pub(crate) fn new(x: &Limbs, y: &Limbs) -> Self {
        Self([x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]])
    }

    pub(crate) fn x(&self) -> Limbs {
        let [x0, x1, x2, x3, ..] = self.0;
        [x0, x1, x2, x3]
    }

    pub(crate) fn y(&self) -> Limbs {
        let [.., y0, y1, y2, y3] = self.0;
        [y0, y1, y2, y3]
    }
}

/// A point by its two coordinates. Weights are 1 where nothing else is said.
#[derive(Clone, Copy)]
pub(crate) struct Affine<V, const N: usize> {
    pub(crate) x: Number<V, N>,
    pub(crate) y: Number<V, N>,
}

/// The point (x / z^2, y / z^3). Weights at most 6, 1 and 2.
#[derive(Clone, Copy)]
pub(crate) struct Jacobian<V, const N: usize> {
    pub(crate) x: Number<V, N>,
    pub(crate) y: Number<V, N>,
    pub(crate) z: Number<V, N>,
}

impl<V: Vector, const N: usize> Affine<V, N> {
    /// Reads a point for each lane.
    #[inline(always)]
    pub(crate) fn load(from: &[[&Record; LANES]; N]) -> Self {
        let mut x = [[V::splat(0); 4]; N];
        let mut y = x;
        for n in 0..N {
            let mut rows = [V::splat(0); LANES];
            for lane in 0..LANES {
                rows[lane] = V::read(&from[n][lane].0);
            }
            let w = V::transposed(rows);
            x[n] = [w[0], w[1], w[2], w[3]];
            y[n] = [w[4], w[5], w[6], w[7]];
        }
        Self {
            x: Number::from_words(x),
            y: Number::from_words(y),
        }
    }

    /// Reads `N` times eight points.
    #[inline(always)]
    pub(crate) fn load_slice(from: &[Record]) -> Self {
        let mut rows = [[&GENERATOR; LANES]; N];
        for n in 0..N {
            for lane in 0..LANES {
                rows[n][lane] = &from[n * LANES + lane];
            }
        }
        Self::load(&rows)
    }

    /// Writes `N` times eight points, reduced.
    #[inline(always)]
    pub(crate) fn store(&self, to: &mut [Record]) {
        let (x, y) = (self.x.canonical().words(), self.y.canonical().words());
        for n in 0..N {
            let (x, y) = (x[n], y[n]);
            let rows = V::transposed([x[0], x[1], x[2], x[3], y[0], y[1], y[2], y[3]]);
            for lane in 0..LANES {
                rows[lane].write(&mut to[n * LANES + lane].0);
            }
        }
    }

    /// The point with this x whose y is odd in the lanes with their bit set. Returns also
    /// the lanes that have no such point.
    #[inline(always)]
    pub(crate) fn with_x(x: Number<V, N>, odd: [u8; N]) -> (Self, [u8; N]) {
        let square = right_side(&x);
        let y = square.root();
        let missing = different(&y.square(), &square);
        let y = y.canonical();
        let even = y.evens();
        let mut wrong = odd;
        for n in 0..N {
            // A lane has both bits, or neither.
            wrong[n] = !(odd[n] ^ even[n]);
        }
        let y = y.replaced(wrong, &y.negated(1).carried());
        (Self { x, y }, missing)
    }

    /// Lanes whose bits are set take the generator.
    #[inline(always)]
    fn or_generator(&self, lanes: [u8; N]) -> Self {
        let generator = Self::load(&[[&GENERATOR; LANES]; N]);
        Self {
            x: self.x.replaced(lanes, &generator.x),
            y: self.y.replaced(lanes, &generator.y),
        }
    }
}

/// Completes points by their x. A lane without such a point gets the generator, and its bit set.
pub(crate) struct Points<'a> {
    /// Whole vectors, one or an even number.
    pub(crate) records: &'a mut [Record],
    /// The lanes whose y is to be odd.
    pub(crate) odd: &'a [u8],
}

impl Job for Points<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) -> Vec<u8> {
        if self.records.len() > LANES {
            self.run_next_to_each_other::<V, 2>()
        } else {
            self.run_next_to_each_other::<V, 1>()
        }
    }
}

impl Points<'_> {
    #[inline(always)]
    fn run_next_to_each_other<V: Vector, const N: usize>(self) -> Vec<u8> {
        let mut missing = Vec::with_capacity(self.odd.len());
        let odd = self.odd.as_chunks::<N>().0;
        for (records, odd) in self.records.chunks_exact_mut(N * LANES).zip(odd) {
            let x = Affine::<V, N>::load_slice(records).x;
            let (point, without) = Affine::with_x(x, *odd);
            point.or_generator(without).store(records);
            missing.extend_from_slice(&without);
        }
        missing
    }
}

/// Puts the generator in the place of points that are not on the curve, and sets their bits.
pub(crate) struct OffCurve<'a>(pub(crate) &'a mut [Record]);

impl Job for OffCurve<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) -> Vec<u8> {
        let mut off = Vec::with_capacity(self.0.len() / LANES);
        for records in self.0.chunks_exact_mut(LANES) {
            let point = Affine::<V, 1>::load_slice(records);
            let lanes = different(&point.y.square(), &right_side(&point.x));
            point.or_generator(lanes).store(records);
            off.extend_from_slice(&lanes);
        }
        off
    }
}

/// x^3 + 7.
#[inline(always)]
fn right_side<V: Vector, const N: usize>(x: &Number<V, N>) -> Number<V, N> {
    let cube = x.square().begin(x).reduced();
    cube.plus(&Number::splat(&SEVEN).open()).carried()
}

/// Lanes in which two numbers of weight at most 2 differ.
#[inline(always)]
fn different<V: Vector, const N: usize>(a: &Number<V, N>, b: &Number<V, N>) -> [u8; N] {
    let difference = a.open().minus(&b.open()).plus_primes(3);
    let mut lanes = difference.carried().canonical().zeros();
    for lanes in &mut lanes {
        *lanes = !*lanes;
    }
    lanes
}

impl<V: Vector, const N: usize> Jacobian<V, N> {
    /// Minus twice the point: with the sign, no step is needed to negate y.
    #[inline(always)]
    pub(crate) fn doubled_and_negated(&self) -> Self {
        // With A = x^2, B = 2 y^2, C = 2 x B: x' = (3 A)^2 - 2 C, -y' = 3 A (x' - C) + 2 B^2, z' = 2 y z.
        let a = self.x.begin_square().reduced();
        let e = a.plus(&a.doubled()).carried();
        let b = self.y.begin_square().reduced().doubled().carried();
        let c = self.x.begin(&b).reduced().doubled().carried();
        let z = self.y.begin(&self.z).reduced().doubled().carried();
        // C weighs 2, so that x weighs 1 + 5.
        let twice = c.open().doubled();
        let x = e.begin_square().reduced().minus(&twice).plus_primes(5);
        let x = x.carried();
        let d = x.open().minus(&c.open()).plus_primes(3).carried();
        // 3 times 9 and 2 times 2 times 2: 35.
        let y = b.begin_square().doubled().plus(&e, &d).reduced().carried();
        Self { x, y, z }
    }

    /// The sum with a point that is negated in some lanes.
    #[inline(always)]
    pub(crate) fn plus(&self, other: &Affine<V, N>, negated: [u8; N]) -> Self {
        let zz = self.z.square();
        let zzz = self.z.times(&zz);
        let h = other.x.begin(&zz).reduced().minus(&self.x.open());
        let h = h.plus_primes(7).carried();
        let s = other.y.begin(&zzz).reduced().negated_where(negated, 2);
        let r = s.minus(&self.y.open()).plus_primes(2).carried();
        let hh = h.square();
        let z = self.z.times(&h);
        let v = self.x.times(&hh);
        let negative_j = h.begin(&hh).reduced().negated(2).carried();
        // Weights: 1 + 2 + 3.
        let x = r.begin_square().reduced().plus(&negative_j.open());
        let x = x.minus(&v.open().doubled()).plus_primes(3).carried();
        let d = v.open().minus(&x.open()).plus_primes(7).carried();
        // 4 times 8 and 1 times 2: 34.
        let y = r.begin(&d).plus(&self.y, &negative_j).reduced().carried();
        Self { x, y, z }
    }
}

/// A point's x times beta: the point times lambda.
#[inline(always)]
pub(crate) fn times_lambda<V: Vector, const N: usize>(point: &Affine<V, N>) -> Affine<V, N> {
    Affine {
        x: point.x.times(&Number::splat(&BETA)),
        y: point.y,
    }
}

/// A line through two points, or the tangent in one: its third intersection, negated, is their sum.
#[derive(Clone, Copy)]
pub(crate) struct Line<V, const N: usize> {
    point: Affine<V, N>,
    other_x: Number<V, N>,
    rise: Number<V, N>,
    run: Number<V, N>,
}

impl<V: Vector, const N: usize> Line<V, N> {
    /// Through two points with different x.
    #[inline(always)]
    pub(crate) fn chord(a: &Affine<V, N>, b: &Affine<V, N>) -> Self {
        Self {
            point: *a,
            other_x: b.x,
            rise: b.y.open().minus(&a.y.open()).plus_primes(2).carried(),
            run: b.x.open().minus(&a.x.open()).plus_primes(2).carried(),
        }
    }

    /// The tangent.
    #[inline(always)]
    pub(crate) fn tangent(a: &Affine<V, N>) -> Self {
        let square = a.x.begin_square().reduced();
        Self {
            point: *a,
            other_x: a.x,
            rise: square.plus(&square.doubled()).carried(),
            run: a.y.open().doubled().carried(),
        }
    }

    #[inline(always)]
    fn sum(&self, run_inverse: &Number<V, N>) -> Affine<V, N> {
        let (a, slope) = (&self.point, self.rise.times(run_inverse));
        let x = slope.begin_square().reduced().minus(&a.x.open());
        // Brought to weight 1 again: a sum is a term of other sums.
        let x = x.minus(&self.other_x.open()).plus_primes(4).carried();
        let x = x.canonical();
        let d = a.x.open().minus(&x.open()).plus_primes(2).carried();
        let y = slope.begin(&d).reduced().minus(&a.y.open());
        let y = y.plus_primes(2).carried().canonical();
        Affine { x, y }
    }
}

/// The sums of the points on each line, with one inversion.
#[inline(always)]
pub(crate) fn sums<V: Vector, const N: usize>(lines: &[Line<V, N>]) -> Vec<Affine<V, N>> {
    let mut inverses = Vec::with_capacity(lines.len());
    for line in lines {
        inverses.push(line.run);
    }
    invert_all(&mut inverses);
    let mut sums = Vec::with_capacity(lines.len());
    for (line, inverse) in lines.iter().zip(&inverses) {
        sums.push(line.sum(inverse));
    }
    sums
}

/// Brings points to two coordinates, with one inversion. Also returns the lanes with z = 0, whose
/// coordinates are of no meaning.
#[inline(always)]
pub(crate) fn normalized<V: Vector, const N: usize>(
    points: &[Jacobian<V, N>],
) -> (Vec<Affine<V, N>>, Vec<[u8; N]>) {
    let one = Number::splat(&[1, 0, 0, 0]);
    let (mut inverses, mut undefined) = (Vec::new(), Vec::new());
    for point in points {
        let zeros = point.z.canonical().zeros();
        inverses.push(point.z.replaced(zeros, &one));
        undefined.push(zeros);
    }
    invert_all(&mut inverses);
    let mut affine = Vec::with_capacity(points.len());
    for (point, inverse) in points.iter().zip(&inverses) {
        let square = inverse.square();
        affine.push(Affine {
            x: point.x.times(&square),
            y: point.y.times(&square.times(inverse)),
        });
    }
    (affine, undefined)
}
