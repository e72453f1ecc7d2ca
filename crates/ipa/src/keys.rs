//! Tree keys: the Pedersen hash of an address and an index (EIP-6800, "Tree embedding").

use crate::{
    Committer,
    crs::{KEY_PREFIX, WIDTH},
};
use arbor_banderwagon::{Fr, NumberTerm, Point, Term};
use arbor_field::Limbs;

/// An index within an account's part of the tree, 32 bytes, least significant first.
pub type TreeIndex = [u8; 32];

/// The part of a key's commitment that belongs to the address: worth keeping where addresses repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressCommitment(Point);

impl Committer {
    /// The parts of keys that belong to these addresses, each of 32 bytes: twelve zeros and the twenty of an address.
    #[must_use]
    pub fn address_commitments(&self, addresses: &[[u8; 32]]) -> Vec<AddressCommitment> {
        let scalars = halves(addresses.iter());
        let lists: Vec<_> = scalars
            .iter()
            .map(|&[low, high]| address_terms(low, high))
            .collect();
        self.tables
            .sums_of_numbers(&lists)
            .into_iter()
            .map(AddressCommitment)
            .collect()
    }

    /// The stems, that is the first 31 bytes of the keys, for pairs of address and index.
    #[must_use]
    pub fn stems(&self, keys: &[([u8; 32], TreeIndex)]) -> Vec<[u8; 31]> {
        let scalars = halves(keys.iter().flat_map(|(address, index)| [address, index]));
        let terms = |[[low, high], [index_low, index_high]]: &[[Limbs; 2]; 2]| {
            let [prefix, low, high] = address_terms(*low, *high);
            [prefix, low, high, (3, *index_low), (4, *index_high)]
        };
        let lists: Vec<_> = scalars.as_chunks().0.iter().map(terms).collect();
        stems(&self.tables.sums_of_numbers(&lists))
    }

    /// As [`Self::stems`], for addresses whose part is known.
    #[must_use]
    pub fn stems_of_addresses(&self, keys: &[(AddressCommitment, TreeIndex)]) -> Vec<[u8; 31]> {
        let scalars = halves(keys.iter().map(|(_, index)| index));
        let lists: Vec<_> = scalars
            .iter()
            .map(|&[low, high]| [(3, low), (4, high)])
            .collect();
        let mut sums = self.tables.sums_of_numbers(&lists);
        let addresses: Vec<_> = keys.iter().map(|(address, _)| address.0).collect();
        Point::add_all(&mut sums, &addresses);
        stems(&sums)
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

/// Both halves of words of 32 bytes, as numbers.
fn halves<'a>(words: impl Iterator<Item = &'a [u8; 32]>) -> Vec<[Limbs; 2]> {
    let number = |half: &[u8; 16]| {
        let number = u128::from_le_bytes(*half);
        [number as u64, (number >> 64) as u64, 0, 0]
    };
    let both = |word: &[u8; 32]| {
        let (halves, _) = word.as_chunks();
        [number(&halves[0]), number(&halves[1])]
    };
    words.map(both).collect()
}

fn address_terms(low: Limbs, high: Limbs) -> [NumberTerm; 3] {
    [(KEY_PREFIX, [1, 0, 0, 0]), (1, low), (2, high)]
}

fn stems(commitments: &[Point]) -> Vec<[u8; 31]> {
    let stem = |field: &Fr| {
        let mut stem = [0; 31];
        stem.copy_from_slice(&field.to_le_bytes()[..31]);
        stem
    };
    Point::map_to_field_batch(commitments)
        .iter()
        .map(stem)
        .collect()
}
