//! Messages in the lanes of BLAKE3, each with a block that waits.

use super::compression::{BLOCK, CHUNK, IV, Place, compress, flag};
use crate::{
    states::{Digest, States},
    width::Width,
    words::{Job, Words},
};

/// A word of each state.
type Row<W> = <<W as Words>::Width as Width>::Array<u32>;

/// As many states as `W` has lanes; needs the instructions of `W`. Row `i` has word `i` of each.
pub struct Blake3States<W: Words> {
    value: [Row<W>; 8],
    block: [Row<W>; 16],
    place: Place<Row<W>>,
    /// The flag of a first block for states that have had none.
    start: Row<W>,
}

impl<W: Words> States for Blake3States<W> {
    type Width = W::Width;

    type One = Blake3States<[u32; 1]>;

    const SHORT: usize = BLOCK;

    /// Even the empty message has a block.
    ///
    /// # Panics
    ///
    /// If a message is longer than [`CHUNK`].
    #[inline(always)]
    fn compressions(len: usize) -> u64 {
        assert!(
            len <= CHUNK,
            "a message of {len} bytes: a chunk has {CHUNK}"
        );
        len.div_ceil(BLOCK).max(1) as u64
    }

    #[inline(always)]
    fn start() -> Self {
        let zeros = W::Width::array(0);
        Self {
            value: IV.map(W::Width::array),
            block: [zeros; 16],
            place: Place {
                length: zeros,
                flags: zeros,
            },
            start: W::Width::array(flag::CHUNK_START),
        }
    }

    /// The last block, whole or not, ends the chunk, which is the root; it is padded with zeros.
    #[inline(always)]
    fn absorb<'m, const FRESH: bool>(&mut self, n: usize, message: &'m [u8]) -> Option<&'m [u8]> {
        let start = self.start.as_mut();
        if FRESH {
            for (row, w) in self.value.iter_mut().zip(IV) {
                row.as_mut()[n] = w;
            }
            start[n] = flag::CHUNK_START;
        }
        let mut padded = [0; BLOCK];
        let (block, rest) = match message.split_first_chunk::<BLOCK>() {
            Some((block, rest)) if !rest.is_empty() => (block, Some(rest)),
            Some((block, _)) => (block, None),
            None => {
                padded[..message.len()].copy_from_slice(message);
                (&padded, None)
            }
        };
        for (row, bytes) in self.block.iter_mut().zip(block.as_chunks::<4>().0) {
            row.as_mut()[n] = u32::from_le_bytes(*bytes);
        }
        let end = match rest {
            Some(_) => 0,
            None => flag::CHUNK_END | flag::ROOT,
        };
        self.place.flags.as_mut()[n] = std::mem::take(&mut start[n]) | end;
        self.place.length.as_mut()[n] = message.len().min(BLOCK) as u32;
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
        for (bytes, row) in digest.as_chunks_mut::<4>().0.iter_mut().zip(&self.value) {
            *bytes = row.as_ref()[n].to_le_bytes();
        }
        digest
    }

    #[inline(always)]
    fn extract(&self, n: usize) -> Self::One {
        let one = |row: Row<W>| [row.as_ref()[n]];
        Blake3States {
            value: self.value.map(one),
            block: self.block.map(one),
            place: Place {
                length: one(self.place.length),
                flags: one(self.place.flags),
            },
            start: one(self.start),
        }
    }
}

/// Takes in the blocks that wait.
struct Compress<'a, W: Words>(&'a mut Blake3States<W>);

impl<W: Words> Job<W> for Compress<'_, W> {
    type Output = ();

    #[inline(always)]
    unsafe fn run(self) {
        let Blake3States {
            value,
            block,
            place,
            ..
        } = self.0;
        // SAFETY: the caller's contract is that of all methods of `Words` and of `compress`, the
        // only unsafe code here.
        unsafe {
            let (mut words, mut message) = ([W::splat(0); 8], [W::splat(0); 16]);
            for (word, row) in words.iter_mut().zip(&*value) {
                *word = W::from_words(row);
            }
            for (word, row) in message.iter_mut().zip(&*block) {
                *word = W::from_words(row);
            }
            let place = Place {
                length: W::from_words(&place.length),
                flags: W::from_words(&place.flags),
            };
            let after = compress(words, &message, place);
            for (row, word) in value.iter_mut().zip(after) {
                *row = word.to_words();
            }
        }
    }
}
