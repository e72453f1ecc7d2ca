//! Absorbing padded messages into interleaved states, and squeezing digests out of them.

use crate::{
    states::{Digest, States},
    width::Lanes,
};
use std::marker::PhantomData;

/// Bytes absorbed by one permutation: the 1600 bits of the state less twice the 256 bits of the digest.
pub const RATE: usize = 136;

/// The permutation of `N` interleaved states, with the instructions that the implementing type's documentation names.
pub trait Permutation<const N: usize> {
    /// The permutation of one state that suits the same processor best.
    type One: Permutation<1, One = Self::One>;

    /// Applies Keccak-f\[1600\] to each of the states.
    ///
    /// # Safety
    ///
    /// The processor has the instructions.
    unsafe fn permute(rows: &mut Rows<N>);
}

/// `N` states, and the permutation `P` that compresses them.
pub struct Sponges<P, const N: usize> {
    rows: Rows<N>,
    permutation: PhantomData<P>,
}

impl<P: Permutation<N>, const N: usize> Sponges<P, N> {
    #[inline(always)]
    const fn of(rows: Rows<N>) -> Self {
        Self {
            rows,
            permutation: PhantomData,
        }
    }
}

impl<P: Permutation<N>, const N: usize> States for Sponges<P, N> {
    type Width = Lanes<N>;

    type One = Sponges<P::One, 1>;

    const SHORT: usize = RATE - 1;

    /// Blocks of the padded message.
    #[inline(always)]
    fn compressions(len: usize) -> u64 {
        (len / RATE) as u64 + 1
    }

    #[inline(always)]
    fn start() -> Self {
        Self::of(Rows([[0; N]; 25]))
    }

    #[inline(always)]
    fn absorb<'m, const FRESH: bool>(&mut self, n: usize, message: &'m [u8]) -> Option<&'m [u8]> {
        self.rows.absorb::<FRESH>(n, message)
    }

    #[inline(always)]
    unsafe fn compress(&mut self) {
        // SAFETY: the caller's contract.
        unsafe { P::permute(&mut self.rows) }
    }

    #[inline(always)]
    fn squeeze(&self, n: usize) -> Digest {
        self.rows.squeeze(n)
    }

    #[inline(always)]
    fn extract(&self, n: usize) -> Self::One {
        Sponges::of(self.rows.extract(n))
    }
}

/// `N` Keccak states, interleaved: row `i` holds lane `i` of each state, so that a row is one vector.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Rows<const N: usize>(pub(super) [[u64; N]; 25]);

impl<const N: usize> Rows<N> {
    /// Absorbs one block into state `n` and returns the rest of the message, or `None` after its
    /// last block. The state then waits for a permutation.
    ///
    /// With `FRESH` the state is first reset, whatever it held. The padding is the original Keccak's, pad10*1
    /// with no suffix: a byte 0x01 after the message, and the top bit of the block's last byte.
    /// A message that fills its last block, an empty one among them, has one more block, of padding.
    #[inline(always)]
    fn absorb<'m, const FRESH: bool>(&mut self, n: usize, message: &'m [u8]) -> Option<&'m [u8]> {
        let (block, rest) = match message.split_at_checked(RATE) {
            Some((block, rest)) => (block, Some(rest)),
            None => (message, None),
        };
        let (words, tail) = block.as_chunks::<8>();
        let mut next = 0;
        for word in words {
            self.put::<FRESH>(next, n, u64::from_le_bytes(*word));
            next += 1;
        }
        if rest.is_none() {
            self.put::<FRESH>(next, n, padded_word(block, tail));
            next += 1;
        }
        if FRESH {
            for row in &mut self.0[next..] {
                row[n] = 0;
            }
        }
        if rest.is_none() {
            self.0[RATE / 8 - 1][n] ^= 1 << 63;
        }
        rest
    }

    #[inline(always)]
    fn put<const FRESH: bool>(&mut self, row: usize, n: usize, word: u64) {
        if FRESH {
            self.0[row][n] = word;
        } else {
            self.0[row][n] ^= word;
        }
    }

    /// The digest in state `n`, after the permutation of its last block.
    #[inline(always)]
    fn squeeze(&self, n: usize) -> Digest {
        let mut digest = [0; 32];
        for (bytes, row) in digest.as_chunks_mut::<8>().0.iter_mut().zip(&self.0) {
            *bytes = row[n].to_le_bytes();
        }
        digest
    }

    /// State `n` by itself.
    pub(super) fn extract(&self, n: usize) -> Rows<1> {
        Rows(self.0.map(|row| [row[n]]))
    }
}

impl Rows<1> {
    /// The 25 lanes of the only state.
    #[inline(always)]
    pub(super) fn lanes_mut(&mut self) -> &mut [u64; 25] {
        let lanes = self.0.as_flattened_mut();
        lanes.try_into().expect("invariant: 25 rows of one lane")
    }
}

/// The last 0 to 7 bytes of a block with the padding's first byte after them.
///
/// `tail` is the end of `block`. Where the block has eight bytes the tail is cut out of one
/// overlapping load: copying a variable number of bytes costs a call.
#[inline(always)]
fn padded_word(block: &[u8], tail: &[u8]) -> u64 {
    let bits = 8 * tail.len() as u32;
    let bytes = match block.last_chunk::<8>() {
        Some(_) if bits == 0 => 0,
        Some(last) => u64::from_le_bytes(*last) >> (64 - bits),
        None => tail
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    bytes | 1 << bits
}
