//! Progress: a bar on a terminal, a plain line every few seconds elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::metrics_server::PROGRESS;
use crate::output;

const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress over blocks.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    verb: &'static str,
    first: u64,
    last: Option<u64>,
    start: Instant,
    next_line: Instant,
    gas: u64,
    /// The part of the chain's files before the first block, and before the block under way, if the last block is not
    /// known.
    read: Option<(f64, f64)>,
}

impl Progress {
    /// Begins before block `first`; `last` is the last block to come, where known.
    pub(crate) fn new(verb: &'static str, first: u64, last: Option<u64>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| bar(first, last));
        let start = Instant::now();
        Self {
            bar,
            verb,
            first,
            last,
            start,
            next_line: start + LINE_EVERY,
            gas: 0,
            read: None,
        }
    }

    /// Tells which part of the chain's files was read until the block under way, 0 to 1.
    pub(crate) fn read(&mut self, part: f64) {
        let (begin, _) = *self.read.get_or_insert((part, part));
        self.read = Some((begin, part));
    }

    /// The part that is done once a block is, if it is known.
    fn done(&self, number: u64) -> Option<f64> {
        match (self.last, self.read) {
            (Some(last), _) => {
                let all = (last + 1).saturating_sub(self.first).max(1);
                Some((number + 1).saturating_sub(self.first) as f64 / all as f64)
            }
            (None, Some((begin, now))) if now > begin => Some((now - begin) / (1.0 - begin)),
            (None, _) => None,
        }
    }

    /// Tells that a block is done.
    pub(crate) fn block(&mut self, number: u64, gas: u64) {
        self.gas += gas;
        PROGRESS.block(number, gas);
        let done = self.done(number);
        if let Some(done) = done {
            PROGRESS.done(done);
        }
        let now = Instant::now();
        match &self.bar {
            Some(bar) => {
                // First: setting the position draws the bar.
                bar.set_message(self.rates(number, now));
                bar.set_prefix(number.to_string());
                match (self.last, done) {
                    (None, Some(done)) => {
                        if bar.length().is_none() {
                            bar.set_length(PartDone::STEPS as u64);
                            bar.set_style(style(OF_BYTES));
                        }
                        bar.set_position((done * PartDone::STEPS) as u64);
                    }
                    _ => bar.set_position((number + 1).saturating_sub(self.first)),
                }
            }
            None if now >= self.next_line => {
                self.next_line = now + LINE_EVERY;
                output::tell(&format!(
                    "{} block {number}{}: {}",
                    self.verb,
                    self.of_last(),
                    self.rates(number, now)
                ));
            }
            None => {}
        }
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn of_last(&self) -> String {
        self.last
            .map_or(String::new(), |last| format!(" of {last}"))
    }

    /// The part that is done in per cent, and the time left, for a line.
    fn part_and_rest(&self, number: u64, elapsed: Duration) -> String {
        let Some(done) = self.done(number) else {
            return String::new();
        };
        let left = seconds_left(elapsed, done).map(|left| format!(", {left:.0} s left"));
        format!(", {:.1} %{}", 100.0 * done, left.unwrap_or_default())
    }

    fn rates(&self, number: u64, now: Instant) -> String {
        let seconds = (now - self.start).as_secs_f64().max(1e-3);
        let blocks = (number + 1).saturating_sub(self.first) as f64 / seconds;
        let mut text = format!(
            "{blocks:.0} blocks/s, {:.0} Mgas/s",
            self.gas as f64 / 1e6 / seconds
        );
        if self.bar.is_none() {
            text += &self.part_and_rest(number, now - self.start);
        }
        text
    }
}

/// Progress of a job of which is known what part is done; told from any thread.
pub(crate) struct PartDone {
    bar: Option<ProgressBar>,
    verb: &'static str,
    start: Instant,
    next_line: Mutex<Instant>,
}

impl PartDone {
    /// Steps of the bar.
    const STEPS: f64 = 1e4;

    pub(crate) fn new(verb: &'static str) -> Self {
        Self::with_bar(verb, std::io::stderr().is_terminal())
    }

    /// Like [`new`](Self::new), for a command that prints much: no bar stands between its lines.
    pub(crate) fn while_printing(verb: &'static str) -> Self {
        let on_terminal = std::io::stdout().is_terminal();
        Self::with_bar(verb, std::io::stderr().is_terminal() && !on_terminal)
    }

    fn with_bar(verb: &'static str, wanted: bool) -> Self {
        let bar = wanted.then(|| {
            let bar = ProgressBar::new(Self::STEPS as u64);
            bar.set_style(style("{bar:30} {percent} %, {msg}, {eta} left"));
            bar
        });
        let start = Instant::now();
        Self {
            bar,
            verb,
            start,
            next_line: Mutex::new(start + LINE_EVERY),
        }
    }

    /// Tells which part is done, 0 to 1, and of what.
    pub(crate) fn set(&self, done: f64, what: &str) {
        PROGRESS.done(done);
        if let Some(bar) = &self.bar {
            // First: setting the position draws the bar.
            bar.set_message(what.to_owned());
            bar.set_position((done * Self::STEPS) as u64);
            return;
        }
        let now = Instant::now();
        // Whoever holds the lock tells; the others have nothing newer to say.
        let Ok(mut next) = self.next_line.try_lock() else {
            return;
        };
        if now < *next {
            return;
        }
        *next = now + LINE_EVERY;
        let left = seconds_left(now - self.start, done);
        let left = left.map_or_else(String::new, |left| format!(", {left:.0} s left"));
        output::tell(&format!(
            "{} {:.1} %: {what}{left}",
            self.verb,
            100.0 * done
        ));
    }

    /// Takes the bar off the terminal.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The part of a scan that is done, told from keys that ascend and are spread evenly, such as hashes.
#[derive(Default)]
pub(crate) struct KeyPart {
    /// The greatest part seen so far; `None` once a key has come that is below it.
    last: Option<f64>,
    fell: bool,
}

impl KeyPart {
    /// Takes the next key; returns the part that is done, unless keys do not ascend.
    pub(crate) fn at(&mut self, key: &[u8]) -> Option<f64> {
        let first = key
            .first_chunk()
            .map_or(0, |first| u32::from_be_bytes(*first));
        let part = f64::from(first) / f64::from(u32::MAX);
        self.fell |= self.last.is_some_and(|last| part < last);
        self.last = Some(part);
        (!self.fell).then_some(part)
    }
}

/// What is left of a job at the pace so far; unknown before a fiftieth of it is done, for opening and the first reads are no measure of the rest.
fn seconds_left(elapsed: Duration, done: f64) -> Option<f64> {
    (done >= 0.02).then(|| elapsed.as_secs_f64() * (1.0 - done) / done)
}

fn bar(first: u64, last: Option<u64>) -> ProgressBar {
    let (bar, template) = match last {
        Some(last) => (
            ProgressBar::new((last + 1).saturating_sub(first)),
            OF_BLOCKS,
        ),
        None => (ProgressBar::new_spinner(), WITHOUT_END),
    };
    bar.with_style(style(template))
}

/// A bar of blocks whose last one is known.
const OF_BLOCKS: &str = "{bar:30} {percent} %, {pos}/{len} blocks, {msg}, {eta} left";
/// A bar of the bytes of a chain's files.
const OF_BYTES: &str = "{bar:30} {percent} %, block {prefix}, {msg}, {eta} left";
/// Blocks of which nobody knows how many there are.
const WITHOUT_END: &str = "{spinner} {pos} blocks, {msg}";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("invariant: the templates are well formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_a_scan_is_known_while_keys_ascend() {
        let mut part = KeyPart::default();
        assert_eq!(part.at(&[0; 20]), Some(0.0));
        let half = part.at(&[0x80; 20]).expect("ascending");
        assert!((0.5..0.51).contains(&half), "{half}");
        assert_eq!(part.at(&[0xff; 32]), Some(1.0));
        assert_eq!(part.at(&[3; 32]), None);
        assert_eq!(part.at(&[4; 32]), None);
    }

    /// A replay of an export without --to showed no per cent, because its last block is not known.
    #[test]
    fn without_a_last_block_the_bytes_tell_the_part() {
        let mut progress = Progress::new("replay", 11, None);
        assert_eq!(progress.done(11), None);
        progress.read(0.5);
        assert_eq!(progress.done(11), None);
        progress.read(0.75);
        assert_eq!(progress.done(12), Some(0.5));
        let rest = progress.part_and_rest(12, Duration::from_secs(3));
        assert_eq!(rest, ", 50.0 %, 3 s left");
        progress.last = Some(14);
        assert_eq!(progress.done(11), Some(0.25));
    }

    #[test]
    fn what_is_left_is_told_once_it_can_be_known() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(seconds_left(elapsed, 0.0), None);
        assert_eq!(seconds_left(elapsed, 0.019), None);
        assert_eq!(seconds_left(elapsed, 0.25), Some(30.0));
        assert_eq!(seconds_left(elapsed, 1.0), Some(0.0));
    }
}
