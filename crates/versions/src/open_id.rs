//! Which open database something was read from.

use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the databases that this process has opened apart.
///
/// A writer and its snapshots share one. A database that is opened again, or opened a second time for reading, has another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenId(u64);

impl OpenId {
    /// Returns one that nothing else has.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
