//! Messages of any length in the lanes of BLAKE2s, each with a block that waits.

use super::{
    compression::{BLOCK, Place, START, compress},
    lanes::Lanes,
};
use crate::{
    states::{Digest, States},
    width::Width,
    words::{Block, Job, WIDEST, Words},
};
use std::{borrow::Borrow, mem::MaybeUninit};

/// A word of each state.
type Row<W> = <<W as Words>::Width as Width>::Array<u32>;

/// As many states as `W` has lanes; needs the instructions of `W`. Row `i` has word `i` of each.
pub struct Blake2sStates<W: Words> {
    state: [Row<W>; 8],
    block: [Row<W>; 16],
    place: Place<Row<W>>,
}

impl<W: Lanes> States for Blake2sStates<W> {
    type Width = W::Width;

    type One = Blake2sStates<[u32; 1]>;

    const SHORT: usize = BLOCK;

    /// Even the empty message has a block.
    #[inline(always)]
    fn compressions(len: usize) -> u64 {
        len.div_ceil(BLOCK).max(1) as u64
    }

    #[inline(always)]
    fn start() -> Self {
        let zeros = W::Width::array(0);
        Self {
            state: START.map(W::Width::array),
            block: [zeros; 16],
            place: Place {
                length: [zeros; 2],
                last: zeros,
            },
        }
    }

    /// The last block, whole or not, is marked (RFC 7693, section 3.3), and padded with zeros.
    #[inline(always)]
    fn absorb<'m, const FRESH: bool>(&mut self, n: usize, message: &'m [u8]) -> Option<&'m [u8]> {
        let Place { length, last } = &mut self.place;
        let mut before = 0;
        if FRESH {
            for (row, w) in self.state.iter_mut().zip(START) {
                row.as_mut()[n] = w;
            }
        } else {
            let [low, high] = length.map(|half| u64::from(half.as_ref()[n]));
            before = high << 32 | low;
        }
        let (block, rest) = match message.split_first_chunk::<BLOCK>() {
            Some((block, rest)) if !rest.is_empty() => (block, Some(rest)),
            Some((block, _)) => (block, None),
            None => (&padded(message), None),
        };
        for (row, bytes) in self.block.iter_mut().zip(block.as_chunks::<4>().0) {
            row.as_mut()[n] = u32::from_le_bytes(*bytes);
        }
        let after = before + message.len().min(BLOCK) as u64;
        length[0].as_mut()[n] = after as u32;
        length[1].as_mut()[n] = (after >> 32) as u32;
        last.as_mut()[n] = if rest.is_some() { 0 } else { u32::MAX };
        rest
    }

    #[inline(always)]
    unsafe fn compress(&mut self) {
        // SAFETY: the caller's contract.
        unsafe { W::enter(Compress(self)) }
    }

    #[inline(always)]
    fn squeeze(&self, n: usize) -> Digest {
        let mut digest = [0; 32];
        for (bytes, row) in digest.as_chunks_mut::<4>().0.iter_mut().zip(&self.state) {
            *bytes = row.as_ref()[n].to_le_bytes();
        }
        digest
    }

    #[inline(always)]
    fn extract(&self, n: usize) -> Self::One {
        let Place { length, last } = self.place;
        let one = |row: Row<W>| [row.as_ref()[n]];
        Blake2sStates {
            state: self.state.map(one),
            block: self.block.map(one),
            place: Place {
                length: length.map(one),
                last: one(last),
            },
        }
    }

    /// The state stays in registers from block to block.
    #[inline(always)]
    unsafe fn hash_one(message: &[u8]) -> Digest {
        let mut state = START.map(|w| [w]);
        let blocks = message.len().div_ceil(BLOCK).max(1);
        for i in 0..blocks {
            let end = message.len().min((i + 1) * BLOCK);
            let block = padded(&message[i * BLOCK..end]);
            let words = std::array::from_fn(|i| [u32::from_le_bytes(block.as_chunks().0[i])]);
            let place = Place {
                length: [[end as u32], [(end as u64 >> 32) as u32]],
                last: [if i + 1 == blocks { u32::MAX } else { 0 }],
            };
            // SAFETY: one word needs no particular instructions.
            state = unsafe { compress(state, &words, place) };
        }
        let mut digest = [0; 32];
        for (bytes, [word]) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
            *bytes = word.to_le_bytes();
        }
        digest
    }

    /// Messages go through registers from their bytes to their digests.
    #[inline(always)]
    unsafe fn hash_short<const LEN: usize, M: Borrow<[u8; LEN]>>(
        messages: &[M],
        digests: &mut [Digest],
    ) {
        let job = HashShort::<LEN, M> { messages, digests };
        // SAFETY: the caller's contract; the narrow type has the same instructions.
        unsafe {
            if messages.len() <= <W::Narrow as Words>::Width::COUNT {
                W::Narrow::enter(job);
            } else {
                W::enter(job);
            }
        }
    }
}

/// A part of a block, with zeros after it.
#[inline(always)]
fn padded(message: &[u8]) -> Block {
    let mut block = [0; BLOCK];
    block[..message.len()].copy_from_slice(message);
    block
}

/// Takes in the blocks that wait.
struct Compress<'a, W: Words>(&'a mut Blake2sStates<W>);

impl<W: Words> Job<W> for Compress<'_, W> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        let Blake2sStates {
            state,
            block,
            place,
        } = self.0;
        // SAFETY: the caller's contract is that of all methods of `Words` and of `compress`, the only unsafe code here.
        unsafe {
            let (mut words, mut message) = ([W::splat(0); 8], [W::splat(0); 16]);
            for (word, row) in words.iter_mut().zip(&*state) {
                *word = W::from_words(row);
            }
            for (word, row) in message.iter_mut().zip(&*block) {
                *word = W::from_words(row);
            }
            let [low, high] = &place.length;
            let place = Place {
                length: [W::from_words(low), W::from_words(high)],
                last: W::from_words(&place.last),
            };
            let after = compress(words, &message, place);
            for (row, word) in state.iter_mut().zip(after) {
                *row = word.to_words();
            }
        }
    }
}

/// Hashes at most as many messages of `LEN` bytes, at most one block, as there are lanes.
struct HashShort<'a, const LEN: usize, M> {
    messages: &'a [M],
    digests: &'a mut [Digest],
}

impl<W: Lanes, const LEN: usize, M: Borrow<[u8; LEN]>> Job<W> for HashShort<'_, LEN, M> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        let Self { messages, digests } = self;
        let mut padded = [const { MaybeUninit::uninit() }; WIDEST];
        let mut blocks = [const { &[0; BLOCK] }; WIDEST];
        let lanes = blocks.iter_mut().zip(&mut padded).enumerate();
        for (lane, (block, padded)) in lanes.take(W::Width::COUNT) {
            // Idle lanes repeat the last message.
            let message = messages[lane.min(messages.len() - 1)].borrow();
            *block = match message.as_slice().try_into() {
                Ok(whole) => whole,
                Err(_) => padded.write(self::padded(message)),
            };
        }
        // SAFETY: the caller's contract.
        unsafe {
            let state = W::hash_block(&W::load(&blocks), LEN);
            W::store(state, digests);
        }
    }
}
