//! What memory is told of how it will be read.

/// Has the processor bring the line in which a value begins to its caches, without waiting for it. Other architectures than x86-64 do nothing.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it touches nothing but caches.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// As [`prefetch`], to the second cache and not the first: for what is read after more than the first one holds.
#[inline(always)]
pub fn prefetch_early<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Asks the system to serve memory in large pages (2 MiB on x86-64), before it is first written.
///
/// Many megabytes that are read at random miss, in small pages, the processor's cache of addresses as well as its caches of data. Where the system has
/// no large pages, or is not Linux, small ones serve, only slower.
pub fn ask_for_large_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let page = rustix::param::page_size();
        let range = memory.as_mut_ptr_range();
        let begin = range.start.addr().next_multiple_of(page);
        let end = range.end.addr() / page * page;
        if begin < end {
            let begin = range.start.with_addr(begin).cast();
            // SAFETY: whole pages within a slice that is borrowed exclusively; this advice changes no contents.
            #[allow(unsafe_code)]
            let _ = unsafe { madvise(begin, end - begin.addr(), Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
