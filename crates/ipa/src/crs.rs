//! The common reference string, and commitments with its tables.

use crate::repeated::Repeated;
use crate::value::{HASH_OF_NO_CODE, value_scalars};
use arbor_banderwagon::{FixedBase, Fr, NumberTerm, Point, Ratio, Sizes, Term, Trust};
use arbor_cpu::threads;
use arbor_field::{Fp, Limbs, Wide};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Number of values that a commitment binds: children of a node, evaluations of a polynomial.
pub const WIDTH: usize = 256;

/// Index of Q, the point for inner products, among a committer's points.
pub(crate) const Q: usize = WIDTH;

/// Index of the multiple of G_0 that all hashes of 64 bytes, and so all keys, begin with.
pub(crate) const KEY_PREFIX: usize = WIDTH + 1;

/// Index of what the hash of no code adds to a leaf of basic data.
pub(crate) const NO_CODE: usize = WIDTH + 2;

/// Domain and length of a hash of 64 bytes: 2 + 256 * 64.
const PREFIX: Fr = Fr::constant([2 + 256 * 64, 0, 0, 0]);

/// Points of a committer.
const POINTS: usize = WIDTH + 3;

const SEED: &[u8] = b"eth_verkle_oct_2021";

/// The 256 points G, of which nobody knows a relation: x coordinates from SHA-256 of the seed and a counter, those kept that are elements of the group
/// (SPECS, section 1).
#[must_use]
pub fn points() -> &'static [Point] {
    static GENERATORS: LazyLock<Vec<Point>> = LazyLock::new(|| {
        let candidates = |from: u64| -> Vec<[u8; 32]> {
            let candidate = |i: u64| {
                let mut hash: [u8; 32] = Sha256::new()
                    .chain_update(SEED)
                    .chain_update(i.to_be_bytes())
                    .finalize()
                    .into();
                hash.reverse();
                Fp::from_le_bytes_reduced(&hash).to_be_bytes()
            };
            (from..from + WIDTH as u64).map(candidate).collect()
        };
        (0..)
            .step_by(WIDTH)
            .flat_map(|from| Point::from_bytes_batch(&candidates(from), Trust::Untrusted))
            .filter_map(Result::ok)
            .take(WIDTH)
            .collect()
    });
    &GENERATORS
}

/// Commits to vectors of 256 scalars with the reference string's tables.
///
/// Making one takes a tenth of a second or more and [`Sizes::bytes`] of memory: make it once, and share it.
pub struct Committer {
    pub(crate) tables: FixedBase,
    pub(crate) repeated: Repeated,
}

impl Committer {
    /// With tables of the given sizes, made on all threads of the current pool.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        Self::telling(sizes, || ())
    }

    /// As [`Self::new`]; `placed` is called once all memory of the tables is there, before they are filled.
    #[must_use]
    pub fn telling(sizes: Sizes, placed: impl FnOnce()) -> Self {
        let no_code = (2..).zip(value_scalars(Some(&HASH_OF_NO_CODE)));
        let no_code = no_code.map(|(at, scalar): (usize, Fr)| points()[at] * scalar);
        let own = [Point::generator(), points()[0] * PREFIX, no_code.sum()];
        let points: Vec<_> = points().iter().copied().chain(own).collect();
        Self {
            tables: FixedBase::telling(Wide::detect(), &points, sizes, placed),
            repeated: Repeated::default(),
        }
    }

    /// With the largest tables within a budget of bytes.
    #[must_use]
    pub fn within(bytes: usize) -> Self {
        Self::new(Self::sizes_within(bytes))
    }

    /// The sizes of the largest tables within a budget of bytes.
    #[must_use]
    pub fn sizes_within(bytes: usize) -> Sizes {
        Sizes::within(bytes, POINTS)
    }

    /// The sizes of the tables.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.tables.sizes()
    }

    /// Bytes of the tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tables.sizes().bytes(POINTS)
    }

    /// The commitment to a vector: the sum of `values[i] * G_i`. Zeros cost next to nothing; two threads of the current pool share the work.
    #[must_use]
    pub fn commit(&self, values: &[Fr; WIDTH]) -> Point {
        self.sum_of_dense(values)
    }

    /// The sum of the values' products with the points from the first on.
    pub(crate) fn sum_of_dense(&self, values: &[Fr]) -> Point {
        let terms: Vec<Term> = values.iter().copied().enumerate().collect();
        if threads::current_num_threads() == 1 {
            return self.tables.sum(&terms);
        }
        // No group of the comb in two.
        let middle = (terms.len() / 2).next_multiple_of(self.sizes().comb);
        let (low, high) = terms.split_at(middle.min(terms.len()));
        let (low, high) = threads::join(|| self.tables.sum(low), || self.tables.sum(high));
        low + high
    }

    /// The sum of scalars times points, by index: a sparse commitment or, with differences, what to add to one that changed.
    ///
    /// # Panics
    ///
    /// If an index is above [`WIDTH`] + 2; so in [`Self::sums`]. The point of [`WIDTH`] is Q, the next one is what all keys begin with, and the last what the hash of no code adds.
    #[must_use]
    pub fn sum(&self, terms: &[Term]) -> Point {
        self.tables.sum(terms)
    }

    /// Many sums; they share inversions and the current pool's threads.
    #[must_use]
    pub fn sums<T: AsRef<[Term]> + Sync>(&self, lists: &[T]) -> Vec<Point> {
        self.tables.sums(lists)
    }

    /// One sum for each list of terms; all on one thread.
    #[must_use]
    pub fn sums_on_one_thread<L: IntoIterator<Item = NumberTerm>>(
        &self,
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Vec<Point> {
        self.tables.sums_of_terms(lists)
    }

    /// The images in the scalar field, as numbers, of one sum for each list of terms; all on one thread.
    #[must_use]
    pub fn images_on_one_thread<L: IntoIterator<Item = NumberTerm>>(
        &self,
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Vec<Limbs> {
        self.tables.images_on_one_thread(lists)
    }

    /// Points to which one sum each is added, and their images in the scalar field as numbers; all on one thread.
    #[must_use]
    pub fn moved_on_one_thread<L: IntoIterator<Item = NumberTerm>>(
        &self,
        points: &[Point],
        lists: impl ExactSizeIterator<Item = L>,
    ) -> (Vec<Point>, Vec<Limbs>) {
        self.tables.moved_on_one_thread(points, lists)
    }

    /// As [`Self::moved_on_one_thread`], from and to x and x/y.
    ///
    /// # Errors
    ///
    /// Which of the ratios is no point's.
    pub fn ratios_moved_on_one_thread<L: IntoIterator<Item = NumberTerm>>(
        &self,
        ratios: &[Ratio],
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Result<Vec<Ratio>, usize> {
        self.tables.ratios_moved_on_one_thread(ratios, lists)
    }
}
