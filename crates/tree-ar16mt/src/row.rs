//! The sixteen hashes of a node, and the way up from them.

use crate::{DEPTH, Hash, Hasher};

/// Up to 16 hashes side by side.
#[derive(Clone, Default)]
pub(crate) struct Row {
    pub(crate) hashes: [Hash; 16],
    /// Which of them are not those of empty subtrees.
    pub(crate) present: u16,
}

impl Row {
    pub(crate) fn set(&mut self, place: u8, hash: Hash) {
        self.hashes[usize::from(place)] = hash;
        self.present |= 1 << place;
    }

    /// The pairs of neighbours of which one is there at least, ascending.
    fn pairs(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = (self.present | self.present >> 1) & 0x5555;
        std::iter::from_fn(move || {
            let first = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(first as usize / 2)
        })
    }
}

/// Memory for the way up, kept from one level and one call to the next.
#[derive(Default)]
pub(crate) struct Scratch {
    pairs: Vec<[Hash; 2]>,
    hashes: Vec<Hash>,
}

/// Takes rows of 16 hashes at a height up by four levels, to one hash each; returns the number of hashes that this took.
pub(crate) fn up<H: Hasher>(
    hasher: H,
    from: usize,
    rows: &mut [Row],
    scratch: &mut Scratch,
) -> u64 {
    (0..4)
        .map(|level| up_one(hasher, from + level, rows, scratch))
        .sum()
}

/// Takes rows of hashes at a height up by one level; returns the number of hashes that this took.
pub(crate) fn up_one<H: Hasher>(
    hasher: H,
    from: usize,
    rows: &mut [Row],
    scratch: &mut Scratch,
) -> u64 {
    let empty = hasher.empty()[from];
    let Scratch { pairs, hashes } = scratch;
    pairs.clear();
    for row in &*rows {
        let side = |place: usize| match row.present >> place & 1 {
            1 => row.hashes[place],
            _ => empty,
        };
        pairs.extend(row.pairs().map(|pair| [side(2 * pair), side(2 * pair + 1)]));
    }
    hasher.pairs_into(pairs, hashes);
    let mut above = hashes.iter();
    for row in rows {
        let mut present = 0;
        for (pair, hash) in row.pairs().zip(&mut above) {
            row.hashes[pair] = *hash;
            present |= 1 << pair;
        }
        row.present = present;
    }
    hashes.len() as u64
}

/// The height of a child whose path has so many nibbles.
pub(crate) fn height(nibbles: usize) -> usize {
    DEPTH - 4 * nibbles
}
