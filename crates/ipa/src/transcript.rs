//! The Fiat-Shamir transcript.

use arbor_banderwagon::{Fr, Point};
use sha2::{Digest, Sha256};

/// What prover and verifier have said so far (SPECS, section 2): SHA-256 over labels and data since the last challenge, and that challenge.
#[derive(Clone, Debug)]
pub struct Transcript {
    state: Sha256,
}

impl Transcript {
    /// Begins with a protocol's name: `vt` for Verkle trees.
    #[must_use]
    pub fn new(label: &[u8]) -> Self {
        Self {
            state: Sha256::new_with_prefix(label),
        }
    }

    /// Separates the parts of a protocol.
    pub fn domain_separator(&mut self, label: &[u8]) {
        self.state.update(label);
    }

    /// Appends labels and data that are encoded already.
    pub(crate) fn append_encoded(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
    }

    /// Appends a scalar.
    pub fn append_scalar(&mut self, label: &[u8], scalar: Fr) {
        self.append(label, &scalar.to_le_bytes());
    }

    /// Appends a point.
    pub fn append_point(&mut self, label: &[u8], point: &Point) {
        self.append(label, &point.to_bytes());
    }

    /// Appends bytes: a point's compressed form, or a scalar's with its least significant byte first.
    pub fn append(&mut self, label: &[u8], bytes: &[u8; 32]) {
        self.state.update(label);
        self.state.update(bytes);
    }

    /// A scalar that depends on all before, and with which the transcript goes on.
    pub fn challenge(&mut self, label: &[u8]) -> Fr {
        self.state.update(label);
        let digest: [u8; 32] = std::mem::take(&mut self.state).finalize().into();
        let challenge = Fr::from_le_bytes_reduced(&digest);
        self.append_scalar(label, challenge);
        challenge
    }
}
