//! The arithmetic of leaves: extension nodes of EIP-6800.
//!
//! C = G_0 + stem G_1 + f(C1) G_2 + f(C2) G_3, where C1 holds the values of suffixes below 128 and C2 the others, each value in two halves, the
//! lower one with 2^128 added to tell a zero from nothing (SPECS, section 3).

use crate::{
    crs::{Committer, NO_CODE},
    value::{HASH_OF_NO_CODE, ValueChange, value_numbers},
};
use arbor_banderwagon::{Fr, NumberTerm, Point, Term};
use arbor_field::{Limbs, Modulus, Scalar, limbs, to_limbs_all};

/// A leaf's stem and its values by suffix.
#[derive(Clone, Copy, Debug)]
pub struct LeafValues<'a> {
    /// The first 31 bytes of its keys.
    pub stem: [u8; 31],
    /// Suffixes and values, each suffix once.
    pub values: &'a [(u8, [u8; 32])],
}

/// A leaf's commitments, with the field elements that stand for them one level up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafCommitment {
    /// Of values 0 to 127 and 128 to 255.
    pub halves: [Point; 2],
    /// The images of `halves`.
    pub half_fields: [Fr; 2],
    /// Of the leaf.
    pub commitment: Point,
    /// The image of `commitment`.
    pub field: Fr,
}

/// Changes of one leaf.
#[derive(Clone, Copy, Debug)]
pub struct LeafChange<'a> {
    /// The leaf before. Its fields may be those of [`Committer::fields_of_leaves`], if they were not kept.
    pub leaf: LeafCommitment,
    /// Each suffix once.
    pub changes: &'a [ValueChange],
}

/// A stem as a number, least significant byte first: what stands at index 1 of its leaf.
#[must_use]
pub fn stem_scalar(stem: &[u8; 31]) -> Fr {
    Fr::reduced(stem_number(stem))
}

fn stem_number(stem: &[u8; 31]) -> Limbs {
    let mut bytes = [0; 32];
    bytes[..31].copy_from_slice(stem);
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// The terms of a leaf's commitment as numbers, given the images of its halves as such.
#[must_use]
pub fn leaf_numbers(stem: &[u8; 31], [c1, c2]: [Limbs; 2]) -> [NumberTerm; 4] {
    [(0, [1, 0, 0, 0]), (1, stem_number(stem)), (2, c1), (3, c2)]
}

/// The terms of a leaf's commitment, given the images of its halves.
#[must_use]
pub fn leaf_terms(stem: &[u8; 31], half_fields: [Fr; 2]) -> [Term; 4] {
    let [c1, c2] = half_fields;
    [(0, Fr::ONE), (1, stem_scalar(stem)), (2, c1), (3, c2)]
}

/// The terms that a changed value adds to the commitment of its half, indices as in [`Committer::sum`](crate::Committer::sum). What stands in most leaves of basic data
/// is one point of a committer's tables.
#[must_use]
pub fn half_numbers(change: &ValueChange) -> [NumberTerm; 2] {
    if change.suffix == 1 && change.old.is_none() && change.new == Some(HASH_OF_NO_CODE) {
        return [(NO_CODE, [1, 0, 0, 0]), (NO_CODE, [0; 4])];
    }
    let old = value_numbers(change.old.as_ref());
    let new = value_numbers(change.new.as_ref());
    let at = index(change.suffix);
    [
        (at, difference(&new[0], &old[0])),
        (at + 1, difference(&new[1], &old[1])),
    ]
}

/// The difference of numbers below the group's order, modulo the order.
#[must_use]
pub fn difference(a: &Limbs, b: &Limbs) -> Limbs {
    match limbs::sub(a, b) {
        (difference, 0) => difference,
        (difference, _) => limbs::add(&difference, &Scalar::MODULUS).0,
    }
}

/// Index of a suffix' first scalar in the vector of its half.
fn index(suffix: u8) -> usize {
    2 * (usize::from(suffix) % 128)
}

impl Committer {
    /// What changes of one half of a leaf add to it, if they put many values where none was and the same were put lately.
    #[must_use]
    pub fn remembered_half(&self, changes: &[ValueChange]) -> Option<Point> {
        self.repeated.get(changes)
    }

    /// Remembers what changes of one half add to it, where that may be asked for again.
    pub fn remember_half(&self, changes: &[ValueChange], sum: impl FnOnce() -> Point) {
        self.repeated.put(changes, sum);
    }

    /// Commits to leaves, all their halves together and then all leaves.
    #[must_use]
    pub fn commit_leaves(&self, leaves: &[LeafValues]) -> Vec<LeafCommitment> {
        let mut lists: Vec<Vec<NumberTerm>> = vec![Vec::new(); 2 * leaves.len()];
        for (leaf, halves) in leaves.iter().zip(lists.as_chunks_mut::<2>().0) {
            for (suffix, value) in leaf.values {
                let [low, high] = value_numbers(Some(value));
                let at = index(*suffix);
                halves[usize::from(suffix / 128)].extend([(at, low), (at + 1, high)]);
            }
        }
        let sums = self.tables.sums_of_numbers(&lists);
        let fields = Point::map_to_field_batch(&sums);
        let terms: Vec<[Term; 4]> = leaves
            .iter()
            .zip(fields.as_chunks::<2>().0)
            .map(|(leaf, &fields)| leaf_terms(&leaf.stem, fields))
            .collect();
        let commitments = self.sums(&terms);
        join(&sums, &fields, &commitments)
    }

    /// The leaves after changes, by what the changes add.
    #[must_use]
    pub fn update_leaves(&self, leaves: &[LeafChange]) -> Vec<LeafCommitment> {
        // Only halves that change are computed and mapped.
        let mut changed = Vec::with_capacity(leaves.len());
        let mut halves = Vec::with_capacity(leaves.len());
        for (i, leaf) in leaves.iter().enumerate() {
            let mut numbers = [Vec::new(), Vec::new()];
            for change in leaf.changes {
                numbers[usize::from(change.suffix / 128)].extend(half_numbers(change));
            }
            for (half, numbers) in numbers.into_iter().enumerate() {
                if !numbers.is_empty() {
                    changed.push((i, half));
                    halves.push((leaf.leaf.halves[half], numbers));
                }
            }
        }
        let moved = self.tables.moved(&halves);
        let mut after: Vec<_> = leaves.iter().map(|leaf| leaf.leaf).collect();
        let mut differences = Vec::with_capacity(changed.len());
        for (&(i, half), (point, field)) in changed.iter().zip(moved) {
            differences.push(field - after[i].half_fields[half]);
            (after[i].halves[half], after[i].half_fields[half]) = (point, field);
        }
        let mut terms: Vec<_> = after.iter().map(|leaf| (leaf.commitment, vec![])).collect();
        for ((i, half), number) in changed.into_iter().zip(to_limbs_all(&differences)) {
            terms[i].1.push((2 + half, number));
        }
        for (leaf, moved) in after.iter_mut().zip(self.tables.moved(&terms)) {
            (leaf.commitment, leaf.field) = moved;
        }
        after
    }

    /// Leaves with their fields, from stored points alone: the images of the halves, the leaf's commitment from stem and images, and its image.
    #[must_use]
    pub fn fields_of_leaves(&self, leaves: &[([u8; 31], [Point; 2])]) -> Vec<LeafCommitment> {
        let halves: Vec<Point> = leaves.iter().flat_map(|leaf| leaf.1).collect();
        let fields = Point::map_to_field_batch(&halves);
        let terms: Vec<[Term; 4]> = leaves
            .iter()
            .zip(fields.as_chunks::<2>().0)
            .map(|((stem, _), &fields)| leaf_terms(stem, fields))
            .collect();
        let commitments = self.sums(&terms);
        join(&halves, &fields, &commitments)
    }
}

/// Leaves from their parts, after mapping the commitments.
fn join(halves: &[Point], half_fields: &[Fr], commitments: &[Point]) -> Vec<LeafCommitment> {
    let fields = Point::map_to_field_batch(commitments);
    let parts = halves
        .as_chunks::<2>()
        .0
        .iter()
        .zip(half_fields.as_chunks::<2>().0);
    parts
        .zip(commitments)
        .zip(fields)
        .map(
            |(((&halves, &half_fields), &commitment), field)| LeafCommitment {
                halves,
                half_fields,
                commitment,
                field,
            },
        )
        .collect()
}
