//! How long roots take to be known, as a distribution.

use std::time::Duration;

use serde::Serialize;

/// Buckets of a factor of two.
const BUCKETS_PER_OCTAVE: f64 = 64.0;

/// The delays of all roots of a replay, by buckets that are 1.1 % wide.
#[derive(Clone, Default, Debug)]
pub struct RootDelays {
    counts: Vec<u64>,
    blocks: u64,
    groups: f64,
    most_together: u64,
    longest: Duration,
}

/// Percentiles of the delays, in seconds, and how many blocks shared a computation.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct DelaySummary {
    /// Half of the roots were known within this time.
    pub p50_s: f64,
    /// Nine in ten roots were known within this time.
    pub p90_s: f64,
    /// Ninety-nine in a hundred roots were known within this time.
    pub p99_s: f64,
    /// The longest delay.
    pub max_s: f64,
    /// Mean number of blocks whose roots were computed in one step.
    pub group_mean: f64,
    /// The largest number of blocks whose roots were computed in one step.
    pub group_max: u64,
}

impl RootDelays {
    /// Adds a block whose root was known `delay` after its execution and computed together with those of `group` blocks, its own included; one without a
    /// root, whose group is 0, is passed over.
    pub fn add(&mut self, delay: Duration, group: u64) {
        if group == 0 {
            return;
        }
        let bucket = bucket(delay);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.blocks += 1;
        self.groups += 1.0 / group as f64;
        self.most_together = self.most_together.max(group);
        self.longest = self.longest.max(delay);
    }

    /// Returns the percentiles; `None` if no block had a root.
    pub fn summary(&self) -> Option<DelaySummary> {
        if self.blocks == 0 {
            return None;
        }
        Some(DelaySummary {
            p50_s: self.within(0.5),
            p90_s: self.within(0.9),
            p99_s: self.within(0.99),
            max_s: self.longest.as_secs_f64(),
            group_mean: self.blocks as f64 / self.groups,
            group_max: self.most_together,
        })
    }

    /// The delay within which a share of the roots was known, at most 1.1 % too long.
    fn within(&self, share: f64) -> f64 {
        let wanted = (self.blocks as f64 * share).ceil() as u64;
        let mut seen = 0;
        let reached = |count: &u64| {
            seen += count;
            seen >= wanted
        };
        let bucket = self.counts.iter().position(reached).unwrap_or_default();
        let upper = ((bucket + 1) as f64 / BUCKETS_PER_OCTAVE).exp2() / 1e9;
        upper.min(self.longest.as_secs_f64())
    }
}

/// The bucket of a delay: the logarithm of its nanoseconds.
fn bucket(delay: Duration) -> usize {
    let nanoseconds = delay.as_nanos().max(1) as f64;
    (nanoseconds.log2() * BUCKETS_PER_OCTAVE) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn percentiles_are_those_of_a_sorted_list() {
        let mut delays = RootDelays::default();
        assert_eq!(delays.summary(), None);
        delays.add(micros(5), 0);
        assert_eq!(delays.summary(), None, "a block without a root");
        for delay in 1..=1000 {
            delays.add(micros(delay), 1);
        }
        let summary = delays.summary().expect("there are blocks");
        for (found, wanted) in [
            (summary.p50_s, 500.0),
            (summary.p90_s, 900.0),
            (summary.p99_s, 990.0),
        ] {
            let ratio = found * 1e6 / wanted;
            assert!((1.0..=1.011).contains(&ratio), "{wanted}: {found}");
        }
        assert_eq!(summary.max_s, 1e-3);
    }

    #[test]
    fn groups_count_once() {
        let mut delays = RootDelays::default();
        for group in [1, 3, 3, 3] {
            delays.add(micros(1), group);
        }
        let summary = delays.summary().expect("there are blocks");
        assert!((summary.group_mean - 2.0).abs() < 1e-9);
        assert_eq!(summary.group_max, 3);
    }
}
