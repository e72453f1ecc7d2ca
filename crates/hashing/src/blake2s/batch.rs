//! Many messages and many chains, once for all widths of vectors.

use super::{
    BLOCK, Digest,
    fold::Chain,
    lanes::{Block, Lanes, WIDEST},
};
use std::borrow::Borrow;

/// Sets each of `digests` to that of the message of `LEN` bytes, at most one block, at the same place.
///
/// # Safety
///
/// The contract of [`Lanes`].
#[inline(always)]
pub(super) unsafe fn hash_all<L: Lanes, const LEN: usize, M: Borrow<[u8; LEN]>>(
    messages: &[M],
    digests: &mut [Digest],
) {
    let mut padded = [[0; BLOCK]; WIDEST];
    for (messages, digests) in messages.chunks(L::COUNT).zip(digests.chunks_mut(L::COUNT)) {
        // Idle lanes repeat the last message.
        let message = |lane: usize| messages[lane.min(messages.len() - 1)].borrow();
        if LEN < BLOCK {
            for (lane, block) in padded.iter_mut().enumerate().take(L::COUNT) {
                block[..LEN].copy_from_slice(message(lane));
            }
        }
        let mut blocks = [&padded[0]; WIDEST];
        for (lane, block) in blocks.iter_mut().enumerate().take(L::COUNT) {
            let whole: Result<&Block, _> = message(lane).as_slice().try_into();
            *block = whole.unwrap_or(&padded[lane]);
        }
        // SAFETY: the caller's contract.
        unsafe {
            let state = L::hash_block(&L::load(&blocks), LEN as u64);
            L::store(state, digests);
        }
    }
}

/// Folds the chains, `L::COUNT` at a time; see [`Blake2s::fold`](super::Blake2s::fold).
///
/// # Safety
///
/// The contract of [`Lanes`].
#[inline(always)]
pub(super) unsafe fn fold_all<L: Lanes>(siblings: &[Digest], from: usize, chains: &mut [Chain]) {
    for chains in chains.chunks_mut(L::COUNT) {
        // SAFETY: the caller's contract.
        unsafe { fold_some::<L>(siblings, from, chains) }
    }
}

/// Folds at most `L::COUNT` chains in lockstep. The states stay in the lanes from hash to hash: a digest's words are words of the next message as they are.
///
/// # Safety
///
/// The contract of [`Lanes`].
#[inline(always)]
unsafe fn fold_some<L: Lanes>(siblings: &[Digest], from: usize, chains: &mut [Chain]) {
    // SAFETY: the caller's contract is that of all methods of `Lanes`, the only unsafe code here.
    unsafe {
        let mut state: [L; 8] = std::array::from_fn(|i| {
            lanes(chains, |chain| word(&chain.hash, i, u32::from_le_bytes))
        });
        let Some(highest) = chains.iter().map(|chain| chain.to).max() else {
            return;
        };
        // On which side the sibling of each height is.
        let mut bits: L = state[0];
        let mut lefts = [bits.top_bits(); 256];
        for (height, left) in lefts.iter_mut().enumerate().take(highest).skip(from) {
            if height == from || height.is_multiple_of(32) {
                // Key bits of the heights up to the next word, the one of this height at the top.
                bits = lanes(chains, |chain| {
                    word(&chain.key, 7 - height / 32, u32::from_be_bytes).reverse_bits()
                        << (height % 32)
                });
            }
            *left = bits.top_bits();
            bits = L::add(bits, bits);
        }
        let mut height = from;
        while let Some(end) = next_end(chains, height) {
            state = L::rise(state, &lefts[height..end], &siblings[height..end]);
            height = end;
            let words = state.map(|lanes| lanes.to_words());
            let ended = chains
                .iter_mut()
                .enumerate()
                .filter(|(_, chain)| chain.to == height);
            for (lane, chain) in ended {
                for (bytes, words) in chain.hash.as_chunks_mut::<4>().0.iter_mut().zip(&words) {
                    *bytes = words[lane].to_le_bytes();
                }
            }
        }
    }
}

/// The height, above `height`, at which a chain ends; none if all chains have ended.
#[inline(always)]
fn next_end(chains: &[Chain], height: usize) -> Option<usize> {
    let ends = chains.iter().map(|chain| chain.to);
    ends.filter(|&to| to > height).min()
}

/// A word of each chain; zero in idle lanes.
#[inline(always)]
unsafe fn lanes<L: Lanes>(chains: &[Chain], word: impl Fn(&Chain) -> u32) -> L {
    let words = std::array::from_fn(|lane| chains.get(lane).map_or(0, &word));
    // SAFETY: the caller's contract.
    unsafe { L::from_words(&words) }
}

#[inline(always)]
fn word(bytes: &Digest, i: usize, read: impl Fn([u8; 4]) -> u32) -> u32 {
    read(bytes.as_chunks::<4>().0[i])
}

#[cfg(test)]
mod tests {
    use super::{super::single, *};

    /// As many messages and chains as make several groups and a ragged one, `N` lanes at a time.
    fn check<const N: usize>() {
        let messages: Vec<[u8; 40]> = (0..37)
            .map(|i| std::array::from_fn(|j| (i * 41 + j * 3) as u8))
            .collect();
        let mut digests = vec![[0; 32]; messages.len()];
        // SAFETY: arrays of words need no particular instructions.
        unsafe { hash_all::<[u32; N], 40, _>(&messages, &mut digests) };
        for (message, digest) in messages.iter().zip(&digests) {
            assert_eq!(*digest, single::hash(message), "{N} lanes");
        }
        let chain = |(i, hash): (usize, &Digest)| Chain {
            key: digests[(i + 1) % 37],
            hash: *hash,
            to: 10 + i % 60,
        };
        let chains: Vec<Chain> = digests.iter().enumerate().map(chain).collect();
        let siblings: Vec<Digest> = (0..70).map(|i| [i; 32]).collect();
        let mut folded = chains.clone();
        // SAFETY: as above.
        unsafe { fold_all::<[u32; N]>(&siblings, 20, &mut folded) };
        for (chain, folded) in chains.iter().zip(&folded) {
            let expected = (20..chain.to).fold(chain.hash, |hash, height| {
                let right = chain.key[31 - height / 8] >> (height % 8) & 1 == 1;
                let mut pair = [hash, siblings[height]];
                if right {
                    pair.reverse();
                }
                single::hash(pair.as_flattened())
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
