//! Messages of any length in the lanes of SHA-256, each with a block that waits.

use super::compression::{BLOCK, START, compress};
use crate::{
    states::{Digest, States},
    width::Width,
    words::{Job, Words},
};

/// A word of each state.
type Row<W> = <<W as Words>::Width as Width>::Array<u32>;

/// How far each message is.
type Lengths<W> = <<W as Words>::Width as Width>::Array<Length>;

/// The bytes that a state has absorbed, and whether the padding has begun.
#[derive(Clone, Copy, Default)]
struct Length {
    bytes: u64,
    is_padded: bool,
}

/// Bytes of the length at the end of the padding.
const LENGTH: usize = 8;

/// As many states as `W` has lanes; needs the instructions of `W`. Row `i` has word `i` of each.
pub struct Sha256States<W: Words> {
    state: [Row<W>; 8],
    block: [Row<W>; 16],
    length: Lengths<W>,
}

impl<W: Words> States for Sha256States<W> {
    type Width = W::Width;

    type One = Sha256States<[u32; 1]>;

    const SHORT: usize = BLOCK - LENGTH - 1;

    /// Blocks of the padded message.
    #[inline(always)]
    fn compressions(len: usize) -> u64 {
        (len + 1 + LENGTH).div_ceil(BLOCK) as u64
    }

    #[inline(always)]
    fn start() -> Self {
        Self {
            state: START.map(W::Width::array),
            block: [W::Width::array(0); 16],
            length: W::Width::array(Length::default()),
        }
    }

    /// The padding is a byte 0x80, zeros, and the message's length in bits (FIPS 180-4, section
    /// 5.1.1). If the last block has no room for the length, one more follows.
    #[inline(always)]
    fn absorb<'m, const FRESH: bool>(&mut self, n: usize, message: &'m [u8]) -> Option<&'m [u8]> {
        let length = &mut self.length.as_mut()[n];
        if FRESH {
            for (row, w) in self.state.iter_mut().zip(START) {
                row.as_mut()[n] = w;
            }
            *length = Length::default();
        }
        let mut padded = [0; BLOCK];
        let (block, rest) = match message.split_first_chunk::<BLOCK>() {
            Some((block, rest)) => {
                length.bytes += BLOCK as u64;
                (block, Some(rest))
            }
            None => {
                length.bytes += message.len() as u64;
                padded[..message.len()].copy_from_slice(message);
                if !length.is_padded {
                    padded[message.len()] = 0x80;
                }
                let has_room = message.len() < BLOCK - LENGTH;
                if has_room {
                    padded[BLOCK - LENGTH..].copy_from_slice(&(8 * length.bytes).to_be_bytes());
                }
                length.is_padded = true;
                (&padded, (!has_room).then_some(&[][..]))
            }
        };
        for (row, bytes) in self.block.iter_mut().zip(block.as_chunks::<4>().0) {
            row.as_mut()[n] = u32::from_be_bytes(*bytes);
        }
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
            *bytes = row.as_ref()[n].to_be_bytes();
        }
        digest
    }

    #[inline(always)]
    fn extract(&self, n: usize) -> Self::One {
        let one = |row: Row<W>| [row.as_ref()[n]];
        Sha256States {
            state: self.state.map(one),
            block: self.block.map(one),
            length: [self.length.as_ref()[n]],
        }
    }
}

/// Takes in the blocks that wait.
struct Compress<'a, W: Words>(&'a mut Sha256States<W>);

impl<W: Words> Job<W> for Compress<'_, W> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        let Sha256States { state, block, .. } = self.0;
        // SAFETY: the caller's contract is that of all methods of `Words` and of `compress`, the
        // only unsafe code here.
        unsafe {
            let (mut words, mut message) = ([W::splat(0); 8], [W::splat(0); 16]);
            for (word, row) in words.iter_mut().zip(&*state) {
                *word = W::from_words(row);
            }
            for (word, row) in message.iter_mut().zip(&*block) {
                *word = W::from_words(row);
            }
            let after = compress(words, &message);
            for (row, word) in state.iter_mut().zip(after) {
                *row = word.to_words();
            }
        }
    }
}
