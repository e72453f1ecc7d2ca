//! Changes that were computed on top of a version and are not applied yet.

use std::time::Duration;

use alloy_primitives::B256;
use arbor_versions::{Changes, OpenId, View};

use crate::{HeadId, StateError, Unfinished, Work};

/// What a block's changes make of the state: computed, not yet applied.
#[derive(Clone, Debug)]
pub struct Computed {
    pub(crate) root: B256,
    /// What its version writes.
    pub changes: Changes,
    /// Where the time went.
    pub timings: Timings,
    /// What the parts took.
    pub work: Work,
    origin: Origin,
    /// The open database that was read; `None` if the changes were not computed on one.
    database: Option<OpenId>,
}

/// What computed changes can be applied to.
#[derive(Clone, Debug)]
enum Origin {
    /// The head that they were computed on.
    Head {
        on: Option<HeadId>,
        /// Where they are in a run of blocks computed together, whose nodes come with the last.
        place: usize,
        /// The number of blocks in the run.
        of: usize,
        /// The root that the changes follow; `None` for the first of the run.
        before: Option<B256>,
    },
    /// A database that was loaded, of which they make the first version.
    Load,
}

/// Where the time of computing went.
#[derive(Clone, Copy, Default, Debug)]
pub struct Timings {
    /// Hashing names, reading old records, forming tree updates.
    pub keys: Duration,
    /// The tree: reading nodes, restructuring, hashing.
    pub tree: Duration,
    /// Forming flat and node writes.
    pub writes: Duration,
}

impl Computed {
    /// Changes of one block on top of the head.
    pub fn on_head(view: View<'_>, root: B256, changes: Changes) -> Self {
        let origin = Origin::Head {
            on: view.head().map(HeadId::of),
            place: 0,
            of: 1,
            before: None,
        };
        Self::new(origin, root, changes).of_database(view)
    }

    /// The changes of consecutive blocks that were computed together on top of the head.
    pub fn run(
        view: View<'_>,
        versions: impl ExactSizeIterator<Item = (B256, Changes)>,
    ) -> Vec<Self> {
        let (on, of) = (view.head().map(HeadId::of), versions.len());
        let mut before = None;
        let versions = versions.enumerate().map(|(place, (root, changes))| {
            let before = before.replace(root);
            let origin = Origin::Head {
                on,
                place,
                of,
                before,
            };
            Self::new(origin, root, changes).of_database(view)
        });
        versions.collect()
    }

    /// What is left to apply after a load.
    pub fn of_load(root: B256, changes: Changes) -> Self {
        Self::new(Origin::Load, root, changes)
    }

    fn new(origin: Origin, root: B256, changes: Changes) -> Self {
        Self {
            root,
            changes,
            timings: Timings::default(),
            work: Work::default(),
            origin,
            database: None,
        }
    }

    /// Sets the database that alone accepts the changes.
    #[must_use]
    pub fn of_database(self, view: View<'_>) -> Self {
        Self {
            database: Some(view.open_id()),
            ..self
        }
    }

    /// The state root after the block.
    pub fn root(&self) -> B256 {
        self.root
    }

    /// Where the time went.
    pub fn timings(&self) -> Timings {
        self.timings
    }

    /// The number of operations that the computation took.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Keys and records of the nodes written (`None`: deleted), for a diagnosis.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.changes.nodes()
    }
}

/// Checks that computed changes, in their order, are a whole run on top of a database's head. `is_loaded`: the
/// database was loaded and has no version yet.
///
/// # Errors
/// [`StateError::OtherDatabase`], [`StateError::Stale`], [`StateError::PartOfRun`], [`StateError::NotLoaded`],
/// [`StateError::Unfinished`].
pub fn check_run(view: View<'_>, is_loaded: bool, run: &[&Computed]) -> Result<(), StateError> {
    let head = view.head().map(HeadId::of);
    let mut root_before = None;
    for (index, computed) in run.iter().enumerate() {
        if computed.database.is_some_and(|id| id != view.open_id()) {
            return Err(StateError::OtherDatabase);
        }
        let Origin::Head {
            on: computed_on,
            place,
            of,
            before,
        } = computed.origin
        else {
            // Only the load of this database leaves it in need of its first version.
            match is_loaded && run.len() == 1 {
                true => continue,
                false => return Err(StateError::NotLoaded),
            }
        };
        if is_loaded {
            return Err(StateError::Unfinished(Unfinished::Load));
        }
        if computed_on != head {
            return Err(StateError::Stale { computed_on, head });
        }
        if (place, of) != (index, run.len()) || before != root_before {
            return Err(StateError::PartOfRun { place, of });
        }
        root_before = Some(computed.root);
    }
    Ok(())
}
