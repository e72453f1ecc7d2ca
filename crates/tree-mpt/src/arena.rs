//! A growing list of large elements.

use std::ops::{Index, IndexMut};

/// Elements of a chunk: some 45 kB of nodes, which the allocator hands out again and again, while a block's nodes in
/// one piece are a megabyte that it may ask of the system, page by page and zeroed, every time.
const CHUNK: usize = 64;

/// A list in chunks of equal size. Growing moves nothing.
pub(crate) struct Arena<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Arena<T> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds an element and returns its index.
    pub(crate) fn push(&mut self, element: T) -> u32 {
        let index = self.len;
        if index / CHUNK == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks[index / CHUNK].push(element);
        self.len += 1;
        index as u32
    }

    pub(crate) fn swap(&mut self, a: usize, b: usize) {
        let (front, back) = (a.min(b), a.max(b));
        if front / CHUNK == back / CHUNK {
            self.chunks[front / CHUNK].swap(front % CHUNK, back % CHUNK);
            return;
        }
        let (before, after) = self.chunks.split_at_mut(back / CHUNK);
        std::mem::swap(
            &mut before[front / CHUNK][front % CHUNK],
            &mut after[0][back % CHUNK],
        );
    }

    /// Keeps the first `len` elements.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.chunks.truncate(len.div_ceil(CHUNK));
        if let Some(last) = self.chunks.last_mut() {
            last.truncate(len - (len - 1) / CHUNK * CHUNK);
        }
        self.len = len;
    }
}

impl<T> Index<usize> for Arena<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.chunks[index / CHUNK][index % CHUNK]
    }
}

impl<T> IndexMut<usize> for Arena<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.chunks[index / CHUNK][index % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_vector(
            steps in prop::collection::vec((0usize..400, 0usize..400, 0usize..400), 1..10),
        ) {
            let (mut arena, mut model) = (Arena::default(), Vec::new());
            for (push, swap, keep) in steps {
                for _ in 0..push {
                    prop_assert_eq!(arena.push(model.len()) as usize, model.len());
                    model.push(model.len());
                }
                if swap < model.len() {
                    let other = model.len() - 1;
                    arena.swap(swap, other);
                    model.swap(swap, other);
                }
                arena.truncate(keep);
                model.truncate(keep);
                prop_assert_eq!(arena.len(), model.len());
                for (index, element) in model.iter().enumerate() {
                    prop_assert_eq!(arena[index], *element);
                }
            }
        }
    }
}
