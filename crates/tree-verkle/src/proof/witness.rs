//! What a witness consists of.

use crate::{Stem, Value};
use arbor_ipa::{DecodingError, ProofError};

/// Values before and after, and the proof of those before: the testnets' execution witness.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Witness {
    /// The keys, ascending by stem.
    pub state_diff: Vec<StemDiff>,
    /// The proof.
    pub proof: Proof,
}

/// The keys of a witness under one stem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StemDiff {
    /// The stem.
    pub stem: Stem,
    /// At least one suffix, ascending.
    pub suffixes: Vec<SuffixDiff>,
}

/// One key of a witness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SuffixDiff {
    /// The last byte of the key.
    pub suffix: u8,
    /// The value before; `None` where there is none.
    pub current: Option<Value>,
    /// The value after; `None` where it stays.
    pub new: Option<Value>,
}

/// What proves the values before, as it is sent: nothing of it has been decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// Stems of leaves that stand where absent stems would be, ascending; not those that are among the keys.
    pub other_stems: Vec<Stem>,
    /// For each stem how deep its way goes, times 8, plus 0 where it ends in nothing, 1 in another stem's leaf, 2 in its own.
    pub depth_extension_present: Vec<u8>,
    /// Compressed commitments of all nodes on the ways but the root, and of C1 and C2 where their suffixes are asked for, in the order of their
    /// paths; those of C1 and C2 are the leaf's, then 2 and 3.
    pub commitments_by_path: Vec<[u8; 32]>,
    /// The multiproof: D, L, R, and the last scalar, least significant byte first.
    pub multiproof: [u8; 576],
}

impl Default for Proof {
    fn default() -> Self {
        Self {
            other_stems: Vec::new(),
            depth_extension_present: Vec::new(),
            commitments_by_path: Vec::new(),
            multiproof: [0; 576],
        }
    }
}

/// Bytes of a witness' binary form by part. Their sum is its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WitnessSizes {
    /// Stems of the state diff.
    pub stems: usize,
    /// Suffixes.
    pub suffixes: usize,
    /// Values before, those that say that there is none included.
    pub current: usize,
    /// Values after, likewise.
    pub new: usize,
    /// Stems of other leaves, and how each way goes.
    pub ways: usize,
    /// Commitments.
    pub commitments: usize,
    /// The multiproof.
    pub multiproof: usize,
    /// Offsets of parts.
    pub offsets: usize,
}

impl WitnessSizes {
    /// Bytes of the whole.
    #[must_use]
    pub fn total(&self) -> usize {
        let Self {
            stems,
            suffixes,
            current,
            new,
            ways,
            commitments,
            multiproof,
            offsets,
        } = self;
        stems + suffixes + current + new + ways + commitments + multiproof + offsets
    }
}

impl Witness {
    /// How large the parts of the binary form are.
    #[must_use]
    pub fn sizes(&self) -> WitnessSizes {
        let Proof {
            other_stems,
            depth_extension_present,
            commitments_by_path,
            multiproof,
        } = &self.proof;
        let value = |value: Option<Value>| 1 + value.map_or(0, |value| value.len());
        let suffixes = self.keys().count();
        WitnessSizes {
            stems: self.state_diff.len() * size_of::<Stem>(),
            suffixes,
            current: self.keys().map(|(_, diff)| value(diff.current)).sum(),
            new: self.keys().map(|(_, diff)| value(diff.new)).sum(),
            ways: other_stems.len() * size_of::<Stem>() + depth_extension_present.len(),
            commitments: commitments_by_path.len() * 32,
            multiproof: multiproof.len(),
            // Of the two halves, of the proof's three lists; of each stem and its list; of each suffix and its two values.
            offsets: 4 * (2 + 3 + 2 * self.state_diff.len() + 3 * suffixes),
        }
    }

    /// Each key's stem and entry.
    pub fn keys(&self) -> impl Iterator<Item = (&Stem, &SuffixDiff)> {
        self.state_diff
            .iter()
            .flat_map(|diff| diff.suffixes.iter().map(|suffix| (&diff.stem, suffix)))
    }
}

/// Bytes, or parts that do not fit together, that are no witness. A witness that is well formed and false is no error.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WitnessError {
    /// The binary form is malformed.
    #[error("the witness' bytes: {what} at byte {at}")]
    Bytes {
        /// What is wrong.
        what: &'static str,
        /// Where the part begins that is.
        at: usize,
    },
    /// A witness of no keys.
    #[error("a witness without keys")]
    Empty,
    /// Stems or suffixes that do not ascend, or a stem without suffixes.
    #[error(
        "stems must ascend, and the suffixes under each, of which there is one at least; not so at stem {index}"
    )]
    Order {
        /// Index of the stem.
        index: usize,
    },
    /// A list whose length does not follow from the others.
    #[error("{what}: {expected} are due, {found} are there")]
    Count {
        /// What is counted.
        what: &'static str,
        /// How many there must be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A stem's way is impossible.
    #[error("the way to stem {index} {what}")]
    Way {
        /// Index of the stem.
        index: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A stem that is said to be absent has a value.
    #[error("stem {index} is said to be absent, and to have a value")]
    Absent {
        /// Index of the stem.
        index: usize,
    },
    /// Another leaf's stem cannot stand where it is needed.
    #[error("other stem {index} is not below the place where it is needed, or is asked for itself")]
    Other {
        /// Index among the other stems.
        index: usize,
    },
    /// A commitment is no point.
    #[error("commitment {index}: {error}")]
    Commitment {
        /// Index among the commitments by path.
        index: usize,
        /// What is wrong.
        error: DecodingError,
    },
    /// An internal node without children, which no tree has.
    #[error("commitment {index} is that of an internal node without children: no tree has one")]
    Childless {
        /// Index among the commitments by path.
        index: usize,
    },
    /// The root is no point.
    #[error("the root: {0}")]
    Root(DecodingError),
    /// The multiproof is malformed.
    #[error("the multiproof: {0}")]
    Multiproof(#[from] ProofError),
}
