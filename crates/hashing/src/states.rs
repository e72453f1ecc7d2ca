//! What the schedule needs to know of a hash function.

use crate::width::Width;
use std::borrow::Borrow;

/// A digest of 256 bits, in the order of bytes in which it is written.
pub type Digest = [u8; 32];

/// States of one hash function side by side, one for each of several independent messages, and the instructions that compress them.
///
/// A state that has absorbed a block waits for the compression, which takes the block in.
///
/// # Safety
///
/// Unsafe methods may use instructions that not every processor has. Their contract, and that of all code generic over this trait:
///
/// 1. The processor has the instructions that the implementing type's documentation names.
pub trait States: Sized {
    /// How many states there are.
    type Width: Width;

    /// One state, with the instructions that suit it best on the same processor.
    type One: States<One = Self::One>;

    /// The length in bytes up to which a message takes one compression.
    const SHORT: usize;

    /// Returns the number of compressions that a message of `len` bytes takes.
    fn compressions(len: usize) -> u64;

    /// Returns the states before the first blocks of their messages.
    fn start() -> Self;

    /// Absorbs the next block of a message into state `n`, and returns the rest of the message, or `None` after its last block.
    ///
    /// With `FRESH` the state is first reset, whatever it was. Without, it must be as at the start, or compressed after the block before.
    fn absorb<'m, const FRESH: bool>(&mut self, n: usize, message: &'m [u8]) -> Option<&'m [u8]>;

    /// Compresses the blocks that the states have absorbed. A state without a new block becomes anything.
    unsafe fn compress(&mut self);

    /// Returns the digest in state `n`, after the compression of its last block.
    fn squeeze(&self, n: usize) -> Digest;

    /// Returns state `n` by itself, with the block that it has absorbed.
    fn extract(&self, n: usize) -> Self::One;

    /// Hashes one message, whatever the number of states.
    #[inline(always)]
    unsafe fn hash_one(message: &[u8]) -> Digest {
        let mut state = Self::One::start();
        let rest = state.absorb::<true>(0, message);
        // SAFETY: the caller's contract: `One` is for the same processor.
        unsafe { state.finish(rest) }
    }

    /// Compresses the block that the first state has absorbed, absorbs the rest of the message, and squeezes.
    #[inline(always)]
    unsafe fn finish(mut self, mut rest: Option<&[u8]>) -> Digest {
        loop {
            // SAFETY: the caller's contract.
            unsafe { self.compress() };
            let Some(message) = rest else {
                return self.squeeze(0);
            };
            rest = self.absorb::<false>(0, message);
        }
    }

    /// Sets each of `digests` to that of the message at the same place: one message or more, as many as
    /// there are states at most, of at most [`Self::SHORT`] bytes.
    #[inline(always)]
    unsafe fn hash_short<const LEN: usize, M: Borrow<[u8; LEN]>>(
        messages: &[M],
        digests: &mut [Digest],
    ) {
        let mut states = Self::start();
        for (n, message) in messages.iter().enumerate() {
            states.absorb::<false>(n, message.borrow());
        }
        // SAFETY: the caller's contract.
        unsafe { states.compress() };
        for (n, digest) in digests.iter_mut().enumerate() {
            *digest = states.squeeze(n);
        }
    }
}
