//! Elements as bytes.

use crate::{
    Point,
    bits::modulo_order,
    curve::{BYTES, D, times_five},
    extended::eight,
};
use arbor_field::{
    Base, Fp, Job, LANES, Lanes, Limbs, Modulus, Wide, are_squares, divide_all, invert_lanes,
    limbs::{less, sub},
    sqrt_all,
};
use arbor_metrics::NORMALISATIONS;

/// Bytes that are no element of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodingError {
    /// Not 32 bytes, or not 64 for the uncompressed form.
    #[error("a point has {expected} bytes, not {found}")]
    Length {
        /// Bytes that this form has.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// A coordinate is not below the prime.
    #[error("a coordinate is not below the field's prime")]
    Coordinate,
    /// No point of the curve has these coordinates.
    #[error("not a point of the curve")]
    Curve,
    /// A point of the curve, but of a coset that is not in the group.
    #[error("a point of the curve that is not in the subgroup")]
    Subgroup,
    /// An element, by the representative that is not written: the one with the smaller y.
    #[error("the smaller y of an element, whose encoding has the larger one")]
    Representative,
}

/// Whether bytes come from somebody who may have forged them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Checked in full.
    Untrusted,
    /// Written by ourselves: the subgroup check (compressed), or every check but the range of the coordinates (uncompressed), is left out.
    Trusted,
}

impl Point {
    /// The compressed form: x, most significant byte first, of the representative whose y is the larger one of y and -y.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; BYTES] {
        NORMALISATIONS.add(1);
        let inverse = self.z.inverse();
        compress(self.x * inverse, self.y * inverse)
    }

    /// [`Self::to_bytes`] of many, with one inversion. Equal elements have equal bytes, here and in the uncompressed form.
    #[must_use]
    pub fn to_bytes_batch(points: &[Self]) -> Vec<[u8; BYTES]> {
        Self::to_bytes_batch_on(Wide::detect(), points)
    }

    /// As [`Self::to_bytes_batch`], with lanes of the caller's choice.
    #[must_use]
    pub fn to_bytes_batch_on(wide: Wide, points: &[Self]) -> Vec<[u8; BYTES]> {
        if points.len() < LANES {
            let affine = Self::to_affine_batch(points);
            return affine.into_iter().map(|(x, y)| compress(x, y)).collect();
        }
        NORMALISATIONS.add(points.len() as u64);
        let coordinates = wide.run(Coordinates { points });
        let encodings = coordinates.iter().map(|[x, y]| {
            // Of x and p - x that of the representative whose y is above (p - 1) / 2.
            let x = match less(&Base::HALF, y) || *x == [0; 4] {
                true => x,
                false => &sub(&Base::MODULUS, x).0,
            };
            let mut bytes = [0; BYTES];
            for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(x.iter().rev()) {
                *to = word.to_be_bytes();
            }
            bytes
        });
        encodings.collect()
    }

    /// x and then y of the representative with the larger y, each most significant byte first. go-verkle's databases have this form, with either
    /// representative.
    #[must_use]
    pub fn to_uncompressed_batch(points: &[Self]) -> Vec<[u8; 2 * BYTES]> {
        let join = |(x, y): (Fp, Fp)| {
            let (x, y) = if y.is_large() { (x, y) } else { (-x, -y) };
            let mut bytes = [0; 2 * BYTES];
            bytes[..BYTES].copy_from_slice(&x.to_be_bytes());
            bytes[BYTES..].copy_from_slice(&y.to_be_bytes());
            bytes
        };
        Self::to_affine_batch(points)
            .into_iter()
            .map(join)
            .collect()
    }

    /// Decodes the compressed form, with all checks.
    ///
    /// # Errors
    ///
    /// [`DecodingError`] for any other string than an element's encoding.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodingError> {
        let x = coordinate(exactly(bytes)?)?;
        let mut points = decompress(&[x], Trust::Untrusted);
        points.pop().unwrap_or(Err(DecodingError::Curve))
    }

    /// Decodes many compressed elements: one inversion, square roots in lanes.
    ///
    /// # Errors
    ///
    /// Each for itself, as [`Self::from_bytes`].
    #[must_use]
    pub fn from_bytes_batch(
        encodings: &[[u8; BYTES]],
        trust: Trust,
    ) -> Vec<Result<Self, DecodingError>> {
        let coordinates: Vec<_> = encodings.iter().map(coordinate).collect();
        let xs: Vec<_> = coordinates.iter().map(|x| x.unwrap_or(Fp::ZERO)).collect();
        let mut points = decompress(&xs, trust);
        for (point, x) in points.iter_mut().zip(coordinates) {
            if let Err(error) = x {
                *point = Err(error);
            }
        }
        points
    }

    /// Decodes x and y, most significant bytes first. Trusted, either representative will do.
    ///
    /// # Errors
    ///
    /// [`DecodingError`] for a wrong length or range and, untrusted, for coordinates off the curve or outside the subgroup, or with the smaller y.
    pub fn from_uncompressed(bytes: &[u8], trust: Trust) -> Result<Self, DecodingError> {
        let bytes: &[u8; 2 * BYTES] = exactly(bytes)?;
        let (x, y) = bytes.split_at(BYTES);
        let (x, y) = (coordinate(exactly(x)?)?, coordinate(exactly(y)?)?);
        if trust == Trust::Untrusted {
            let (xx, yy) = (x.square(), y.square());
            if yy - times_five(xx) != Fp::ONE + D * xx * yy {
                return Err(DecodingError::Curve);
            }
            check_subgroup(xx)?;
            if !y.is_large() {
                return Err(DecodingError::Representative);
            }
        }
        Ok(Self::from_affine(x, y))
    }
}

/// An element as x of the representative with the larger y, and x/y, both as numbers below the prime: a form that takes no square root to read, and has what
/// [`map_to_field`](Point::map_to_field) reduces. Two zeros for the neutral element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    pub(crate) x: Limbs,
    pub(crate) ratio: Limbs,
}

impl Ratio {
    /// The neutral element.
    pub const IDENTITY: Self = Self {
        x: [0; 4],
        ratio: [0; 4],
    };

    /// Many points in this form, with one inversion.
    #[must_use]
    pub fn from_points(points: &[Point]) -> Vec<Self> {
        let affine = Point::to_affine_batch(points);
        let ratios = divide_all(&affine).into_iter();
        let join = |((x, y), ratio): ((Fp, Fp), Fp)| Self {
            x: if y.is_large() { x } else { -x }.to_limbs(),
            ratio: ratio.to_limbs(),
        };
        affine.into_iter().zip(ratios).map(join).collect()
    }

    /// Reads x and then x/y, each most significant byte first. Whether a point has both is [`Self::to_point`]'s to say.
    ///
    /// # Errors
    ///
    /// [`DecodingError`] for a wrong length or range.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodingError> {
        let (words, _) = exactly::<{ 2 * BYTES }>(bytes)?.as_chunks();
        let number =
            |last: usize| -> Limbs { std::array::from_fn(|i| u64::from_be_bytes(words[last - i])) };
        let (x, ratio) = (number(3), number(7));
        if less(&x, &Base::MODULUS) && less(&ratio, &Base::MODULUS) {
            return Ok(Self { x, ratio });
        }
        Err(DecodingError::Coordinate)
    }

    /// The bytes that [`Self::from_bytes`] reads.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 2 * BYTES] {
        let mut bytes = [0; 2 * BYTES];
        let words = self.x.iter().rev().chain(self.ratio.iter().rev());
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_be_bytes();
        }
        bytes
    }

    /// What [`map_to_field`](Point::map_to_field) gives, as a number.
    #[must_use]
    pub fn image(&self) -> Limbs {
        modulo_order(&self.ratio)
    }

    /// Many elements; the error is which is none.
    pub(crate) fn to_points(ratios: &[Self]) -> Result<Vec<Point>, usize> {
        let points = ratios.iter().enumerate();
        let points = points.map(|(at, ratio)| ratio.to_point().map_err(|_| at));
        points.collect()
    }

    /// The element. That its numbers belong together is checked, the subgroup is not.
    ///
    /// # Errors
    ///
    /// [`DecodingError`] for numbers of which no point of the curve has both.
    pub fn to_point(&self) -> Result<Point, DecodingError> {
        let [x, ratio] = [self.x, self.ratio].map(Fp::reduced);
        // The curve's equation with y = x / ratio, times ratio^2.
        let (xx, square) = (x.square(), ratio.square());
        if xx - times_five(xx * square) != square + D * xx.square() {
            return Err(DecodingError::Curve);
        }
        if ratio.is_zero() {
            return Ok(Point::IDENTITY);
        }
        // With Z = x/y: Y/Z = x / (x/y) = y.
        Ok(Point {
            x: x * ratio,
            y: x,
            z: ratio,
            t: xx,
        })
    }
}

/// The affine coordinates of points as numbers below the prime, with one inversion.
struct Coordinates<'a> {
    points: &'a [Point],
}

impl Job<Base> for Coordinates<'_> {
    type Output = Vec<[Limbs; 2]>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let points = self.points;
        let mut product = lanes.splat(&lanes.enter(Fp::ONE));
        let mut before = Vec::with_capacity(points.len().div_ceil(LANES));
        for chunk in points.chunks(LANES) {
            before.push(product);
            product = lanes.times(lanes.load_multiples(eight(chunk).map(|p| p.z)), product);
        }
        // All coordinates are loaded as multiples by the same factor, which the quotients lose; an inverse in place of whose stored form there is its number makes numbers of them.
        let rest = invert_lanes(lanes, product, Fp::to_limbs);
        let mut rest = rest.expect("invariant: Z is not zero");
        let mut coordinates = vec![[[0; 4]; 2]; points.len()];
        let chunks = points.chunks(LANES).zip(coordinates.chunks_mut(LANES));
        for ((chunk, coordinates), before) in chunks.zip(before).rev() {
            let points = eight(chunk);
            let z = lanes.load_multiples(points.map(|p| p.z));
            let [inverse, next] = lanes.times_two([rest, rest], [before, z]);
            rest = next;
            let x = lanes.load_multiples(points.map(|p| p.x));
            let y = lanes.load_multiples(points.map(|p| p.y));
            let [x, y] = lanes.times_two([x, y], [inverse, inverse]);
            let (x, y) = (lanes.leave_multiples(x), lanes.leave_multiples(y));
            for (lane, to) in coordinates.iter_mut().enumerate() {
                *to = [*x[lane].montgomery(), *y[lane].montgomery()];
            }
        }
        coordinates
    }
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], DecodingError> {
    bytes.try_into().map_err(|_| DecodingError::Length {
        expected: N,
        found: bytes.len(),
    })
}

fn coordinate(bytes: &[u8; BYTES]) -> Result<Fp, DecodingError> {
    Fp::from_be_bytes(bytes).map_err(|_| DecodingError::Coordinate)
}

fn compress(x: Fp, y: Fp) -> [u8; BYTES] {
    let x = if y.is_large() { x } else { -x };
    x.to_be_bytes()
}

/// 1 - a x^2 must be a square (Banderwagon's specification; it tells the subgroup and its coset from the rest of the curve).
fn check_subgroup(xx: Fp) -> Result<(), DecodingError> {
    if (Fp::ONE + times_five(xx)).legendre() == 1 {
        Ok(())
    } else {
        Err(DecodingError::Subgroup)
    }
}

/// The elements with these x, taking the larger y.
fn decompress(xs: &[Fp], trust: Trust) -> Vec<Result<Point, DecodingError>> {
    // y^2 = (1 - a x^2) / (1 - d x^2); d is not a square, so that the denominator is never zero.
    let fraction = |xx: Fp| (Fp::ONE + times_five(xx), Fp::ONE - D * xx);
    let fractions: Vec<_> = xs.iter().map(|x| fraction(x.square())).collect();
    let roots = sqrt_all(&divide_all(&fractions));
    // The numerators are what must be squares for the subgroup.
    let within = match trust {
        Trust::Untrusted => are_squares(
            &fractions
                .iter()
                .map(|fraction| fraction.0)
                .collect::<Vec<_>>(),
        ),
        Trust::Trusted => vec![true; xs.len()],
    };
    let decode = |((x, within), root): ((&Fp, bool), Option<Fp>)| {
        let y = root.ok_or(DecodingError::Curve)?;
        if !within {
            return Err(DecodingError::Subgroup);
        }
        Ok(Point::from_affine(*x, if y.is_large() { y } else { -y }))
    };
    xs.iter().zip(within).zip(roots).map(decode).collect()
}
