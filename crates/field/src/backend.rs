//! How this crate reads [`arbor_cpu::Backend`].
//!
//! | backend | one element | lanes |
//! |---|---|---|
//! | portable | plain Rust | eight elements, one after the other |
//! | avx2 | `mulx`/`adx` assembly where the processor has it | the same, with that multiplication |
//! | avx512 | the same | 52-bit multiply-add (IFMA) where the processor has it |

use arbor_cpu::{Backend, Features};
use std::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const PLAIN: u8 = 1;
const MULX: u8 = 2;

static MULTIPLICATION: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether single multiplications use `mulx`: one load and a branch that is always predicted, so that it may stand in every multiplication.
#[inline(always)]
pub(crate) fn has_mulx() -> bool {
    let choice = MULTIPLICATION.load(Ordering::Relaxed);
    if choice == UNKNOWN {
        return choose() == MULX;
    }
    choice == MULX
}

#[cold]
#[inline(never)]
fn choose() -> u8 {
    let wide = Backend::detect() != Backend::Portable;
    let choice = if wide && Features::of_processor().mulx_adx {
        MULX
    } else {
        PLAIN
    };
    MULTIPLICATION.store(choice, Ordering::Relaxed);
    choice
}
