//! The compression of two groups of sixteen messages of one block each, in AVX-512 assembly.
//!
//! A processor with four units that split a 512-bit operation in two finishes two of them in a cycle, but only one rotation, two cycles after it began: the four columns of one
//! group do not keep it busy. The state of two groups fills the 32 registers exactly, every operation writes over one of its operands, and words of the message
//! are added from memory, so nothing is ever put aside. Half a round of one group follows half a round of the other.

use super::compression::{ONE_BLOCK, half_rounds, rounds};
use crate::states::Digest;
use std::arch::{
    asm,
    x86_64::{__m512i, __mmask16},
};

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

/// A round of each group, of which the words of the message go in as they stand before and behind the semicolon.
macro_rules! pair {
    ($m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt;
     $n0:tt $n1:tt $n2:tt $n3:tt $n4:tt $n5:tt $n6:tt $n7:tt
     $n8:tt $n9:tt $n10:tt $n11:tt $n12:tt $n13:tt $n14:tt $n15:tt) => {
        concat!(
            first!(columns $m0 $m2 $m4 $m6, 16 12),
            second!(columns $n0 $n2 $n4 $n6, 16 12),
            first!(columns $m1 $m3 $m5 $m7, 8 7),
            second!(columns $n1 $n3 $n5 $n7, 8 7),
            first!(diagonals $m8 $m10 $m12 $m14, 16 12),
            second!(diagonals $n8 $n10 $n12 $n14, 16 12),
            first!(diagonals $m9 $m11 $m13 $m15, 8 7),
            second!(diagonals $n9 $n11 $n13 $n15, 8 7),
        )
    };
}
macro_rules! round {
    ($($m:tt)*) => { pair!($($m)*; $($m)*) };
}
/// The first group in its first five rounds, the second one in its last five.
macro_rules! early_late {
    ($($m:tt)*) => { pair!($($m)*) };
}
/// The other way round.
macro_rules! late_early {
    ($m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt; $($n:tt)*) => {
        pair!($($n)*; $m0 $m1 $m2 $m3 $m4 $m5 $m6 $m7 $m8 $m9 $m10 $m11 $m12 $m13 $m14 $m15)
    };
}
/// The first group alone, in its first five rounds.
macro_rules! early {
    ($m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt; $($n:tt)*) => {
        concat!(
            first!(columns $m0 $m2 $m4 $m6, 16 12),
            first!(columns $m1 $m3 $m5 $m7, 8 7),
            first!(diagonals $m8 $m10 $m12 $m14, 16 12),
            first!(diagonals $m9 $m11 $m13 $m15, 8 7),
        )
    };
}
/// The second group alone, in its last five rounds.
macro_rules! late {
    ($m0:tt $m1:tt $m2:tt $m3:tt $m4:tt $m5:tt $m6:tt $m7:tt
     $m8:tt $m9:tt $m10:tt $m11:tt $m12:tt $m13:tt $m14:tt $m15:tt;
     $n0:tt $n1:tt $n2:tt $n3:tt $n4:tt $n5:tt $n6:tt $n7:tt
     $n8:tt $n9:tt $n10:tt $n11:tt $n12:tt $n13:tt $n14:tt $n15:tt) => {
        concat!(
            second!(columns $n0 $n2 $n4 $n6, 16 12),
            second!(columns $n1 $n3 $n5 $n7, 8 7),
            second!(diagonals $n8 $n10 $n12 $n14, 16 12),
            second!(diagonals $n9 $n11 $n13 $n15, 8 7),
        )
    };
}
/// Half a G of the first group.
macro_rules! first {
    (columns $m0:tt $m1:tt $m2:tt $m3:tt, $rd:tt $rb:tt) => {
        half!($m0 $m1 $m2 $m3, 0, $rd $rb, 0 1 2 3, 4 5 6 7, 8 9 10 11, 12 13 14 15)
    };
    (diagonals $m0:tt $m1:tt $m2:tt $m3:tt, $rd:tt $rb:tt) => {
        half!($m0 $m1 $m2 $m3, 0, $rd $rb, 0 1 2 3, 5 6 7 4, 10 11 8 9, 15 12 13 14)
    };
}
/// Half a G of the second group.
macro_rules! second {
    (columns $m0:tt $m1:tt $m2:tt $m3:tt, $rd:tt $rb:tt) => {
        half!($m0 $m1 $m2 $m3, 1, $rd $rb, 16 17 18 19, 20 21 22 23, 24 25 26 27, 28 29 30 31)
    };
    (diagonals $m0:tt $m1:tt $m2:tt $m3:tt, $rd:tt $rb:tt) => {
        half!($m0 $m1 $m2 $m3, 1, $rd $rb, 16 17 18 19, 21 22 23 20, 26 27 24 25, 31 28 29 30)
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

/// The state before the first round of a message of 64 bytes.
static WHOLE: [u32; 16] = {
    let mut state = ONE_BLOCK;
    state[12] ^= 64;
    state
};

/// The next messages of a group from its digests, and the state before the first round: a sibling's words, then the digest's, in lanes whose bit is set,
/// else the other way round. First the masks: where a group's bits lie among those of both, then registers of a mask each; then the words' registers.
macro_rules! enter {
    ($group:tt, $bits:tt, $k:tt $not:tt; $($word:tt: $digest:tt $other:tt $upper:tt;)*) => {
        concat!(
            "kmovw k", $k, ", word ptr [{lefts} + ", $bits, "]\n",
            "knotw k", $not, ", k", $k, "\n",
            $(
                "vpblendmd zmm", $other, "{{k", $k, "}}, zmm", $digest, ", [{siblings} + 4 * ", $word, "]{{1to16}}\n",
                "vmovdqa64 [{blocks} + 128 * ", $word, " + 64 * ", $group, "], zmm", $other, "\n",
                "vpblendmd zmm", $digest, "{{k", $not, "}}, zmm", $digest, ", [{siblings} + 4 * ", $word, "]{{1to16}}\n",
                "vmovdqa64 [{blocks} + 128 * ", $upper, " + 64 * ", $group, "], zmm", $digest, "\n",
            )*
            $(
                "vpbroadcastd zmm", $digest, ", [{state} + 4 * ", $word, "]\n",
                "vpbroadcastd zmm", $other, ", [{state} + 4 * ", $upper, "]\n",
            )*
        )
    };
}
macro_rules! enter_first {
    () => {
        enter!(0, 0, 1 2; 0: 0 8 8; 1: 1 9 9; 2: 2 10 10; 3: 3 11 11; 4: 4 12 12; 5: 5 13 13; 6: 6 14 14; 7: 7 15 15;)
    };
}
macro_rules! enter_second {
    () => {
        enter!(1, 2, 3 4; 0: 16 24 8; 1: 17 25 9; 2: 18 26 10; 3: 19 27 11; 4: 20 28 12; 5: 21 29 13; 6: 22 30 14; 7: 23 31 15;)
    };
}

/// The digests of a group in place of its upper words.
macro_rules! leave {
    ($($word:tt: $upper:tt $lower:tt;)*) => {
        concat!($(
            "vpternlogd zmm", $upper, ", zmm", $lower, ", [{state} + 4 * ", $word, "]{{1to16}}, 0x96\n",
        )*)
    };
}
macro_rules! leave_first {
    () => { leave!(0: 0 8; 1: 1 9; 2: 2 10; 3: 3 11; 4: 4 12; 5: 5 13; 6: 6 14; 7: 7 15;) };
}
macro_rules! leave_second {
    () => { leave!(0: 16 24; 1: 17 25; 2: 18 26; 3: 19 27; 4: 20 28; 5: 21 29; 6: 22 30; 7: 23 31;) };
}

/// The digests' words into registers, or out of them.
macro_rules! move_digests {
    (in $($word:tt: $first:tt $second:tt;)*) => {
        concat!($(
            "vmovdqa64 zmm", $first, ", [{digests} + 128 * ", $word, "]\n",
            "vmovdqa64 zmm", $second, ", [{digests} + 128 * ", $word, " + 64]\n",
        )*)
    };
    (out $($word:tt: $first:tt $second:tt;)*) => {
        concat!($(
            "vmovdqa64 [{digests} + 128 * ", $word, "], zmm", $first, "\n",
            "vmovdqa64 [{digests} + 128 * ", $word, " + 64], zmm", $second, "\n",
        )*)
    };
}

/// Takes the digests of two groups of sixteen up by a hash for each sibling, which stands to the left in lanes whose bit is set. The second group is five rounds behind the first, so that one is amid its rounds
/// while the other's digests become messages.
///
/// # Safety
///
/// The processor has AVX-512F; there are as many of `lefts` as of `siblings`, and at least one.
#[inline(never)]
pub(super) unsafe fn rise(
    digests: &mut [[__m512i; 2]; 8],
    lefts: &[[__mmask16; 2]],
    siblings: &[Digest],
) {
    let mut blocks = std::mem::MaybeUninit::<[[__m512i; 2]; 16]>::uninit();
    // SAFETY: AVX-512F is the caller's contract, and that there is a pair of masks and a sibling for each of the steps, of which there is one at least: the assembly advances to the next of
    // both before each step but the first. It reads and writes `digests` and writes `blocks` before it reads them, all aligned to 64 bytes, reads `WHOLE`, and touches no other memory or the stack.
    unsafe {
        asm!(
            move_digests!(in 0: 0 16; 1: 1 17; 2: 2 18; 3: 3 19; 4: 4 20; 5: 5 21; 6: 6 22; 7: 7 23;),
            enter_first!(),
            half_rounds!(early),
            enter_second!(),
            "dec {steps}",
            "jz 3f",
            "2:",
            half_rounds!(late_early),
            "add {lefts}, 4",
            "add {siblings}, 32",
            leave_first!(),
            enter_first!(),
            half_rounds!(early_late),
            leave_second!(),
            enter_second!(),
            "dec {steps}",
            "jnz 2b",
            "3:",
            half_rounds!(late_early),
            leave_first!(),
            half_rounds!(late),
            leave_second!(),
            move_digests!(out 0: 0 16; 1: 1 17; 2: 2 18; 3: 3 19; 4: 4 20; 5: 5 21; 6: 6 22; 7: 7 23;),
            blocks = in(reg) blocks.as_mut_ptr(),
            state = in(reg) &raw const WHOLE,
            digests = in(reg) digests.as_mut_ptr(),
            lefts = inout(reg) lefts.as_ptr() => _,
            siblings = inout(reg) siblings.as_ptr() => _,
            steps = inout(reg) siblings.len() => _,
            out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
            out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
            out("zmm8") _, out("zmm9") _, out("zmm10") _, out("zmm11") _,
            out("zmm12") _, out("zmm13") _, out("zmm14") _, out("zmm15") _,
            out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
            out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
            out("zmm24") _, out("zmm25") _, out("zmm26") _, out("zmm27") _,
            out("zmm28") _, out("zmm29") _, out("zmm30") _, out("zmm31") _,
            out("k1") _, out("k2") _, out("k3") _, out("k4") _,
            options(nostack),
        );
    }
}
