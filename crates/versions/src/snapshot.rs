//! A frozen state for other threads.

use std::sync::Arc;

use arbor_store::Reader;

use crate::identity::TableSpec;
use crate::unflushed::Unflushed;
use crate::version::Version;
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
    /// Returns the newest version that the store has; `None` if it has none of this state.
    pub fn flushed(&self) -> Option<Version> {
        let head = self.unflushed.head.as_ref()?;
        let flushed = head
            .version
            .0
            .checked_sub(self.unflushed.pending.len() as u64);
        flushed.map(Version)
    }

    /// The callers' tables as the store has them, ascending.
    pub fn stored_tables(&self) -> &[TableSpec] {
        self.unflushed.schema.specs()
    }

    /// Returns the view through which everything is read.
    pub fn view(&self) -> View<'_> {
        View {
            base: &*self.base,
            unflushed: &self.unflushed,
            active: None,
            deadline: None,
            at: None,
            space: self.unflushed.schema.space,
            root: None,
        }
    }
}
