//! Sums of many independent lists of points: what all commitments come down to.
//!
//! Points are added in pairs, affine with affine, the lists of a batch together, again and again until each list is one point. One round's slopes are
//! divided with a single inversion (Montgomery's trick in eight lanes), so that an addition costs five multiplications and a squaring. When
//! fewer than [`FEW`] pairs are left, an inversion would cost more than it saves: what remains is added without.

use crate::{
    Point, Ratio,
    leaving::{AddTo, AddToRatios, Images, to_points},
    pairs::{Addend, FromTables, InPlace, Pair, add_pairs},
    short::{Affine, Running, Stored},
};
use arbor_cpu::prefetch_early;
use arbor_field::{Base, Job, LANES, Lanes, Limbs, Wide};
use arbor_metrics::POINT_ADDITIONS;

/// Addends that are collected before they are read, or a few more: by then the last ones of them, too, have come from memory.
const BLOCK: usize = 2048;

/// By how many of them a block may be larger: the digits of a scalar are not cut in two.
const MORE: usize = 128;

/// Partial sums from which on rounds are made: 256 KiB, which stay in the second cache together with the products.
const CAPACITY: usize = 4096;

/// Pairs from which on a round with an inversion pays.
const FEW: usize = 14;

/// Lists of points that are being summed.
pub(crate) struct Sums<'t> {
    wide: Wide,
    /// What was not read yet: a block, and what comes behind it.
    addends: Vec<Addend<'t>>,
    next: Vec<Addend<'t>>,
    /// Where in both lists end.
    ends: Vec<usize>,
    /// Partial sums of the lists, one list after another, and room behind them.
    terms: Vec<Stored>,
    /// How many of those there are.
    used: usize,
    /// Where each list that is not in `done` begins; the last one is open.
    starts: Vec<u32>,
    /// Sums of the first lists.
    done: Vec<Stored>,
    /// The sum of an empty list.
    identity: Stored,
    /// Number of terms at which the next round is made.
    limit: usize,
    pairs: Vec<Pair>,
    /// Where lists of several terms begin and end, while rounds are made.
    several: Vec<[u32; 2]>,
}

impl<'t> Sums<'t> {
    /// With room for the sums of so many lists.
    pub(crate) fn new(wide: Wide, lists: usize) -> Self {
        let mut starts = Vec::with_capacity(lists + 1);
        starts.push(0);
        Self {
            wide,
            addends: Vec::with_capacity(BLOCK + MORE),
            next: Vec::new(),
            ends: Vec::with_capacity(lists),
            terms: Vec::new(),
            used: 0,
            starts,
            done: Vec::with_capacity(lists),
            identity: wide.run(Enter(&[Affine::identity()]))[0],
            limit: CAPACITY,
            pairs: Vec::new(),
            several: Vec::new(),
        }
    }

    /// Has points added to the open list, or subtracted from it: at most as many as [`MORE`].
    ///
    /// Tables are larger than any cache: a point is asked for long before it is read. Those of the first block are asked for here, the others while the block before
    /// is summed.
    #[inline]
    pub(crate) fn extend(&mut self, push: impl FnOnce(&mut Vec<Addend<'t>>)) {
        let before = self.addends.len();
        if before < BLOCK {
            push(&mut self.addends);
            for addend in &self.addends[before..] {
                prefetch_early(addend.point);
            }
            return;
        }
        if self.next.len() >= BLOCK {
            self.absorb();
        }
        if self.next.capacity() == 0 {
            self.next.reserve_exact(BLOCK + MORE);
        }
        push(&mut self.next);
    }

    /// As [`Self::extend`] with one point.
    #[inline]
    pub(crate) fn push(&mut self, point: &'t Stored, negative: bool) {
        self.extend(|addends| addends.push(Addend { point, negative }));
    }

    /// Ends the open list and opens the next.
    pub(crate) fn close(&mut self) {
        self.ends.push(self.addends.len() + self.next.len());
    }

    /// Adds the first block's addends in pairs, so that they become terms.
    fn absorb(&mut self) {
        let count = self.addends.len();
        let few = count < 2 * FEW;
        self.pairs.clear();
        let mut to = self.used;
        let closed = self.ends.partition_point(|&end| end <= count);
        // Half as many as addends, and one more where a list has an odd number of them.
        let most = to + count.min(if few { count } else { count / 2 + closed + 1 });
        if self.terms.len() < most {
            if count >= BLOCK {
                // There are more to come: as many as there may be when a round is made.
                let room = (CAPACITY + BLOCK).saturating_sub(self.terms.len());
                self.terms.reserve_exact(room);
            }
            self.terms.resize(most, self.identity);
        }
        let mut first = 0;
        for (list, end) in self.ends.drain(..closed).chain([count]).enumerate() {
            while first < end {
                if first + 1 == end || few {
                    self.terms[to] = self.addends[first].value();
                    first += 1;
                } else {
                    self.pairs.push(Pair {
                        first: first as u32,
                        to: to as u32,
                    });
                    first += 2;
                }
                to += 1;
            }
            if list < closed {
                self.starts.push(to as u32);
            }
        }
        add_pairs(
            self.wide,
            FromTables {
                addends: &self.addends,
                ahead: &self.next,
                to: &mut self.terms,
            },
            &self.pairs,
        );
        self.used = to;
        std::mem::swap(&mut self.addends, &mut self.next);
        self.next.clear();
        self.ends.iter_mut().for_each(|end| *end -= count);
        if self.used >= self.limit {
            self.rounds(CAPACITY / 8, FEW);
            self.limit = CAPACITY.max(2 * self.used);
        }
    }

    /// The sums of all closed lists.
    pub(crate) fn into_points(mut self) -> Vec<Point> {
        self.absorb_all();
        self.rounds(0, FEW);
        let wide = self.wide;
        wide.run(Finish { sums: self })
    }

    /// The images of the sums of all closed lists, as numbers below the base field's prime.
    pub(crate) fn into_images(mut self) -> Vec<Limbs> {
        self.absorb_all();
        self.rounds(0, FEW);
        let wide = self.wide;
        // All sums but that of the open list are over, unless there were few terms.
        if self.starts.len() == 1
            && !self.done.is_empty()
            && let Some(images) = wide.run(Images { points: &self.done })
        {
            return images;
        }
        Point::images(&wide.run(Finish { sums: self }))
    }

    /// These points, each with the sum of a closed list added, and their images as numbers below the base field's prime.
    pub(crate) fn added_to(mut self, points: &[Point]) -> (Vec<Point>, Vec<Limbs>) {
        self.absorb_all();
        self.rounds(0, FEW);
        let wide = self.wide;
        if self.starts.len() == 1
            && points.len() >= LANES
            && let Some(added) = wide.run(AddTo {
                sums: &self.done,
                points,
            })
        {
            return added;
        }
        let mut sums = wide.run(Finish { sums: self });
        Point::add_all_on(wide, &mut sums, points);
        let images = Point::images(&sums);
        (sums, images)
    }

    /// As [`Self::added_to`], from and to x and x/y. The error is which of the ratios is no point's.
    pub(crate) fn added_to_ratios(mut self, ratios: &[Ratio]) -> Result<Vec<Ratio>, usize> {
        self.absorb_all();
        self.rounds(0, FEW);
        let wide = self.wide;
        if self.starts.len() == 1
            && let Some(added) = wide.run(AddToRatios {
                sums: &self.done,
                ratios,
            })
        {
            return Ok(added);
        }
        let points = Ratio::to_points(ratios)?;
        let mut sums = wide.run(Finish { sums: self });
        Point::add_all_on(wide, &mut sums, &points);
        Ok(Ratio::from_points(&sums))
    }

    /// The sums of all closed lists in affine form.
    pub(crate) fn into_stored(mut self) -> Vec<Stored> {
        self.absorb_all();
        self.rounds(0, 1);
        self.done
    }

    /// Adds lists of points that the caches hold: `ends` says where among the items each list ends.
    pub(crate) fn push_lists<T>(
        &mut self,
        mut items: &[T],
        ends: &[usize],
        addend: impl Fn(&T) -> Addend<'t>,
    ) {
        let mut pushed = 0;
        let mut ends = ends.iter().peekable();
        while ends.peek().is_some() {
            if self.next.len() >= BLOCK {
                self.absorb();
            }
            let before = self.addends.len() + self.next.len();
            let block = if self.addends.len() < BLOCK {
                &mut self.addends
            } else {
                &mut self.next
            };
            let (now, later) = items.split_at(items.len().min(BLOCK - block.len()));
            block.extend(now.iter().map(&addend));
            items = later;
            while let Some(end) = ends.next_if(|end| **end <= pushed + now.len()) {
                self.ends.push(before + end - pushed);
            }
            pushed += now.len();
        }
    }

    /// Adds all addends in pairs.
    fn absorb_all(&mut self) {
        // A few more than a block are no round of their own.
        if self.next.len() > BLOCK / 16 {
            self.absorb();
        }
        for addend in &self.next {
            prefetch_early(addend.point);
        }
        self.addends.append(&mut self.next);
        self.absorb();
    }

    /// Makes rounds while there are more than `target` terms and at least `few` pairs.
    fn rounds(&mut self, target: usize, few: usize) {
        // What is left of a list after a round stays where it is: in each round twice as far apart, its first term where it was.
        let mut stride = 1;
        let (starts, used) = (&self.starts, self.used as u32);
        let ends = starts[1..].iter().copied().chain([used]);
        let lists = starts.iter().zip(ends).map(|(&start, end)| [start, end]);
        self.several.clear();
        self.several
            .extend(lists.filter(|[start, end]| start + 1 < *end));
        let mut terms = self.used;
        while terms > target {
            self.pairs.clear();
            self.several.retain(|&[start, end]| {
                let mut first = start;
                while first + stride < end {
                    self.pairs.push(Pair { first, to: first });
                    first += 2 * stride;
                }
                first > start
            });
            if self.pairs.len() < few {
                break;
            }
            let points = InPlace {
                points: &mut self.terms,
                stride: stride as usize,
            };
            add_pairs(self.wide, points, &self.pairs);
            terms -= self.pairs.len();
            stride *= 2;
        }
        self.close_ranks(stride);
    }

    /// Moves terms that lie `stride` apart together. Sums of finished lists before any other are put aside; an empty list that stayed would hold up all behind it.
    fn close_ranks(&mut self, stride: u32) {
        let (mut to, mut kept) = (0, 0);
        let lists = self.starts.len();
        for list in 0..lists {
            let start = self.starts[list];
            let end = self.starts.get(list + 1).copied();
            let end = end.unwrap_or(self.used as u32);
            if kept == 0 && list + 1 < lists && end <= start + stride {
                self.done.push(if start < end {
                    self.terms[start as usize]
                } else {
                    self.identity
                });
                continue;
            }
            self.starts[kept] = to;
            kept += 1;
            for from in (start..end).step_by(stride as usize) {
                self.terms[to as usize] = self.terms[from as usize];
                to += 1;
            }
        }
        self.starts.truncate(kept);
        self.used = to as usize;
    }
}

/// Adds what is left of each list one by one, without inversions, and brings all sums into extended Edwards coordinates.
struct Finish<'t> {
    sums: Sums<'t>,
}

impl Job<Base> for Finish<'_> {
    type Output = Vec<Point>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Point> {
        let Sums {
            terms,
            starts,
            mut done,
            identity,
            ..
        } = self.sums;
        let mut several = Vec::new();
        for ends in starts.windows(2) {
            let list = &terms[ends[0] as usize..ends[1] as usize];
            done.push(*list.first().unwrap_or(&identity));
            if let [first, rest @ ..] = list
                && !rest.is_empty()
            {
                POINT_ADDITIONS.add(rest.len() as u64);
                let mut sum = Running::from(Affine::leave(first, lanes));
                for term in rest {
                    sum.add(Affine::leave(term, lanes));
                }
                several.push((done.len() - 1, sum.to_point()));
            }
        }
        let mut points = to_points(lanes, &done);
        for (list, sum) in several {
            points[list] = sum;
        }
        points
    }
}

/// Brings points into the lanes' form.
pub(crate) struct Enter<'a>(pub(crate) &'a [Affine]);

impl Job<Base> for Enter<'_> {
    type Output = Vec<Stored>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Vec<Stored> {
        self.0.iter().map(|point| point.enter(lanes)).collect()
    }
}
