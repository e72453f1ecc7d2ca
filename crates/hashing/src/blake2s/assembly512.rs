//! The compression of two groups of sixteen messages of one block each, in AVX-512 assembly.
//!
//! A processor with four units that split a 512-bit operation in two finishes two of them in a cycle, but only one rotation, two cycles after it began: the four columns of one
//! group do not keep it busy. The state of two groups fills the 32 registers exactly, every operation writes over one of its operands, and words of the message
//! are added from memory, so nothing is ever put aside. Half a round of one group follows half a round of the other.

use super::compression::{ONE_BLOCK, rounds};
use std::arch::{asm, x86_64::__m512i};

/// Half a G on four columns or diagonals of one group: which words of the message, where the group's lie among those of both, how far to rotate d and b,
/// then the registers of a, b, c and d.
macro_rules! half {
    ($m0:tt $m1:tt $m2:tt $m3:tt, $group:tt, $rd:tt $rb:tt,
     $a0:tt $a1:tt $a2:tt $a3:tt, $b0:tt $b1:tt $b2:tt $b3:tt,
     $c0:tt $c1:tt $c2:tt $c3:tt, $d0:tt $d1:tt $d2:tt $d3:tt) => {
        concat!(
            half!(@message $a0, $m0, $group),
            half!(@message $a1, $m1, $group),
            half!(@message $a2, $m2, $group),
            half!(@message $a3, $m3, $group),
            half!(@op "vpaddd", $a0, $b0),
            half!(@op "vpaddd", $a1, $b1),
            half!(@op "vpaddd", $a2, $b2),
            half!(@op "vpaddd", $a3, $b3),
            half!(@op "vpxord", $d0, $a0),
            half!(@op "vpxord", $d1, $a1),
            half!(@op "vpxord", $d2, $a2),
            half!(@op "vpxord", $d3, $a3),
            half!(@rotate $d0, $rd),
            half!(@rotate $d1, $rd),
            half!(@rotate $d2, $rd),
            half!(@rotate $d3, $rd),
            half!(@op "vpaddd", $c0, $d0),
            half!(@op "vpaddd", $c1, $d1),
            half!(@op "vpaddd", $c2, $d2),
            half!(@op "vpaddd", $c3, $d3),
            half!(@op "vpxord", $b0, $c0),
            half!(@op "vpxord", $b1, $c1),
            half!(@op "vpxord", $b2, $c2),
            half!(@op "vpxord", $b3, $c3),
            half!(@rotate $b0, $rb),
            half!(@rotate $b1, $rb),
            half!(@rotate $b2, $rb),
            half!(@rotate $b3, $rb),
        )
    };
    (@message $a:tt, $m:tt, $group:tt) => {
        concat!("vpaddd zmm", $a, ", zmm", $a, ", [{blocks} + 128 * ", $m, " + 64 * ", $group, "]\n")
    };
    (@op $op:tt, $to:tt, $by:tt) => {
        concat!($op, " zmm", $to, ", zmm", $to, ", zmm", $by, "\n")
    };
    (@rotate $x:tt, $right:tt) => {
        concat!("vprord zmm", $x, ", zmm", $x, ", ", $right, "\n")
    };
}

/// Half a round of both groups: columns, or diagonals.
macro_rules! columns {
    ($($m:tt)*) => { both!($($m)*; 4 5 6 7, 8 9 10 11, 12 13 14 15; 20 21 22 23, 24 25 26 27, 28 29 30 31) };
}
macro_rules! diagonals {
    ($($m:tt)*) => { both!($($m)*; 5 6 7 4, 10 11 8 9, 15 12 13 14; 21 22 23 20, 26 27 24 25, 31 28 29 30) };
}
macro_rules! both {
    ($m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt;
     $b0:tt $b1:tt $b2:tt $b3:tt, $c0:tt $c1:tt $c2:tt $c3:tt, $d0:tt $d1:tt $d2:tt $d3:tt;
     $f0:tt $f1:tt $f2:tt $f3:tt, $g0:tt $g1:tt $g2:tt $g3:tt, $h0:tt $h1:tt $h2:tt $h3:tt) => {
        concat!(
            half!($m0 $m2 $m4 $m6, 0, 16 12, 0 1 2 3, $b0 $b1 $b2 $b3, $c0 $c1 $c2 $c3, $d0 $d1 $d2 $d3),
            half!($m0 $m2 $m4 $m6, 1, 16 12, 16 17 18 19, $f0 $f1 $f2 $f3, $g0 $g1 $g2 $g3, $h0 $h1 $h2 $h3),
            half!($m1 $m3 $m5 $m7, 0, 8 7, 0 1 2 3, $b0 $b1 $b2 $b3, $c0 $c1 $c2 $c3, $d0 $d1 $d2 $d3),
            half!($m1 $m3 $m5 $m7, 1, 8 7, 16 17 18 19, $f0 $f1 $f2 $f3, $g0 $g1 $g2 $g3, $h0 $h1 $h2 $h3),
        )
    };
}
macro_rules! round {
    ($m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt) => {
        concat!(
            columns!($m0 $m1 $m2 $m3 $m4 $m5 $m6 $m7),
            diagonals!($m8 $m9 $m10 $m11 $m12 $m13 $m14 $m15),
        )
    };
}

/// A word of the state before the first round, in both groups.
macro_rules! begin {
    ($($word:tt $second:tt)*) => {
        concat!($(
            "vpbroadcastd zmm", $word, ", [{state} + 4 * ", $word, "]\n",
            "vmovdqa64 zmm", $second, ", zmm", $word, "\n",
        )*)
    };
}

/// A word of the digests, `upper ^ lower` and the state before.
macro_rules! finish {
    ($($word:tt: $upper:tt $lower:tt, $upper2:tt $lower2:tt;)*) => {
        concat!($(
            "vpternlogd zmm", $upper, ", zmm", $lower, ", [{state} + 4 * ", $word, "]{{1to16}}, 0x96\n",
            "vmovdqa64 [{digests} + 128 * ", $word, "], zmm", $upper, "\n",
            "vpternlogd zmm", $upper2, ", zmm", $lower2, ", [{state} + 4 * ", $word, "]{{1to16}}, 0x96\n",
            "vmovdqa64 [{digests} + 128 * ", $word, " + 64], zmm", $upper2, "\n",
        )*)
    };
}

/// The state before the first round, where the assembly reads it.
static STATE: [u32; 16] = ONE_BLOCK;

/// The digests of two groups of sixteen messages of one block each, `length` bytes of it.
///
/// # Safety
///
/// The processor has AVX-512F.
#[inline(never)]
pub(super) unsafe fn hash_blocks(blocks: &[[__m512i; 2]; 16], length: u32) -> [[__m512i; 2]; 8] {
    let mut digests = std::mem::MaybeUninit::<[[__m512i; 2]; 8]>::uninit();
    // SAFETY: AVX-512F is the caller's contract. The assembly reads `blocks` and `STATE`, writes all of `digests`, which is aligned to 64 bytes as `blocks` is,
    // and touches no other memory, the stack or flags.
    unsafe {
        asm!(
            begin!(0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 24 9 25 10 26 11 27 13 29 14 30 15 31),
            "vpbroadcastd zmm12, {length:e}",
            "vpxord zmm12, zmm12, [{state} + 4 * 12]{{1to16}}",
            "vmovdqa64 zmm28, zmm12",
            rounds!(round),
            finish!(
                0: 0 8, 16 24; 1: 1 9, 17 25; 2: 2 10, 18 26; 3: 3 11, 19 27;
                4: 4 12, 20 28; 5: 5 13, 21 29; 6: 6 14, 22 30; 7: 7 15, 23 31;
            ),
            blocks = in(reg) blocks,
            state = in(reg) &raw const STATE,
            digests = in(reg) digests.as_mut_ptr(),
            length = in(reg) length,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
            out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
            out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
            out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
            out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
            out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
            out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            options(nostack, preserves_flags),
        );
        digests.assume_init()
    }
}
