//! The compression of a message's only block, and chains of them.

use super::compression::{BLOCK, Place, START, compress};
#[cfg(target_arch = "x86_64")]
use super::{assembly, assembly512};
use crate::{states::Digest, words::Words};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m256i, __m512i};

/// Words of several messages, with assembly where it is faster than the compiler's code. The contract is that of [`Words`].
pub trait Lanes: Words {
    /// The type for fewer messages, with the same instructions: it is the faster one for as many messages as it has lanes.
    type Narrow: Lanes;

    /// The digests of messages of one block each, `length` bytes of it.
    #[inline(always)]
    unsafe fn hash_block(block: &[Self; 16], length: usize) -> [Self; 8] {
        // SAFETY: the caller's contract.
        unsafe {
            let place = Place {
                length: [Self::splat(length as u32), Self::splat(0)],
                last: Self::splat(u32::MAX),
            };
            compress(start(), block, place)
        }
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
            state = unsafe { Self::hash_block(&block, BLOCK) };
        }
        state
    }
}

/// The state before the first block.
#[inline(always)]
unsafe fn start<L: Words>() -> [L; 8] {
    // SAFETY: the caller's contract is that of `splat`.
    START.map(|w| unsafe { L::splat(w) })
}

impl<const N: usize> Lanes for [u32; N] {
    type Narrow = Self;
}

#[cfg(target_arch = "x86_64")]
impl Lanes for __m256i {
    type Narrow = Self;

    #[inline(always)]
    unsafe fn hash_block(block: &[Self; 16], length: usize) -> [Self; 8] {
        // SAFETY: the trait's contract: the processor has AVX2.
        unsafe { assembly::hash_block(block, length as u32) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Lanes for __m512i {
    type Narrow = Self;
}

#[cfg(target_arch = "x86_64")]
impl Lanes for [__m512i; 2] {
    type Narrow = __m512i;

    #[inline(always)]
    unsafe fn hash_block(block: &[Self; 16], length: usize) -> [Self; 8] {
        // SAFETY: the trait's contract: the processor has AVX-512F.
        unsafe { assembly512::hash_blocks(block, length as u32) }
    }

    #[inline(always)]
    unsafe fn rise(mut state: [Self; 8], lefts: &[Self::Choice], siblings: &[Digest]) -> [Self; 8] {
        let count = siblings.len().min(lefts.len());
        if count > 0 {
            // SAFETY: as in `hash_block`; there are as many of both, and at least one.
            unsafe { assembly512::rise(&mut state, &lefts[..count], &siblings[..count]) };
        }
        state
    }
}
