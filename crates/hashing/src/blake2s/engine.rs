//! BLAKE2s-256 on a backend that has been checked.

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{
    BLOCK, Chain, Digest,
    batch::{fold_all, hash_all},
    single,
};
use crate::{Backend, UnsupportedBackend};
use arbor_metrics::BLAKE2S_COMPRESSIONS;
use std::borrow::Borrow;

/// BLAKE2s-256 without a key, on one backend.
///
/// A value is proof that the processor can run its backend. Digests do not depend on the
/// backend. Every call adds once to [`BLAKE2S_COMPRESSIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blake2s {
    /// Invariant: available.
    backend: Backend,
}

impl Blake2s {
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

    /// The digest of one message of any length.
    #[must_use]
    pub fn hash(self, message: &[u8]) -> Digest {
        BLAKE2S_COMPRESSIONS.add(message.len().div_ceil(BLOCK).max(1) as u64);
        single::hash(message)
    }

    /// Sets each of `digests` to that of the message of `LEN` bytes, at most 64, at the same place.
    ///
    /// `M` is `[u8; LEN]` or a type around it: keys of 64 bytes, leaves of 40.
    ///
    /// # Panics
    ///
    /// If `messages` and `digests` differ in length.
    pub fn hash_fixed<const LEN: usize, M>(self, messages: &[M], digests: &mut [Digest])
    where
        M: Borrow<[u8; LEN]>,
    {
        const { assert!(LEN <= BLOCK, "a message of one block") };
        assert_eq!(messages.len(), digests.len(), "one digest for each message");
        BLAKE2S_COMPRESSIONS.add(messages.len() as u64);
        match self.backend {
            // SAFETY: a `Blake2s` is on an available backend, and these have AVX2.
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => unsafe { x86::hash_all_avx2(messages, digests) },
            // SAFETY: a `Blake2s` is on an available backend, and this one has AVX-512F and AVX2.
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 => unsafe { x86::hash_all_avx512(messages, digests) },
            // SAFETY: arrays of words need no particular instructions.
            _ => unsafe { hash_all::<[u32; PORTABLE], LEN, M>(messages, digests) },
        }
    }

    /// Sets each of `digests` to that of two digests, one behind the other: a node of a binary tree from its children.
    ///
    /// # Panics
    ///
    /// If `pairs` and `digests` differ in length.
    pub fn hash_pairs(self, pairs: &[[Digest; 2]], digests: &mut [Digest]) {
        let messages = pairs.as_flattened().as_flattened().as_chunks::<BLOCK>().0;
        self.hash_fixed(messages, digests);
    }

    /// Takes each chain from height `from` to its end: at a height `h`, with `s = siblings[h]`, its hash `x` becomes that of `s || x` where bit `h` of its
    /// key is set, of `x || s` where not.
    ///
    /// The chains go up in lockstep, some at a time in the order given, each group until its longest ends: so it is best to have chains of one length side
    /// by side. One that ends at `from` or below stays as it is.
    ///
    /// # Panics
    ///
    /// If a chain ends above 256, or above the last sibling.
    pub fn fold(self, siblings: &[Digest], from: usize, chains: &mut [Chain]) {
        let steps = |chain: &Chain| chain.to.saturating_sub(from) as u64;
        let highest = chains.iter().map(|chain| chain.to).max().unwrap_or(0);
        assert!(
            highest <= siblings.len().min(256),
            "a sibling at each height of a chain"
        );
        BLAKE2S_COMPRESSIONS.add(chains.iter().map(steps).sum());
        match self.backend {
            // SAFETY: a `Blake2s` is on an available backend, and this one has AVX2.
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => unsafe { x86::fold_all_avx2(siblings, from, chains) },
            // SAFETY: a `Blake2s` is on an available backend, and this one has AVX-512F and AVX2.
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512 => unsafe { x86::fold_all_avx512(siblings, from, chains) },
            // SAFETY: arrays of words need no particular instructions.
            _ => unsafe { fold_all::<[u32; PORTABLE]>(siblings, from, chains) },
        }
    }
}

impl Default for Blake2s {
    fn default() -> Self {
        Self::new()
    }
}

/// Lanes of the portable code.
const PORTABLE: usize = 1;
