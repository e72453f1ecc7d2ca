//! What becomes of sums in the form in which they are added: points, images, and sums with what was there before.

use crate::{
    Point, Ratio,
    curve::{D, Short},
    extended::{self, Eight, constant, eight, times_five},
    pairs::{some, x_of, y_of},
    short::Stored,
};
use arbor_field::{
    Base, Fp, Job, LANES, Lanes, Limbs, Modulus, invert_lanes,
    limbs::{less, sub},
};
use arbor_metrics::NORMALISATIONS;

/// Extended Edwards coordinates, without an inversion: x = X'/Y and y = (X' - k) / (X' + k), where X' = X - c.
#[inline(always)]
pub(crate) fn to_points<L: Lanes<Base>>(lanes: L, stored: &[Stored]) -> Vec<Point> {
    let idle = Stored::default();
    let mut points = Vec::with_capacity(stored.len());
    for chunk in stored.chunks(LANES) {
        let mut extended = extended::leave(lanes, to_extended(lanes, some(chunk, &idle)));
        for point in &mut extended {
            if point.z.is_zero() {
                *point = Point::IDENTITY;
            }
        }
        points.extend_from_slice(&extended[..chunk.len()]);
    }
    points
}

/// [`to_points`] of eight; zeros for the neutral element.
#[inline(always)]
fn to_extended<L: Lanes<Base>>(lanes: L, points: [&Stored; LANES]) -> Eight<L::Tight> {
    let Short { scale, shift, .. } = *Short::get();
    let (scale, shift) = (constant(lanes, scale), constant(lanes, shift));
    let u = lanes.tighten(lanes.sub(x_of(lanes, points), shift));
    let y = y_of(lanes, points);
    let [x, z] = lanes.mul_two([lanes.add(u, scale); 2], [u, y]);
    let [t, y] = lanes.mul_two([lanes.sub(u, scale); 2], [u, y]);
    Eight { x, y, z, t }
}

/// Images of points, as numbers, with one inversion: x / y = u (u + k) / (Y (u - k)) with u = X - c. None if a denominator is zero, as that of the neutral element.
pub(crate) struct Images<'a> {
    pub(crate) points: &'a [Stored],
}

impl Job<Base> for Images<'_> {
    type Output = Option<Vec<Limbs>>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let Short { scale, shift, .. } = *Short::get();
        let (scale, shift) = (constant(lanes, scale), constant(lanes, shift));
        let points = self.points;
        let mut quotients = Quotients::new(lanes, points.len());
        for chunk in points.chunks(LANES) {
            let sources = some(chunk, &chunk[0]);
            let u = lanes.tighten(lanes.sub(x_of(lanes, sources), shift));
            let [numerator, denominator] = lanes.mul_two(
                [lanes.add(u, scale), lanes.sub(u, scale)],
                [u, y_of(lanes, sources)],
            );
            quotients.push(lanes, numerator, denominator);
        }
        quotients.numbers(lanes, points.len())
    }
}

/// Sums added to points, with the images of what results. None if a sum is the neutral element.
pub(crate) struct AddTo<'a> {
    pub(crate) sums: &'a [Stored],
    pub(crate) points: &'a [Point],
}

impl Job<Base> for AddTo<'_> {
    type Output = Option<(Vec<Point>, Vec<Limbs>)>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let Self { sums, points } = self;
        let d = constant(lanes, D);
        let mut quotients = Quotients::new(lanes, points.len());
        let mut added = Vec::with_capacity(points.len());
        for (sums, points) in sums.chunks(LANES).zip(points.chunks(LANES)) {
            // Coordinates of the neutral element's affine form would all be zero here, and so the denominator.
            let sum = to_extended(lanes, some(sums, &sums[0]));
            let sum = extended::add(lanes, sum, extended::load(lanes, eight(points)), d);
            quotients.push(lanes, sum.x, sum.y);
            added.extend_from_slice(&extended::leave(lanes, sum)[..points.len()]);
        }
        let images = quotients.numbers(lanes, points.len())?;
        Some((added, images))
    }
}

/// As [`AddTo`], from and to x and x/y. None also if a point is not on the curve.
pub(crate) struct AddToRatios<'a> {
    pub(crate) sums: &'a [Stored],
    pub(crate) ratios: &'a [Ratio],
}

impl Job<Base> for AddToRatios<'_> {
    type Output = Option<Vec<Ratio>>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let Self { sums, ratios } = self;
        let d = constant(lanes, D);
        // Of each vector the coordinates, and the product of all denominators Y Z before.
        let mut vectors = Vec::with_capacity(sums.len().div_ceil(LANES));
        let mut product = lanes.splat(&lanes.enter(Fp::ONE));
        for (sums, ratios) in sums.chunks(LANES).zip(ratios.chunks(LANES)) {
            let point = on_curve(lanes, ratios, d)?;
            let sum = to_extended(lanes, some(sums, &sums[0]));
            let sum = extended::add(lanes, sum, point, d);
            vectors.push([sum.x, sum.y, sum.z, product]);
            product = lanes.times(product, lanes.times(sum.y, sum.z));
        }
        // The number of the inverse in place of its stored form makes numbers of the quotients.
        let mut rest = invert_lanes(lanes, product, Fp::to_limbs)?;
        NORMALISATIONS.add(ratios.len() as u64);
        let mut added = vec![Ratio::IDENTITY; ratios.len()];
        for ([x, y, z, before], added) in vectors.iter().zip(added.chunks_mut(LANES)).rev() {
            let [inverse, both] = lanes.times_two([rest, *y], [*before, *z]);
            rest = lanes.times(rest, both);
            let [by_y, by_z] = lanes.times_two([inverse; 2], [*z, *y]);
            let [ratio, y] = lanes.times_two([*x, *y], [by_y, by_z]);
            let x = lanes.store_reduced(lanes.times(*x, by_z));
            let (ratio, y) = (lanes.store_reduced(ratio), lanes.store_reduced(y));
            for (lane, to) in added.iter_mut().enumerate() {
                // Of x and p - x that of the representative whose y is above (p - 1) / 2.
                let is_larger = less(&Base::HALF, &y[lane]) || x[lane] == [0; 4];
                *to = Ratio {
                    x: match is_larger {
                        true => x[lane],
                        false => sub(&Base::MODULUS, &x[lane]).0,
                    },
                    ratio: ratio[lane],
                };
            }
        }
        Some(added)
    }
}

/// Up to eight points, and neutral elements, in extended coordinates; none if one is not on the curve.
///
/// Numbers are loaded as they are: to the lanes they are multiples by some constant, whose square all coordinates have in the end.
#[inline(always)]
fn on_curve<L: Lanes<Base>>(lanes: L, ratios: &[Ratio], d: L::Tight) -> Option<Eight<L::Tight>> {
    const ONE: Limbs = [1, 0, 0, 0];
    let mut all = [Ratio::IDENTITY; LANES];
    all[..ratios.len()].copy_from_slice(ratios);
    let [x, ratio] = [
        lanes.load(all.each_ref().map(|point| &point.x)),
        lanes.load(all.each_ref().map(|point| &point.ratio)),
    ];
    // Y and Z of the neutral element are one.
    let or_one = |number: &Limbs| if *number == [0; 4] { ONE } else { *number };
    let [y, z] = [
        all.map(|point| or_one(&point.x)),
        all.map(|point| or_one(&point.ratio)),
    ];
    let one = lanes.splat(&ONE);
    let [y, z] = lanes.times_two(
        [lanes.load(y.each_ref()), lanes.load(z.each_ref())],
        [one; 2],
    );
    let [xx, square] = lanes.square_two([x, ratio]);
    // The curve's equation with y = x / ratio, times ratio^2: xx - square = xx (5 square + d xx), where the left side has the constant but twice.
    let dxx = lanes.times(xx, d);
    let right = lanes.tighten(lanes.add(times_five(lanes, square), dxx));
    let twice = lanes.times(one, one);
    let [left, right] = lanes.mul_two([lanes.sub(xx, square), lanes.loosen(xx)], [twice, right]);
    let difference = lanes.store_reduced(lanes.tighten(lanes.sub(left, right)));
    let point = Eight {
        x: lanes.times(x, ratio),
        y,
        z,
        t: xx,
    };
    (difference == [[0; 4]; LANES]).then_some(point)
}

/// Fractions that are divided with one inversion.
struct Quotients<T> {
    /// The denominators' product.
    product: T,
    /// Of each vector the numerators, the denominators, and the product of the denominators before.
    vectors: Vec<[T; 3]>,
}

impl<T: Copy> Quotients<T> {
    #[inline(always)]
    fn new<L: Lanes<Base, Tight = T>>(lanes: L, count: usize) -> Self {
        Self {
            product: lanes.splat(&lanes.enter(Fp::ONE)),
            vectors: Vec::with_capacity(count.div_ceil(LANES)),
        }
    }

    #[inline(always)]
    fn push<L: Lanes<Base, Tight = T>>(&mut self, lanes: L, numerator: T, denominator: T) {
        self.vectors.push([numerator, denominator, self.product]);
        self.product = lanes.times(self.product, denominator);
    }

    /// The first `count` quotients as numbers below the prime; none if a denominator is zero.
    #[inline(always)]
    fn numbers<L: Lanes<Base, Tight = T>>(self, lanes: L, count: usize) -> Option<Vec<Limbs>> {
        // The number of the inverse in place of its stored form makes numbers of the quotients.
        let mut rest = invert_lanes(lanes, self.product, Fp::to_limbs)?;
        let mut numbers = vec![[0; 4]; count];
        let chunks = self.vectors.iter().zip(numbers.chunks_mut(LANES));
        for ([numerator, denominator, before], numbers) in chunks.rev() {
            let [inverse, next] = lanes.times_two([rest, rest], [*before, *denominator]);
            rest = next;
            let quotient = lanes.store_reduced(lanes.times(*numerator, inverse));
            numbers.copy_from_slice(&quotient[..numbers.len()]);
        }
        Some(numbers)
    }
}
