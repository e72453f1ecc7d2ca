//! The inner product argument: that a committed polynomial has a value at a point.

use crate::{
    Committer, ProofError, Transcript,
    crs::{Q, WIDTH},
    domain::{Domain, inner_product},
    proof,
};
use arbor_banderwagon::{Fr, Point, Term, sum_of_products};
use arbor_cpu::threads;
use arbor_field::invert_all;

/// Halvings of the vector.
const ROUNDS: usize = 8;

/// A proof that a polynomial, committed to by its values at 0 to 255, has a certain value at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerProductProof {
    pub(crate) left: Vec<Point>,
    pub(crate) right: Vec<Point>,
    pub(crate) last: Fr,
}

impl InnerProductProof {
    /// Bytes of the encoding: L and R of eight rounds, compressed, and the last scalar, least significant byte first.
    pub const BYTES: usize = 32 * (2 * ROUNDS + 1);

    /// Proves the value at `point` of the polynomial with these `values`, whose commitment is `commitment`. The value is the second result.
    #[must_use]
    pub fn prove(
        committer: &Committer,
        transcript: &mut Transcript,
        commitment: &Point,
        values: &[Fr; WIDTH],
        point: Fr,
    ) -> (Self, Fr) {
        let mut a = values.to_vec();
        let mut b = Domain::get().evaluation_vector(point);
        let value = inner_product(&a, &b);
        let w = begin(transcript, commitment, point, value);

        // The basis is not folded: `basis[k]` says how often G_k is in the folded basis' element k modulo the folded length.
        let mut basis = vec![Fr::ONE; WIDTH];
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let half = a.len() / 2;
            let (a_left, a_right) = a.split_at(half);
            let (b_left, b_right) = b.split_at(half);
            let sum = |upper: usize, a: &[Fr], b: &[Fr]| {
                let terms: Vec<Term> = (0..WIDTH)
                    .filter(|k| k / half % 2 == upper)
                    .map(|k| (k, a[k % half] * basis[k]))
                    .chain([(Q, w * inner_product(a, b))])
                    .collect();
                committer.sum(&terms)
            };
            let (l, r) = threads::join(|| sum(0, a_right, b_left), || sum(1, a_left, b_right));
            let (x, inverse) = round(transcript, &Point::to_bytes_batch(&[l, r]));
            left.push(l);
            right.push(r);
            let fold = |low: &[Fr], high: &[Fr], factor: Fr| -> Vec<Fr> {
                low.iter()
                    .zip(high)
                    .map(|(&low, &high)| low + factor * high)
                    .collect()
            };
            (a, b) = (fold(a_left, a_right, x), fold(b_left, b_right, inverse));
            for (k, coefficient) in basis.iter_mut().enumerate() {
                if k / half % 2 == 1 {
                    *coefficient *= inverse;
                }
            }
        }
        let last = a[0];
        (Self { left, right, last }, value)
    }

    /// Whether the polynomial behind `commitment` has this `value` at `point`.
    #[must_use]
    pub fn verify(
        &self,
        committer: &Committer,
        transcript: &mut Transcript,
        commitment: &Point,
        point: Fr,
        value: Fr,
    ) -> bool {
        let mut equation = Equation::default();
        equation.add_variable(*commitment, Fr::ONE);
        self.add_to(&mut equation, transcript, commitment, point, value);
        equation.holds(committer)
    }

    /// Adds everything but the commitment itself to an equation.
    pub(crate) fn add_to(
        &self,
        equation: &mut Equation,
        transcript: &mut Transcript,
        commitment: &Point,
        point: Fr,
        value: Fr,
    ) {
        let w = begin(transcript, commitment, point, value);
        // The proof's points are encoded again: their representatives are free, their encodings are not.
        let encodings = Point::to_bytes_batch(&[&self.left[..], &self.right[..]].concat());
        let (left, right) = encodings.split_at(ROUNDS);
        let mut challenges = Vec::with_capacity(ROUNDS);
        for (l, r) in left.iter().zip(right) {
            challenges.push(challenge(transcript, l, r));
        }
        let mut inverses = challenges.clone();
        invert_all(&mut inverses);
        for i in 0..ROUNDS {
            equation.add_variable(self.left[i], challenges[i]);
            equation.add_variable(self.right[i], inverses[i]);
        }
        // C + y q + sum(x L + R / x) = a G' + a b' q, with G' and b' folded by the inverses: the first round decides by the top bit.
        let mut folded = vec![Fr::ONE];
        for inverse in inverses.iter() {
            folded = folded.iter().flat_map(|&s| [s, s * *inverse]).collect();
        }
        let b = Domain::get().evaluation_vector(point);
        for (k, &s) in folded.iter().enumerate() {
            equation.fixed[k] -= self.last * s;
        }
        equation.fixed[Q] += w * (value - self.last * inner_product(&folded, &b));
    }

    /// The encoding, of [`Self::BYTES`] bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        proof::encode(&[&self.left[..], &self.right[..]].concat(), self.last)
    }

    /// Decodes [`Self::to_bytes`].
    ///
    /// # Errors
    ///
    /// [`ProofError`] for another length, points outside the group, and a scalar that is not reduced.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let (points, last) = proof::decode(bytes, 2 * ROUNDS)?;
        Ok(Self::from_parts(&points, last))
    }

    /// From the points L and then R.
    pub(crate) fn from_parts(points: &[Point], last: Fr) -> Self {
        let (left, right) = points.split_at(ROUNDS);
        Self {
            left: left.to_vec(),
            right: right.to_vec(),
            last,
        }
    }
}

/// States the claim; the challenge that scales Q.
fn begin(transcript: &mut Transcript, commitment: &Point, point: Fr, value: Fr) -> Fr {
    transcript.domain_separator(b"ipa");
    transcript.append_point(b"C", commitment);
    transcript.append_scalar(b"input point", point);
    transcript.append_scalar(b"output point", value);
    transcript.challenge(b"w")
}

fn challenge(transcript: &mut Transcript, left: &[u8; 32], right: &[u8; 32]) -> Fr {
    transcript.append(b"L", left);
    transcript.append(b"R", right);
    transcript.challenge(b"x")
}

/// A round's challenge and its inverse.
fn round(transcript: &mut Transcript, encodings: &[[u8; 32]]) -> (Fr, Fr) {
    let x = challenge(transcript, &encodings[0], &encodings[1]);
    (x, x.inverse())
}

/// A sum of products that ought to be zero, with fixed points and others.
pub(crate) struct Equation {
    /// Of the reference string, and of Q.
    pub(crate) fixed: Vec<Fr>,
    points: Vec<Point>,
    scalars: Vec<Fr>,
}

impl Default for Equation {
    fn default() -> Self {
        Self {
            fixed: vec![Fr::ZERO; WIDTH + 1],
            points: Vec::new(),
            scalars: Vec::new(),
        }
    }
}

impl Equation {
    pub(crate) fn add_variable(&mut self, point: Point, scalar: Fr) {
        self.points.push(point);
        self.scalars.push(scalar);
    }

    /// Adds another equation, `factor` times.
    pub(crate) fn add_scaled(&mut self, other: &Self, factor: Fr) {
        for (sum, &scalar) in self.fixed.iter_mut().zip(&other.fixed) {
            *sum += factor * scalar;
        }
        self.points.extend(&other.points);
        self.scalars
            .extend(other.scalars.iter().map(|&scalar| factor * scalar));
    }

    pub(crate) fn holds(&self, committer: &Committer) -> bool {
        let (fixed, variable) = threads::join(
            || committer.sum_of_dense(&self.fixed),
            || sum_of_products(&self.points, &self.scalars),
        );
        (fixed + variable).is_identity()
    }
}
