//! Sums of products with points that are known beforehand, from tables.
//!
//! Two kinds of table, for two kinds of vector:
//!
//! - *Windows*, for sparse vectors and short scalars: for each point G and each position j the multiples 1 to 2^(w-1) of 2^(wj) G. A scalar in signed
//!   digits of w bits is a sum of one entry per non-zero digit. The first points, which every leaf and key uses, have wider windows.
//! - *Combs*, for dense vectors (Hagopian and Herold's way of precomputation): the points in groups of b, for each group all 2^b sums of subsets. Bit t of all
//!   scalars of a group selects one entry; the sums of each bit position are then joined by doubling. A vector of 256 scalars costs 256/b entries a bit,
//!   fewer than windows of b bits would, from tables that are smaller by a factor of b. The same for 2^64, 2^128 and 2^192 times the points
//!   makes three quarters of the doublings unnecessary.
//!
//! Each vector is summed in the way that takes fewer additions.

use crate::{
    Point, Ratio,
    bits::{Signed, digits_of, length, modulo_order},
    pairs::{Addend, add_in_rows, double_all},
    short::{Affine, Stored, TablePoint},
    sums::{Enter, Sums},
};
use arbor_cpu::{
    ask_for_large_pages,
    threads::{self, prelude::*},
};
use arbor_field::{Fr, Limbs, Wide, limbs::add, reduce_all, to_limbs_all};

/// How large the tables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of the scalars of the first points: those of key hashing and of a leaf's own commitment.
    pub first: [Digits; FIRST],
    /// Bits of a window of the others.
    pub others: usize,
    /// Points in a group of the comb.
    pub comb: usize,
    /// Multiples by powers of two for which the comb is repeated: 1, 2 or 4.
    pub columns: usize,
}

impl Sizes {
    /// For 256 to 259 points: 150 MB.
    ///
    /// Points 3 and 4 take a key's index, of which little more than 248 bits are used: with fewer digits, as those of the address are often known.
    pub const DEFAULT: Self = Self {
        first: [
            Digits::of_halves(9, 16),
            Digits::of_halves(9, 9),
            Digits::of_halves(9, 9),
            Digits::of_halves(8, 9),
            Digits {
                bits: 121,
                below: 8,
                above: 16,
            },
        ],
        others: 8,
        comb: 12,
        columns: 4,
    };

    /// From the largest down. Digits of 5 and 8 bits waste little of 252 bits.
    const CHOICES: [Self; 7] = [
        Self::DEFAULT,
        Self {
            first: [Digits::of_halves(12, 12); FIRST],
            others: 8,
            comb: 10,
            columns: 4,
        },
        Self {
            first: [Digits::of_halves(12, 12); FIRST],
            others: 7,
            comb: 10,
            columns: 4,
        },
        Self {
            first: [Digits::of_halves(13, 13); FIRST],
            others: 5,
            comb: 11,
            columns: 4,
        },
        Self {
            first: [Digits::of_halves(17, 16); FIRST],
            others: 4,
            comb: 10,
            columns: 2,
        },
        Self {
            first: [Digits::of_halves(22, 21); FIRST],
            others: 3,
            comb: 8,
            columns: 2,
        },
        Self {
            first: [Digits::of_halves(33, 31); FIRST],
            others: 2,
            comb: 6,
            columns: 1,
        },
    ];

    /// The largest of some good choices whose tables for `points` points stay within `budget` bytes; the smallest if none does.
    #[must_use]
    pub fn within(budget: usize, points: usize) -> Self {
        let fits = |sizes: &&Self| sizes.bytes(points) <= budget;
        let smallest = Self::CHOICES[Self::CHOICES.len() - 1];
        *Self::CHOICES.iter().find(fits).unwrap_or(&smallest)
    }

    /// Bytes of the tables.
    #[must_use]
    pub fn bytes(&self, points: usize) -> usize {
        self.entries(points) * size_of::<Stored>()
    }

    /// As these, but with windows that are about as wide for the first points as for the others.
    #[must_use]
    pub const fn alike(mut self) -> Self {
        let below = HALF.div_ceil(self.others);
        let above = (BITS - HALF).div_ceil(self.others);
        self.first = [Digits::of_halves(below, above); FIRST];
        self
    }

    fn entries(&self, points: usize) -> usize {
        start(&self.windows(), points) + (self.combs(points) << self.comb)
    }

    /// The windows of each of the first points, and of the others.
    fn windows(&self) -> [Windows; FIRST + 1] {
        let [a, b, c, d, e] = self.first.map(|digits| Windows::new(digits.widths()));
        let others = (0..digits_of(self.others)).map(|_| self.others);
        [a, b, c, d, e, Windows::new(others)]
    }

    /// Tables of the comb: one for each column and group.
    fn combs(&self, points: usize) -> usize {
        self.columns * points.div_ceil(self.comb)
    }
}

/// How a scalar is cut into digits: the lowest bits into some, the others into others, as evenly as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// Number of the lowest bits, up to 253.
    pub bits: usize,
    /// Digits of those bits, at least one; of some 16 bits at most, since a table has half as many entries as a digit has values.
    pub below: usize,
    /// Digits of the others, likewise.
    pub above: usize,
}

impl Digits {
    /// Where scalars often are halves of values, of 129 bits.
    #[must_use]
    pub const fn of_halves(below: usize, above: usize) -> Self {
        Self {
            bits: HALF,
            below,
            above,
        }
    }

    fn widths(self) -> impl Iterator<Item = usize> {
        let shared = |bits: usize, digits: usize| {
            let wider = bits % digits;
            (0..digits).map(move |digit| bits / digits + usize::from(digit >= digits - wider))
        };
        shared(self.bits, self.below).chain(shared(BITS - self.bits, self.above))
    }
}

/// Bits of a scalar's magnitude, with the last carry.
const BITS: usize = 253;

/// Bits of a half of a value with its mark.
const HALF: usize = 129;

/// The digits that a point's scalar is cut into, lowest first.
struct Windows {
    windows: Vec<Window>,
    /// Entries of all.
    entries: usize,
    /// What is added to a magnitude so that no digit waits for the carry of the one below: each but the topmost is then too large by its `raise`.
    raise: Limbs,
}

/// A digit: its lowest bit, its bits, and where its multiples begin in the point's table.
#[derive(Clone, Copy)]
struct Window {
    from: usize,
    bits: usize,
    entries: usize,
    /// One less than half its range; zero for the topmost.
    raise: u64,
}

impl Windows {
    fn new(widths: impl Iterator<Item = usize>) -> Self {
        let (mut windows, mut from, mut entries) = (Vec::new(), 0, 0);
        let mut raise = [0; 4];
        for bits in widths {
            windows.push(Window {
                from,
                bits,
                entries,
                raise: (1 << (bits - 1)) - 1,
            });
            from += bits;
            entries += 1 << (bits - 1);
        }
        if let Some(top) = windows.last_mut() {
            top.raise = 0;
        }
        for &Window {
            from, raise: by, ..
        } in &windows
        {
            let (word, shift) = (from / 64, from % 64);
            let mut shifted = [0; 4];
            shifted[word] = by << shift;
            if word < 3 {
                shifted[word + 1] = by >> 1 >> (63 - shift);
            }
            raise = add(&raise, &shifted).0;
        }
        Self {
            windows,
            entries,
            raise,
        }
    }

    /// Adds the multiples, of those in the point's table, that make a scalar's product: one for each signed digit that is not zero. A digit is up to half its range, and what is
    /// above that goes to the next.
    #[inline]
    fn push_digits<'t>(&self, scalar: Signed, table: &'t [Stored], to: &mut Vec<Addend<'t>>) {
        let Signed {
            negative,
            magnitude,
        } = scalar;
        let top = length(&magnitude);
        let [a, b, c, d] = add(&magnitude, &self.raise).0;
        let limbs = [a, b, c, d, 0];
        for window in &self.windows {
            let &Window {
                from,
                bits,
                entries,
                raise,
            } = window;
            let (word, shift) = (from / 64 % 4, from % 64);
            // The upper part is shifted in two steps: by 64 in one it could not be.
            let bits_from = limbs[word] >> shift | limbs[word + 1] << 1 << (63 - shift);
            let digit = (bits_from & ((1 << bits) - 1))
                .wrapping_sub(raise)
                .cast_signed();
            if digit != 0 {
                to.push(Addend {
                    point: &table[entries + digit.unsigned_abs() as usize - 1],
                    negative: negative != (digit < 0),
                });
            }
            // Above the scalar there is no more than a carry.
            if from >= top {
                break;
            }
        }
    }
}

/// Points that have windows of their own.
const FIRST: usize = 5;

/// A point's windows.
fn windows_of(windows: &[Windows; FIRST + 1], point: usize) -> &Windows {
    &windows[point.min(FIRST)]
}

/// Where a point's windows begin among the entries.
fn start(windows: &[Windows; FIRST + 1], point: usize) -> usize {
    let first = windows[..point.min(FIRST)].iter();
    let first: usize = first.map(|windows| windows.entries).sum();
    first + point.saturating_sub(FIRST) * windows[FIRST].entries
}

/// Points with their tables.
pub struct FixedBase {
    wide: Wide,
    sizes: Sizes,
    /// Of each of the first points, and of the others.
    windows: [Windows; FIRST + 1],
    points: Vec<Point>,
    /// For each point its windows' entries, digit position by digit position; then for each column and group the comb's 2^comb sums, of which the empty one is
    /// not used. In one piece of its own, for which the system is asked for large pages.
    entries: Vec<Stored>,
}

/// A term of a sum: the point's index and the scalar.
pub type Term = (usize, Fr);

/// A term whose scalar is a number below the group's order, least significant limb first.
pub type NumberTerm = (usize, Limbs);

impl FixedBase {
    /// Makes the tables on all threads of the current pool.
    ///
    /// # Panics
    ///
    /// If a point is the neutral element.
    #[must_use]
    pub fn new(points: &[Point], sizes: Sizes) -> Self {
        Self::on(Wide::detect(), points, sizes)
    }

    /// As [`Self::new`], with lanes of the caller's choice.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    #[must_use]
    pub fn on(wide: Wide, points: &[Point], sizes: Sizes) -> Self {
        Self::telling(wide, points, sizes, || ())
    }

    /// As [`Self::on`]; `placed` is called once all memory of the tables is there, before they are filled.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    #[must_use]
    pub fn telling(wide: Wide, points: &[Point], sizes: Sizes, placed: impl FnOnce()) -> Self {
        let affine = wide.run(Enter(&Affine::from_points(points)));
        // 2^i times each point, where a table begins: for both kinds of window and for the columns.
        let mut multiples: Vec<Vec<Stored>> = vec![affine];
        for i in 0..255 {
            let mut next = multiples[i].clone();
            double_all(wide, &mut next);
            multiples.push(next);
        }
        let count = sizes.entries(points.len());
        let mut entries = Vec::with_capacity(count);
        ask_for_large_pages(entries.spare_capacity_mut());
        // The first to write to a page has it cleared by the system: all threads share that.
        let empty = (0..count).into_par_iter().map(|_| Stored::default());
        empty.collect_into_vec(&mut entries);
        placed();
        let windows = sizes.windows();
        let (tables, combs) = entries.split_at_mut(start(&windows, points.len()));
        let groups = points.len().div_ceil(sizes.comb);
        // Of each point the windows that have as many bits are filled together.
        let rows: Vec<_> = (0..points.len())
            .flat_map(|point| {
                let of_point = &windows_of(&windows, point).windows;
                let alike = of_point.chunk_by(|a, b| a.bits == b.bits);
                alike.map(move |alike| (point, alike))
            })
            .collect();
        let lengths = rows
            .iter()
            .map(|(_, alike)| alike.len() << (alike[0].bits - 1));
        let tables = split(tables, lengths);
        tables
            .into_par_iter()
            .zip(&rows)
            .for_each(|(table, (point, alike))| {
                let bases = alike.iter().map(|window| multiples[window.from][*point]);
                fill_windows(wide, &bases.collect::<Vec<_>>(), table);
            });
        combs
            .par_chunks_mut(1 << sizes.comb)
            .enumerate()
            .for_each(|(table, sums)| {
                let (column, group) = (table / groups, table % groups);
                let bases = &multiples[column * (256 / sizes.columns)];
                let end = points.len().min((group + 1) * sizes.comb);
                fill_comb(wide, &bases[group * sizes.comb..end], sums);
            });
        Self {
            wide,
            sizes,
            windows,
            points: points.to_vec(),
            entries,
        }
    }

    /// The points, without their multiples.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The sizes of the tables.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The sum of the terms' products, on one thread. A point may occur in several terms.
    ///
    /// # Panics
    ///
    /// If an index is not below the number of points; so in all methods.
    #[must_use]
    pub fn sum(&self, terms: &[Term]) -> Point {
        self.sums_on_one_thread(&[terms])
            .pop()
            .unwrap_or(Point::IDENTITY)
    }

    /// One sum of products for each list of terms: lists share inversions, and threads of the current pool share the lists.
    #[must_use]
    pub fn sums<T: AsRef<[Term]> + Sync>(&self, lists: &[T]) -> Vec<Point> {
        shared(lists, SHARED_SUMS, |lists| self.sums_on_one_thread(lists))
    }

    /// As [`Self::sums`], of scalars that are numbers already, below the group's order.
    #[must_use]
    pub fn sums_of_numbers<T: AsRef<[NumberTerm]> + Sync>(&self, lists: &[T]) -> Vec<Point> {
        shared(lists, SHARED_SUMS, |lists| {
            self.sums_of_terms(lists.iter().map(|list| list.as_ref().iter().copied()))
        })
    }

    /// Sums in the form that can be an addend of [`Self::images`], by windows; threads of the current pool share the lists.
    #[must_use]
    pub fn table_points<T: AsRef<[NumberTerm]> + Sync>(&self, lists: &[T]) -> Vec<TablePoint> {
        shared(lists, SHARED_KEYS, |lists| {
            let mut sums = Sums::new(self.wide, lists.len());
            for list in lists {
                self.push_digits(&mut sums, list.as_ref());
                sums.close();
            }
            sums.into_stored().into_iter().map(TablePoint).collect()
        })
    }

    /// Images in the scalar field, as numbers, of sums of products by windows and, where there is one, a point of [`Self::table_points`]. `terms` says what
    /// an input's sum consists of; threads of the current pool share the inputs.
    #[must_use]
    pub fn images<'i, I: Sync, T: AsRef<[NumberTerm]>>(
        &self,
        inputs: &'i [I],
        terms: impl Fn(&'i I) -> (Option<&'i TablePoint>, T) + Send + Sync,
    ) -> Vec<Limbs> {
        shared(inputs, SHARED_KEYS, |inputs| {
            let mut sums = Sums::new(self.wide, inputs.len());
            for (point, terms) in inputs.iter().map(&terms) {
                if let Some(TablePoint(point)) = point {
                    sums.push(point, false);
                }
                self.push_digits(&mut sums, terms.as_ref());
                sums.close();
            }
            let images = sums.into_images().into_iter();
            images.map(|image| modulo_order(&image)).collect()
        })
    }

    /// Images in the scalar field, as numbers, of one sum of products for each list of terms, on one thread.
    #[must_use]
    pub fn images_on_one_thread<L: IntoIterator<Item = NumberTerm>>(
        &self,
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Vec<Limbs> {
        let (sums, parts) = self.pushed(lists);
        let images = if each_is_one(&parts) {
            sums.into_images()
        } else {
            Point::images(&self.joined(sums, parts))
        };
        images.iter().map(modulo_order).collect()
    }

    /// Points to which sums of products are added, and their images; threads of the current pool share them.
    #[must_use]
    pub fn moved<T: AsRef<[NumberTerm]> + Sync>(&self, points: &[(Point, T)]) -> Vec<(Point, Fr)> {
        shared(points, SHARED_SUMS, |points| {
            let before: Vec<_> = points.iter().map(|point| point.0).collect();
            let lists = points.iter().map(|point| point.1.as_ref().iter().copied());
            let (after, images) = self.moved_on_one_thread(&before, lists);
            after.into_iter().zip(reduce_all(&images)).collect()
        })
    }

    /// Points to which one sum of products each is added, and their images in the scalar field as numbers, on one thread.
    #[must_use]
    pub fn moved_on_one_thread<L: IntoIterator<Item = NumberTerm>>(
        &self,
        points: &[Point],
        lists: impl ExactSizeIterator<Item = L>,
    ) -> (Vec<Point>, Vec<Limbs>) {
        let (sums, parts) = self.pushed(lists);
        let (after, images) = if each_is_one(&parts) {
            sums.added_to(points)
        } else {
            let mut after = self.joined(sums, parts);
            Point::add_all_on(self.wide, &mut after, points);
            let images = Point::images(&after);
            (after, images)
        };
        (after, images.iter().map(modulo_order).collect())
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
        let (sums, parts) = self.pushed(lists);
        if each_is_one(&parts) {
            return sums.added_to_ratios(ratios);
        }
        let points = Ratio::to_points(ratios)?;
        let mut after = self.joined(sums, parts);
        Point::add_all_on(self.wide, &mut after, &points);
        Ok(Ratio::from_points(&after))
    }

    /// As [`Self::sums`], without other threads.
    #[must_use]
    pub fn sums_on_one_thread<T: AsRef<[Term]>>(&self, lists: &[T]) -> Vec<Point> {
        let terms = || lists.iter().flat_map(|list| list.as_ref());
        let scalars: Vec<Fr> = terms().map(|term| term.1).collect();
        let numbers = to_limbs_all(&scalars);
        let terms: Vec<_> = terms().zip(numbers).map(|(term, n)| (term.0, n)).collect();
        let mut rest = &terms[..];
        self.sums_of_terms(lists.iter().map(|list| {
            let (list, others) = rest.split_at(list.as_ref().len());
            rest = others;
            list.iter().copied()
        }))
    }

    /// As [`Self::sums_of_numbers`], without other threads.
    #[must_use]
    pub fn sums_of_terms<L: IntoIterator<Item = NumberTerm>>(
        &self,
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Vec<Point> {
        let (sums, parts) = self.pushed(lists);
        self.joined(sums, parts)
    }

    /// The additions that make the sums, and of how many parts each is made: rows of a comb, from the highest bit down, or one alone.
    fn pushed<L: IntoIterator<Item = NumberTerm>>(
        &self,
        lists: impl ExactSizeIterator<Item = L>,
    ) -> (Sums<'_>, Vec<usize>) {
        let mut sums = Sums::new(self.wide, lists.len());
        let mut parts = Vec::with_capacity(lists.len());
        let mut terms = Vec::new();
        for list in lists {
            terms.clear();
            terms.extend(list);
            if let Some(rows) = self.comb_rows(&terms) {
                parts.push(rows);
                self.push_comb(&mut sums, &terms, rows);
            } else {
                parts.push(1);
                self.push_digits(&mut sums, &terms);
                sums.close();
            }
        }
        (sums, parts)
    }

    fn joined(&self, sums: Sums, parts: Vec<usize>) -> Vec<Point> {
        let points = sums.into_points();
        if points.len() == parts.len() {
            return points;
        }
        let mut rest = &points[..];
        let lists = parts.into_iter().map(|count| {
            let (list, others) = rest.split_at(count);
            rest = others;
            list
        });
        Point::join_all(self.wide, &lists.collect::<Vec<_>>())
    }

    /// The number of bit positions to comb, or none if windows take fewer additions.
    fn comb_rows(&self, terms: &[NumberTerm]) -> Option<usize> {
        let digits = |&(point, number): &NumberTerm| {
            let length = length(&Signed::from(number).magnitude);
            let windows = &windows_of(&self.windows, point).windows;
            windows.partition_point(|window| window.from < length)
        };
        let groups = self.points.len().div_ceil(self.sizes.comb);
        // Up to here windows take less time (measured), and the count below need not be made.
        if terms.len() <= groups * self.sizes.others / 2 {
            return None;
        }
        let with_windows: usize = terms.iter().map(digits).sum();
        let mut used = vec![false; groups];
        for (point, _) in terms {
            used[point / self.sizes.comb] = true;
        }
        let groups = used.iter().filter(|used| **used).count();
        let longest = terms.iter().map(|term| length(&term.1)).max()?;
        let rows = longest.min(256 / self.sizes.columns);
        // Joining a row costs a doubling and an addition in extended coordinates, about six additions from a table (measured before both were made in lanes).
        let with_comb = groups * longest + 6 * rows;
        (with_comb < with_windows).then_some(rows)
    }

    fn push_digits<'t>(&'t self, sums: &mut Sums<'t>, terms: &[NumberTerm]) {
        for (point, number) in terms {
            assert!(*point < self.points.len(), "no point has index {point}");
            let windows = windows_of(&self.windows, *point);
            let table = &self.entries[start(&self.windows, *point)..][..windows.entries];
            let scalar = Signed::from(*number);
            sums.extend(|addends| windows.push_digits(scalar, table, addends));
        }
    }

    /// One list for each row, highest first.
    fn push_comb<'t>(&'t self, sums: &mut Sums<'t>, terms: &[NumberTerm], rows: usize) {
        let Sizes { comb, columns, .. } = self.sizes;
        let groups = self.points.len().div_ceil(comb);
        let height = 256 / columns;
        // For each column, group and row the index into the group's table. A point that occurs again is added apart.
        let mut again = Vec::new();
        let mut scalars = vec![[0u64; 4]; groups * comb];
        let mut seen = vec![false; self.points.len()];
        for &(point, number) in terms {
            if std::mem::replace(&mut seen[point], true) {
                again.push((point, number));
            } else {
                scalars[point] = number;
            }
        }
        let mut indices = vec![[0u16; 64]; columns * groups * height / 64];
        for (group, scalars) in scalars.chunks(comb).enumerate() {
            for word in 0..4 {
                let mut words = [0; 16];
                for (to, scalar) in words.iter_mut().zip(scalars) {
                    *to = scalar[word];
                }
                // A column of more than 64 rows has several words.
                let (column, part) = (word * 64 / height, word % (height / 64));
                indices[(column * groups + group) * (height / 64) + part] = transposed(&words);
            }
        }
        let indices = indices.as_flattened();
        let combs = &self.entries[start(&self.windows, self.points.len())..];
        for row in (0..rows).rev() {
            for (table, comb) in combs.chunks(1 << comb).enumerate() {
                let index = usize::from(indices[table * height + row]);
                if index != 0 {
                    sums.push(&comb[index], false);
                }
            }
            if row == 0 {
                self.push_digits(sums, &again);
            }
            sums.close();
        }
    }
}

/// Whether each sum is made of one part.
fn each_is_one(parts: &[usize]) -> bool {
    parts.iter().all(|&part| part == 1)
}

/// Keys and the like that are a thread's at least: with fewer, its inversions, one for each round, cost more than it saves.
const SHARED_KEYS: usize = 128;

/// Sums, each of which may be of many terms, that are a thread's at least.
const SHARED_SUMS: usize = 4;

/// What is made of lists, on all threads of the current pool that would have at least so many.
fn shared<'l, T: Sync, P: Send>(
    lists: &'l [T],
    least: usize,
    points: impl Fn(&'l [T]) -> Vec<P> + Send + Sync,
) -> Vec<P> {
    let threads = threads::current_num_threads();
    if threads == 1 || lists.len() < 2 * least {
        return points(lists);
    }
    let share = lists.len().div_ceil(2 * threads).max(least);
    lists.par_chunks(share).flat_map_iter(points).collect()
}

/// Sixteen words as 64 rows: bit k of row i is bit i of word k.
fn transposed(words: &[u64; 16]) -> [u16; 64] {
    let bytes = words.map(u64::to_le_bytes);
    let mut rows = [0; 64];
    for byte in 0..8 {
        let [low, high] = [0, 8].map(|from| {
            let bytes = std::array::from_fn(|word| bytes[from + word][byte]);
            transposed_square(u64::from_le_bytes(bytes)).to_le_bytes()
        });
        for bit in 0..8 {
            rows[8 * byte + bit] = u16::from_le_bytes([low[bit], high[bit]]);
        }
    }
    rows
}

/// Eight bytes as a square of bits, mirrored at its diagonal: halves, quarters and eighths are exchanged.
fn transposed_square(mut square: u64) -> u64 {
    for (mask, shift) in [
        (0x0000_0000_f0f0_f0f0, 28),
        (0x0000_cccc_0000_cccc, 14),
        (0x00aa_00aa_00aa_00aa, 7),
    ] {
        let exchanged = (square ^ square >> shift) & mask;
        square ^= exchanged ^ exchanged << shift;
    }
    square
}

/// Cuts a list into pieces of these lengths.
fn split<T>(mut list: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let pieces = lengths.map(|length| list.split_off_mut(..length).unwrap_or_default());
    pieces.collect()
}

/// For each base as many of its multiples, from once on, as there is room for: a power of two.
fn fill_windows(wide: Wide, bases: &[Stored], table: &mut [Stored]) {
    let size = table.len() / bases.len();
    for (row, base) in table.chunks_mut(size).zip(bases) {
        row[0] = *base;
    }
    // From the multiples 1 to m: m + 1 to 2m - 1 as m plus a smaller one, and 2m as twice m.
    let mut known = 1;
    while known < size {
        let mut tops: Vec<_> = (0..bases.len())
            .map(|row| table[row * size + known - 1])
            .collect();
        double_all(wide, &mut tops);
        let rows = (0..bases.len()).map(|row| row * size);
        let sums = rows.flat_map(|row| (row..row + known - 1).map(|at| (at, at + known)));
        add_in_rows(wide, table, size, known - 1, sums);
        for (row, top) in tops.into_iter().enumerate() {
            table[row * size + 2 * known - 1] = top;
        }
        known *= 2;
    }
}

/// The sums of all subsets of up to 16 points, by the subset's bits; entry 0 is unused, and so are those from 2^points on.
fn fill_comb(wide: Wide, points: &[Stored], table: &mut [Stored]) {
    for (i, point) in points.iter().enumerate() {
        let known = 1 << i;
        table[known] = *point;
        let sums = (1..known).map(|subset| (subset, subset + known));
        add_in_rows(wide, table, table.len(), known, sums);
    }
}
