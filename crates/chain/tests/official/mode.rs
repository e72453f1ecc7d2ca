//! How blocks are executed. A value that was just made may differ from the same value read back, so that a rule can hold in one go and
//! fail after a restart or over a witness. The two modes beside the usual one find such differences.

/// How the blocks of a fixture are executed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Mode {
    /// One after another into an open database.
    InOneGo,
    /// The database is closed and opened again after each block.
    Reopened,
    /// Like [`Self::InOneGo`], and each valid block is executed once more from its witness.
    FromWitness,
}

/// One of so many fixtures is run in the other modes, too, when all are run.
const SAMPLE: u64 = 32;

impl Mode {
    /// The modes in which a sample of the fixtures is run, besides the usual one.
    pub(crate) const SAMPLED: [Self; 2] = [Self::Reopened, Self::FromWitness];

    /// The mode that a word of the command line names.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::SAMPLED.into_iter().find(|mode| mode.word() == word)
    }

    /// Its name, on the command line and in the table.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::InOneGo => "in-one-go",
            Self::Reopened => "reopened",
            Self::FromWitness => "from-witness",
        }
    }
}

/// Whether a fixture belongs to the sample: the same ones in every run, spread evenly (FNV-1a of its name).
pub(crate) fn is_sampled(path: &str, name: &str) -> bool {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = path.bytes().chain(name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, step);
    (hash >> 32) % SAMPLE == 0
}
