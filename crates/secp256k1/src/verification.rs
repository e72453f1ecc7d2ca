//! Verification in lanes.

use crate::{
    Key, Signed,
    base::PRIME,
    combination::{Combinations, Scalars, is_set, padded},
    generator,
    group::{GENERATOR, OffCurve, Record},
    library,
    runner::Runner,
    scalar::{HALF_ORDER, ORDER, PRIME_LESS_ORDER, from_be_bytes, invert_all, is_scalar, reduced},
};
use arbor_field::{
    Limbs,
    limbs::{add, less},
};

/// Checks signatures together, each against its key.
pub(crate) fn verify(lanes: Runner, signed: &[Signed], keys: &[Key]) -> Vec<bool> {
    let prepared = prepare(signed, keys);
    let mut records = padded(prepared.iter().map(|one| one.key));
    let off_curve = lanes.run(OffCurve(&mut records));
    let undefined = lanes.run(Combinations {
        records: &mut records,
        scalars: prepared.iter().map(|one| one.scalars).collect(),
        multiples: generator::multiples(lanes),
    });
    let mut valid = Vec::with_capacity(signed.len());
    for (at, (prepared, record)) in prepared.iter().zip(&records).enumerate() {
        valid.push(if !prepared.is_possible || is_set(&off_curve, at) {
            false
        } else if is_set(&undefined, at) {
            library::verify((&signed[at], &keys[at]))
        } else {
            is_congruent(&record.x(), &prepared.r)
        });
    }
    valid
}

/// A signature and its key as numbers. One that is not valid has harmless numbers in their place.
struct Prepared {
    is_possible: bool,
    r: Limbs,
    key: Record,
    scalars: Scalars,
}

/// Reads signatures and keys, and divides by all their `s` with one inversion.
fn prepare(signed: &[Signed], keys: &[Key]) -> Vec<Prepared> {
    let mut inverses = Vec::with_capacity(keys.len());
    let mut prepared = Vec::with_capacity(keys.len());
    for (signed, key) in signed.iter().zip(keys) {
        let (r, s) = (from_be_bytes(&signed.r), from_be_bytes(&signed.s));
        let (halves, _) = key.as_chunks::<32>();
        let (x, y) = (from_be_bytes(&halves[0]), from_be_bytes(&halves[1]));
        let is_possible = is_scalar(&r)
            && is_scalar(&s)
            && !less(&HALF_ORDER, &s)
            && less(&x, &PRIME)
            && less(&y, &PRIME);
        let one = [1, 0, 0, 0];
        inverses.push(if is_possible { s } else { one });
        prepared.push(Prepared {
            is_possible,
            r,
            key: if is_possible {
                Record::new(&x, &y)
            } else {
                GENERATOR
            },
            scalars: Scalars {
                generator: reduced(&from_be_bytes(&signed.digest)),
                point: if is_possible { r } else { one },
            },
        });
    }
    invert_all(&mut inverses);
    for (prepared, inverse) in prepared.iter_mut().zip(&inverses) {
        prepared.scalars = prepared.scalars.times(inverse);
    }
    prepared
}

/// Whether a number below p is `r` modulo n.
fn is_congruent(x: &Limbs, r: &Limbs) -> bool {
    *x == *r || (less(r, &PRIME_LESS_ORDER) && *x == add(r, &ORDER).0)
}
