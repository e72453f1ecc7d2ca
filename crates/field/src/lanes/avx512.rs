//! The IFMA lanes over the processor's instructions.

use super::Job;
use crate::Modulus;
use std::arch::x86_64 as arch;

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
