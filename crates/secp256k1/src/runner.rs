//! The lanes that run what is written over vectors.

use crate::vector::{self, Job};
#[cfg(target_arch = "x86_64")]
use arbor_cpu::{Backend, Features};

/// Lanes that the processor has.
#[derive(Clone, Copy)]
pub(crate) enum Runner {
    #[cfg(target_arch = "x86_64")]
    Ifma(Proof),
    #[cfg(any(test, feature = "modelled"))]
    Modelled,
}

/// Exists only where the processor has the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof(());

#[cfg(target_arch = "x86_64")]
impl Proof {
    /// Looks for the instructions, beside those of AVX-512.
    pub(crate) fn find(backend: Backend) -> Option<Self> {
        let found = backend == Backend::Avx512 && Features::of_processor().avx512_ifma;
        found.then_some(Self(()))
    }
}

impl Runner {
    pub(crate) fn run<J: Job>(self, job: J) -> Vec<u8> {
        match self {
            // SAFETY: `Proof::find`, the only maker of a `Proof`, asked the processor for these instructions.
            #[cfg(target_arch = "x86_64")]
            Self::Ifma(_) => unsafe { vector::run(job) },
            #[cfg(any(test, feature = "modelled"))]
            Self::Modelled => job.run::<vector::Model>(),
        }
    }
}
