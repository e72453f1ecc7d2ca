//! The IFMA lanes over the processor's instructions.

use super::Job;
use crate::Modulus;

/// The processor's instructions, and a fixed place among them.
mod arch {
    pub(super) use std::arch::x86_64::*;

    /// # Safety
    ///
    /// The processor has AVX-512 F.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) unsafe fn pinned_here(mut x: __m512i) -> __m512i {
        // SAFETY: no instruction. Not `pure`, so that it keeps its place among others.
        unsafe {
            std::arch::asm!("/* {x} */", x = inout(zmm_reg) x, options(nomem, nostack, preserves_flags));
        }
        x
    }
}

// The same source again in `modelled`.
#[allow(clippy::duplicate_mod)]
#[path = "ifma.rs"]
mod ifma;

/// # Safety
///
/// The processor has AVX-512 F, DQ, VL, VBMI2 and IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512vbmi2,avx512ifma,avx2,bmi1,bmi2")]
pub(super) unsafe fn run<M: Modulus, J: Job<M>>(job: J) -> J::Output {
    // SAFETY: this function's contract.
    job.run(unsafe { ifma::Ifma::<M>::new() })
}
