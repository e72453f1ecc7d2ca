//! BLAKE3 as a row.

use super::states::Blake3States;
use crate::hasher::Function;
use arbor_metrics::{BLAKE3_COMPRESSIONS, Counter};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};

/// BLAKE3 without a key, of one chunk. Counts in [`BLAKE3_COMPRESSIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blake3Hash;

impl Function for Blake3Hash {
    type Portable = Blake3States<[u32; 1]>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Blake3States<__m256i>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = Blake3States<__m512i>;

    const COMPRESSIONS: &'static Counter = &BLAKE3_COMPRESSIONS;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{schedule::Schedule, states::States};

    /// Lengths on both sides of whole blocks, `N` lanes at a time.
    fn check<const N: usize>() {
        let bytes: Vec<u8> = (0..400).map(|i| (i * 7 + i / 251) as u8).collect();
        let messages = (0..37).map(|i| &bytes[i..][..i * (i + 7) % 300]);
        let mut mixed = vec![None; 37];
        let emit = |position: usize, digest| mixed[position] = Some(digest);
        // SAFETY: arrays of words need no particular instructions.
        let count = unsafe { Blake3States::<[u32; N]>::hash_all(messages.clone(), emit) };
        for (message, digest) in messages.clone().zip(mixed) {
            // SAFETY: as above.
            let alone = unsafe { Blake3States::<[u32; 1]>::hash_one(message) };
            assert_eq!(digest, Some(alone), "{N} lanes, {} bytes", message.len());
        }
        let blocks = |slice: &[u8]| <Blake3States<[u32; N]> as States>::compressions(slice.len());
        assert_eq!(count, messages.map(blocks).sum::<u64>());
    }

    /// The code of wide lanes, also of such as this processor may lack, with arrays for registers.
    #[test]
    fn every_width_equals_one_message_at_a_time() {
        check::<1>();
        check::<8>();
        check::<16>();
    }
}
