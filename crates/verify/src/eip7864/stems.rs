//! Stems as hashes of plain names.

use arbor_tree_eip7864::HashFunction;

use crate::stems::{Stem, StemHash, StemName};

/// A revision of EIP-7864.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revision {
    /// That of January 2025: the index has its least significant byte first.
    A,
    /// That of 9 March 2026: the index has its most significant byte first, as go-ethereum has it.
    B,
}

/// Computes stems under a revision and a hash function. A name is one block for each of the
/// functions, so that none is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stems {
    /// The revision.
    pub revision: Revision,
    /// The hash function.
    pub function: HashFunction,
}

impl StemHash for Stems {
    fn of(&self, names: &[StemName]) -> Vec<Stem> {
        self.of_once(names)
    }

    fn of_once(&self, names: &[StemName]) -> Vec<Stem> {
        let message = |name: &StemName| {
            let mut message = [0; 64];
            message[..32].copy_from_slice(name.address.into_word().as_slice());
            message[32..].copy_from_slice(&match self.revision {
                Revision::A => name.index.to_le_bytes::<32>(),
                Revision::B => name.index.to_be_bytes::<32>(),
            });
            message
        };
        let messages: Vec<[u8; 64]> = names.iter().map(message).collect();
        let hashes = self.function.hash_fixed(&messages).into_iter();
        let stems = hashes.map(|hash| {
            let mut stem = [0; 31];
            stem.copy_from_slice(&hash[..31]);
            stem
        });
        stems.collect()
    }
}
