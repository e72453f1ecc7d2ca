//! A frozen state for other threads.

use std::sync::Arc;

use arbor_store::Reader;

use crate::unflushed::Unflushed;
use crate::view::View;

/// A version and its history, readable while later versions are applied, flushed and pruned: a
/// snapshot of the store at a flush, and the immutable versions above it in memory.
///
/// Reads do not go through the writer's clean cache, which is of the newest state.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) base: Arc<dyn Reader>,
    pub(crate) unflushed: Unflushed,
    /// How many of the layers, the oldest, a writer has.
    pub(crate) of_writer: usize,
}

impl Snapshot {
    /// Returns the view through which everything is read.
    pub fn view(&self) -> View<'_> {
        View {
            base: &*self.base,
            unflushed: &self.unflushed,
            active: None,
            deadline: None,
            at: None,
        }
    }
}
