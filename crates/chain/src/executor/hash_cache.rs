//! KECCAK256 of what contracts hash over and over: the places of a mapping's values.
//!
//! Solidity puts the value of a key at the hash of the key and the mapping's slot, 64 bytes, and hashes them anew whenever it reads or writes the value. Most are asked for again soon: in the
//! same transaction, by the next one to the same pool, or for the same holder of a token.

use alloy_primitives::B256;
use arbor_hashing::keccak256;

/// Bytes of what is remembered: a key and a slot's number.
const INPUT: usize = 64;
/// Entries of the cache, some 100 bytes each; a power of two.
const ENTRIES: usize = 1 << 13;

/// Hashes of inputs of 64 bytes.
#[derive(Default)]
pub(super) struct HashCache {
    /// Direct-mapped: an entry gives way to the next input with the same place. None before the first input.
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    input: [u8; INPUT],
    hash: B256,
}

impl Entry {
    fn of(input: &[u8; INPUT]) -> Self {
        Self {
            input: *input,
            hash: keccak256(input).into(),
        }
    }
}

impl HashCache {
    /// The Keccak-256 of any bytes.
    pub(super) fn hash(&mut self, bytes: &[u8]) -> B256 {
        let Ok(input) = <&[u8; INPUT]>::try_from(bytes) else {
            return keccak256(bytes).into();
        };
        if self.entries.is_empty() {
            self.entries = vec![Entry::of(input); ENTRIES];
        }
        let entry = &mut self.entries[place(input)];
        if entry.input != *input {
            *entry = Entry::of(input);
        }
        entry.hash
    }
}

/// Mixes all words of an input: keys and slots are mostly small numbers, addresses and hashes.
fn place(input: &[u8; INPUT]) -> usize {
    let (words, _) = input.as_chunks::<8>();
    let mixed = words.iter().fold(0, |mixed: u64, word| {
        (mixed.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    (mixed >> 40) as usize % ENTRIES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_keccak() {
        let mut cache = HashCache::default();
        assert_eq!(cache.hash(&[0; INPUT]), B256::from(keccak256(&[0; INPUT])));
        for round in 0..3u32 {
            // More than there are places, and lengths that are not remembered.
            for number in 0..2 * ENTRIES as u32 {
                let mut input = [0; INPUT + 1];
                input[12 + (number % 8) as usize * 4..][..4].copy_from_slice(&number.to_be_bytes());
                for length in [INPUT - 1, INPUT, INPUT + 1] {
                    let input = &input[..length];
                    if round == 0 || length == INPUT {
                        assert_eq!(cache.hash(input), B256::from(keccak256(input)));
                    }
                }
            }
        }
    }
}
