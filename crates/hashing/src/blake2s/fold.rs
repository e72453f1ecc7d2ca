//! Chains of hashes up a binary tree.

use super::{lanes::Lanes, states::Blake2sStates};
use crate::{
    states::Digest,
    width::Width,
    words::{Job, Words},
};

/// A chain of hashes up a binary tree of 256 levels, from a node on the way of `key` towards the root, with siblings that all such chains share at a height.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The way, most significant byte first: bit 0, the lowest of the last byte, says on which side of its parent a leaf is (1: right), bit 255 which side of the root.
    pub key: Digest,
    /// The hash of the node where the chain starts; after the fold of the node where it ends.
    pub hash: Digest,
    /// The height at which it ends: of a leaf 0, of the root 256.
    pub to: usize,
}

impl<W: Lanes> Blake2sStates<W> {
    /// Folds the chains, as many at a time as there are lanes; see [`Blake2s::fold`](super::Blake2s::fold).
    ///
    /// # Safety
    ///
    /// The contract of [`Words`].
    pub(super) unsafe fn fold(siblings: &[Digest], from: usize, chains: &mut [Chain]) {
        for chains in chains.chunks_mut(W::Width::COUNT) {
            let narrow = chains.len() <= <W::Narrow as Words>::Width::COUNT;
            let job = Fold {
                siblings,
                from,
                chains,
            };
            // SAFETY: the caller's contract; the narrow type has the same instructions.
            unsafe {
                if narrow {
                    W::Narrow::enter(job);
                } else {
                    W::enter(job);
                }
            }
        }
    }
}

/// Folds at most as many chains as there are lanes, in lockstep. The states stay in the lanes from hash to hash: a digest's words are words of the next message as
/// they are.
struct Fold<'a> {
    siblings: &'a [Digest],
    from: usize,
    chains: &'a mut [Chain],
}

impl<W: Lanes> Job<W> for Fold<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        let Self {
            siblings,
            from,
            chains,
        } = self;
        // SAFETY: the caller's contract is that of all methods of `Lanes`, the only unsafe code here.
        unsafe {
            let mut state: [W; 8] = std::array::from_fn(|i| {
                lanes(chains, |chain| word(&chain.hash, i, u32::from_le_bytes))
            });
            let Some(highest) = chains.iter().map(|chain| chain.to).max() else {
                return;
            };
            // On which side the sibling of each height is.
            let mut bits: W = state[0];
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
                bits = W::add(bits, bits);
            }
            let mut height = from;
            while let Some(end) = next_end(chains, height) {
                state = W::rise(state, &lefts[height..end], &siblings[height..end]);
                height = end;
                let words = state.map(|lanes| lanes.to_words());
                let ended = chains
                    .iter_mut()
                    .enumerate()
                    .filter(|(_, chain)| chain.to == height);
                for (lane, chain) in ended {
                    for (bytes, words) in chain.hash.as_chunks_mut::<4>().0.iter_mut().zip(&words) {
                        *bytes = words.as_ref()[lane].to_le_bytes();
                    }
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
unsafe fn lanes<W: Words>(chains: &[Chain], word: impl Fn(&Chain) -> u32) -> W {
    let mut words = W::Width::array(0);
    for (lane, chain) in words.as_mut().iter_mut().zip(chains) {
        *lane = word(chain);
    }
    // SAFETY: the caller's contract.
    unsafe { W::from_words(&words) }
}

#[inline(always)]
fn word(bytes: &Digest, i: usize, read: impl Fn([u8; 4]) -> u32) -> u32 {
    read(bytes.as_chunks::<4>().0[i])
}
