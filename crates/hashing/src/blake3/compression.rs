//! The compression function, once for all widths of vectors.

use crate::words::Words;

/// Bytes that one compression takes in.
pub const BLOCK: usize = 64;

/// Bytes of a chunk, the longest message that is hashed without a tree of chunks (BLAKE3 paper,
/// section 2.1).
pub const CHUNK: usize = 1024;

/// The initialization vector, which is SHA-256's (BLAKE3 paper, table 1).
pub(super) const IV: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Flags of a block (BLAKE3 paper, table 3).
pub(super) mod flag {
    /// The first block of a chunk.
    pub(in super::super) const CHUNK_START: u32 = 1;
    /// The last block of a chunk.
    pub(in super::super) const CHUNK_END: u32 = 2;
    /// The block that gives the digest.
    pub(in super::super) const ROOT: u32 = 8;
}

/// Where each word of the message goes from one round to the next (BLAKE3 paper, table 2).
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// Which word of the message goes where, by round.
const SCHEDULE: [[usize; 16]; 7] = {
    let mut schedule = [[0; 16]; 7];
    let mut i = 0;
    while i < 16 {
        schedule[0][i] = i;
        i += 1;
    }
    let mut round = 1;
    while round < 7 {
        let mut i = 0;
        while i < 16 {
            schedule[round][i] = schedule[round - 1][PERMUTATION[i]];
            i += 1;
        }
        round += 1;
    }
    schedule
};

/// What a block is in its message.
#[derive(Clone, Copy)]
pub(super) struct Place<L> {
    /// The number of message bytes in the block.
    pub(super) length: L,
    /// Its flags.
    pub(super) flags: L,
}

/// Takes one block of a message's first chunk into the chaining value (BLAKE3 paper, section 2.2).
///
/// # Safety
///
/// The contract of [`Words`].
#[inline(always)]
pub(super) unsafe fn compress<L: Words>(value: [L; 8], block: &[L; 16], place: Place<L>) -> [L; 8] {
    // SAFETY: the caller's contract is that of all methods of `Words`, the only unsafe code here.
    unsafe {
        let [
            mut a0,
            mut a1,
            mut a2,
            mut a3,
            mut b0,
            mut b1,
            mut b2,
            mut b3,
        ] = value;
        let (mut c0, mut c1, mut c2, mut c3) = (
            L::splat(IV[0]),
            L::splat(IV[1]),
            L::splat(IV[2]),
            L::splat(IV[3]),
        );
        // The counter of chunks, two words, is zero.
        let (mut d0, mut d1, mut d2, mut d3) =
            (L::splat(0), L::splat(0), place.length, place.flags);
        macro_rules! round {
            ($s:expr) => {
                crate::rounds::blake_round!(
                    L, block, $s;
                    a0 a1 a2 a3, b0 b1 b2 b3, c0 c1 c2 c3, d0 d1 d2 d3
                )
            };
        }
        round!(SCHEDULE[0]);
        round!(SCHEDULE[1]);
        round!(SCHEDULE[2]);
        round!(SCHEDULE[3]);
        round!(SCHEDULE[4]);
        round!(SCHEDULE[5]);
        round!(SCHEDULE[6]);
        [
            L::xor(a0, c0),
            L::xor(a1, c1),
            L::xor(a2, c2),
            L::xor(a3, c3),
            L::xor(b0, d0),
            L::xor(b1, d1),
            L::xor(b2, d2),
            L::xor(b3, d3),
        ]
    }
}
