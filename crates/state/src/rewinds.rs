//! Older states that lie too far back to be made in memory: copies of the database that are taken back. What they change lies in
//! temporary stores; the database below stays as it is.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use arbor_state_tree::{Rewind, Rewound};
use arbor_store::{Store, StoreError};
use arbor_versions::{Meta, Options, Retain, Snapshot, Version, Versions, VersionsError, View};

use crate::head::Head;
use crate::history::way_back;
use crate::{StateError, Tree};

/// How many copies a snapshot keeps.
const KEPT: usize = 4;
/// What is undone in a store takes so many times the memory of what is undone in memory: the nodes, their writes, and the layer that has both
/// until they are flushed.
const STEP: u64 = 4;
/// Bytes of the cache above a copy's store, for each change that may be in memory.
const CACHE_BYTES: u64 = 1 << 8;

/// How long who has a deadline waits before it looks again whether a copy is made.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A store for a copy, and what is dropped after it: a guard of its folder.
pub type ScratchStore = (Arc<dyn Store>, Box<dyn Any + Send + Sync>);

type MakeStore = dyn Fn() -> Result<ScratchStore, StoreError> + Send + Sync;

/// Temporary stores in which older versions are made, if more changed since than may be in memory.
#[derive(Clone)]
pub struct Scratch {
    changes: u64,
    place: Arc<Path>,
    make: Arc<MakeStore>,
}

impl Scratch {
    /// Makes a version by `make`'s stores, which are empty, if about so many flat records or more changed since it: each takes up to a kilobyte
    /// of memory while a tree's nodes are rebuilt. `place` is the folder that the stores lie in, for messages.
    pub fn new(
        changes: u64,
        place: impl AsRef<Path>,
        make: impl Fn() -> Result<ScratchStore, StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            changes,
            place: place.as_ref().into(),
            make: Arc::new(make),
        }
    }

    fn failed(&self, error: StateError) -> StateError {
        StateError::Scratch {
            place: self.place.as_ref().into(),
            cause: Box::new(error),
        }
    }

    /// About how many changed flat records a rollback undoes together.
    pub(crate) fn step(&self) -> u64 {
        self.changes / STEP
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch")
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

type Copies = Vec<Arc<RewoundCopy>>;

/// The copies of one snapshot.
pub(crate) struct Rewinds {
    scratch: Scratch,
    snapshot: Snapshot,
    tree: Tree,
    /// The one that was used last is the last.
    made: Mutex<Copies>,
}

impl Rewinds {
    pub(crate) fn new(scratch: Scratch, snapshot: Snapshot, tree: Tree) -> Self {
        Self {
            scratch,
            snapshot,
            tree,
            made: Mutex::default(),
        }
    }

    /// The copies, once nobody makes one.
    fn lock(&self, deadline: Option<Instant>) -> Result<MutexGuard<'_, Copies>, StateError> {
        let Some(deadline) = deadline else {
            return Ok(self.made.lock().unwrap_or_else(PoisonError::into_inner));
        };
        loop {
            match self.made.try_lock() {
                Ok(made) => return Ok(made),
                Err(TryLockError::Poisoned(made)) => return Ok(made.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() > deadline => {
                    return Err(VersionsError::Late.into());
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_AGAIN),
            }
        }
    }

    /// A copy of which a version is near, made if there is none.
    fn copy(
        &self,
        version: Version,
        deadline: Option<Instant>,
        is_near: impl Fn(View<'_>) -> Result<bool, StateError>,
    ) -> Result<Arc<RewoundCopy>, StateError> {
        let mut made = self.lock(deadline)?;
        let after = made.iter().enumerate();
        let after = after.filter(|(_, copy)| copy.version() >= Some(version));
        let nearest = after.min_by_key(|(_, copy)| copy.version());
        let mut fresh = None;
        if let Some((place, copy)) = nearest {
            let found = is_near(copy.view())?;
            let mut copy = made.remove(place);
            match (found, Arc::get_mut(&mut copy)) {
                (true, _) => {
                    made.push(copy.clone());
                    return Ok(copy);
                }
                // Nobody reads it: it is taken on.
                (false, Some(_)) => fresh = Some(copy),
                (false, None) => made.push(copy),
            }
        }
        let mut copy = match fresh {
            Some(copy) => copy,
            None => Arc::new(RewoundCopy::new(&self.scratch, &self.snapshot)?),
        };
        let own = Arc::get_mut(&mut copy).expect("invariant: nobody else has it");
        let taken = own.take_back(&self.scratch, deadline, &self.tree, version);
        // The next call makes another copy instead of one whose store failed, and may find more room.
        if let Err(error @ StateError::Scratch { .. }) = taken {
            return Err(error);
        }
        // A call whose time is over leaves a copy that is on the way, for the next one.
        if made.len() == KEPT {
            made.remove(0);
        }
        made.push(copy.clone());
        taken?;
        Ok(copy)
    }
}

impl Rewind for Rewinds {
    fn changes(&self) -> u64 {
        self.scratch.changes
    }

    fn near(&self, view: View<'_>, meta: &Meta) -> Result<Option<Arc<dyn Rewound>>, StateError> {
        let version = meta.version;
        let is_near = |view: View<'_>| -> Result<bool, StateError> {
            Ok(step_back(view, version, self.scratch.changes)? == version)
        };
        // What no flush has taken yet is in memory anyway.
        if self.snapshot.flushed() < Some(version) || is_near(view)? {
            return Ok(None);
        }
        let copy = self.copy(version, view.deadline(), is_near)?;
        // The store has another branch where a flush of a rollback failed.
        let is_same = copy.view().meta(version)?.as_ref() == Some(meta);
        Ok(is_same.then_some(copy as _))
    }

    fn to(&self, version: Version) -> Result<Option<Arc<dyn Rewound>>, StateError> {
        let there = |view: View<'_>| Ok(view.head().map(|head| head.version) == Some(version));
        if self.snapshot.flushed() < Some(version) {
            return Ok(None);
        }
        Ok(Some(self.copy(version, None, there)?))
    }
}

/// A copy of a database.
struct RewoundCopy {
    versions: Versions,
    _folder: Box<dyn Any + Send + Sync>,
}

impl RewoundCopy {
    fn new(scratch: &Scratch, snapshot: &Snapshot) -> Result<Self, StateError> {
        let failed = |error: StateError| scratch.failed(error);
        let (store, folder) = (scratch.make)().map_err(|error| failed(error.into()))?;
        let options = Options {
            cache_bytes: scratch.changes * CACHE_BYTES,
            retain: Retain::All,
            background: false,
            ..Options::default()
        };
        let versions = snapshot.open_over(store, options);
        Ok(Self {
            versions: versions.map_err(|error| failed(error.into()))?,
            _folder: folder,
        })
    }

    fn version(&self) -> Option<Version> {
        self.versions.head().map(|head| head.version)
    }

    /// Takes the copy back to a version, in steps that fit into memory.
    fn take_back(
        &mut self,
        scratch: &Scratch,
        deadline: Option<Instant>,
        tree: &Tree,
        to: Version,
    ) -> Result<(), StateError> {
        let steps = Steps {
            changes: scratch.step(),
            deadline,
        };
        steps.roll_back((&mut self.versions, tree), to, |error| {
            scratch.failed(error)
        })
    }
}

impl Rewound for RewoundCopy {
    fn view(&self) -> View<'_> {
        self.versions.view()
    }
}

/// The version to go back to first, on the way to an older one: with about so many changes since it as may be in memory together, and one version before
/// the latest at least.
pub(crate) fn step_back(view: View<'_>, to: Version, changes: u64) -> Result<Version, StateError> {
    let Some(head) = view.head().map(|head| head.version) else {
        return Ok(to);
    };
    view.retained(to)?;
    let mut sum = 0;
    for version in (to.0 + 1..=head.0).rev() {
        sum += view.changes_of(Version(version))?;
        if sum > changes && version < head.0 {
            return Ok(Version(version));
        }
    }
    Ok(to)
}

/// Going back in as many steps as memory asks for: each leaves a whole version, durably.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    /// About how many changes a step undoes at most, if it undoes more than one version.
    pub(crate) changes: u64,
    /// When reading ends, if it does.
    pub(crate) deadline: Option<Instant>,
}

impl Steps {
    /// Goes back to a retained version. `failed` is what an error of writing becomes.
    pub(crate) fn roll_back(
        self,
        (versions, tree): (&mut Versions, &Tree),
        to: Version,
        failed: impl Fn(StateError) -> StateError,
    ) -> Result<(), StateError> {
        loop {
            let view = versions.view();
            let view = self.deadline.map_or(view, |deadline| view.until(deadline));
            let step = step_back(view, to, self.changes)?;
            let (flat, nodes) = way_back(Head::new(view, tree), step)?;
            let rolled_back = versions.rollback(step, flat, nodes);
            rolled_back.map_err(|error| failed(error.into()))?;
            if step == to {
                return Ok(());
            }
        }
    }
}
