//! Sums `a G + b P` in lanes, for the generator G and a point P of each lane.

use crate::{
    base::Number,
    generator,
    group::{Affine, GENERATOR, Jacobian, Line, Record, normalized, sums, times_lambda},
    scalar::{HALF_BITS, halves, product, window},
    vector::Job,
    vector::{LANES, Vector},
};
use arbor_field::Limbs;

/// Bits of a digit of the point's scalar.
const POINT_WIDTH: u32 = 5;
const POINT_WINDOWS: usize = (HALF_BITS / POINT_WIDTH) as usize;
/// Odd multiples of a point in its table.
const MULTIPLES: usize = 1 << (POINT_WIDTH - 1);
const GENERATOR_WINDOWS: usize = (HALF_BITS / generator::WIDTH) as usize;

/// The digits of both scalars of `N` times eight lanes, for both halves of each scalar.
pub(crate) struct Digits<const N: usize> {
    point: [[[[u16; LANES]; N]; POINT_WINDOWS]; 2],
    generator: [[[[u16; LANES]; N]; GENERATOR_WINDOWS]; 2],
}

impl<const N: usize> Digits<N> {
    /// Of scalars that are of no meaning.
    pub(crate) fn new() -> Self {
        Self {
            point: [[[[0; LANES]; N]; POINT_WINDOWS]; 2],
            generator: [[[[0; LANES]; N]; GENERATOR_WINDOWS]; 2],
        }
    }

    /// Sets the scalars of one lane.
    pub(crate) fn set(&mut self, lane: usize, generator: &Limbs, point: &Limbs) {
        let (n, lane) = (lane / LANES, lane % LANES);
        for (digits, half) in self.point.iter_mut().zip(halves(point)) {
            for (at, digits) in digits.iter_mut().enumerate() {
                digits[n][lane] = window(&half, at as u32, POINT_WIDTH) as u16;
            }
        }
        for (digits, half) in self.generator.iter_mut().zip(halves(generator)) {
            for (at, digits) in digits.iter_mut().enumerate() {
                digits[n][lane] = window(&half, at as u32, generator::WIDTH) as u16;
            }
        }
    }
}

/// What the generator and the point of a lane are multiplied by.
#[derive(Clone, Copy)]
pub(crate) struct Scalars {
    pub(crate) generator: Limbs,
    pub(crate) point: Limbs,
}

impl Scalars {
    pub(crate) const ONE: Self = Self {
        generator: [1, 0, 0, 0],
        point: [1, 0, 0, 0],
    };

    pub(crate) fn times(&self, factor: &Limbs) -> Self {
        Self {
            generator: product(&self.generator, factor),
            point: product(&self.point, factor),
        }
    }
}

/// Points for all lanes of whole vectors: one vector, or an even number of them.
pub(crate) fn padded(points: impl ExactSizeIterator<Item = Record>) -> Vec<Record> {
    let mut padded: Vec<_> = points.collect();
    let len = if padded.len() > LANES {
        padded.len().next_multiple_of(2 * LANES)
    } else {
        LANES
    };
    padded.resize(len, GENERATOR);
    padded
}

/// Whether a lane's bit is set.
pub(crate) fn is_set(bits: &[u8], lane: usize) -> bool {
    bits[lane / LANES] >> (lane % LANES) & 1 == 1
}

/// Replaces points by their sums. Sets the bits of lanes whose sum is not found: it is infinity, or an
/// addition on the path to it is of equal or opposite points.
pub(crate) struct Combinations<'a> {
    /// [Padded](padded) points of the curve.
    pub(crate) records: &'a mut [Record],
    /// At most as many.
    pub(crate) scalars: Vec<Scalars>,
    /// The [generator's](generator::multiples).
    pub(crate) multiples: &'a [Record],
}

impl Job for Combinations<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) -> Vec<u8> {
        if self.records.len() > LANES {
            self.run_next_to_each_other::<V, 2>()
        } else {
            self.run_next_to_each_other::<V, 1>()
        }
    }
}

impl Combinations<'_> {
    #[inline(always)]
    fn run_next_to_each_other<V: Vector, const N: usize>(self) -> Vec<u8> {
        let lanes = N * LANES;
        let mut points = Vec::with_capacity(self.records.len() / lanes);
        for records in self.records.chunks_exact(lanes) {
            points.push(Affine::<V, N>::load_slice(records));
        }
        let size = MULTIPLES * lanes;
        let mut tables = vec![Record([0; 8]); points.len() * size];
        fill(&points, &mut tables);
        let mut sums = Vec::with_capacity(points.len());
        for (scalars, table) in self.scalars.chunks(lanes).zip(tables.chunks_exact(size)) {
            let mut digits = Digits::<N>::new();
            for (lane, scalars) in scalars.iter().enumerate() {
                digits.set(lane, &scalars.generator, &scalars.point);
            }
            sums.push(combination::<V, N>(&digits, table, self.multiples));
        }
        let (sums, undefined) = normalized(&sums);
        for (sum, records) in sums.iter().zip(self.records.chunks_exact_mut(lanes)) {
            sum.store(records);
        }
        undefined.concat()
    }
}

/// Fills tables with the odd multiples of points: multiple `2 i + 1` of each lane at `i`.
#[inline(always)]
fn fill<V: Vector, const N: usize>(points: &[Affine<V, N>], tables: &mut [Record]) {
    let count = points.len();
    let mut odd = Vec::with_capacity(MULTIPLES * count);
    odd.extend_from_slice(points);
    // The multiples 2, 4, 8 and 16.
    let mut power = points.to_vec();
    let mut lines = Vec::with_capacity(MULTIPLES * count);
    while odd.len() < MULTIPLES * count {
        // `odd` has the multiples below that of `power`, once it is doubled here the first time.
        let from = if odd.len() == count && lines.is_empty() {
            0
        } else {
            odd.len()
        };
        lines.clear();
        for at in 0..from {
            lines.push(Line::chord(&odd[at], &power[at % count]));
        }
        for point in &power {
            lines.push(Line::tangent(point));
        }
        let mut found = sums(&lines);
        power = found.split_off(from);
        odd.extend_from_slice(&found);
    }
    let lanes = N * LANES;
    for (at, point) in odd.iter().enumerate() {
        let (multiple, table) = (at / count, at % count);
        let start = (table * MULTIPLES + multiple) * lanes;
        point.store(&mut tables[start..start + lanes]);
    }
}

/// Table entries and signs by digits. A digit's top bit is set if it is positive; the others, inverted
/// if it is negative, are the entry.
#[inline(always)]
fn look_up<'t, const N: usize, const WIDTH: u32, const LANED: bool>(
    table: &'t [Record],
    digits: &[[u16; LANES]; N],
) -> ([[&'t Record; LANES]; N], [u8; N]) {
    let mut records = [[&table[0]; LANES]; N];
    let mut negative = [0; N];
    for n in 0..N {
        for lane in 0..LANES {
            let digit = digits[n][lane];
            let sign = (digit >> (WIDTH - 1) & 1) ^ 1;
            negative[n] |= (sign as u8) << lane;
            let entry = (digit ^ sign.wrapping_neg()) & ((1 << (WIDTH - 1)) - 1);
            let mut at = usize::from(entry);
            if LANED {
                at = (at * N + n) * LANES + lane;
            }
            records[n][lane] = &table[at];
        }
    }
    (records, negative)
}

/// One after the other: all bits' doublings, and where a window begins, the additions of its digits.
///
/// Each doubling changes the sign, too. At odd bits the sum is negative, so that at bit 0 it is right.
#[inline(always)]
fn combination<V: Vector, const N: usize>(
    digits: &Digits<N>,
    table: &[Record],
    generator: &[Record],
) -> Jacobian<V, N> {
    const TOP: u32 = HALF_BITS - POINT_WIDTH;
    let first = &digits.point[0][POINT_WINDOWS - 1];
    let (records, mut negative) = look_up::<N, POINT_WIDTH, true>(table, first);
    let start = Affine::<V, N>::load(&records);
    for lanes in &mut negative {
        *lanes ^= sign(TOP);
    }
    let negated = start.y.negated(1).carried();
    let mut sum = Jacobian {
        x: start.x,
        y: start.y.replaced(negative, &negated),
        z: Number::splat(&[1, 0, 0, 0]),
    };
    for bit in (0..=TOP).rev() {
        if bit < TOP {
            sum = sum.doubled_and_negated();
        }
        // The point's halves, then the generator's.
        for term in usize::from(bit == TOP)..4 {
            let half = term % 2;
            let (records, mut negative) = if term < 2 {
                if !bit.is_multiple_of(POINT_WIDTH) {
                    continue;
                }
                let digits = &digits.point[half][(bit / POINT_WIDTH) as usize];
                look_up::<N, POINT_WIDTH, true>(table, digits)
            } else {
                if !bit.is_multiple_of(generator::WIDTH) {
                    continue;
                }
                let digits = &digits.generator[half][(bit / generator::WIDTH) as usize];
                look_up::<N, { generator::WIDTH }, false>(generator, digits)
            };
            for lanes in &mut negative {
                *lanes ^= sign(bit);
            }
            let mut other = Affine::load(&records);
            if half == 1 {
                other = times_lambda(&other);
            }
            sum = sum.plus(&other, negative);
        }
    }
    sum
}

const fn sign(bit: u32) -> u8 {
    if bit & 1 == 1 { u8::MAX } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Signed, library,
        runner::Runner,
        scalar::{ORDER, to_be_bytes},
    };
    use num_bigint::BigUint;
    use secp256k1::{PublicKey, SecretKey};

    fn big(limbs: &Limbs) -> BigUint {
        let high_first = limbs.iter().rev();
        high_first.fold(BigUint::ZERO, |sum, limb| (sum << 64) + *limb)
    }

    fn limbs(n: &BigUint) -> Limbs {
        let mut limbs = [0; 4];
        for (limb, digit) in limbs.iter_mut().zip(n.iter_u64_digits()) {
            *limb = digit;
        }
        limbs
    }

    struct Order(BigUint);

    impl Order {
        fn negative(&self, a: &BigUint) -> BigUint {
            &self.0 - a % &self.0
        }

        fn inverse(&self, a: &BigUint) -> BigUint {
            a.modpow(&(&self.0 - 2u8), &self.0)
        }
    }

    /// What the sum is before the addition of a term: `point` times the point and `generator` times the generator; and
    /// what the term adds.
    struct Step {
        before: [BigUint; 2],
        added: [BigUint; 2],
    }

    /// Follows the additions for scalars as [`combination`] makes them.
    fn steps(n: &Order, scalars: &Scalars) -> Vec<Step> {
        let lambda = BigUint::parse_bytes(
            b"5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72",
            16,
        )
        .expect("a number");
        let mut sum = [BigUint::ZERO, BigUint::ZERO];
        let mut steps = Vec::new();
        for bit in (0..HALF_BITS).rev() {
            sum = sum.map(|sum| sum * 2u8 % &n.0);
            for term in 0..4 {
                let (of, width) = if term < 2 {
                    (0, POINT_WIDTH)
                } else {
                    (1, generator::WIDTH)
                };
                if !bit.is_multiple_of(width) {
                    continue;
                }
                let scalar = [&scalars.point, &scalars.generator][of];
                let window = window(&halves(scalar)[term % 2], bit / width, width);
                let digit = &n.0 + 2 * u64::from(window) + 1u8 - (1u64 << width);
                let mut added = [BigUint::ZERO, BigUint::ZERO];
                added[of] = if term % 2 == 1 {
                    digit * &lambda
                } else {
                    digit
                } % &n.0;
                steps.push(Step {
                    before: sum.clone(),
                    added: added.clone(),
                });
                for (sum, added) in sum.iter_mut().zip(added) {
                    *sum = (&*sum + added) % &n.0;
                }
            }
        }
        steps
    }

    /// For each addition on the path, a point is chosen with which it is one of equal or of opposite
    /// points. Those lanes alone are found out, next to a lane that is sound, and the library gives the keys.
    #[test]
    fn exceptional_additions_are_found_out_in_their_lanes() {
        let n = Order(big(&ORDER));
        let scalars = Scalars {
            point: [
                0x1234_5678_9abc_def1,
                0x0fed_cba9_8765_4321,
                0x1111_2222_3333_4444,
                0x0123_4567_89ab_cdef,
            ],
            generator: [
                0x9999_8888_7777_6666,
                0x5555_4444_3333_2222,
                0xabcd_abcd_abcd_abcd,
                0x7edc_ba98_7654_3210,
            ],
        };
        let mut cases = Vec::new();
        for step in steps(&n, &scalars) {
            for opposite in [false, true] {
                // before[0] m + before[1] = +-(added[0] m + added[1])
                let [a, b] = &step.added;
                let (a, b) = if opposite {
                    (n.negative(a), n.negative(b))
                } else {
                    (a.clone(), b.clone())
                };
                let factor = (&step.before[0] + n.negative(&a)) % &n.0;
                let rest = (b + n.negative(&step.before[1])) % &n.0;
                let m = rest * n.inverse(&factor) % &n.0;
                // Before the generator's first digit there is none of it: no point but infinity is.
                if m != BigUint::ZERO {
                    cases.push(m);
                }
            }
        }
        assert!(cases.len() > 60, "{} cases", cases.len());
        let point = |m: &BigUint| {
            let mut bytes = [0; 32];
            to_be_bytes(&limbs(m), &mut bytes);
            let secret = SecretKey::from_secret_bytes(bytes).expect("not zero");
            PublicKey::from_secret_key(&secret).serialize_uncompressed()
        };
        let sound = point(&BigUint::from(3u8));
        let mut signed = Vec::new();
        for m in &cases {
            for key in [point(m), sound] {
                // u1 = -z / r and u2 = s / r.
                let r = BigUint::from_bytes_be(&key[1..33]) % &n.0;
                let z = n.negative(&(big(&scalars.generator) * &r));
                let s = big(&scalars.point) * &r % &n.0;
                let mut one = Signed {
                    digest: [0; 32],
                    r: [0; 32],
                    s: [0; 32],
                    y_is_odd: key[64] & 1 == 1,
                    x_is_large: false,
                };
                to_be_bytes(&limbs(&r), &mut one.r);
                to_be_bytes(&limbs(&s), &mut one.s);
                to_be_bytes(&limbs(&z), &mut one.digest);
                signed.push(one);
            }
        }
        for signed in signed.chunks(16) {
            let keys = crate::recovery::recover(Runner::Modelled, signed);
            let expected: Vec<_> = signed.iter().map(library::recover).collect();
            assert_eq!(keys, expected);
        }
        // And it is the lanes that found them out, and no others.
        let record = |key: &[u8; 65]| {
            let (halves, _) = key[1..].as_chunks::<32>();
            let from = crate::scalar::from_be_bytes;
            Record::new(&from(&halves[0]), &from(&halves[1]))
        };
        for cases in cases.chunks(8) {
            let points = cases
                .iter()
                .flat_map(|m| [record(&point(m)), record(&sound)]);
            let mut records = padded(points.collect::<Vec<_>>().into_iter());
            let undefined = Runner::Modelled.run(Combinations {
                scalars: vec![scalars; 2 * cases.len()],
                records: &mut records,
                multiples: generator::multiples(Runner::Modelled),
            });
            for lane in 0..2 * cases.len() {
                assert_eq!(is_set(&undefined, lane), lane % 2 == 0, "lane {lane}");
            }
        }
    }
}
