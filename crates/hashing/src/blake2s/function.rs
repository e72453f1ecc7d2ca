//! BLAKE2s-256 as a row.

use super::{compression::BLOCK, fold::Chain, states::Blake2sStates};
use crate::{
    hasher::{Function, Hasher, on_backend},
    states::Digest,
};
use arbor_metrics::{BLAKE2S_COMPRESSIONS, Counter};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};

/// BLAKE2s-256 without a key. Counts in [`BLAKE2S_COMPRESSIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blake2s256;

impl Function for Blake2s256 {
    type Portable = Blake2sStates<[u32; 1]>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Blake2sStates<__m256i>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = Blake2sStates<[__m512i; 2]>;

    const COMPRESSIONS: &'static Counter = &BLAKE2S_COMPRESSIONS;
}

impl Hasher<Blake2s256> {
    /// Sets each of `digests` to that of two digests, one behind the other: a node of a binary tree from its children.
    ///
    /// # Panics
    ///
    /// If `pairs` and `digests` differ in length.
    pub fn hash_pairs(self, pairs: &[[Digest; 2]], digests: &mut [Digest]) {
        let messages = pairs.as_flattened().as_flattened().as_chunks::<BLOCK>().0;
        self.hash_fixed(messages, digests);
    }

    /// Takes each chain from height `from` to its end: at a height `h`, with `s = siblings[h]`, its hash `x` becomes that of `s || x` where bit `h` of its
    /// key is set, of `x || s` where not.
    ///
    /// The chains go up in lockstep, some at a time in the order given, each group until its longest ends: so it is best to have chains of one length side
    /// by side. One that ends at `from` or below stays as it is.
    ///
    /// # Panics
    ///
    /// If a chain ends above 256, or above the last sibling.
    pub fn fold(self, siblings: &[Digest], from: usize, chains: &mut [Chain]) {
        let steps = |chain: &Chain| chain.to.saturating_sub(from) as u64;
        let highest = chains.iter().map(|chain| chain.to).max().unwrap_or(0);
        assert!(
            highest <= siblings.len().min(256),
            "a sibling at each height of a chain"
        );
        BLAKE2S_COMPRESSIONS.add(chains.iter().map(steps).sum());
        on_backend!(Blake2s256, self, fold(siblings, from, chains));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{schedule::Schedule, states::States};

    fn hash(message: &[u8]) -> Digest {
        // SAFETY: arrays of words need no particular instructions.
        unsafe { Blake2sStates::<[u32; 1]>::hash_one(message) }
    }

    /// As many messages and chains as make several groups and a ragged one, `N` lanes at a time.
    fn check<const N: usize>() {
        let messages: Vec<[u8; 40]> = (0..37)
            .map(|i| std::array::from_fn(|j| (i * 41 + j * 3) as u8))
            .collect();
        let mut digests = vec![[0; 32]; messages.len()];
        // SAFETY: arrays of words need no particular instructions.
        unsafe { Blake2sStates::<[u32; N]>::hash_fixed(&messages, &mut digests) };
        for (message, digest) in messages.iter().zip(&digests) {
            assert_eq!(*digest, hash(message), "{N} lanes");
        }
        let bytes = digests.as_flattened();
        let slices = (0..37).map(|i| &bytes[i..][..i * (i + 7) % 300]);
        let mut expected = slices.clone().map(|slice| Some(hash(slice)));
        let mut mixed = vec![None; 37];
        let emit = |position: usize, digest| mixed[position] = Some(digest);
        // SAFETY: as above.
        let count = unsafe { Blake2sStates::<[u32; N]>::hash_all(slices.clone(), emit) };
        assert!(mixed.into_iter().eq(expected.by_ref()), "{N} lanes");
        let blocks = |slice: &[u8]| <Blake2sStates<[u32; N]> as States>::compressions(slice.len());
        assert_eq!(count, slices.map(blocks).sum::<u64>());
        let chain = |(i, hash): (usize, &Digest)| Chain {
            key: digests[(i + 1) % 37],
            hash: *hash,
            to: 10 + i % 60,
        };
        let chains: Vec<Chain> = digests.iter().enumerate().map(chain).collect();
        let siblings: Vec<Digest> = (0..70).map(|i| [i; 32]).collect();
        let mut folded = chains.clone();
        // SAFETY: as above.
        unsafe { Blake2sStates::<[u32; N]>::fold(&siblings, 20, &mut folded) };
        for (chain, folded) in chains.iter().zip(&folded) {
            let expected = (20..chain.to).fold(chain.hash, |below, height| {
                let right = chain.key[31 - height / 8] >> (height % 8) & 1 == 1;
                let mut pair = [below, siblings[height]];
                if right {
                    pair.reverse();
                }
                hash(pair.as_flattened())
            });
            assert_eq!(folded.hash, expected, "{N} lanes up to {}", chain.to);
        }
    }

    /// The code of wide lanes, also of such as this processor may lack, with arrays for registers.
    #[test]
    fn every_width_equals_one_message_at_a_time() {
        check::<1>();
        check::<4>();
        check::<8>();
        check::<16>();
        check::<32>();
    }
}
