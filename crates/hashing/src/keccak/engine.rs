//! Keccak-256 on a backend that has been checked.

#[cfg(target_arch = "x86_64")]
use super::x86::{permute_avx2, permute_avx512, permute_bmi};
use super::{
    Digest, RATE,
    permutation::permute,
    schedule::Permutations,
    sponge::{States, permutations},
};
use crate::{Backend, UnsupportedBackend};
use arbor_metrics::KECCAK_PERMUTATIONS;
use std::borrow::Borrow;

/// Keccak-256, the original with padding byte 0x01, on one backend.
///
/// A value is proof that the processor can run its backend. Digests do not depend on the
/// backend. Every call adds once to [`KECCAK_PERMUTATIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keccak {
    /// Invariant: available.
    backend: Backend,
}

impl Keccak {
    /// On [`Backend::detect`].
    ///
    /// # Panics
    ///
    /// As [`Backend::detect`], if the environment asks for what cannot run.
    #[must_use]
    pub fn new() -> Self {
        let backend = Backend::detect();
        Self { backend }
    }

    /// On the given backend.
    ///
    /// # Errors
    ///
    /// [`UnsupportedBackend::Missing`] if this processor cannot run it.
    pub fn on(backend: Backend) -> Result<Self, UnsupportedBackend> {
        if backend.is_available() {
            Ok(Self { backend })
        } else {
            Err(UnsupportedBackend::Missing(backend))
        }
    }

    /// The backend in use.
    #[must_use]
    pub fn backend(self) -> Backend {
        self.backend
    }

    /// The digest of one message, with the permutation of a single state.
    #[must_use]
    pub fn hash(self, message: &[u8]) -> Digest {
        KECCAK_PERMUTATIONS.add(permutations(message.len()));
        match self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => avx2(self).hash(message),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 => avx512(self).hash(message),
            _ => PORTABLE.hash(message),
        }
    }

    /// Sets each of `digests` to that of the message at the same place.
    ///
    /// Lengths may differ, in any order: a lane whose message ends takes the next one. A few very
    /// long messages are best placed first. Nothing is allocated.
    ///
    /// # Panics
    ///
    /// If `messages` and `digests` differ in length.
    pub fn hash_batch<M: AsRef<[u8]>>(self, messages: &[M], digests: &mut [Digest]) {
        assert_eq!(messages.len(), digests.len(), "one digest for each message");
        self.hash_all(messages.iter().map(AsRef::as_ref), digests);
    }

    /// Sets each of `digests` to that of the message of `LEN` bytes at the same place.
    ///
    /// Faster than [`Self::hash_batch`] for messages of one block (up to 135 bytes), since the compiler
    /// lays out the block: meant for addresses and storage slots. `M` is `[u8; LEN]` or a type around it.
    ///
    /// # Panics
    ///
    /// If `messages` and `digests` differ in length.
    pub fn hash_fixed<const LEN: usize, M>(self, messages: &[M], digests: &mut [Digest])
    where
        M: Borrow<[u8; LEN]>,
    {
        assert_eq!(messages.len(), digests.len(), "one digest for each message");
        if LEN >= RATE {
            self.hash_all(
                messages.iter().map(|message| message.borrow().as_slice()),
                digests,
            );
            return;
        }
        KECCAK_PERMUTATIONS.add(messages.len() as u64);
        match self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => avx2(self).hash_short(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 => avx512(self).hash_short(messages, digests),
            _ => PORTABLE.hash_short(messages, digests),
        }
    }

    /// As [`Self::hash_batch`]; `digests` is at least as long as `messages`.
    pub(super) fn hash_all<'m>(
        self,
        messages: impl Iterator<Item = &'m [u8]>,
        digests: &mut [Digest],
    ) {
        let emit = |position: usize, digest| digests[position] = digest;
        let count = match self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => avx2(self).hash_all(messages, emit),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 => avx512(self).hash_all(messages, emit),
            _ => PORTABLE.hash_all(messages, emit),
        };
        KECCAK_PERMUTATIONS.add(count);
    }
}

impl Default for Keccak {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: needs no instructions beyond the target's.
const PORTABLE: Permutations<1> = unsafe { Permutations::new(permute_portable, permute_portable) };

fn permute_portable(state: &mut States<1>) {
    // SAFETY: `u64` lanes need no particular instructions.
    unsafe { permute(state.lanes_mut()) }
}

/// Permutations of [`Backend::Avx2`]; `keccak` must be on it or a wider one.
#[cfg(target_arch = "x86_64")]
fn avx2(keccak: Keccak) -> Permutations<4> {
    debug_assert!(keccak.backend >= Backend::Avx2);
    // SAFETY: a `Keccak` is on an available backend, and from AVX2 on they all have AVX2, BMI1 and BMI2.
    unsafe { Permutations::new(permute_avx2, permute_bmi) }
}

/// Permutations of [`Backend::Avx512`]; `keccak` must be on it.
#[cfg(target_arch = "x86_64")]
fn avx512(keccak: Keccak) -> Permutations<8> {
    debug_assert!(keccak.backend == Backend::Avx512);
    // SAFETY: a `Keccak` is on an available backend, and this one has AVX-512F, BMI1 and BMI2.
    unsafe { Permutations::new(permute_avx512, permute_bmi) }
}
