//! Threads that wait for the disk.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Threads of a process that wait for the disk side by side, whatever asks.
pub(crate) const WAITING: usize = 16;

type Task = Box<dyn FnOnce() + Send>;

/// Threads that are started when they are needed first and then stay: a thread made for a few reads would cost as much as they do, with its stack, and with memory
/// that is fetched from the system and given back.
#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    /// With the call that each is of.
    tasks: VecDeque<(u64, Task)>,
    threads: usize,
    idle: usize,
}

static CALLS: AtomicU64 = AtomicU64::new(0);
static POOL: Pool = Pool {
    state: Mutex::new(State {
        tasks: VecDeque::new(),
        threads: 0,
        idle: 0,
    }),
    more: Condvar::new(),
};

impl Pool {
    /// No task runs while the state is locked, so a panic cannot leave it half-changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has threads run the tasks of a call.
    fn begin(&'static self, tasks: impl Iterator<Item = Task>, call: u64) {
        let mut state = self.state();
        let before = state.tasks.len();
        state.tasks.extend(tasks.map(|task| (call, task)));
        let added = state.tasks.len() - before;
        let wanted = state.tasks.len().saturating_sub(state.idle);
        for _ in 0..wanted.min(WAITING - state.threads) {
            let thread = thread::Builder::new().name("reading".to_owned());
            if thread.spawn(|| self.work()).is_err() {
                break;
            }
            state.threads += 1;
        }
        drop(state);
        (0..added).for_each(|_| self.more.notify_one());
    }

    /// A task of the call that no thread has begun.
    fn take_back(&self, call: u64) -> Option<Task> {
        let mut state = self.state();
        let place = state.tasks.iter().rposition(|(of, _)| *of == call)?;
        state.tasks.remove(place).map(|(_, task)| task)
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            match state.tasks.pop_front() {
                Some((_, task)) => {
                    drop(state);
                    task();
                    state = self.state();
                }
                None => {
                    state.idle += 1;
                    let woken = self.more.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                    state.idle -= 1;
                }
            }
        }
    }
}

/// What became of a part: a panic goes on in the thread that asked.
type Outcome<V> = Result<V, Box<dyn Any + Send>>;

/// Calls `read` with each part, on as many threads as there are parts and threads; the results come in the parts' order. What no thread has begun the caller
/// reads itself, so that nobody waits for others' reads alone. None of what `read` and the parts hold outlives the call.
pub(crate) fn side_by_side<P, V>(
    parts: Vec<P>,
    read: impl Fn(P) -> V + Send + Sync + 'static,
) -> Vec<V>
where
    P: Send + 'static,
    V: Send + 'static,
{
    let count = parts.len();
    let (sender, outcomes) = sync_channel::<(usize, Outcome<V>)>(count);
    let read = Arc::new(read);
    let tasks = parts.into_iter().enumerate().map(|(place, part)| {
        let (sender, read) = (sender.clone(), Arc::clone(&read));
        Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(move || read(part)));
            // Whoever asked waits for all.
            let _ = sender.send((place, outcome));
        }) as Task
    });
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    POOL.begin(tasks, call);
    drop((sender, read));
    while let Some(task) = POOL.take_back(call) {
        task();
    }
    let mut values: Vec<Option<Outcome<V>>> = (0..count).map(|_| None).collect();
    for (place, outcome) in outcomes {
        values[place] = Some(outcome);
    }
    let value = |outcome: Option<Outcome<V>>| match outcome {
        Some(Ok(value)) => value,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("invariant: every task sends one outcome"),
    };
    values.into_iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    #[test]
    fn parts_are_read_side_by_side_and_come_in_order() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&most);
        let read = move |part: usize| {
            let running = now.fetch_add(1, Ordering::SeqCst) + 1;
            seen.fetch_max(running, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(2));
            now.fetch_sub(1, Ordering::SeqCst);
            part * 2
        };
        let kept = Arc::new(());
        let held = Arc::clone(&kept);
        let values = side_by_side((0..100).collect(), move |part| {
            let _ = &held;
            read(part)
        });
        assert_eq!(values, (0..100).map(|part| part * 2).collect::<Vec<_>>());
        assert_eq!(Arc::strong_count(&kept), 1, "nothing is held any more");
        let most = most.load(Ordering::SeqCst);
        assert!((2..=WAITING + 1).contains(&most), "{most}");
        assert!(side_by_side(Vec::<u8>::new(), |part| part).is_empty());
    }

    #[test]
    fn nobody_waits_for_the_reads_of_others() {
        let (sender, release) = sync_channel::<()>(0);
        let release = Arc::new(Mutex::new(release));
        let others = thread::spawn(move || {
            side_by_side((0..4 * WAITING).collect(), move |_: usize| {
                drop(release.lock().map(|release| release.recv()));
            })
        });
        // Every thread is busy now, or soon, and stays so.
        thread::sleep(Duration::from_millis(20));
        assert_eq!(side_by_side(vec![1, 2, 3], |part| part * 2), [2, 4, 6]);
        drop(sender);
        assert_eq!(others.join().expect("no panic").len(), 4 * WAITING);
    }

    #[test]
    fn a_panic_comes_back_and_the_threads_live_on() {
        for _ in 0..2 * WAITING {
            let panicked = catch_unwind(|| side_by_side(vec![1, 2, 3], |part| assert_ne!(part, 2)));
            assert!(panicked.is_err());
        }
        assert_eq!(side_by_side(vec![1, 2, 3], |part| part + 1), [2, 3, 4]);
    }
}
