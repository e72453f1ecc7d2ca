//! The compression function, once for all widths of vectors.

use crate::words::Words;

/// Bytes that one compression takes in.
pub const BLOCK: usize = 64;

/// The state before the first block (FIPS 180-4, section 5.3.3).
pub(super) const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The constants of the rounds (FIPS 180-4, section 4.2.2).
#[rustfmt::skip]
pub(super) const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The small sigma functions (FIPS 180-4, equations 4.6 and 4.7): two rotations and a shift.
///
/// # Safety
///
/// The contract of [`Words`].
#[inline(always)]
unsafe fn sigma<L: Words, const R1: i32, const L1: i32, const R2: i32, const L2: i32>(
    word: L,
    shift: u32,
) -> L {
    // SAFETY: the caller's contract.
    unsafe {
        L::xor(
            L::xor(word.rotate::<R1, L1>(), word.rotate::<R2, L2>()),
            word.shift_right(shift),
        )
    }
}

/// Takes one block into the state (FIPS 180-4, section 6.2.2).
///
/// # Safety
///
/// The contract of [`Words`].
#[inline(always)]
pub(super) unsafe fn compress<L: Words>(state: [L; 8], block: &[L; 16]) -> [L; 8] {
    // SAFETY: the caller's contract is that of all methods of `Words` and of `sigma`, the only
    // unsafe code here.
    unsafe {
        let mut w = *block;
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (round, k) in K.iter().enumerate() {
            let at = round % 16;
            if round >= 16 {
                let s0 = sigma::<L, 7, 25, 18, 14>(w[(at + 1) % 16], 3);
                let s1 = sigma::<L, 17, 15, 19, 13>(w[(at + 14) % 16], 10);
                w[at] = L::add(L::add(w[at], s0), L::add(w[(at + 9) % 16], s1));
            }
            let s1 = L::xor(
                L::xor(e.rotate::<6, 26>(), e.rotate::<11, 21>()),
                e.rotate::<25, 7>(),
            );
            let choice = L::xor(g, L::and(e, L::xor(f, g)));
            let first = L::add(L::add(L::add(h, s1), choice), L::add(L::splat(*k), w[at]));
            let s0 = L::xor(
                L::xor(a.rotate::<2, 30>(), a.rotate::<13, 19>()),
                a.rotate::<22, 10>(),
            );
            let majority = L::xor(L::and(a, b), L::and(c, L::xor(a, b)));
            (h, g, f, e) = (g, f, e, L::add(d, first));
            (d, c, b, a) = (c, b, a, L::add(first, L::add(s0, majority)));
        }
        [
            L::add(state[0], a),
            L::add(state[1], b),
            L::add(state[2], c),
            L::add(state[3], d),
            L::add(state[4], e),
            L::add(state[5], f),
            L::add(state[6], g),
            L::add(state[7], h),
        ]
    }
}
