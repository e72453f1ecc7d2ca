//! The memory that requests and answers take, of all clients together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a request or an answer that take no room. Each connection has as much of its own, so
/// that small calls are answered also if large ones take all the room.
pub(crate) const OWN: usize = 32 << 10;

/// The room for requests and answers that are larger than [`OWN`].
#[derive(Clone)]
pub(crate) struct Memory(Arc<Pool>);

struct Pool {
    most: usize,
    used: AtomicUsize,
    /// The part of it that batches use.
    used_by_batches: AtomicUsize,
}

/// What takes room. Batches take at most half of all room, because a client that reads slowly can
/// ask for large answers with them at no cost of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Call,
    Batch,
}

impl Memory {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Pool {
            most,
            used: AtomicUsize::new(0),
            used_by_batches: AtomicUsize::new(0),
        }))
    }

    /// Returns room for [`OWN`] bytes, which can be made larger.
    pub(crate) fn room(&self, for_what: Use) -> Room {
        Room {
            memory: self.clone(),
            for_what,
            taken: 0,
        }
    }

    /// Bytes of all room that is taken.
    pub(crate) fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize, for_what: Use) -> bool {
        let Pool {
            most,
            used,
            used_by_batches,
        } = &*self.0;
        if !add(used, bytes, *most) {
            return false;
        }
        if for_what == Use::Batch && !add(used_by_batches, bytes, most / 2) {
            used.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }

    fn give_back(&self, bytes: usize, for_what: Use) {
        self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        if for_what == Use::Batch {
            self.0.used_by_batches.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// Adds to a count, unless it would be more than `most`.
fn add(count: &AtomicUsize, bytes: usize, most: usize) -> bool {
    let added = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(bytes).filter(|sum| *sum <= most)
    });
    added.is_ok()
}

/// Room for a request or an answer. It is given back when it is dropped.
pub(crate) struct Room {
    memory: Memory,
    for_what: Use,
    taken: usize,
}

impl Room {
    /// Makes the room at least this large. Returns false, and leaves the room as it is, if others
    /// take too much.
    #[must_use]
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(OWN).saturating_sub(self.taken);
        let fits = more == 0 || self.memory.take(more, self.for_what);
        if fits {
            self.taken += more;
        }
        fits
    }

    /// Gives back what is more than this.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.taken.saturating_sub(bytes.saturating_sub(OWN));
        self.memory.give_back(surplus, self.for_what);
        self.taken -= surplus;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.give_back(self.taken, self.for_what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_bounded_and_comes_back() {
        let memory = Memory::new(100);
        let mut first = memory.room(Use::Call);
        assert!(first.grow_to(OWN) && memory.used() == 0);
        assert!(first.grow_to(OWN + 70) && first.grow_to(OWN + 20));
        assert_eq!(memory.used(), 70);
        let mut second = memory.room(Use::Call);
        assert!(!second.grow_to(OWN + 31) && memory.used() == 70);
        assert!(second.grow_to(OWN + 30));
        first.shrink_to(OWN + 10);
        assert_eq!(memory.used(), 40);
        first.shrink_to(0);
        drop(second);
        assert_eq!(memory.used(), 0);
        assert!(!first.grow_to(usize::MAX));
    }

    #[test]
    fn batches_leave_half_of_the_room_to_calls() {
        let memory = Memory::new(100);
        let mut batch = memory.room(Use::Batch);
        assert!(!batch.grow_to(OWN + 51) && memory.used() == 0);
        assert!(batch.grow_to(OWN + 50));
        let mut other = memory.room(Use::Batch);
        assert!(!other.grow_to(OWN + 1) && memory.used() == 50);
        let mut call = memory.room(Use::Call);
        assert!(call.grow_to(OWN + 50));
        drop(batch);
        assert!(other.grow_to(OWN + 1) && memory.used() == 51);
    }
}
