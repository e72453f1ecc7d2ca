//! How far a conversion has come, and whether it is to stop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::ConvertError;
use crate::counts::Counts;

/// A phase of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Reading the source and sorting its accounts by the target's keys.
    Sort,
    /// Building the target bottom-up.
    Build,
    /// Reading the target and comparing it with the source.
    Verify,
}

impl Phase {
    /// The word for it in progress and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sort => "sort",
            Self::Build => "build",
            Self::Verify => "verify",
        }
    }
}

/// What a conversion calls on the way, from any thread.
pub struct Hooks<'a> {
    /// Called with the phase, the part of it that is done, 0 to 1, and what it has read.
    pub progress: &'a (dyn Fn(Phase, f64, Counts) + Sync),
    /// Returns whether the conversion is to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// The counters of a phase.
pub(crate) struct Watch<'a> {
    hooks: &'a Hooks<'a>,
    phase: Phase,
    accounts: AtomicU64,
    slots: AtomicU64,
    /// The part that is done, as the bits of a float.
    done: AtomicU64,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(hooks: &'a Hooks<'a>, phase: Phase) -> Self {
        Self {
            hooks,
            phase,
            accounts: AtomicU64::new(0),
            slots: AtomicU64::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Stops if somebody asked for it.
    pub(crate) fn check(&self) -> Result<(), ConvertError> {
        match (self.hooks.stop)() {
            true => Err(ConvertError::Stopped),
            false => Ok(()),
        }
    }

    pub(crate) fn count(&self, counts: Counts) {
        self.accounts.fetch_add(counts.accounts, Ordering::Relaxed);
        self.slots.fetch_add(counts.slots, Ordering::Relaxed);
        self.tell();
    }

    pub(crate) fn done(&self, part: f64) {
        self.done.store(part.to_bits(), Ordering::Relaxed);
        self.tell();
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts {
            accounts: self.accounts.load(Ordering::Relaxed),
            slots: self.slots.load(Ordering::Relaxed),
        }
    }

    fn tell(&self) {
        let done = f64::from_bits(self.done.load(Ordering::Relaxed));
        (self.hooks.progress)(self.phase, done, self.counts());
    }
}

/// A phase that is over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PhaseDone {
    /// The phase.
    pub phase: Phase,
    /// How long it took in this run.
    pub time: Duration,
    /// What it read in this run.
    pub counts: Counts,
}

/// The time since the last phase.
pub(crate) struct Timed(Instant);

impl Default for Timed {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Timed {
    pub(crate) fn end(&mut self, watch: &Watch<'_>) -> PhaseDone {
        let begin = std::mem::replace(&mut self.0, Instant::now());
        PhaseDone {
            phase: watch.phase(),
            time: self.0 - begin,
            counts: watch.counts(),
        }
    }
}
