//! The compression function, once for all widths of vectors.

use crate::words::Words;

/// Bytes that one compression takes in.
pub const BLOCK: usize = 64;

/// The first 32 bits of the fractional parts of the square roots of the first eight primes (RFC 7693, section 2.6).
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

/// [`IV`] with the parameters mixed in: 32 bytes of digest, no key, fanout and depth 1 (RFC 7693, section 2.5).
pub(super) const START: [u32; 8] = {
    let mut start = IV;
    start[0] ^= 0x0101_0020;
    start
};

/// Which word of the message goes where, by round (RFC 7693, section 2.7).
pub(super) const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// The ten rounds of assembly, one after the other: `round!` with the words of the message as they go in (RFC 7693, section 2.7).
#[cfg(target_arch = "x86_64")]
macro_rules! rounds {
    ($round:ident) => {
        concat!(
            $round!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15),
            $round!(14 10 4 8 9 15 13 6 1 12 0 2 11 7 5 3),
            $round!(11 8 12 0 5 2 15 13 10 14 3 6 7 1 9 4),
            $round!(7 9 3 1 13 12 11 14 2 6 5 10 4 0 15 8),
            $round!(9 0 5 7 2 4 10 15 14 1 11 12 6 8 3 13),
            $round!(2 12 6 10 0 11 8 3 4 13 7 5 15 14 1 9),
            $round!(12 5 1 15 14 13 4 10 0 7 6 3 9 2 8 11),
            $round!(13 11 7 14 12 1 3 9 5 0 15 4 8 6 2 10),
            $round!(6 15 14 9 11 3 0 8 12 2 13 7 1 4 10 5),
            $round!(10 2 8 4 7 6 1 5 15 11 9 14 3 12 13 0),
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use rounds;

/// The first five rounds of assembly beside the last five: `round!` with the words of the message as they go into the one and, behind a semicolon, into the other.
#[cfg(target_arch = "x86_64")]
macro_rules! half_rounds {
    ($round:ident) => {
        concat!(
            $round!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; 2 12 6 10 0 11 8 3 4 13 7 5 15 14 1 9),
            $round!(14 10 4 8 9 15 13 6 1 12 0 2 11 7 5 3; 12 5 1 15 14 13 4 10 0 7 6 3 9 2 8 11),
            $round!(11 8 12 0 5 2 15 13 10 14 3 6 7 1 9 4; 13 11 7 14 12 1 3 9 5 0 15 4 8 6 2 10),
            $round!(7 9 3 1 13 12 11 14 2 6 5 10 4 0 15 8; 6 15 14 9 11 3 0 8 12 2 13 7 1 4 10 5),
            $round!(9 0 5 7 2 4 10 15 14 1 11 12 6 8 3 13; 10 2 8 4 7 6 1 5 15 11 9 14 3 12 13 0),
        )
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use half_rounds;

/// The state before the first round of a message of one block, which is the last one (RFC 7693, section 3.2), but for the length that is mixed into word 12.
#[cfg(target_arch = "x86_64")]
pub(super) const ONE_BLOCK: [u32; 16] = {
    let mut state = [0; 16];
    let mut i = 0;
    while i < 8 {
        state[i] = START[i];
        state[8 + i] = IV[i];
        i += 1;
    }
    state[14] = !IV[6];
    state
};

/// Where blocks are in their messages.
#[derive(Clone, Copy)]
pub(super) struct Place<L> {
    /// The number of message bytes up to the end of the block, the lower and the upper half.
    pub(super) length: [L; 2],
    /// All bits set if the block is the last one, else none.
    pub(super) last: L,
}

/// Takes one block into the state (RFC 7693, section 3.2).
///
/// # Safety
///
/// The contract of [`Words`].
#[inline(always)]
pub(super) unsafe fn compress<L: Words>(state: [L; 8], block: &[L; 16], place: Place<L>) -> [L; 8] {
    // SAFETY: the caller's contract is that of all methods of `Words` and of `round`, the only unsafe code here.
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
        ] = state;
        let (mut c0, mut c1, mut c2, mut c3) = (
            L::splat(IV[0]),
            L::splat(IV[1]),
            L::splat(IV[2]),
            L::splat(IV[3]),
        );
        let (mut d0, mut d1, mut d2, mut d3) = (
            L::xor(L::splat(IV[4]), place.length[0]),
            L::xor(L::splat(IV[5]), place.length[1]),
            L::xor(L::splat(IV[6]), place.last),
            L::splat(IV[7]),
        );
        macro_rules! round {
            ($s:expr) => {
                crate::rounds::blake_round!(
                    L, block, $s;
                    a0 a1 a2 a3, b0 b1 b2 b3, c0 c1 c2 c3, d0 d1 d2 d3
                )
            };
        }
        round!(SIGMA[0]);
        round!(SIGMA[1]);
        round!(SIGMA[2]);
        round!(SIGMA[3]);
        round!(SIGMA[4]);
        round!(SIGMA[5]);
        round!(SIGMA[6]);
        round!(SIGMA[7]);
        round!(SIGMA[8]);
        round!(SIGMA[9]);
        let out = |i: usize, upper, lower| L::xor(state[i], L::xor(upper, lower));
        [
            out(0, a0, c0),
            out(1, a1, c1),
            out(2, a2, c2),
            out(3, a3, c3),
            out(4, b0, d0),
            out(5, b1, d1),
            out(6, b2, d2),
            out(7, b3, d3),
        ]
    }
}
