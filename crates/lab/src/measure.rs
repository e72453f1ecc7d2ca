//! Timing, after checking.

use arbor_allocations as allocations;
use arbor_hashing::keccak256;
use arbor_metrics::{FIELD_INVERSIONS, POINT_ADDITIONS};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// A result that is not what another way to compute it gives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{row}: result {index} is not what {by} gives; nothing was timed")]
pub struct Failed {
    /// The row's name.
    pub row: String,
    /// Which of the results.
    pub index: usize,
    /// The other way.
    pub by: &'static str,
}

/// What one operation costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Operations that were done together, or one after another if they are single.
    pub operations: usize,
    /// Nanoseconds of processor time of one, on all threads, the least of all repetitions: the figure to compare on a machine with other work.
    pub ns: f64,
    /// As `ns`, the median of all repetitions.
    pub median_ns: f64,
    /// Nanoseconds by the clock on the wall of one, the least of all repetitions.
    pub wall_ns: f64,
    /// Repetitions.
    pub repetitions: usize,
    /// Allocations of one, on the measuring thread.
    pub allocations: f64,
    /// Bytes that these asked for.
    pub allocated_bytes: f64,
    /// Additions of points for one, on all threads.
    pub point_additions: f64,
    /// Field inversions for one.
    pub inversions: f64,
}

/// One operation, alone and in batches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The name that other programs use for the same operation on the same inputs.
    pub name: String,
    /// What it is, in words.
    pub what: String,
    /// Values that one operation binds or changes: what its cost is divided by for the cost per value.
    pub values: usize,
    /// One at a time.
    pub single: Sample,
    /// Many at once, where there is such a way.
    pub batch: Option<Sample>,
    /// Keccak-256 of the results' bytes, one after another; empty where results have none.
    pub digest: String,
}

/// How long to measure each thing.
#[derive(Clone, Copy, Debug)]
pub struct Budget(pub Duration);

impl Budget {
    /// Times `job`, which does `operations` of them: what it costs first, then again and again.
    pub fn sample<R>(self, operations: usize, mut job: impl FnMut() -> R) -> Sample {
        let before = (
            allocations::of_this_thread(),
            POINT_ADDITIONS.get(),
            FIELD_INVERSIONS.get(),
        );
        black_box(job());
        let after = (
            allocations::of_this_thread(),
            POINT_ADDITIONS.get(),
            FIELD_INVERSIONS.get(),
        );
        let of_one = |total: u64| total as f64 / operations as f64;

        // Short jobs are timed several together, so that reading the clocks, a system call, costs nothing.
        let begin = Instant::now();
        black_box(job());
        let once = begin.elapsed().max(Duration::from_nanos(20));
        let together = (Duration::from_micros(200).as_nanos() / once.as_nanos()).max(1) as usize;
        let (mut times, mut wall) = (Vec::new(), Duration::MAX);
        let begin = Instant::now();
        while begin.elapsed() < self.0 || times.len() < 3 {
            let (start, start_of_process) = (Instant::now(), process_ns());
            for _ in 0..together {
                black_box(job());
            }
            times.push((process_ns() - start_of_process) / (together * operations) as f64);
            wall = wall.min(start.elapsed());
        }
        times.sort_by(f64::total_cmp);
        Sample {
            operations,
            ns: times[0],
            median_ns: times[times.len() / 2],
            wall_ns: wall.as_secs_f64() * 1e9 / (together * operations) as f64,
            repetitions: times.len() * together,
            allocations: of_one(after.0.count - before.0.count),
            allocated_bytes: of_one(after.0.bytes - before.0.bytes),
            point_additions: of_one(after.1 - before.1),
            inversions: of_one(after.2 - before.2),
        }
    }
}

/// Processor time of this process so far, on all its threads.
fn process_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Results of many inputs.
pub type Many<'a, I, R> = &'a dyn Fn(&[I]) -> Vec<R>;

/// How to compute something, in three ways that must agree.
pub struct Case<'a, I, R> {
    /// [`Row::name`].
    pub name: String,
    /// [`Row::what`].
    pub what: String,
    /// [`Row::values`].
    pub values: usize,
    /// What it is computed of.
    pub inputs: &'a [I],
    /// By the definition, slowly: checked for the first two inputs.
    pub naive: &'a dyn Fn(&I) -> R,
    /// One at a time.
    pub one: &'a dyn Fn(&I) -> R,
    /// All at once.
    pub many: Option<Many<'a, I, R>>,
    /// The bytes of a result.
    pub bytes: &'a dyn Fn(&R) -> Vec<u8>,
}

impl<I, R: PartialEq> Case<'_, I, R> {
    /// Singles are timed over that many inputs, one after another: more than one, so that tables are read as in real work.
    const SINGLES: usize = 16;

    /// Checks, and then measures.
    ///
    /// # Errors
    ///
    /// [`Failed`] if two ways disagree.
    pub fn measure(self, budget: Budget) -> Result<Row, Failed> {
        let failed = |index, by| Failed {
            row: self.name.clone(),
            index,
            by,
        };
        let results: Vec<R> = self.inputs.iter().map(self.one).collect();
        for (index, input) in self.inputs.iter().take(2).enumerate() {
            if (self.naive)(input) != results[index] {
                return Err(failed(index, "the definition"));
            }
        }
        if let Some(many) = self.many {
            let together = many(self.inputs);
            if together.len() != results.len() {
                return Err(failed(together.len().min(results.len()), "the batch"));
            }
            if let Some(index) = (0..results.len()).find(|&i| together[i] != results[i]) {
                return Err(failed(index, "the batch"));
            }
        }
        let bytes: Vec<u8> = results.iter().flat_map(self.bytes).collect();
        let few = &self.inputs[..self.inputs.len().min(Self::SINGLES)];
        let single = budget.sample(few.len(), || {
            for input in few {
                black_box((self.one)(black_box(input)));
            }
        });
        let batch = self
            .many
            .map(|many| budget.sample(self.inputs.len(), || many(black_box(self.inputs))));
        let digest = if bytes.is_empty() {
            String::new()
        } else {
            keccak256(&bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        Ok(Row {
            name: self.name,
            what: self.what,
            values: self.values,
            single,
            batch,
            digest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(naive: &'static dyn Fn(&u64) -> u64) -> Result<Row, Failed> {
        Case {
            name: "double/1".into(),
            what: "twice a number".into(),
            values: 1,
            inputs: &[1, 2, 3],
            naive,
            one: &|n| n * 2,
            many: Some(&|all| all.iter().map(|n| n * 2).collect()),
            bytes: &|n| n.to_be_bytes().to_vec(),
        }
        .measure(Budget(Duration::from_millis(1)))
    }

    #[test]
    fn nothing_wrong_is_timed() {
        let failed = case(&|n| n * n).expect_err("1 * 1 is not 2");
        assert_eq!((failed.index, failed.by), (0, "the definition"));
        let failed = case(&|n| if *n == 1 { 2 } else { 0 }).expect_err("the second is wrong");
        assert_eq!(failed.index, 1);
    }

    #[test]
    fn a_row_has_both_samples_and_the_results_digest() {
        let row = case(&|n| n + n).expect("right");
        assert!(row.single.ns > 0.0 && row.single.median_ns >= row.single.ns);
        assert_eq!(row.batch.map(|batch| batch.operations), Some(3));
        let bytes: Vec<u8> = [2u64, 4, 6].iter().flat_map(|n| n.to_be_bytes()).collect();
        let expected: String = keccak256(&bytes)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(row.digest, expected);
    }
}
