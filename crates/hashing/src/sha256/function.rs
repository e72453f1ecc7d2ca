//! SHA-256 as a row.

use super::states::Sha256States;
use crate::hasher::Function;
use arbor_metrics::{Counter, SHA256_COMPRESSIONS};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};

/// SHA-256. Counts in [`SHA256_COMPRESSIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sha256Hash;

impl Function for Sha256Hash {
    type Portable = Sha256States<[u32; 1]>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Sha256States<__m256i>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = Sha256States<__m512i>;

    const COMPRESSIONS: &'static Counter = &SHA256_COMPRESSIONS;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{schedule::Schedule, states::States};

    /// Lengths on both sides of whole blocks and of a block without its padding, `N` lanes at a
    /// time.
    fn check<const N: usize>() {
        let bytes: Vec<u8> = (0..400).map(|i| (i * 7 + i / 251) as u8).collect();
        let messages = (0..200).map(|i| &bytes[i..][..(i * 11) % 200]);
        let mut mixed = vec![None; 200];
        let emit = |position: usize, digest| mixed[position] = Some(digest);
        // SAFETY: arrays of words need no particular instructions.
        let count = unsafe { Sha256States::<[u32; N]>::hash_all(messages.clone(), emit) };
        for (message, digest) in messages.clone().zip(mixed) {
            // SAFETY: as above.
            let alone = unsafe { Sha256States::<[u32; 1]>::hash_one(message) };
            assert_eq!(digest, Some(alone), "{N} lanes, {} bytes", message.len());
        }
        let blocks = |slice: &[u8]| <Sha256States<[u32; N]> as States>::compressions(slice.len());
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
