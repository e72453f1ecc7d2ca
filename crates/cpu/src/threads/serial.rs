//! The names of rayon that are used, for one thread. Each method does what rayon documents, in order.

/// Calls both, the first one first.
pub fn join<A, B>(a: impl FnOnce() -> A, b: impl FnOnce() -> B) -> (A, B) {
    let a = a();
    (a, b())
}

/// One.
#[must_use]
pub fn current_num_threads() -> usize {
    1
}

/// What `rayon::prelude` brings.
pub mod prelude {
    pub use super::{IntoSerial, SerialSlice};
}

/// Conversion into a [`Serial`].
pub trait IntoSerial: IntoIterator + Sized {
    /// The elements, by value.
    fn into_par_iter(self) -> Serial<Self::IntoIter> {
        Serial(self.into_iter())
    }
}

impl<I: IntoIterator> IntoSerial for I {}

/// Elements of slices, and their order.
pub trait SerialSlice<T> {
    /// The elements.
    fn par_iter(&self) -> Serial<std::slice::Iter<'_, T>>;
    /// Parts of `size` elements; the last may be shorter.
    fn par_chunks(&self, size: usize) -> Serial<std::slice::Chunks<'_, T>>;
    /// The same to write to.
    fn par_chunks_mut(&mut self, size: usize) -> Serial<std::slice::ChunksMut<'_, T>>;
    /// Sorts, equal elements in any order.
    fn par_sort_unstable_by(&mut self, compare: impl Fn(&T, &T) -> std::cmp::Ordering);
    /// Sorts by a key, elements of the same key in any order.
    fn par_sort_unstable_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K);
}

impl<T> SerialSlice<T> for [T] {
    fn par_iter(&self) -> Serial<std::slice::Iter<'_, T>> {
        Serial(self.iter())
    }

    fn par_chunks(&self, size: usize) -> Serial<std::slice::Chunks<'_, T>> {
        Serial(self.chunks(size))
    }

    fn par_chunks_mut(&mut self, size: usize) -> Serial<std::slice::ChunksMut<'_, T>> {
        Serial(self.chunks_mut(size))
    }

    fn par_sort_unstable_by(&mut self, compare: impl Fn(&T, &T) -> std::cmp::Ordering) {
        self.sort_unstable_by(compare);
    }

    fn par_sort_unstable_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.sort_unstable_by_key(key);
    }
}

/// An iterator with those methods of a parallel one that are used. It is no [`Iterator`] itself, because `reduce` has another meaning there.
pub struct Serial<I>(I);

impl<I: Iterator> IntoIterator for Serial<I> {
    type Item = I::Item;
    type IntoIter = I;

    fn into_iter(self) -> I {
        self.0
    }
}

#[expect(missing_docs, reason = "rayon documents them")]
impl<I: Iterator> Serial<I> {
    pub fn map<T>(self, f: impl FnMut(I::Item) -> T) -> Serial<impl Iterator<Item = T>> {
        Serial(self.0.map(f))
    }

    pub fn map_init<S, T>(
        self,
        init: impl FnOnce() -> S,
        mut f: impl FnMut(&mut S, I::Item) -> T,
    ) -> Serial<impl Iterator<Item = T>> {
        let mut state = init();
        Serial(self.0.map(move |item| f(&mut state, item)))
    }

    pub fn flat_map_iter<T: IntoIterator>(
        self,
        f: impl FnMut(I::Item) -> T,
    ) -> Serial<impl Iterator<Item = T::Item>> {
        Serial(self.0.flat_map(f))
    }

    pub fn flatten_iter(self) -> Serial<impl Iterator<Item = <I::Item as IntoIterator>::Item>>
    where
        I::Item: IntoIterator,
    {
        Serial(self.0.flatten())
    }

    pub fn filter(self, f: impl FnMut(&I::Item) -> bool) -> Serial<impl Iterator<Item = I::Item>> {
        Serial(self.0.filter(f))
    }

    pub fn zip<J: IntoIterator>(self, other: J) -> Serial<std::iter::Zip<I, J::IntoIter>> {
        Serial(self.0.zip(other))
    }

    pub fn enumerate(self) -> Serial<std::iter::Enumerate<I>> {
        Serial(self.0.enumerate())
    }

    pub fn step_by(self, step: usize) -> Serial<std::iter::StepBy<I>> {
        Serial(self.0.step_by(step))
    }

    #[must_use]
    pub fn with_min_len(self, _: usize) -> Self {
        self
    }

    pub fn for_each(self, f: impl FnMut(I::Item)) {
        self.0.for_each(f);
    }

    pub fn find_map_first<T>(mut self, f: impl FnMut(I::Item) -> Option<T>) -> Option<T> {
        self.0.find_map(f)
    }

    pub fn reduce(
        self,
        identity: impl FnOnce() -> I::Item,
        f: impl FnMut(I::Item, I::Item) -> I::Item,
    ) -> I::Item {
        self.0.fold(identity(), f)
    }

    pub fn collect<C: FromIterator<I::Item>>(self) -> C {
        self.0.collect()
    }

    pub fn collect_into_vec(self, to: &mut Vec<I::Item>) {
        to.clear();
        to.extend(self.0);
    }

    pub fn unzip<A, B, FromA, FromB>(self) -> (FromA, FromB)
    where
        I: Iterator<Item = (A, B)>,
        FromA: Default + Extend<A>,
        FromB: Default + Extend<B>,
    {
        self.0.unzip()
    }
}

#[cfg(test)]
mod tests {
    use super::{prelude::*, *};

    #[test]
    fn methods_that_no_iterator_has_do_what_rayon_documents() {
        assert_eq!(join(|| 1, || 2), (1, 2));
        let numbers: Vec<u32> = (0..10).collect();
        let sum = numbers.par_chunks(3).map(|part| part.iter().sum());
        assert_eq!(sum.reduce(|| 0, |a: u32, b| a + b), 45);
        let mut running: Vec<u32> = vec![7];
        let sums = numbers.par_iter().map_init(
            || 0,
            |sum, n| {
                *sum += n;
                *sum
            },
        );
        sums.collect_into_vec(&mut running);
        assert_eq!(running, [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]);
        let twice = numbers.into_par_iter().with_min_len(4);
        let twice: Vec<u32> = twice.flat_map_iter(|n| [n; 2]).collect();
        assert_eq!(twice[..6], [0, 0, 1, 1, 2, 2]);
        let found = running
            .par_iter()
            .find_map_first(|n| (*n > 4).then_some(*n));
        assert_eq!(found, Some(6));
    }
}
