//! How a stem is computed.

use super::StemName;

/// The first 31 bytes of a key, which 256 leaves share.
pub type Stem = [u8; 31];

/// The hash that makes stems of names: what trees of stems differ in.
///
/// Both methods take many names, so that a call costs nothing beside the hashes.
pub trait StemHash: Send + Sync {
    /// Computes the stems of names, in their order. The hash may remember them, because names are
    /// asked for again.
    fn of(&self, names: &[StemName]) -> Vec<Stem>;

    /// Computes the stems of names, in their order, and remembers none: for names that are asked
    /// for once.
    fn of_once(&self, names: &[StemName]) -> Vec<Stem>;
}
