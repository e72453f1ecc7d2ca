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
        }
    }

    /// Tells that a block is done.
    pub(crate) fn block(&mut self, number: u64, gas: u64) {
        self.gas += gas;
        PROGRESS.block(number, gas);
        if let Some(last) = self.last {
            let all = (last + 1).saturating_sub(self.first).max(1);
            PROGRESS.done((number + 1).saturating_sub(self.first) as f64 / all as f64);
        }
        let now = Instant::now();
        match &self.bar {
            Some(bar) => {
                bar.set_position((number + 1).saturating_sub(self.first));
                bar.set_message(self.rates(number, now));
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

    fn rates(&self, number: u64, now: Instant) -> String {
        let seconds = (now - self.start).as_secs_f64().max(1e-3);
        let blocks = (number + 1).saturating_sub(self.first) as f64 / seconds;
        let mut text = format!(
            "{blocks:.0} blocks/s, {:.0} Mgas/s",
            self.gas as f64 / 1e6 / seconds
        );
        if let Some(last) = self.last.filter(|_| self.bar.is_none()) {
            let left = last.saturating_sub(number) as f64 / blocks.max(1e-9);
            text += &format!(", {left:.0} s left");
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
            let style = ProgressStyle::with_template("{bar:30} {percent} %, {msg}, {eta} left");
            bar.set_style(style.expect("invariant: the template is well formed"));
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
            bar.set_position((done * Self::STEPS) as u64);
            bar.set_message(what.to_owned());
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
        Some(last) => {
            let bar = ProgressBar::new((last + 1).saturating_sub(first));
            (bar, "{bar:30} {pos}/{len} blocks, {msg}, {eta} left")
        }
        None => (ProgressBar::new_spinner(), "{spinner} {pos} blocks, {msg}"),
    };
    let style = ProgressStyle::with_template(template)
        .expect("invariant: the templates above are well formed");
    bar.set_style(style);
    bar
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

    #[test]
    fn what_is_left_is_told_once_it_can_be_known() {
        let elapsed = Duration::from_secs(10);
        assert_eq!(seconds_left(elapsed, 0.0), None);
        assert_eq!(seconds_left(elapsed, 0.019), None);
        assert_eq!(seconds_left(elapsed, 0.25), Some(30.0));
        assert_eq!(seconds_left(elapsed, 1.0), Some(0.0));
    }
}
