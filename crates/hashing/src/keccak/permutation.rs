//! Keccak-f\[1600\], once for all widths of vectors.
//!
//! A state is 25 lanes; lane (x, y) of the specification is element `x + 5 * y`.

use super::lanes::Lanes;

/// Rounds of Keccak-f\[1600\]: 12 + 2 * log2(64) (FIPS 202, section 3.3).
const ROUNDS: usize = 24;

/// Constants of the step iota, by round (FIPS 202, section 3.2.5).
const ROUND_CONSTANTS: [u64; ROUNDS] = round_constants();

/// Rounds written out in one turn of the loop. Measured on Zen 3: 1 or 2 cost 3 to 6 % for loop-carried moves, all 24 cost 30 %, as
/// the code then falls out of the cache of decoded instructions.
const UNROLLED: usize = 4;

/// Applies Keccak-f\[1600\] to each of the interleaved states.
///
/// # Safety
///
/// The contract of [`Lanes`].
#[inline(always)]
pub(super) unsafe fn permute<L: Lanes>(state: &mut [L; 25]) {
    let mut a = *state;
    let mut b = a;
    for constants in ROUND_CONSTANTS.as_chunks::<UNROLLED>().0 {
        // SAFETY: the caller's contract is that of `round`.
        unsafe {
            round(&a, &mut b, constants[0]);
            round(&b, &mut a, constants[1]);
            round(&a, &mut b, constants[2]);
            round(&b, &mut a, constants[3]);
        }
    }
    *state = a;
}

/// One round from `a` to `b`: theta, rho, pi, chi and iota (FIPS 202, section 3.2).
///
/// Each row of `b` needs one lane of each column of `a`; theta is applied and rho's rotation done as they are collected,
/// so nothing between `a` and the finished row is ever stored.
///
/// # Safety
///
/// The contract of [`Lanes`].
#[inline(always)]
unsafe fn round<L: Lanes>(a: &[L; 25], b: &mut [L; 25], constant: u64) {
    // SAFETY: the caller's contract is that of all methods of `Lanes`, the only unsafe code here.
    unsafe {
        macro_rules! parity {
            ($x:literal) => {
                L::xor3(
                    L::xor3(a[$x], a[$x + 5], a[$x + 10]),
                    a[$x + 15],
                    a[$x + 20],
                )
            };
        }
        let parity = [parity!(0), parity!(1), parity!(2), parity!(3), parity!(4)];
        let rotated = [
            parity[0].rotate::<1, 63>(),
            parity[1].rotate::<1, 63>(),
            parity[2].rotate::<1, 63>(),
            parity[3].rotate::<1, 63>(),
            parity[4].rotate::<1, 63>(),
        ];
        // Lane `i` after theta.
        macro_rules! theta {
            ($i:literal) => {
                L::xor3(a[$i], parity[($i + 4) % 5], rotated[($i + 1) % 5])
            };
        }
        // Lane `i` after theta, rotated: one lane of a row after pi.
        macro_rules! rho {
            ($i:literal, $left:literal) => {
                theta!($i).rotate::<$left, { 64 - $left }>()
            };
        }
        let row = [
            theta!(0),
            rho!(6, 44),
            rho!(12, 43),
            rho!(18, 21),
            rho!(24, 14),
        ];
        chi(row, b, 0);
        b[0] = L::xor(b[0], L::splat(constant));
        let row = [
            rho!(3, 28),
            rho!(9, 20),
            rho!(10, 3),
            rho!(16, 45),
            rho!(22, 61),
        ];
        chi(row, b, 5);
        let row = [
            rho!(1, 1),
            rho!(7, 6),
            rho!(13, 25),
            rho!(19, 8),
            rho!(20, 18),
        ];
        chi(row, b, 10);
        let row = [
            rho!(4, 27),
            rho!(5, 36),
            rho!(11, 10),
            rho!(17, 15),
            rho!(23, 56),
        ];
        chi(row, b, 15);
        let row = [
            rho!(2, 62),
            rho!(8, 55),
            rho!(14, 39),
            rho!(15, 41),
            rho!(21, 2),
        ];
        chi(row, b, 20);
    }
}

/// Chi of one row, into the lanes of `b` from `start` on.
///
/// # Safety
///
/// The contract of [`Lanes`].
#[inline(always)]
unsafe fn chi<L: Lanes>(row: [L; 5], b: &mut [L; 25], start: usize) {
    // SAFETY: the caller's contract is that of `Lanes::chi`.
    unsafe {
        b[start] = L::chi(row[0], row[1], row[2]);
        b[start + 1] = L::chi(row[1], row[2], row[3]);
        b[start + 2] = L::chi(row[2], row[3], row[4]);
        b[start + 3] = L::chi(row[3], row[4], row[0]);
        b[start + 4] = L::chi(row[4], row[0], row[1]);
    }
}

/// Bits of the shift register x^8 + x^6 + x^5 + x^4 + 1 (FIPS 202, algorithm 5), spread over
/// the positions 2^j - 1 of each round's constant.
const fn round_constants() -> [u64; ROUNDS] {
    let mut constants = [0; ROUNDS];
    let mut register: u8 = 1;
    let mut round = 0;
    while round < ROUNDS {
        let mut j = 0;
        while j <= 6 {
            constants[round] |= ((register & 1) as u64) << ((1 << j) - 1);
            let carry = register >> 7;
            register = (register << 1) ^ (carry * 0x71);
            j += 1;
        }
        round += 1;
    }
    constants
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rotations of FIPS 202, table 2, modulo 64, derived as its algorithm 2 does.
    fn rho_offsets() -> [u32; 25] {
        let mut offsets = [0; 25];
        let (mut x, mut y) = (1, 0);
        for t in 0..24 {
            offsets[x + 5 * y] = (t + 1) * (t + 2) / 2 % 64;
            (x, y) = (y, (2 * x + 3 * y) % 5);
        }
        offsets
    }

    /// The permutation as the specification writes it, step by step.
    fn naive(a: &mut [u64; 25]) {
        let rho = rho_offsets();
        for constant in ROUND_CONSTANTS {
            let column = |a: &[u64; 25], x: usize| (0..5).fold(0, |c, y| c ^ a[x % 5 + 5 * y]);
            let d: [u64; 5] =
                std::array::from_fn(|x| column(a, x + 4) ^ column(a, x + 1).rotate_left(1));
            let mut b = [0; 25];
            for i in 0..25 {
                let (x, y) = (i % 5, i / 5);
                b[y + 5 * ((2 * x + 3 * y) % 5)] = (a[i] ^ d[x]).rotate_left(rho[i]);
            }
            for i in 0..25 {
                let (x, row) = (i % 5, i - i % 5);
                a[i] = b[i] ^ (!b[row + (x + 1) % 5] & b[row + (x + 2) % 5]);
            }
            a[0] ^= constant;
        }
    }

    #[test]
    fn round_constants_are_those_of_the_specification() {
        assert_eq!(ROUND_CONSTANTS[0], 0x0000_0000_0000_0001);
        assert_eq!(ROUND_CONSTANTS[1], 0x0000_0000_0000_8082);
        assert_eq!(ROUND_CONSTANTS[2], 0x8000_0000_0000_808a);
        assert_eq!(ROUND_CONSTANTS[23], 0x8000_0000_8000_8008);
    }

    #[test]
    fn equals_the_specification_step_by_step() {
        let mut fast = [0; 25];
        let mut slow = [0; 25];
        for _ in 0..100 {
            // SAFETY: `u64` needs no particular instructions.
            unsafe { permute(&mut fast) };
            naive(&mut slow);
            assert_eq!(fast, slow);
        }
    }
}
