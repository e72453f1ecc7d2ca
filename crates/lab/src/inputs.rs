//! Inputs that other programs can make, too: everything is Keccak-256 of a word and a number.

use arbor_hashing::keccak256;
use arbor_ipa::{Fr, LeafValues, WIDTH};

/// Keccak-256 of `kind` and the number's eight bytes, most significant first.
#[must_use]
pub fn digest(kind: &str, number: u64) -> [u8; 32] {
    keccak256(&[kind.as_bytes(), &number.to_be_bytes()].concat())
}

/// A scalar: the digest of `scalar`, least significant byte first, modulo the group's order.
#[must_use]
pub fn scalar(number: u64) -> Fr {
    Fr::from_le_bytes_reduced(&digest("scalar", number))
}

/// A stem.
#[must_use]
pub fn stem(number: u64) -> [u8; 31] {
    let mut stem = [0; 31];
    stem.copy_from_slice(&digest("stem", number)[..31]);
    stem
}

/// The values of a leaf with `count` of them, at suffixes 0, 256/count, 2 * 256/count, ...
#[must_use]
pub fn values(leaf: u64, count: usize) -> Vec<(u8, [u8; 32])> {
    (0..count)
        .map(|i| {
            let suffix = i * (256 / count);
            let value = digest("value", leaf * 256 + suffix as u64);
            (suffix as u8, value)
        })
        .collect()
}

/// The header leaf of an account without code: nonce and balance in the basic data, and the code hash (EIP-6800).
#[must_use]
pub fn account(leaf: u64) -> Vec<(u8, [u8; 32])> {
    let random = digest("account", leaf);
    let mut basic = [0; 32];
    // Nonce at 8, a nonce of two bytes; balance at 16, nine bytes of it.
    basic[14..16].copy_from_slice(&random[..2]);
    basic[23..].copy_from_slice(&random[2..11]);
    vec![(0, basic), (1, digest("code", leaf))]
}

/// The header leaf of a contract that uses all of it: basic data, code hash, 64 slots, 128 pieces of code.
#[must_use]
pub fn contract(leaf: u64) -> Vec<(u8, [u8; 32])> {
    let mut values = account(leaf);
    for suffix in 64..=255u8 {
        let mut value = digest("value", leaf * 256 + u64::from(suffix));
        if suffix >= 128 {
            // Bytes of push data carried over from the piece before.
            value[0] %= 32;
        }
        values.push((suffix, value));
    }
    values
}

/// An address as the key hash takes it: twelve zeros and twenty bytes.
#[must_use]
pub fn address(number: u64) -> [u8; 32] {
    let mut address = digest("address", number);
    address[..12].fill(0);
    address
}

/// The tree index of a random slot outside the header, (256^31 + slot) / 256, least significant byte first.
#[must_use]
pub fn slot_index(number: u64) -> [u8; 32] {
    let mut index = digest("slot", number);
    index.reverse();
    index.copy_within(1.., 0);
    index[31] = 0;
    let (byte, carry) = index[30].overflowing_add(1);
    index[30] = byte;
    index[31] = u8::from(carry);
    index
}

/// A dense polynomial: scalars 256 `number` to 256 `number` + 255.
#[must_use]
pub fn polynomial(number: u64) -> Box<[Fr; WIDTH]> {
    Box::new(std::array::from_fn(|i| scalar(256 * number + i as u64)))
}

/// Leaves over the values of each.
#[must_use]
pub fn leaves(values: &[Vec<(u8, [u8; 32])>]) -> Vec<LeafValues<'_>> {
    let leaf = |(i, values)| LeafValues {
        stem: stem(i as u64),
        values,
    };
    values
        .iter()
        .map(Vec::as_slice)
        .enumerate()
        .map(leaf)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_the_position_divided_by_256() {
        // 256^31 + slot in 33 bytes, without its lowest byte.
        for number in 0..50 {
            let slot = digest("slot", number);
            let mut position = [0u16; 33];
            for (i, byte) in slot.iter().rev().enumerate() {
                position[i] = u16::from(*byte);
            }
            position[31] += 1;
            position[32] = position[31] >> 8;
            position[31] &= 0xff;
            let expected: Vec<u8> = position[1..].iter().map(|&byte| byte as u8).collect();
            assert_eq!(slot_index(number)[..], expected[..]);
        }
    }

    #[test]
    fn leaves_have_as_many_values_as_asked_for() {
        for count in [1, 4, 16, 64, 256] {
            let values = values(3, count);
            assert_eq!(values.len(), count);
            assert!(values.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
        assert_eq!((account(1).len(), contract(1).len()), (2, 194));
    }
}
