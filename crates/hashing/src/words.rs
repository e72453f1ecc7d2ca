//! 32-bit words of several messages side by side, for hash functions that take blocks of 64 bytes.

#[cfg(target_arch = "x86_64")]
mod x86;

use crate::{
    states::Digest,
    width::{Lanes, Width},
};

/// The most lanes of any implementation.
pub(crate) const WIDEST: usize = 32;

/// One block of a message: 64 bytes, sixteen words least significant byte first.
pub(crate) type Block = [u8; 64];

/// Work on words `W` that is compiled for their instructions: see [`Words::enter`].
pub trait Job<W> {
    /// What the work gives.
    type Output;

    /// Does the work. Implementations are `#[inline(always)]`, and use no closures, which would not be inlined into code for wide registers.
    ///
    /// # Safety
    ///
    /// The contract of [`Words`].
    unsafe fn run(self) -> Self::Output;
}

/// 32-bit words of the same place, one of each of several independent messages.
///
/// # Safety
///
/// The methods are unsafe because an implementation may use instructions that not every
/// processor has. Contract of each method, and of all code generic over this trait:
///
/// 1. The processor has the instructions that the implementing type's documentation names.
///
/// Speed needs a second thing, on which soundness does not depend: the caller, into which all of it is
/// inlined, has the corresponding `target_feature` enabled. [`Self::enter`] does that.
pub trait Words: Copy {
    /// How many messages there are side by side, at most [`WIDEST`].
    type Width: Width;

    /// A choice of one of two for each lane.
    type Choice: Copy;

    /// Does the work in a function that has the instructions of this type enabled.
    unsafe fn enter<J: Job<Self>>(job: J) -> J::Output;

    /// `w` in each lane.
    unsafe fn splat(w: u32) -> Self;

    /// The words of an array, one in each lane.
    unsafe fn from_words(words: &<Self::Width as Width>::Array<u32>) -> Self;

    /// The words, as an array.
    unsafe fn to_words(self) -> <Self::Width as Width>::Array<u32>;

    /// `a + b` modulo 2^32.
    unsafe fn add(a: Self, b: Self) -> Self;

    /// `a ^ b`.
    unsafe fn xor(a: Self, b: Self) -> Self;

    /// `a & b`.
    unsafe fn and(a: Self, b: Self) -> Self;

    /// Each lane shifted right by `bits`, below 32, zeros coming in.
    unsafe fn shift_right(self, bits: u32) -> Self;

    /// Each lane rotated right by `RIGHT` bits; `LEFT` must be `32 - RIGHT` (stable Rust cannot
    /// compute it from `RIGHT` in the place where the intrinsics want it).
    unsafe fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self;

    /// The choice that each lane's top bit makes.
    unsafe fn top_bits(self) -> Self::Choice;

    /// `b` where the choice is made by a set bit, `a` elsewhere.
    unsafe fn choose(choice: Self::Choice, a: Self, b: Self) -> Self;

    /// The words of the first blocks, one for each lane: word `i` of block `j` in lane `j` of element `i`.
    #[inline(always)]
    unsafe fn load(blocks: &[&Block; WIDEST]) -> [Self; 16] {
        let mut words = [Self::Width::array(0); 16];
        for (j, block) in blocks.iter().enumerate().take(Self::Width::COUNT) {
            for (words, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
                words.as_mut()[j] = u32::from_le_bytes(*bytes);
            }
        }
        // SAFETY: the caller's contract is that of `from_words`.
        words.map(|words| unsafe { Self::from_words(&words) })
    }

    /// The inverse of [`Self::load`] for digests; writes as many as `digests` has, at most one for each lane.
    #[inline(always)]
    unsafe fn store(state: [Self; 8], digests: &mut [Digest]) {
        // SAFETY: the caller's contract is that of `to_words`.
        let words = state.map(|lanes| unsafe { lanes.to_words() });
        for (j, digest) in digests.iter_mut().enumerate().take(Self::Width::COUNT) {
            for (bytes, words) in digest.as_chunks_mut::<4>().0.iter_mut().zip(&words) {
                *bytes = words.as_ref()[j].to_le_bytes();
            }
        }
    }
}

/// Words side by side without wide registers, or in those that the compiler finds: the reference. Needs no particular instructions.
impl<const N: usize> Words for [u32; N] {
    type Width = Lanes<N>;

    /// All bits set or none.
    type Choice = Self;

    #[inline(always)]
    unsafe fn enter<J: Job<Self>>(job: J) -> J::Output {
        // SAFETY: the caller's contract.
        unsafe { job.run() }
    }

    #[inline(always)]
    unsafe fn splat(w: u32) -> Self {
        [w; N]
    }

    #[inline(always)]
    unsafe fn from_words(words: &[u32; N]) -> Self {
        *words
    }

    #[inline(always)]
    unsafe fn to_words(self) -> [u32; N] {
        self
    }

    #[inline(always)]
    unsafe fn add(a: Self, b: Self) -> Self {
        std::array::from_fn(|lane| a[lane].wrapping_add(b[lane]))
    }

    #[inline(always)]
    unsafe fn xor(a: Self, b: Self) -> Self {
        std::array::from_fn(|lane| a[lane] ^ b[lane])
    }

    #[inline(always)]
    unsafe fn and(a: Self, b: Self) -> Self {
        std::array::from_fn(|lane| a[lane] & b[lane])
    }

    #[inline(always)]
    unsafe fn shift_right(self, bits: u32) -> Self {
        self.map(|w| w >> bits)
    }

    #[inline(always)]
    unsafe fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 32) };
        self.map(|w| w.rotate_right(RIGHT.cast_unsigned()))
    }

    #[inline(always)]
    unsafe fn top_bits(self) -> Self::Choice {
        self.map(|w| 0u32.wrapping_sub(w >> 31))
    }

    #[inline(always)]
    unsafe fn choose(choice: Self::Choice, a: Self, b: Self) -> Self {
        std::array::from_fn(|lane| a[lane] ^ (a[lane] ^ b[lane]) & choice[lane])
    }
}
