//! Counts of what computing a state takes.

use std::ops::{AddAssign, Sub};

use arbor_metrics::{FIELD_INVERSIONS, NORMALISATIONS, POINT_ADDITIONS, SQUARE_ROOTS};
use serde::Serialize;

/// What the parts of computing a state took, in counts of what is dear. Zero for trees that need none of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Work {
    /// Names to tree keys.
    pub keys: Counts,
    /// The tree.
    pub tree: Counts,
    /// Leaves written by how many values they have: 1, 2, 3 to 4, 5 to 8, and so on to 129 to 256.
    pub leaves_filled: [u64; 9],
    /// What the nodes written would take in the published form.
    pub published: Published,
}

/// Bytes of nodes in go-verkle's form (encoding.go), where a leaf has its values and all its points: what the published systems write for every block, keys
/// not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Published {
    /// Internal nodes.
    pub internals: u64,
    /// Leaves without their values.
    pub leaves: u64,
    /// Values in leaves.
    pub values: u64,
}

/// Operations of the curve's arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Counts {
    /// Inversions in a prime field: one for a whole batch.
    pub inversions: u64,
    /// Additions of points within sums, mostly of table entries.
    pub point_additions: u64,
    /// Square roots: points decompressed.
    pub square_roots: u64,
    /// Points made affine.
    pub normalisations: u64,
}

impl Work {
    /// Whether there was none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Counts {
    /// All of the process until now. Their difference is what a part took, if no other thread computes commitments meanwhile.
    pub fn now() -> Self {
        Self {
            inversions: FIELD_INVERSIONS.get(),
            point_additions: POINT_ADDITIONS.get(),
            square_roots: SQUARE_ROOTS.get(),
            normalisations: NORMALISATIONS.get(),
        }
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            inversions: self.inversions - before.inversions,
            point_additions: self.point_additions - before.point_additions,
            square_roots: self.square_roots - before.square_roots,
            normalisations: self.normalisations - before.normalisations,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.inversions += more.inversions;
        self.point_additions += more.point_additions;
        self.square_roots += more.square_roots;
        self.normalisations += more.normalisations;
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Self) {
        self.keys += more.keys;
        self.tree += more.tree;
        for (count, more) in self.leaves_filled.iter_mut().zip(more.leaves_filled) {
            *count += more;
        }
        self.published.internals += more.published.internals;
        self.published.leaves += more.published.leaves;
        self.published.values += more.published.values;
    }
}
