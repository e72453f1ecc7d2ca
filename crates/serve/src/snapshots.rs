//! Where the server takes states from.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbor_chain::replay::Publish;
use arbor_state::{Head, StateSnapshot};

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

    /// Returns a state for which this holds and that was the latest one a moment ago, on the same
    /// branch. A client may have learnt its block from one call and ask for it with the next, and a
    /// writer that commits many blocks may have pruned it in between.
    fn earlier(&self, is_wanted: &dyn Fn(Head<'_>) -> bool) -> Option<StateSnapshot>;

    /// Returns why later states of the writer cannot be read, if so.
    fn fault(&self) -> Option<String> {
        None
    }
}

/// How long a state that is the latest no longer is kept for clients that know its block.
const MOMENT: Duration = Duration::from_secs(1);

/// The states that were the latest a moment ago, the last one last, and since when they are not.
#[derive(Default)]
struct Earlier(VecDeque<(StateSnapshot, Instant)>);

/// States that nobody needs any more. They are dropped while nobody waits for a lock, because that
/// may close files.
type Outdated = Vec<StateSnapshot>;

impl Earlier {
    /// The states whose moment is not over, the last one first.
    fn all(&self) -> Vec<StateSnapshot> {
        let kept = self.0.iter().rev();
        let kept = kept.take_while(|(_, since)| since.elapsed() < MOMENT);
        kept.map(|(snapshot, _)| snapshot.clone()).collect()
    }

    /// Takes out the states whose moment is over.
    fn take_over(&mut self) -> Outdated {
        let over = self.0.iter();
        let over = over.take_while(|(_, since)| since.elapsed() >= MOMENT);
        let over = over.count();
        self.0.drain(..over).map(|(snapshot, _)| snapshot).collect()
    }

    /// Keeps a state that is the latest no longer.
    fn keep(&mut self, snapshot: StateSnapshot) {
        self.0.push_back((snapshot, Instant::now()));
    }

    /// Takes out the states from the block of the latest one on: the chain went back, and their
    /// blocks may be others now.
    fn take_beyond(&mut self, latest: &StateSnapshot) -> Outdated {
        let number = |snapshot: &StateSnapshot| {
            let meta = snapshot.reader().meta();
            meta.map(|meta| meta.block_number)
        };
        let before = self.0.iter();
        let before = before.take_while(|(snapshot, _)| number(snapshot) < number(latest));
        let before = before.count();
        let beyond = self.0.drain(before..);
        beyond.map(|(snapshot, _)| snapshot).collect()
    }
}

fn first(of: Vec<StateSnapshot>, is_wanted: &dyn Fn(Head<'_>) -> bool) -> Option<StateSnapshot> {
    of.into_iter().find(|snapshot| is_wanted(snapshot.reader()))
}

/// A state that stays as it is, until another one takes its place.
pub struct Fixed(Mutex<FixedSlot>);

struct FixedSlot {
    latest: StateSnapshot,
    earlier: Earlier,
    fault: Option<String>,
}

impl Fixed {
    /// Serves this state.
    #[must_use]
    pub fn new(snapshot: StateSnapshot) -> Self {
        Self(Mutex::new(FixedSlot {
            latest: snapshot,
            earlier: Earlier::default(),
            fault: None,
        }))
    }

    /// Serves another state from now on. The one before goes a moment later, when the last call on
    /// it has ended.
    pub fn replace(&self, snapshot: StateSnapshot) {
        let mut slot = self.slot();
        slot.fault = None;
        let before = std::mem::replace(&mut slot.latest, snapshot);
        let FixedSlot {
            latest, earlier, ..
        } = &mut *slot;
        earlier.keep(before);
        let outdated = (earlier.take_over(), earlier.take_beyond(latest));
        drop(slot);
        drop(outdated);
    }

    /// Gives back the states before the latest one whose moment is over. Whoever serves calls this
    /// now and then.
    pub fn give_back(&self) {
        let outdated = self.slot().earlier.take_over();
        drop(outdated);
    }

    /// Says that later states cannot be read, and why; `None` that they can be again.
    pub fn set_fault(&self, fault: Option<String>) {
        self.slot().fault = fault;
    }

    fn slot(&self) -> MutexGuard<'_, FixedSlot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshots for Fixed {
    fn at_hand(&self) -> Option<StateSnapshot> {
        Some(self.slot().latest.clone())
    }

    fn wait(&self, _: Instant) -> Result<StateSnapshot, NoState> {
        Ok(self.slot().latest.clone())
    }

    fn earlier(&self, is_wanted: &dyn Fn(Head<'_>) -> bool) -> Option<StateSnapshot> {
        let kept = self.slot().earlier.all();
        first(kept, is_wanted)
    }

    fn fault(&self) -> Option<String> {
        self.slot().fault.clone()
    }
}

/// The states of a writer in this process: each version that it commits, before it is flushed.
///
/// A snapshot is made when one is wanted, after the next commit. While calls come, there is one for
/// every commit. But a writer that commits hundreds of blocks a second would spend much of its time
/// on them: while commits follow each other within 50 ms, there is at most one each half second.
/// Without calls there is none, so that a server at rest costs the writer one look after each
/// commit, and holds nothing back from pruning.
///
/// While calls come, snapshots before the latest one are kept for a second, because the writer may
/// prune the block that a client has just been told.
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
    earlier: Earlier,
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
        let (wanted, _outdated) = {
            let mut slot = self.slot();
            let now = Instant::now();
            let before = slot.committed.replace(now);
            let is_close = before.is_some_and(|before| now - before < CLOSE);
            let is_new = |(_, since): &(_, Instant)| now - *since < PACE;
            let mut outdated = slot.earlier.take_over();
            if is_close && slot.latest.as_ref().is_some_and(is_new) {
                (false, outdated)
            } else {
                outdated.extend(slot.retire());
                (slot.wanted, outdated)
            }
        };
        wanted
    }

    fn publish(&self, snapshot: StateSnapshot) {
        let mut slot = self.slot();
        let mut outdated: Outdated = slot.retire().into_iter().collect();
        outdated.extend(slot.earlier.take_beyond(&snapshot));
        slot.wanted = false;
        slot.latest = Some((snapshot, Instant::now()));
        self.published.notify_all();
        drop(slot);
        drop(outdated);
    }
}

impl Slot {
    /// Takes the latest version out. It is kept for a moment if somebody asked for it, and returned
    /// if not.
    fn retire(&mut self) -> Option<StateSnapshot> {
        let (snapshot, _) = self.latest.take()?;
        match self.wanted {
            true => self.earlier.keep(snapshot),
            false => return Some(snapshot),
        }
        None
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

    fn earlier(&self, is_wanted: &dyn Fn(Head<'_>) -> bool) -> Option<StateSnapshot> {
        let kept = self.slot().earlier.all();
        first(kept, is_wanted)
    }
}

impl<S: Snapshots> Snapshots for Arc<S> {
    fn at_hand(&self) -> Option<StateSnapshot> {
        (**self).at_hand()
    }

    fn wait(&self, deadline: Instant) -> Result<StateSnapshot, NoState> {
        (**self).wait(deadline)
    }

    fn earlier(&self, is_wanted: &dyn Fn(Head<'_>) -> bool) -> Option<StateSnapshot> {
        (**self).earlier(is_wanted)
    }

    fn fault(&self) -> Option<String> {
        (**self).fault()
    }
}
