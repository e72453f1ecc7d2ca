//! What the compression needs of a machine word, whether it holds one message's word or 32.

use super::{
    BLOCK, Digest,
    compression::{compress, start},
};

/// The most lanes of any implementation.
pub(super) const WIDEST: usize = 32;

/// One block of a message: 64 bytes, sixteen words least significant byte first.
pub(super) type Block = [u8; 64];

/// [`Self::COUNT`] 32-bit words of the same place, one of each of so many independent messages.
///
/// # Safety
///
/// The methods are unsafe because an implementation may use instructions that not every
/// processor has. Contract of each method, and of all code generic over this trait:
///
/// 1. The processor has the instructions that the implementing type's documentation names.
///
/// Speed needs a second thing, on which soundness does not depend: the caller, into which all of it is
/// inlined, has the corresponding `target_feature` enabled.
pub(super) trait Lanes: Copy {
    /// Messages side by side, at most [`WIDEST`].
    const COUNT: usize;

    /// A choice of one of two for each lane.
    type Choice: Copy;

    /// `w` in each lane.
    unsafe fn splat(w: u32) -> Self;

    /// The first [`Self::COUNT`] words.
    unsafe fn from_words(words: &[u32; WIDEST]) -> Self;

    /// The words, followed by anything.
    unsafe fn to_words(self) -> [u32; WIDEST];

    /// `a + b` modulo 2^32.
    unsafe fn add(a: Self, b: Self) -> Self;

    /// `a ^ b`.
    unsafe fn xor(a: Self, b: Self) -> Self;

    /// Each lane rotated right by `RIGHT` bits; `LEFT` must be `32 - RIGHT` (stable Rust cannot
    /// compute it from `RIGHT` in the place where the intrinsics want it).
    unsafe fn rotate<const RIGHT: i32, const LEFT: i32>(self) -> Self;

    /// The choice that each lane's top bit makes.
    unsafe fn top_bits(self) -> Self::Choice;

    /// `b` where the choice is made by a set bit, `a` elsewhere.
    unsafe fn choose(choice: Self::Choice, a: Self, b: Self) -> Self;

    /// The digests of messages of one block each, `length` bytes of it.
    #[inline(always)]
    unsafe fn hash_block(block: &[Self; 16], length: u64) -> [Self; 8] {
        // SAFETY: the caller's contract.
        unsafe { compress(start(), block, length, true) }
    }

    /// Takes digests up by a hash for each of `siblings`, which stands to the left where `lefts`, as many choices, are made by a set bit.
    #[inline(always)]
    unsafe fn rise(mut state: [Self; 8], lefts: &[Self::Choice], siblings: &[Digest]) -> [Self; 8] {
        for (left, sibling) in lefts.iter().zip(siblings) {
            let mut block = [state[0]; 16];
            for (i, bytes) in sibling.as_chunks::<4>().0.iter().enumerate() {
                // SAFETY: the caller's contract.
                unsafe {
                    let sibling = Self::splat(u32::from_le_bytes(*bytes));
                    block[i] = Self::choose(*left, state[i], sibling);
                    block[8 + i] = Self::choose(*left, sibling, state[i]);
                }
            }
            // SAFETY: as above.
            state = unsafe { Self::hash_block(&block, BLOCK as u64) };
        }
        state
    }

    /// The words of the first [`Self::COUNT`] blocks: word `i` of block `j` in lane `j` of element `i`.
    #[inline(always)]
    unsafe fn load(blocks: &[&Block; WIDEST]) -> [Self; 16] {
        let mut words = [[0; WIDEST]; 16];
        for (j, block) in blocks.iter().enumerate().take(Self::COUNT) {
            for (words, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
                words[j] = u32::from_le_bytes(*bytes);
            }
        }
        // SAFETY: the caller's contract is that of `from_words`.
        words.map(|words| unsafe { Self::from_words(&words) })
    }

    /// The inverse of [`Self::load`] for digests; writes as many as `digests` has, at most [`Self::COUNT`].
    #[inline(always)]
    unsafe fn store(state: [Self; 8], digests: &mut [Digest]) {
        // SAFETY: the caller's contract is that of `to_words`.
        let words = state.map(|lanes| unsafe { lanes.to_words() });
        for (j, digest) in digests.iter_mut().enumerate().take(Self::COUNT) {
            for (bytes, words) in digest.as_chunks_mut::<4>().0.iter_mut().zip(&words) {
                *bytes = words[j].to_le_bytes();
            }
        }
    }
}

/// Words side by side without wide registers, or in those that the compiler finds: the reference. Needs no particular instructions.
impl<const N: usize> Lanes for [u32; N] {
    const COUNT: usize = {
        assert!(N <= WIDEST);
        N
    };

    /// All bits set or none.
    type Choice = Self;

    #[inline(always)]
    unsafe fn splat(w: u32) -> Self {
        [w; N]
    }

    #[inline(always)]
    unsafe fn from_words(words: &[u32; WIDEST]) -> Self {
        std::array::from_fn(|lane| words[lane])
    }

    #[inline(always)]
    unsafe fn to_words(self) -> [u32; WIDEST] {
        std::array::from_fn(|lane| self.get(lane).copied().unwrap_or(0))
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
