//! Counts allocations on their way to the real allocator, and sets what that one does with freed memory.

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::Cell,
};

thread_local! {
    static COUNTS: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

/// Allocations of one thread since it began; growing counts as one, with the bytes of the new size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// How many.
    pub count: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

/// What this thread has allocated so far; zero always if the program's allocator is no [`Counting`] one.
#[must_use]
pub fn of_this_thread() -> Allocations {
    COUNTS.get()
}

/// An allocator that counts, for each thread, and leaves the work to another. Two additions in the thread's own memory for each allocation.
#[derive(Debug)]
pub struct Counting<A>(pub A);

/// `mi_option_purge_delay` of mimalloc 3 (`mimalloc.h`): milliseconds after which freed pages go back to the system, 1000 unless set.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Makes mimalloc give back what is freed after so many milliseconds, unless the environment says otherwise (`MIMALLOC_PURGE_DELAY`). What is kept longer
/// makes the peak higher; docs/measurements/verkle.md ("What was tried") has both ways. Call it before anything is freed: until a purge that is under way has come, all that is freed waits for it.
pub fn purge_after(milliseconds: u16) {
    set_purge_delay(milliseconds.into());
}

/// Makes mimalloc keep what is freed, unless the environment says otherwise. After any delay, however long, all that is free at that moment goes back at once, also what the next block needs.
pub fn keep_freed() {
    set_purge_delay(-1);
}

fn set_purge_delay(milliseconds: std::ffi::c_long) {
    // SAFETY: it sets a number in a table that is there from the start, for which any number is valid.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, milliseconds) };
}

fn count(bytes: usize) {
    // A thread that is ending has no counts any more.
    let _ = COUNTS.try_with(|counts| {
        let Allocations {
            count,
            bytes: before,
        } = counts.get();
        counts.set(Allocations {
            count: count.wrapping_add(1),
            bytes: before.wrapping_add(bytes as u64),
        });
    });
}

// SAFETY: every call goes to the inner allocator as it is, and its answer back; counting allocates nothing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are the inner allocator's conditions; so in all methods.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above.
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options are known by number alone: another version of mimalloc may have numbered them anew, and is told by the delay that it begins with.
    #[test]
    fn the_option_is_the_delay_of_purges() {
        // SAFETY: it reads a number of a table that is there from the start.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000);
        purge_after(10);
        assert_eq!(delay(), 10);
        purge_after(100);
        assert_eq!(delay(), 100);
        keep_freed();
        assert_eq!(delay(), -1);
    }
}
