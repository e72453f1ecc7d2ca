//! The round that BLAKE2s and BLAKE3 share (RFC 7693, section 3.1; BLAKE3 paper, section 2.2).

/// Half a G on four columns or diagonals: a word of the message, then rotations by so many bits.
macro_rules! half_blake_round {
    ($l:ident, $block:expr, $s:expr, $at:literal, $right_d:literal, $right_b:literal,
     $a0:ident $a1:ident $a2:ident $a3:ident, $b0:ident $b1:ident $b2:ident $b3:ident,
     $c0:ident $c1:ident $c2:ident $c3:ident, $d0:ident $d1:ident $d2:ident $d3:ident) => {
        $a0 = $l::add($l::add($a0, $block[$s[$at]]), $b0);
        $a1 = $l::add($l::add($a1, $block[$s[$at + 2]]), $b1);
        $a2 = $l::add($l::add($a2, $block[$s[$at + 4]]), $b2);
        $a3 = $l::add($l::add($a3, $block[$s[$at + 6]]), $b3);
        $d0 = $l::xor($d0, $a0).rotate::<$right_d, { 32 - $right_d }>();
        $d1 = $l::xor($d1, $a1).rotate::<$right_d, { 32 - $right_d }>();
        $d2 = $l::xor($d2, $a2).rotate::<$right_d, { 32 - $right_d }>();
        $d3 = $l::xor($d3, $a3).rotate::<$right_d, { 32 - $right_d }>();
        $c0 = $l::add($c0, $d0);
        $c1 = $l::add($c1, $d1);
        $c2 = $l::add($c2, $d2);
        $c3 = $l::add($c3, $d3);
        $b0 = $l::xor($b0, $c0).rotate::<$right_b, { 32 - $right_b }>();
        $b1 = $l::xor($b1, $c1).rotate::<$right_b, { 32 - $right_b }>();
        $b2 = $l::xor($b2, $c2).rotate::<$right_b, { 32 - $right_b }>();
        $b3 = $l::xor($b3, $c3).rotate::<$right_b, { 32 - $right_b }>();
    };
}
pub(crate) use half_blake_round;

/// A round on the variables of four rows: four columns, then four diagonals. `$l` is the type of
/// words, `$block` the message, and `$s` the order in which its words go in.
macro_rules! blake_round {
    ($l:ident, $block:expr, $s:expr;
     $a0:ident $a1:ident $a2:ident $a3:ident, $b0:ident $b1:ident $b2:ident $b3:ident,
     $c0:ident $c1:ident $c2:ident $c3:ident, $d0:ident $d1:ident $d2:ident $d3:ident) => {
        $crate::rounds::half_blake_round!($l, $block, $s, 0, 16, 12, $a0 $a1 $a2 $a3, $b0 $b1 $b2 $b3, $c0 $c1 $c2 $c3, $d0 $d1 $d2 $d3);
        $crate::rounds::half_blake_round!($l, $block, $s, 1, 8, 7, $a0 $a1 $a2 $a3, $b0 $b1 $b2 $b3, $c0 $c1 $c2 $c3, $d0 $d1 $d2 $d3);
        $crate::rounds::half_blake_round!($l, $block, $s, 8, 16, 12, $a0 $a1 $a2 $a3, $b1 $b2 $b3 $b0, $c2 $c3 $c0 $c1, $d3 $d0 $d1 $d2);
        $crate::rounds::half_blake_round!($l, $block, $s, 9, 8, 7, $a0 $a1 $a2 $a3, $b1 $b2 $b3 $b0, $c2 $c3 $c0 $c1, $d3 $d0 $d1 $d2);
    };
}
pub(crate) use blake_round;
