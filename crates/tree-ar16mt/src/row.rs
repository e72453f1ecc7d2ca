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
}

/// Takes rows of 16 hashes at a height up by four levels, to one hash each; returns the number of hashes that this took.
pub(crate) fn up<H: Hasher>(hasher: H, from: usize, rows: &mut [Row]) -> u64 {
    (0..4).map(|level| up_one(hasher, from, level, rows)).sum()
}

/// Takes rows that have come up by so many levels from a height by one more.
pub(crate) fn up_one<H: Hasher>(hasher: H, from: usize, level: usize, rows: &mut [Row]) -> u64 {
    let most = rows.len() * (8 >> level);
    let (mut pairs, mut places) = (Vec::with_capacity(most), Vec::with_capacity(most));
    let empty = hasher.empty()[from + level];
    for (at, row) in rows.iter_mut().enumerate() {
        let mut present = 0;
        for pair in 0..8usize >> level {
            let both = row.present >> (2 * pair) & 3;
            if both == 0 {
                continue;
            }
            let side = |side: usize| match both >> side & 1 {
                1 => row.hashes[2 * pair + side],
                _ => empty,
            };
            pairs.push([side(0), side(1)]);
            places.push((at, pair));
            present |= 1 << pair;
        }
        row.present = present;
    }
    let hashes = hasher.pairs(&pairs);
    for ((at, pair), hash) in places.iter().zip(&hashes) {
        rows[*at].hashes[*pair] = *hash;
    }
    hashes.len() as u64
}

/// The height of a child whose path has so many nibbles.
pub(crate) fn height(nibbles: usize) -> usize {
    DEPTH - 4 * nibbles
}
