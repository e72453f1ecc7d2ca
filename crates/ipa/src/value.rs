//! Values of leaves, as scalars.

use arbor_banderwagon::Fr;
use arbor_field::Limbs;

/// A value that is set: what was there before, and what is there now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValueChange {
    /// The last byte of its key.
    pub suffix: u8,
    /// None if there was nothing.
    pub old: Option<[u8; 32]>,
    /// None to remove it, which only undoing does.
    pub new: Option<[u8; 32]>,
}

/// Keccak-256 of nothing: the value that Ethereum's state has most often.
pub const HASH_OF_NO_CODE: [u8; 32] = [
    0xc5, 0xd2, 0x46, 0x01, 0x86, 0xf7, 0x23, 0x3c, 0x92, 0x7e, 0x7d, 0xb2, 0xdc, 0xc7, 0x03, 0xc0,
    0xe5, 0x00, 0xb6, 0x53, 0xca, 0x82, 0x27, 0x3b, 0x7b, 0xfa, 0xd8, 0x04, 0x5d, 0x85, 0xa4, 0x70,
];

/// The two scalars that a value adds to its half's vector, at indices 2 s and 2 s + 1 modulo 256; zeros for nothing.
#[must_use]
pub fn value_scalars(value: Option<&[u8; 32]>) -> [Fr; 2] {
    value_numbers(value).map(Fr::reduced)
}

/// [`value_scalars`] as numbers, of at most 129 bits.
pub(crate) fn value_numbers(value: Option<&[u8; 32]>) -> [Limbs; 2] {
    let Some(value) = value else {
        return [[0; 4]; 2];
    };
    let (words, _) = value.as_chunks();
    let word = |i: usize| u64::from_le_bytes(words[i]);
    [[word(0), word(1), 1, 0], [word(2), word(3), 0, 0]]
}
