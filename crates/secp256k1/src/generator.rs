//! Odd multiples of the generator, made once for a process.

use crate::{
    group::{Affine, GENERATOR, Line, Record, sums},
    runner::Runner,
    vector::Job,
    vector::{LANES, Vector},
};
use std::sync::OnceLock;

/// Bits of a digit.
pub(crate) const WIDTH: u32 = 13;
const COUNT: usize = 1 << (WIDTH - 1);

/// Multiple `2 i + 1` at `i`: 256 KiB, made in some two milliseconds.
pub(crate) fn multiples(lanes: Runner) -> &'static [Record] {
    static TABLE: OnceLock<Vec<Record>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut records = vec![Record([0; 8]); COUNT];
        lanes.run(Multiples(&mut records));
        records
    })
}

struct Multiples<'a>(&'a mut [Record]);

impl Job for Multiples<'_> {
    #[inline(always)]
    fn run<V: Vector>(self) -> Vec<u8> {
        fill::<V>(self.0);
        Vec::new()
    }
}

/// Odd multiples, and from those below a power of two those up to the next one: that power plus each.
#[inline(always)]
fn fill<V: Vector>(records: &mut [Record]) {
    let mut power = Affine::<V, 1>::load(&[[&GENERATOR; LANES]]);
    let mut odd = vec![power];
    // While there are fewer than eight odd multiples, all lanes have the same one.
    let mut known = 1;
    // The first round finds no sum, but the power two.
    let mut from = 0;
    while known < COUNT {
        let mut lines = Vec::with_capacity(odd.len() + 1);
        for point in &odd[..from] {
            lines.push(Line::chord(point, &power));
        }
        lines.push(Line::tangent(&power));
        let found = sums(&lines);
        power = found[found.len() - 1];
        odd.extend_from_slice(&found[..from]);
        known <<= u32::from(from > 0);
        if known == LANES {
            let mut lanes = [GENERATOR; LANES];
            for (lane, point) in lanes.iter_mut().zip(&odd) {
                let mut same = [GENERATOR; LANES];
                point.store(&mut same);
                *lane = same[0];
            }
            odd = vec![Affine::load(&[lanes.each_ref()])];
        }
        from = odd.len();
    }
    for (point, records) in odd.iter().zip(records.chunks_exact_mut(LANES)) {
        point.store(records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::from_be_bytes;
    use secp256k1::{PublicKey, SecretKey};

    #[test]
    fn every_entry_is_the_library_s_multiple() {
        let table = multiples(Runner::Modelled);
        assert_eq!(table.len(), COUNT);
        for (at, record) in table.iter().enumerate() {
            let mut secret = [0; 32];
            secret[28..].copy_from_slice(&(2 * at as u32 + 1).to_be_bytes());
            let secret = SecretKey::from_secret_bytes(secret).expect("not zero");
            let key = PublicKey::from_secret_key(&secret).serialize_uncompressed();
            let (coordinates, _) = key[1..].as_chunks::<32>();
            let (x, y) = (
                from_be_bytes(&coordinates[0]),
                from_be_bytes(&coordinates[1]),
            );
            assert_eq!(*record, Record::new(&x, &y), "multiple {}", 2 * at + 1);
        }
    }
}
