//! Many openings of many commitments, in one proof of constant size.

use crate::{
    Committer, InnerProductProof, ProofError, Transcript,
    crs::WIDTH,
    domain::{Domain, Polynomial, load, zero},
    inner_product::Equation,
    proof,
};
use arbor_banderwagon::{Fr, Point, VariableBase};
use arbor_cpu::{
    prefetch_early,
    threads::{self, prelude::*},
};
use arbor_field::{Job, LANES, Lanes, Limbs, SUMMED, Scalar, Wide, invert_all, to_limbs_all};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, ops::Range};

/// What a prover opens: the value of a committed polynomial at a point of the domain.
#[derive(Clone, Copy)]
pub struct Opening<'a> {
    /// The commitment to the polynomial.
    pub commitment: Point,
    /// The polynomial.
    pub polynomial: &'a Polynomial,
    /// The point.
    pub point: u8,
}

/// As [`Opening`], of a polynomial with few values that are not zero.
#[derive(Clone, Copy)]
pub struct SparseOpening<'a> {
    /// The commitment to the polynomial, encoded.
    pub commitment: &'a [u8; 32],
    /// Values by point, each point once: all that are not zero.
    pub values: &'a [(u8, Fr)],
    /// The point.
    pub point: u8,
    /// The value at the point.
    pub value: Fr,
}

/// What a verifier is told: the polynomial behind `commitment` is `value` at `point`.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// The commitment to the polynomial.
    pub commitment: Point,
    /// The point.
    pub point: u8,
    /// The value.
    pub value: Fr,
}

/// A proof of any number of openings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiproof {
    /// The commitment to g.
    pub quotients: Point,
    /// The opening of h - g at t.
    pub opening: InnerProductProof,
}

/// Queries with their proof, for [`verify_all`].
#[derive(Clone)]
pub struct Statement<'a> {
    /// The proof.
    pub proof: &'a Multiproof,
    /// What it is said to prove, in the prover's order.
    pub queries: &'a [Query],
    /// The transcript as the prover's was before.
    pub transcript: Transcript,
}

impl Multiproof {
    /// Bytes of the encoding: D, then an inner product proof.
    pub const BYTES: usize = 32 + InnerProductProof::BYTES;

    /// Proves all openings. The order matters: the verifier must have the same.
    #[must_use]
    pub fn prove(committer: &Committer, transcript: &mut Transcript, openings: &[Opening]) -> Self {
        let statements = Statements {
            count: openings.len(),
            commitments: |range: Range<usize>| {
                let commitment = |opening: &Opening| {
                    // Looked up after these are encoded.
                    prefetch_early(&opening.polynomial[usize::from(opening.point)]);
                    opening.commitment
                };
                let points: Vec<_> = openings[range].iter().map(commitment).collect();
                Point::to_bytes_batch(&points)
            },
            opened: |i: usize| {
                let point = openings[i].point;
                (point, openings[i].polynomial[usize::from(point)])
            },
        };
        let (r, by_point) = threads::join(|| statements.begin(transcript), || by_point(openings));
        // All polynomials that are opened at the same point are one.
        let sums = weighted_sums(&by_point, &powers(r, openings.len()));
        Self::of_sums(committer, transcript, &sums)
    }

    /// As [`Self::prove`], for polynomials of which most have few values: what those cost is in proportion to their values. Others are held whole, 8 KiB each.
    #[must_use]
    pub fn prove_sparse(
        committer: &Committer,
        transcript: &mut Transcript,
        openings: &[SparseOpening],
    ) -> Self {
        let statements = Statements {
            count: openings.len(),
            commitments: |range: Range<usize>| {
                openings[range].iter().map(|o| *o.commitment).collect()
            },
            opened: |i: usize| (openings[i].point, openings[i].value),
        };
        let (r, by_point) = threads::join(
            || statements.begin(transcript),
            || SparseByPoint::new(openings),
        );
        let sums = by_point.sums(&powers(r, openings.len()));
        Self::of_sums(committer, transcript, &sums)
    }

    /// The proof, from the weighted sums of the polynomials opened at each point.
    fn of_sums(
        committer: &Committer,
        transcript: &mut Transcript,
        sums: &[(usize, Box<Polynomial>)],
    ) -> Self {
        let g = Domain::get().sum_of_quotients(sums);
        let quotients = committer.commit(&g);
        transcript.append_point(b"D", &quotients);
        let t = transcript.challenge(b"t");

        let factors = inverse_distances(t);
        let terms = sums.iter().map(|(z, sum)| (&**sum, *z)).collect();
        let h = weighted_sums(&[terms], &entered(&factors))
            .pop()
            .map_or_else(zero, |(_, sum)| sum);
        let e = committer.commit(&h);
        transcript.append_point(b"E", &e);
        let difference: Polynomial = std::array::from_fn(|i| h[i] - g[i]);
        let commitment = e - quotients;
        let (opening, _) =
            InnerProductProof::prove(committer, transcript, &commitment, &difference, t);
        Self { quotients, opening }
    }

    /// Whether all queries are true.
    #[must_use]
    pub fn verify(
        &self,
        committer: &Committer,
        transcript: &mut Transcript,
        queries: &[Query],
    ) -> bool {
        self.equation(transcript, queries).holds(committer)
    }

    /// What must be zero if the queries are true.
    fn equation(&self, transcript: &mut Transcript, queries: &[Query]) -> Equation {
        let encodings = encode(queries.len(), |i| queries[i].commitment);
        let statements = Statements {
            count: queries.len(),
            commitments: |range: Range<usize>| encodings[range].to_vec(),
            opened: |i: usize| (queries[i].point, queries[i].value),
        };
        // The transcript is hashed in one stream, beside what does not depend on its challenges.
        let (r, (indices, base)) = threads::join(
            || statements.begin(transcript),
            || {
                let (indices, distinct) = distinct(&encodings);
                let base = VariableBase::new(distinct.len(), |i| queries[distinct[i]].commitment);
                (indices, base)
            },
        );
        transcript.append_point(b"D", &self.quotients);
        let t = transcript.challenge(b"t");

        let (factors, value) = Wide::detect().run(Factors {
            powers: &powers(r, queries.len()),
            by_point: &inverse_distances(t),
            queries,
        });
        let mut scalars = vec![Fr::ZERO; base.len()];
        for (index, factor) in indices.into_iter().zip(factors) {
            scalars[index] += factor;
        }
        let e = base.sum(&scalars);
        transcript.append_point(b"E", &e);
        let commitment = e - self.quotients;
        let mut equation = Equation::default();
        equation.add_variable(commitment, Fr::ONE);
        self.opening
            .add_to(&mut equation, transcript, &commitment, t, value);
        equation
    }

    /// The encoding, of [`Self::BYTES`] bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let points = [
            std::slice::from_ref(&self.quotients),
            &self.opening.left,
            &self.opening.right,
        ];
        proof::encode(&points.concat(), self.opening.last)
    }

    /// Decodes [`Self::to_bytes`].
    ///
    /// # Errors
    ///
    /// [`ProofError`] for another length, points outside the group, and a scalar that is not reduced.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let (points, last) = proof::decode(bytes, Self::BYTES / 32 - 1)?;
        Ok(Self {
            quotients: points[0],
            opening: InnerProductProof::from_parts(&points[1..], last),
        })
    }
}

/// Whether all statements are true: their equations, each times a number that no prover could foresee, are summed and checked at once. A
/// false statement passes with a chance of 2^-128.
#[must_use]
pub fn verify_all(committer: &Committer, statements: &[Statement]) -> bool {
    let equations: Vec<(Equation, [u8; 32])> = statements
        .par_iter()
        .map(|statement| {
            let mut transcript = statement.transcript.clone();
            let equation = statement.proof.equation(&mut transcript, statement.queries);
            // The transcript covers queries and points; the last scalar comes after it.
            let mut hash = Sha256::new();
            hash.update(transcript.challenge(b"batch").to_le_bytes());
            hash.update(statement.proof.opening.last.to_le_bytes());
            (equation, hash.finalize().into())
        })
        .collect();
    let mut all = Sha256::new();
    equations.iter().for_each(|(_, digest)| all.update(digest));
    let seed = all.finalize();
    let mut sum = Equation::default();
    for (i, (equation, _)) in equations.iter().enumerate() {
        let hash = Sha256::new()
            .chain_update(seed)
            .chain_update((i as u64).to_le_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&hash.finalize()[..16]);
        sum.add_scaled(equation, Fr::from_le_half(&half));
    }
    sum.holds(committer)
}

/// Points that are encoded together, on one thread.
const ENCODED: usize = 512;

/// The encodings of `count` points.
fn encode(count: usize, point: impl Fn(usize) -> Point + Sync) -> Vec<[u8; 32]> {
    let mut encodings = vec![[0; 32]; count];
    let shares = encodings.par_chunks_mut(ENCODED).enumerate();
    shares.for_each(|(share, to)| {
        let from = share * ENCODED;
        let points: Vec<_> = (from..from + to.len()).map(&point).collect();
        to.copy_from_slice(&Point::to_bytes_batch(&points));
    });
    encodings
}

/// For each encoding which of the different ones it is, and where each of those comes first. The map's hash has a key, since others choose the encodings.
fn distinct(encodings: &[[u8; 32]]) -> (Vec<usize>, Vec<usize>) {
    let mut numbers: HashMap<_, _> = HashMap::with_capacity(encodings.len());
    let mut first = Vec::with_capacity(encodings.len());
    let number = |(i, encoding)| {
        *numbers.entry(encoding).or_insert_with(|| {
            first.push(i);
            first.len() - 1
        })
    };
    let indices = encodings.iter().enumerate().map(number).collect();
    (indices, first)
}

/// What a transcript says of openings.
struct Statements<C, O> {
    count: usize,
    /// The encoded commitments of some.
    commitments: C,
    /// The point and the value there of one.
    opened: O,
}

/// Bytes of a statement, labels included.
const STATED: usize = 99;

/// Statements that are hashed together.
const HASHED: usize = 8 * ENCODED;

impl<C, O> Statements<C, O>
where
    C: Fn(Range<usize>) -> Vec<[u8; 32]> + Sync,
    O: Fn(usize) -> (u8, Fr) + Sync,
{
    /// States all; the challenge whose powers weigh them. The transcript is hashed in one stream, beside the writing of what comes next.
    fn begin(&self, transcript: &mut Transcript) -> Fr {
        transcript.domain_separator(b"multiproof");
        let mut next = self.written(0);
        for from in (HASHED..self.count + HASHED).step_by(HASHED) {
            let now = next;
            ((), next) = threads::join(
                || transcript.append_encoded(&now),
                || self.written(from.min(self.count)),
            );
        }
        transcript.challenge(b"r")
    }

    /// The statements from one on, as many as are hashed together.
    fn written(&self, first: usize) -> Vec<u8> {
        let mut all = vec![0; STATED * HASHED.min(self.count - first)];
        let shares = all.par_chunks_mut(STATED * ENCODED).enumerate();
        shares.for_each(|(share, bytes)| {
            let from = first + share * ENCODED;
            let range = from..from + bytes.len() / STATED;
            let commitments = (self.commitments)(range.clone());
            let (points, values): (Vec<_>, Vec<_>) = range.map(&self.opened).unzip();
            let numbers = to_limbs_all(&values);
            let (statements, _) = bytes.as_chunks_mut::<STATED>();
            for (i, to) in statements.iter_mut().enumerate() {
                to[0] = b'C';
                to[1..33].copy_from_slice(&commitments[i]);
                to[33] = b'z';
                to[34] = points[i];
                to[66] = b'y';
                to[67..].copy_from_slice(numbers[i].map(u64::to_le_bytes).as_flattened());
            }
        });
        all
    }
}

/// 1, r, r^2 and so on, as factors in lanes.
fn powers(r: Fr, count: usize) -> Vec<Limbs> {
    Wide::detect().run(Powers { r, count })
}

/// Two vectors in turn.
struct Powers {
    r: Fr,
    count: usize,
}

impl Job<Scalar> for Powers {
    type Output = Vec<Limbs>;

    #[inline(always)]
    fn run<L: Lanes<Scalar>>(self, lanes: L) -> Vec<Limbs> {
        let mut first = [[Fr::ONE; LANES]; 2];
        for i in 1..2 * LANES {
            first[i / LANES][i % LANES] = first[(i - 1) / LANES][(i - 1) % LANES] * self.r;
        }
        let step = lanes.splat(&lanes.enter(first[1][LANES - 1] * self.r));
        let mut next = [lanes.enter_all(first[0]), lanes.enter_all(first[1])];
        let mut powers = Vec::with_capacity(self.count.next_multiple_of(2 * LANES));
        while powers.len() < self.count {
            powers.extend_from_slice(&lanes.store(next[0]));
            powers.extend_from_slice(&lanes.store(next[1]));
            next = lanes.times_two(next, [step, step]);
        }
        powers.truncate(self.count);
        powers
    }
}

/// Elements as factors in lanes.
fn entered(elements: &[Fr]) -> Vec<Limbs> {
    Wide::detect().run(Entered(elements))
}

struct Entered<'a>(&'a [Fr]);

impl Job<Scalar> for Entered<'_> {
    type Output = Vec<Limbs>;

    #[inline(always)]
    fn run<L: Lanes<Scalar>>(self, lanes: L) -> Vec<Limbs> {
        let mut all = Vec::with_capacity(self.0.len().next_multiple_of(LANES));
        for elements in self.0.chunks(LANES) {
            let mut eight = [Fr::ZERO; LANES];
            eight[..elements.len()].copy_from_slice(elements);
            all.extend_from_slice(&lanes.store(lanes.enter_all(eight)));
        }
        all.truncate(self.0.len());
        all
    }
}

/// For each query the power that weighs it by the distance of its point, and the sum of the values times these.
struct Factors<'a> {
    powers: &'a [Limbs],
    /// For each point of the domain.
    by_point: &'a [Fr],
    queries: &'a [Query],
}

impl Job<Scalar> for Factors<'_> {
    type Output = (Vec<Fr>, Fr);

    #[inline(always)]
    fn run<L: Lanes<Scalar>>(self, lanes: L) -> Self::Output {
        let zero = lanes.splat(&[0; 4]);
        let (mut factors, mut value) = (Vec::with_capacity(self.powers.len() + LANES), zero);
        for (queries, powers) in self.queries.chunks(LANES).zip(self.powers.chunks(LANES)) {
            // What lacks in the last vector are zeros.
            let mut weights = [&[0; 4]; LANES];
            let (mut distances, mut values) = ([&[0; 4]; LANES], [Fr::ZERO; LANES]);
            for (lane, (query, power)) in queries.iter().zip(powers).enumerate() {
                weights[lane] = power;
                distances[lane] = self.by_point[usize::from(query.point)].montgomery();
                values[lane] = query.value;
            }
            let products = lanes.times(lanes.load(weights), lanes.load(distances));
            factors.extend_from_slice(&lanes.leave_multiples(products));
            let products = lanes.times(products, load(lanes, &values));
            value = lanes.tighten(lanes.add(value, products));
        }
        factors.truncate(self.powers.len());
        // Both factors were loaded in the radix of elements, and the product was divided by that of the lanes.
        let mut value: Fr = lanes.leave_multiples(value).into_iter().sum();
        for _ in 256..L::RADIX_BITS {
            value = value.double();
        }
        (factors, value)
    }
}

/// 1 / (t - z) for every z of the domain.
fn inverse_distances(t: Fr) -> Vec<Fr> {
    let mut distances: Vec<_> = (0..WIDTH as u64).map(|z| t - Fr::from(z)).collect();
    invert_all(&mut distances);
    distances
}

/// The polynomials that are opened at each point, each with its number among all.
fn by_point<'a>(openings: &[Opening<'a>]) -> [Vec<Weighted<'a>>; WIDTH] {
    let mut counts = [0; WIDTH];
    for opening in openings {
        counts[usize::from(opening.point)] += 1;
    }
    let mut by_point = counts.map(Vec::with_capacity);
    for (i, opening) in openings.iter().enumerate() {
        by_point[usize::from(opening.point)].push((opening.polynomial, i));
    }
    by_point
}

/// With so many values or more, a polynomial is summed whole, in lanes.
const DENSE: usize = 32;

/// The few values of a polynomial, and the number of its weight.
type Sparse<'a> = (&'a [(u8, Fr)], usize);

/// Sparse openings by their points.
struct SparseByPoint<'a> {
    sparse: Vec<Vec<Sparse<'a>>>,
    /// Polynomials with many values, and where each is opened.
    whole: Vec<Box<Polynomial>>,
    dense: Vec<Vec<(usize, usize)>>,
}

impl<'a> SparseByPoint<'a> {
    fn new(openings: &[SparseOpening<'a>]) -> Self {
        let mut sparse = vec![Vec::new(); WIDTH];
        let (mut whole, mut dense) = (Vec::<Box<Polynomial>>::new(), vec![Vec::new(); WIDTH]);
        let mut latest: &[(u8, Fr)] = &[];
        for (i, opening) in openings.iter().enumerate() {
            let (values, point) = (opening.values, usize::from(opening.point));
            if values.len() < DENSE {
                sparse[point].push((values, i));
                continue;
            }
            // What is opened at several points comes several times in a row.
            if !std::ptr::eq(latest, values) {
                let mut polynomial = zero();
                for &(at, value) in values {
                    polynomial[usize::from(at)] = value;
                }
                whole.push(polynomial);
                latest = values;
            }
            dense[point].push((whole.len() - 1, i));
        }
        Self {
            sparse,
            whole,
            dense,
        }
    }

    /// The weighted sum of the polynomials that are opened at each point, for the points that occur.
    fn sums(&self, weights: &[Limbs]) -> Vec<(usize, Box<Polynomial>)> {
        let numbered = |terms: &Vec<(usize, usize)>| -> Vec<Weighted> {
            terms.iter().map(|&(at, i)| (&*self.whole[at], i)).collect()
        };
        let dense: Vec<_> = self.dense.iter().map(numbered).collect();
        let mut sums = vec![None; WIDTH];
        for (point, sum) in weighted_sums(&dense, weights) {
            sums[point] = Some(sum);
        }
        let occur = sums.into_par_iter().zip(&self.sparse).enumerate();
        let occur = occur.filter(|(_, (sum, terms))| sum.is_some() || !terms.is_empty());
        let wide = Wide::detect();
        let with_sparse =
            |(point, (sum, terms)): (usize, (Option<Box<Polynomial>>, &Vec<Sparse>))| {
                let sum = sum.unwrap_or_else(zero);
                let sparse = AddSparse {
                    sum,
                    terms,
                    weights,
                };
                (point, wide.run(sparse))
            };
        occur.map(with_sparse).collect()
    }
}

/// The sum with the weighted sparse polynomials added: products in lanes, of whatever values come, two vectors at a time.
struct AddSparse<'a> {
    sum: Box<Polynomial>,
    terms: &'a [Sparse<'a>],
    weights: &'a [Limbs],
}

impl Job<Scalar> for AddSparse<'_> {
    type Output = Box<Polynomial>;

    #[inline(always)]
    fn run<L: Lanes<Scalar>>(self, lanes: L) -> Box<Polynomial> {
        let mut sum = self.sum;
        let mut factors = self.terms.iter().flat_map(|(values, weight)| {
            let weight = &self.weights[*weight];
            let factors = values.iter();
            factors.map(move |(at, value)| (*at, value.montgomery(), weight))
        });
        loop {
            let mut places = [0; 2 * LANES];
            let (mut values, mut weights) = ([[&[0; 4]; LANES]; 2], [[&[0; 4]; LANES]; 2]);
            let mut count = 0;
            for (at, value, weight) in factors.by_ref().take(2 * LANES) {
                places[count] = at;
                values[count / LANES][count % LANES] = value;
                weights[count / LANES][count % LANES] = weight;
                count += 1;
            }
            if count == 0 {
                return sum;
            }
            let [low, high] = lanes.times_two(
                [lanes.load(values[0]), lanes.load(values[1])],
                [lanes.load(weights[0]), lanes.load(weights[1])],
            );
            // An element as it is stored, times a weight in the lanes' form, is an element as it is stored.
            let products = [lanes.leave_multiples(low), lanes.leave_multiples(high)];
            for (at, product) in places.iter().zip(products.as_flattened()).take(count) {
                sum[usize::from(*at)] += *product;
            }
        }
    }
}

/// A polynomial, and the number of its weight.
type Weighted<'a> = (&'a Polynomial, usize);

/// The sum of weights times polynomials of each list that is not empty, behind the list's number.
fn weighted_sums(lists: &[Vec<Weighted>], weights: &[Limbs]) -> Vec<(usize, Box<Polynomial>)> {
    // Work is shared by pieces, so that one point with all the openings is not one thread's alone.
    let pieces: Vec<(usize, &[Weighted])> = lists
        .iter()
        .enumerate()
        .flat_map(|(list, terms)| terms.chunks(PIECE).map(move |piece| (list, piece)))
        .collect();
    let wide = Wide::detect();
    let sums: Vec<_> = pieces
        .par_chunks(PIECES)
        .flat_map_iter(|pieces| wide.run(WeightedSums { pieces, weights }))
        .collect();
    let mut joined: Vec<(usize, Box<Polynomial>)> = Vec::with_capacity(lists.len());
    for (&(list, _), sum) in pieces.iter().zip(sums) {
        match joined.last_mut() {
            Some((last, total)) if *last == list => {
                total.iter_mut().zip(&*sum).for_each(|(a, b)| *a += *b);
            }
            _ => joined.push((list, sum)),
        }
    }
    joined
}

/// Terms that are summed on one thread.
const PIECE: usize = 4 * SUMMED;

/// Such pieces that are one thread's at a time.
const PIECES: usize = 8;

/// Polynomials that are read side by side, each from beginning to end, as the processor foresees it. So many products are summed between a load and a store of a sum.
const ABREAST: usize = 4;

/// In lanes.
struct WeightedSums<'a> {
    pieces: &'a [(usize, &'a [Weighted<'a>])],
    weights: &'a [Limbs],
}

impl Job<Scalar> for WeightedSums<'_> {
    type Output = Vec<Box<Polynomial>>;

    #[inline(always)]
    fn run<L: Lanes<Scalar>>(self, lanes: L) -> Vec<Box<Polynomial>> {
        const { assert!(SUMMED.is_multiple_of(ABREAST) && ABREAST <= LANES) };
        let zero_lanes = lanes.splat(&[0; 4]);
        let mut totals = [zero_lanes; WIDTH / LANES];
        let mut sums = [lanes.nothing(); WIDTH / LANES];
        let mut results = Vec::with_capacity(self.pieces.len());
        let rows = self
            .pieces
            .iter()
            .flat_map(|(_, terms)| terms.chunks(ABREAST));
        let mut following = rows.skip(1);
        for (_, terms) in self.pieces {
            for terms in terms.chunks(SUMMED) {
                for row in terms.chunks(ABREAST) {
                    let next = following.next().unwrap_or_default();
                    // What lacks for the last row are zeros.
                    let mut weights = [zero_lanes; ABREAST];
                    let mut polynomials = [row[0].0.as_chunks::<LANES>().0; ABREAST];
                    for (n, &(polynomial, weight)) in row.iter().enumerate() {
                        weights[n] = lanes.splat(&self.weights[weight]);
                        polynomials[n] = polynomial.as_chunks().0;
                    }
                    for (i, sum) in sums.iter_mut().enumerate() {
                        for (polynomial, weight) in polynomials.iter().zip(&weights) {
                            *sum = lanes.add_product(*sum, load(lanes, &polynomial[i]), *weight);
                        }
                        for (polynomial, _) in next {
                            let (chunks, _) = polynomial.as_chunks::<LANES>();
                            chunks[i].iter().step_by(2).for_each(prefetch_early);
                        }
                    }
                }
                for (total, sum) in totals.iter_mut().zip(&mut sums) {
                    *total = lanes.tighten(lanes.add(*total, lanes.total(*sum)));
                    *sum = lanes.nothing();
                }
            }
            let mut result = Vec::with_capacity(WIDTH);
            for total in &mut totals {
                // An element as it is stored, times a weight in the lanes' form, is an element as it is stored.
                result.extend_from_slice(&lanes.leave_multiples(*total));
                *total = zero_lanes;
            }
            let Ok(result) = result.into_boxed_slice().try_into() else {
                unreachable!("a vector for each eight values")
            };
            results.push(result);
        }
        results
    }
}
