//! What computes: the lanes, or libsecp256k1.

#[cfg(target_arch = "x86_64")]
use crate::runner::Proof;
use crate::{Key, Signed, Unrecoverable, library, recovery, runner::Runner, verification};
use arbor_cpu::Backend;

/// What recovers and verifies. A value is proof that the processor has the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Library,
    #[cfg(target_arch = "x86_64")]
    Ifma(Proof),
    #[cfg(any(test, feature = "modelled"))]
    Modelled,
}

/// Signatures from which on lanes are faster than the library, which takes them one at a time.
const LANES_FROM: usize = 2;
/// Signatures that share their inversions. Their tables take 64 KiB.
const SIGNATURES_OF_AN_INVERSION: usize = 64;

impl Method {
    /// libsecp256k1, one signature at a time: the reference.
    pub const LIBRARY: Self = Self(Kind::Library);

    /// The lanes over a model of their instructions in plain Rust, in tests: whatever processor runs
    /// them, the lanes' own code is run.
    #[cfg(any(test, feature = "modelled"))]
    pub const MODELLED: Self = Self(Kind::Modelled);

    /// The lanes if the process's [`Backend`] has AVX-512 and the processor IFMA, libsecp256k1 otherwise.
    ///
    /// # Panics
    ///
    /// Like [`Backend::detect`].
    #[must_use]
    pub fn detect() -> Self {
        Self::of(Backend::detect())
    }

    /// All that this processor can run, libsecp256k1 first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all: Vec<_> = Backend::available().map(Self::of).collect();
        all.dedup();
        #[cfg(any(test, feature = "modelled"))]
        all.push(Self::MODELLED);
        all
    }

    fn of(backend: Backend) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = Proof::find(backend) {
            return Self(Kind::Ifma(proof));
        }
        let _ = backend;
        Self::LIBRARY
    }

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Library => "libsecp256k1",
            #[cfg(target_arch = "x86_64")]
            Kind::Ifma(_) => "avx512ifma",
            #[cfg(any(test, feature = "modelled"))]
            Kind::Modelled => "avx512ifma, modelled",
        }
    }

    /// Recovers the key of each signature, exactly as libsecp256k1 does.
    #[must_use]
    pub fn recover(self, signed: &[Signed]) -> Vec<Result<Key, Unrecoverable>> {
        let mut keys = Vec::with_capacity(signed.len());
        for chunk in signed.chunks(SIGNATURES_OF_AN_INVERSION) {
            match self.lanes(chunk.len()) {
                Some(lanes) => keys.extend(recovery::recover(lanes, chunk)),
                None => keys.extend(chunk.iter().map(library::recover)),
            }
        }
        keys
    }

    /// Checks each signature against a key, exactly as libsecp256k1 does: a signature with an `s` above
    /// half of the order is not valid, nor is any for a key that is not a point of the curve. The
    /// recovery ids are not looked at.
    ///
    /// # Panics
    ///
    /// If there are not as many keys as signatures.
    #[must_use]
    pub fn verify(self, signed: &[Signed], keys: &[Key]) -> Vec<bool> {
        assert_eq!(signed.len(), keys.len(), "a key for each signature");
        let mut valid = Vec::with_capacity(signed.len());
        for (signed, keys) in signed
            .chunks(SIGNATURES_OF_AN_INVERSION)
            .zip(keys.chunks(SIGNATURES_OF_AN_INVERSION))
        {
            match self.lanes(signed.len()) {
                Some(lanes) => valid.extend(verification::verify(lanes, signed, keys)),
                None => valid.extend(signed.iter().zip(keys).map(library::verify)),
            }
        }
        valid
    }

    /// The lanes for so many signatures; none if the library is to take them.
    fn lanes(self, count: usize) -> Option<Runner> {
        match self.0 {
            Kind::Library => None,
            #[cfg(target_arch = "x86_64")]
            Kind::Ifma(proof) => (count >= LANES_FROM).then_some(Runner::Ifma(proof)),
            #[cfg(any(test, feature = "modelled"))]
            Kind::Modelled => Some(Runner::Modelled),
        }
    }
}
