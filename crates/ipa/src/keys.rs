//! Tree keys: the Pedersen hash of an address and an index (EIP-6800, "Tree embedding").

use crate::{
    Committer,
    crs::{KEY_PREFIX, WIDTH},
};
use arbor_banderwagon::{Fr, NumberTerm, TablePoint, Term};
use arbor_field::Limbs;

/// An index within an account's part of the tree, 32 bytes, least significant first.
pub type TreeIndex = [u8; 32];

/// The part of a key's commitment that belongs to the address: worth keeping where addresses repeat.
#[derive(Clone, Copy, Debug)]
pub struct AddressCommitment(TablePoint);

impl Committer {
    /// The parts of keys that belong to these addresses, each of 32 bytes: twelve zeros and the twenty of an address.
    #[must_use]
    pub fn address_commitments(&self, addresses: &[[u8; 32]]) -> Vec<AddressCommitment> {
        let lists: Vec<_> = addresses.iter().map(address_terms).collect();
        let points = self.tables.table_points(&lists).into_iter();
        points.map(AddressCommitment).collect()
    }

    /// The stems, that is the first 31 bytes of the keys, for pairs of address and index.
    #[must_use]
    pub fn stems(&self, keys: &[([u8; 32], TreeIndex)]) -> Vec<[u8; 31]> {
        stems(&self.tables.images(keys, |(address, index)| {
            let ([prefix, low, high], [third, fourth]) =
                (address_terms(address), index_terms(index));
            (None, [prefix, low, high, third, fourth])
        }))
    }

    /// As [`Self::stems`], for addresses whose part is known.
    #[must_use]
    pub fn stems_of_addresses(&self, keys: &[(AddressCommitment, TreeIndex)]) -> Vec<[u8; 31]> {
        stems(&self.tables.images(keys, |(address, index)| {
            (Some(&address.0), index_terms(index))
        }))
    }

    /// The Pedersen hash of up to 255 * 16 bytes: the image of a commitment to its length and its 16-byte words.
    ///
    /// # Panics
    ///
    /// If the input is longer.
    #[must_use]
    pub fn pedersen_hash(&self, input: &[u8]) -> [u8; 32] {
        assert!(
            input.len() <= (WIDTH - 1) * 16,
            "too long for a Pedersen hash"
        );
        let length = Fr::from(2 + 256 * input.len() as u64);
        let word = |chunk: &[u8]| {
            let mut half = [0; 16];
            half[..chunk.len()].copy_from_slice(chunk);
            Fr::from_le_half(&half)
        };
        let words = std::iter::once(length).chain(input.chunks(16).map(word));
        let terms: Vec<Term> = words.enumerate().collect();
        self.sum(&terms).map_to_field().to_le_bytes()
    }
}

fn address_terms(address: &[u8; 32]) -> [NumberTerm; 3] {
    let [low, high] = halves(address);
    [(KEY_PREFIX, [1, 0, 0, 0]), (1, low), (2, high)]
}

fn index_terms(index: &TreeIndex) -> [NumberTerm; 2] {
    let [low, high] = halves(index);
    [(3, low), (4, high)]
}

/// Both halves of 32 bytes, as numbers.
fn halves(word: &[u8; 32]) -> [Limbs; 2] {
    let (words, _) = word.as_chunks();
    let word = |i: usize| u64::from_le_bytes(words[i]);
    [[word(0), word(1), 0, 0], [word(2), word(3), 0, 0]]
}

fn stems(images: &[Limbs]) -> Vec<[u8; 31]> {
    let stem = |image: &Limbs| {
        let mut stem = [0; 31];
        stem.copy_from_slice(&image.map(u64::to_le_bytes).as_flattened()[..31]);
        stem
    };
    images.iter().map(stem).collect()
}
