//! Where the server takes states from.

use std::error::Error;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbor_chain::replay::Publish;
use arbor_state::StateSnapshot;

/// Why there is no state.
#[derive(Debug, thiserror::Error)]
pub enum NoState {
    /// No block was committed while the server waited for one.
    #[error("no state is there yet, or the block under way takes too long: try again")]
    Late,
    /// The database cannot be read.
    #[error("the database cannot be read: {0}")]
    Failed(Arc<dyn Error + Send + Sync>),
}

/// Gives the latest state, of which each call of a client takes one.
pub trait Snapshots: Send + Sync + 'static {
    /// Returns the latest state if there is one at hand; never waits.
    fn at_hand(&self) -> Option<StateSnapshot>;

    /// Returns the latest state, which it waits for until the deadline.
    ///
    /// # Errors
    /// [`NoState`].
    fn wait(&self, deadline: Instant) -> Result<StateSnapshot, NoState>;
}

/// A state that stays as it is, until another one takes its place.
pub struct Fixed(Mutex<StateSnapshot>);

impl Fixed {
    /// Serves this state.
    #[must_use]
    pub const fn new(snapshot: StateSnapshot) -> Self {
        Self(Mutex::new(snapshot))
    }

    /// Serves another state from now on. The one before goes when the last call on it ends.
    pub fn replace(&self, snapshot: StateSnapshot) {
        let before = std::mem::replace(&mut *self.held(), snapshot);
        // Not while others wait for the lock: it may close files.
        drop(before);
    }

    fn held(&self) -> MutexGuard<'_, StateSnapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshots for Fixed {
    fn at_hand(&self) -> Option<StateSnapshot> {
        Some(self.held().clone())
    }

    fn wait(&self, _: Instant) -> Result<StateSnapshot, NoState> {
        Ok(self.held().clone())
    }
}

/// The states of a writer in this process: each version that it commits, before it is flushed.
///
/// A snapshot is made when one is wanted, after the next commit. While calls come, there is one for
/// every commit. But a writer that commits hundreds of blocks a second would spend much of its time on them: while commits follow each
/// other within 50 ms, there is at most one each half second. Without calls there is none, so that a server at rest costs the writer one look
/// after each commit, and holds nothing back from pruning.
#[derive(Default)]
pub struct Live {
    slot: Mutex<Slot>,
    published: Condvar,
}

/// How long a state is given to calls while later ones are committed closely.
const PACE: Duration = Duration::from_millis(500);
/// Commits that come within this time follow each other closely.
const CLOSE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Slot {
    /// The latest version, unless nobody asked for it, and when it was given.
    latest: Option<(StateSnapshot, Instant)>,
    /// Whether somebody asked since the last commit.
    wanted: bool,
    /// When the last commit was.
    committed: Option<Instant>,
}

impl Live {
    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Publish for Live {
    fn is_wanted(&self) -> bool {
        let (before, wanted) = {
            let mut slot = self.slot();
            let now = Instant::now();
            let before = slot.committed.replace(now);
            let is_close = before.is_some_and(|before| now - before < CLOSE);
            let is_new = |(_, since): &(_, Instant)| now - *since < PACE;
            if is_close && slot.latest.as_ref().is_some_and(is_new) {
                return false;
            }
            (slot.latest.take(), slot.wanted)
        };
        // Not while others wait for the lock: it may close files.
        drop(before);
        wanted
    }

    fn publish(&self, snapshot: StateSnapshot) {
        let mut slot = self.slot();
        slot.wanted = false;
        let before = slot.latest.replace((snapshot, Instant::now()));
        self.published.notify_all();
        drop(slot);
        drop(before);
    }
}

impl Snapshots for Live {
    fn at_hand(&self) -> Option<StateSnapshot> {
        let mut slot = self.slot();
        slot.wanted = true;
        let latest = slot.latest.as_ref();
        latest.map(|(snapshot, _)| snapshot.clone())
    }

    fn wait(&self, deadline: Instant) -> Result<StateSnapshot, NoState> {
        let mut slot = self.slot();
        loop {
            slot.wanted = true;
            if let Some((latest, _)) = &slot.latest {
                return Ok(latest.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return Err(NoState::Late);
            }
            let waited = self.published.wait_timeout(slot, left);
            slot = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<S: Snapshots> Snapshots for Arc<S> {
    fn at_hand(&self) -> Option<StateSnapshot> {
        (**self).at_hand()
    }

    fn wait(&self, deadline: Instant) -> Result<StateSnapshot, NoState> {
        (**self).wait(deadline)
    }
}
