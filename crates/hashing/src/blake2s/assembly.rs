//! The compression of eight messages of one block each, in AVX2 assembly.
//!
//! The sixteen words of the state fill the sixteen registers, and a rotation by 12 or 7 bits needs one more. It borrows that of one
//! word of the third row, which at that time lies in memory: it goes there after its last use, and the operation that uses it next takes it from there. Compilers keep
//! several words in memory at a time, on the longest chain of dependent operations, and make two shuffles of the rotation by 16 bits.

use super::compression::{ONE_BLOCK, rounds};
use std::arch::{asm, x86_64::__m256i};

/// Half a G on four columns or diagonals: which words of the message, the rotation of d, the shifts of b, then the registers of a, b, c and d.
/// The word of register 11 comes from memory and goes there, so that the register is free for the shifts.
macro_rules! half {
    ($m0:tt $m1:tt $m2:tt $m3:tt, $rotate:tt, $right:tt $left:tt,
     $a0:tt $a1:tt $a2:tt $a3:tt, $b0:tt $b1:tt $b2:tt $b3:tt,
     $c0:tt $c1:tt $c2:tt $c3:tt, $d0:tt $d1:tt $d2:tt $d3:tt) => {
        concat!(
            half!(@message $a0, $m0),
            half!(@message $a1, $m1),
            half!(@message $a2, $m2),
            half!(@message $a3, $m3),
            half!(@op "vpaddd", $a0, $b0),
            half!(@op "vpaddd", $a1, $b1),
            half!(@op "vpaddd", $a2, $b2),
            half!(@op "vpaddd", $a3, $b3),
            half!(@op "vpxor", $d0, $a0),
            half!(@op "vpxor", $d1, $a1),
            half!(@op "vpxor", $d2, $a2),
            half!(@op "vpxor", $d3, $a3),
            half!(@shuffle $d0, $rotate),
            half!(@shuffle $d1, $rotate),
            half!(@shuffle $d2, $rotate),
            half!(@shuffle $d3, $rotate),
            half!(@sum $c0, $d0),
            half!(@sum $c1, $d1),
            half!(@sum $c2, $d2),
            half!(@sum $c3, $d3),
            half!(@op "vpxor", $b0, $c0),
            half!(@op "vpxor", $b1, $c1),
            half!(@op "vpxor", $b2, $c2),
            half!(@op "vpxor", $b3, $c3),
            "vmovdqa [{scratch}], ymm11\n",
            half!(@shifts $b0, $right, $left),
            half!(@shifts $b1, $right, $left),
            half!(@shifts $b2, $right, $left),
            half!(@shifts $b3, $right, $left),
        )
    };
    (@message $a:tt, $m:tt) => {
        concat!("vpaddd ymm", $a, ", ymm", $a, ", [{block} + 32 * ", $m, "]\n")
    };
    (@op $op:tt, $to:tt, $by:tt) => {
        concat!($op, " ymm", $to, ", ymm", $to, ", ymm", $by, "\n")
    };
    (@sum 11, $d:tt) => {
        concat!("vpaddd ymm11, ymm", $d, ", [{scratch}]\n")
    };
    (@sum $c:tt, $d:tt) => {
        half!(@op "vpaddd", $c, $d)
    };
    (@shuffle $d:tt, $rotate:tt) => {
        concat!("vpshufb ymm", $d, ", ymm", $d, ", [{constants} + ", $rotate, "]\n")
    };
    (@shifts $b:tt, $right:tt, $left:tt) => {
        concat!(
            "vpsrld ymm11, ymm", $b, ", ", $right, "\n",
            "vpslld ymm", $b, ", ymm", $b, ", ", $left, "\n",
            "vpor ymm", $b, ", ymm", $b, ", ymm11\n",
        )
    };
}

macro_rules! round {
    ($m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt) => {
        concat!(
            half!($m0 $m2 $m4 $m6, "512", 12 20, 0 1 2 3, 4 5 6 7, 8 9 10 11, 12 13 14 15),
            half!($m1 $m3 $m5 $m7, "544", 7 25, 0 1 2 3, 4 5 6 7, 8 9 10 11, 12 13 14 15),
            half!($m8 $m10 $m12 $m14, "512", 12 20, 0 1 2 3, 5 6 7 4, 10 11 8 9, 15 12 13 14),
            half!($m9 $m11 $m13 $m15, "544", 7 25, 0 1 2 3, 5 6 7 4, 10 11 8 9, 15 12 13 14),
        )
    };
}

/// What the assembly reads at fixed places: the state before the first round, the two shuffles.
#[repr(C, align(32))]
struct Constants {
    /// Each word eight times; `d` before the length is mixed in.
    state: [[u32; 8]; 16],
    /// Byte indices that rotate words right by 16 and by 8 bits.
    rotations: [[u32; 8]; 2],
}

static CONSTANTS: Constants = {
    let mut state = [[0; 8]; 16];
    let mut i = 0;
    while i < 16 {
        state[i] = [ONE_BLOCK[i]; 8];
        i += 1;
    }
    let mut rotations = [[0; 8]; 2];
    let mut word = 0;
    while word < 8 {
        let bytes = 0x0302_0100 + (word as u32 % 4) * 0x0404_0404;
        rotations[0][word] = bytes.rotate_right(16);
        rotations[1][word] = bytes.rotate_right(8);
        word += 1;
    }
    Constants { state, rotations }
};

/// The digests of eight messages of one block each, `length` bytes of it.
///
/// # Safety
///
/// The processor has AVX2.
#[inline(always)]
pub(super) unsafe fn hash_block(block: &[__m256i; 16], length: u32) -> [__m256i; 8] {
    let mut state = std::mem::MaybeUninit::<[__m256i; 8]>::uninit();
    let mut scratch = std::mem::MaybeUninit::<__m256i>::uninit();
    // SAFETY: AVX2 is the caller's contract. The assembly reads `block` and `CONSTANTS`, writes all of `state` and `scratch`, each aligned to 32 bytes,
    // and touches no other memory, the stack or flags.
    unsafe {
        asm!(
            "vmovd xmm12, {length:e}",
            "vpbroadcastd ymm12, xmm12",
            "vpxor ymm12, ymm12, [{constants} + 32 * 12]",
            "vmovdqa ymm11, [{constants} + 32 * 11]",
            "vmovdqa [{scratch}], ymm11",
            "vmovdqa ymm0, [{constants} + 32 * 0]",
            "vmovdqa ymm1, [{constants} + 32 * 1]",
            "vmovdqa ymm2, [{constants} + 32 * 2]",
            "vmovdqa ymm3, [{constants} + 32 * 3]",
            "vmovdqa ymm4, [{constants} + 32 * 4]",
            "vmovdqa ymm5, [{constants} + 32 * 5]",
            "vmovdqa ymm6, [{constants} + 32 * 6]",
            "vmovdqa ymm7, [{constants} + 32 * 7]",
            "vmovdqa ymm8, [{constants} + 32 * 8]",
            "vmovdqa ymm9, [{constants} + 32 * 9]",
            "vmovdqa ymm10, [{constants} + 32 * 10]",
            "vmovdqa ymm13, [{constants} + 32 * 13]",
            "vmovdqa ymm14, [{constants} + 32 * 14]",
            "vmovdqa ymm15, [{constants} + 32 * 15]",
            rounds!(round),
            "vpxor ymm0, ymm0, ymm8",
            "vpxor ymm1, ymm1, ymm9",
            "vpxor ymm2, ymm2, ymm10",
            "vpxor ymm3, ymm3, [{scratch}]",
            "vpxor ymm4, ymm4, ymm12",
            "vpxor ymm5, ymm5, ymm13",
            "vpxor ymm6, ymm6, ymm14",
            "vpxor ymm7, ymm7, ymm15",
            "vpxor ymm0, ymm0, [{constants} + 32 * 0]",
            "vpxor ymm1, ymm1, [{constants} + 32 * 1]",
            "vpxor ymm2, ymm2, [{constants} + 32 * 2]",
            "vpxor ymm3, ymm3, [{constants} + 32 * 3]",
            "vpxor ymm4, ymm4, [{constants} + 32 * 4]",
            "vpxor ymm5, ymm5, [{constants} + 32 * 5]",
            "vpxor ymm6, ymm6, [{constants} + 32 * 6]",
            "vpxor ymm7, ymm7, [{constants} + 32 * 7]",
            "vmovdqa [{state} + 32 * 0], ymm0",
            "vmovdqa [{state} + 32 * 1], ymm1",
            "vmovdqa [{state} + 32 * 2], ymm2",
            "vmovdqa [{state} + 32 * 3], ymm3",
            "vmovdqa [{state} + 32 * 4], ymm4",
            "vmovdqa [{state} + 32 * 5], ymm5",
            "vmovdqa [{state} + 32 * 6], ymm6",
            "vmovdqa [{state} + 32 * 7], ymm7",
            block = in(reg) block,
            constants = in(reg) &raw const CONSTANTS,
            scratch = in(reg) scratch.as_mut_ptr(),
            state = in(reg) state.as_mut_ptr(),
            length = in(reg) length,
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
            out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
            out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack, preserves_flags),
        );
        state.assume_init()
    }
}
