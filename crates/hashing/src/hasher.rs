//! A hash function on a backend that has been checked.

use crate::{
    Backend, UnsupportedBackend,
    schedule::Schedule,
    states::{Digest, States},
};
use arbor_metrics::Counter;
use std::{borrow::Borrow, fmt::Debug, marker::PhantomData};

/// A hash function's row: its states on each backend.
pub trait Function: Copy + Debug + Eq {
    /// States that need no particular instructions: the reference.
    type Portable: States;

    /// States on [`Backend::Avx2`], which has AVX2, BMI1 and BMI2.
    #[cfg(target_arch = "x86_64")]
    type Avx2: States;

    /// States on [`Backend::Avx512`], which has AVX-512F and all that [`Backend::Avx2`] has.
    #[cfg(target_arch = "x86_64")]
    type Avx512: States;

    /// Where compressions are counted.
    const COMPRESSIONS: &'static Counter;
}

/// Calls a method of the states that are on a hasher's backend.
macro_rules! on_backend {
    ($function:ty, $hasher:expr, $method:ident $arguments:tt) => {
        match $hasher.backend() {
            // SAFETY: a hasher is on an available backend, whose instructions are those that the row's states for it may use.
            #[cfg(target_arch = "x86_64")]
            $crate::Backend::Avx2 => unsafe {
                <$function as $crate::hasher::Function>::Avx2::$method $arguments
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::Backend::Avx512 => unsafe {
                <$function as $crate::hasher::Function>::Avx512::$method $arguments
            },
            // SAFETY: portable states need no particular instructions.
            _ => unsafe {
                <$function as $crate::hasher::Function>::Portable::$method $arguments
            },
        }
    };
}
pub(crate) use on_backend;

/// A hash function on one backend: [`Keccak`](crate::Keccak), [`Blake2s`](crate::Blake2s), [`Blake3`](crate::Blake3), [`Sha256`](crate::Sha256).
///
/// A value is proof that the processor can run its backend. Digests do not depend on the
/// backend. Every call adds once to the function's count of compressions in `arbor_metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hasher<F> {
    /// Invariant: available.
    backend: Backend,
    function: PhantomData<F>,
}

impl<F: Function> Hasher<F> {
    /// On [`Backend::detect`].
    ///
    /// # Panics
    ///
    /// Like [`Backend::detect`], if the environment asks for a backend that cannot run.
    #[must_use]
    pub fn new() -> Self {
        Self {
            backend: Backend::detect(),
            function: PhantomData,
        }
    }

    /// On the given backend.
    ///
    /// # Errors
    ///
    /// [`UnsupportedBackend::Missing`] if this processor cannot run it.
    pub fn on(backend: Backend) -> Result<Self, UnsupportedBackend> {
        if backend.is_available() {
            Ok(Self {
                backend,
                function: PhantomData,
            })
        } else {
            Err(UnsupportedBackend::Missing(backend))
        }
    }

    /// The backend in use.
    #[must_use]
    pub fn backend(self) -> Backend {
        self.backend
    }

    /// The digest of one message of any length, with the compression of a single state.
    #[must_use]
    pub fn hash(self, message: &[u8]) -> Digest {
        F::COMPRESSIONS.add(F::Portable::compressions(message.len()));
        on_backend!(F, self, hash_one(message))
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
    /// Faster than [`Self::hash_batch`] for messages of one block (up to 135 bytes for Keccak, 64 for BLAKE2s), because the
    /// compiler lays out the block: addresses, storage slots, pairs of digests. `M` is `[u8; LEN]` or a type around it.
    ///
    /// # Panics
    ///
    /// If `messages` and `digests` differ in length.
    pub fn hash_fixed<const LEN: usize, M>(self, messages: &[M], digests: &mut [Digest])
    where
        M: Borrow<[u8; LEN]>,
    {
        assert_eq!(messages.len(), digests.len(), "one digest for each message");
        F::COMPRESSIONS.add(messages.len() as u64 * F::Portable::compressions(LEN));
        on_backend!(F, self, hash_fixed(messages, digests));
    }

    /// Like [`Self::hash_batch`], but `digests` may be longer than `messages`.
    pub(crate) fn hash_all<'m>(
        self,
        messages: impl Iterator<Item = &'m [u8]>,
        digests: &mut [Digest],
    ) {
        let emit = |position: usize, digest| digests[position] = digest;
        F::COMPRESSIONS.add(on_backend!(F, self, hash_all(messages, emit)));
    }
}

impl<F: Function> Default for Hasher<F> {
    fn default() -> Self {
        Self::new()
    }
}
