//! Keccak-256 as a row.

#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};
use super::{
    permutation::permute,
    sponge::{Permutation, Rows, Sponges},
};
use crate::hasher::Function;
use arbor_metrics::{Counter, KECCAK_PERMUTATIONS};

/// Keccak-256, the original with padding byte 0x01. Counts in [`KECCAK_PERMUTATIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keccak256;

impl Function for Keccak256 {
    type Portable = Sponges<Portable, 1>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = Sponges<Avx2, 4>;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = Sponges<Avx512, 8>;

    const COMPRESSIONS: &'static Counter = &KECCAK_PERMUTATIONS;
}

/// One state; needs no particular instructions.
pub struct Portable;

impl Permutation<1> for Portable {
    type One = Self;

    unsafe fn permute(rows: &mut Rows<1>) {
        // SAFETY: `u64` lanes need no particular instructions.
        unsafe { permute(rows.lanes_mut()) }
    }
}
