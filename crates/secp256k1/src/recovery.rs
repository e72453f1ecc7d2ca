//! Recovery in lanes.

use crate::{
    Key, Signed, Unrecoverable,
    base::PRIME,
    combination::{Combinations, Scalars, is_set, padded},
    generator,
    group::{GENERATOR, Points, Record},
    library,
    runner::Runner,
    scalar::{
        ORDER, PRIME_LESS_ORDER, from_be_bytes, invert_all, is_scalar, negative, reduced,
        to_be_bytes,
    },
    vector::LANES,
};
use arbor_field::{
    Limbs,
    limbs::{add, less},
};

/// Recovers keys together.
pub(crate) fn recover(lanes: Runner, signed: &[Signed]) -> Vec<Result<Key, Unrecoverable>> {
    let prepared = prepare(signed);
    let mut records = padded(prepared.iter().map(|one| Record::new(&one.x, &[0; 4])));
    let mut odd = vec![0; records.len() / LANES];
    for (at, signed) in signed.iter().enumerate() {
        odd[at / LANES] |= u8::from(signed.y_is_odd) << (at % LANES);
    }
    let missing = lanes.run(Points {
        records: &mut records,
        odd: &odd,
    });
    let undefined = lanes.run(Combinations {
        records: &mut records,
        scalars: prepared.iter().map(|one| one.scalars).collect(),
        multiples: generator::multiples(lanes),
    });
    let mut keys = Vec::with_capacity(signed.len());
    for (at, (prepared, record)) in prepared.iter().zip(&records).enumerate() {
        keys.push(if let Some(rejected) = prepared.rejected {
            Err(rejected)
        } else if is_set(&missing, at) {
            Err(Unrecoverable::NoKey)
        } else if is_set(&undefined, at) {
            library::recover(&signed[at])
        } else {
            Ok(key(record))
        });
    }
    keys
}

/// A signature with its scalars. One that is rejected has harmless numbers in their place.
struct Prepared {
    rejected: Option<Unrecoverable>,
    x: Limbs,
    scalars: Scalars,
}

/// Reads signatures, and divides by all their `r` with one inversion.
fn prepare(signed: &[Signed]) -> Vec<Prepared> {
    let mut inverses = Vec::with_capacity(signed.len());
    let mut prepared = Vec::with_capacity(signed.len());
    for signed in signed {
        let (r, s) = (from_be_bytes(&signed.r), from_be_bytes(&signed.s));
        match abscissa(signed, &r, &s) {
            Ok(x) => {
                inverses.push(r);
                prepared.push(Prepared {
                    rejected: None,
                    x,
                    scalars: Scalars {
                        generator: negative(&reduced(&from_be_bytes(&signed.digest))),
                        point: s,
                    },
                });
            }
            Err(rejected) => {
                inverses.push([1, 0, 0, 0]);
                prepared.push(Prepared {
                    rejected: Some(rejected),
                    x: GENERATOR.x(),
                    scalars: Scalars::ONE,
                });
            }
        }
    }
    invert_all(&mut inverses);
    for (prepared, inverse) in prepared.iter_mut().zip(&inverses) {
        prepared.scalars = prepared.scalars.times(inverse);
    }
    prepared
}

/// The x coordinate of the point that the signer chose: `r`, or `r` plus the order.
fn abscissa(signed: &Signed, r: &Limbs, s: &Limbs) -> Result<Limbs, Unrecoverable> {
    if !less(r, &ORDER) || !less(s, &ORDER) {
        return Err(Unrecoverable::OutOfRange);
    }
    if !is_scalar(r) || !is_scalar(s) {
        return Err(Unrecoverable::NoKey);
    }
    if !signed.x_is_large {
        return Ok(*r);
    }
    if !less(r, &PRIME_LESS_ORDER) {
        return Err(Unrecoverable::NoKey);
    }
    let (x, _) = add(r, &ORDER);
    debug_assert!(less(&x, &PRIME));
    Ok(x)
}

fn key(record: &Record) -> Key {
    let mut key = [0; 64];
    let (halves, _) = key.as_chunks_mut::<32>();
    to_be_bytes(&record.x(), &mut halves[0]);
    to_be_bytes(&record.y(), &mut halves[1]);
    key
}
