//! The tree from its definition: whole nodes, one point times one number at a time, no tables and no differences.

use arbor_ipa::{Fr, Point, points};
use arbor_tree::conformance::flat::Contents;

/// The root's commitment.
pub(crate) fn root(contents: &Contents) -> Point {
    let leaves: Vec<_> = contents.iter().map(|(key, value)| (*key, *value)).collect();
    internal(&leaves, 0)
}

fn commit(terms: impl Iterator<Item = (usize, Fr)>) -> Point {
    let terms = terms.filter(|(_, scalar)| !scalar.is_zero());
    terms.map(|(i, scalar)| points()[i] * scalar).sum()
}

fn internal(leaves: &[([u8; 32], [u8; 32])], depth: usize) -> Point {
    let below = |byte: usize| -> Vec<_> {
        let with_byte = leaves
            .iter()
            .filter(|(key, _)| usize::from(key[depth]) == byte);
        with_byte.copied().collect()
    };
    commit((0..256).map(|byte| {
        let below = below(byte);
        let Some((first, _)) = below.first() else {
            return (byte, Fr::ZERO);
        };
        let child = if below.iter().all(|(key, _)| key[..31] == first[..31]) {
            leaf(&below)
        } else {
            internal(&below, depth + 1)
        };
        (byte, child.map_to_field())
    }))
}

fn leaf(values: &[([u8; 32], [u8; 32])]) -> Point {
    let half = |upper: bool| {
        let values = values.iter().filter(|(key, _)| (key[31] >= 128) == upper);
        commit(values.flat_map(|(key, value)| {
            let at = 2 * usize::from(key[31]) % 256;
            let two_to_128 = Fr::from(1u64 << 63).double().square();
            let low = number(&value[..16]) + two_to_128;
            [(at, low), (at + 1, number(&value[16..]))]
        }))
    };
    let [c1, c2] = [half(false), half(true)].map(|half| half.map_to_field());
    commit(
        [Fr::ONE, number(&values[0].0[..31]), c1, c2]
            .into_iter()
            .enumerate(),
    )
}

/// A number from its bytes, least significant first.
fn number(bytes: &[u8]) -> Fr {
    let base = Fr::from(256u64);
    bytes.iter().rev().fold(Fr::ZERO, |sum, &byte| {
        sum * base + Fr::from(u64::from(byte))
    })
}
