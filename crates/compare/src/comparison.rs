//! A comparison from its first run to its last file.

use std::path::Path;

use arbor_metrics::Envelope;

use crate::runner::{CopyDatabase, Ended, Runner};
use crate::statistics::SPREAD_LIMIT;
use crate::{CompareError, Folder, Plan, Results, Run, Summary, page, parquet_rows, rows};

/// A comparison to carry out.
pub struct Comparison<'a> {
    /// What is compared.
    pub plan: &'a Plan,
    /// Where its files are.
    pub folder: &'a Folder,
    /// The program whose processes replay.
    pub program: &'a Path,
    /// Copies the database that a side's runs begin with.
    pub copy: &'a CopyDatabase<'a>,
    /// Whether somebody asked to stop. The run that is under way comes to its end.
    pub stopped: &'a dyn Fn() -> bool,
    /// Takes the number of runs that are done, and of all runs that the plan asks for.
    pub done: &'a dyn Fn(usize, usize),
    /// Takes a line about what goes on.
    pub tell: &'a dyn Fn(&str),
}

/// How a comparison ended.
#[derive(Debug)]
pub enum Outcome {
    /// All runs were done, or tried.
    Done(Box<Found>),
    /// Somebody asked to stop. The runs that were done are kept.
    Stopped {
        /// Their number.
        done: usize,
        /// All runs that the plan asks for.
        of: usize,
    },
}

/// What came of a comparison.
#[derive(Debug)]
pub struct Found {
    /// The runs next to each other.
    pub results: Results,
    runs: Vec<Run>,
}

impl Found {
    /// Checks that all sides have the same roots after every block, as sides of one tree do whatever its settings.
    ///
    /// # Errors
    /// The first run with other roots than the first one.
    pub fn check_same_roots(&self) -> Result<(), CompareError> {
        same_roots(&self.runs)
    }
}

fn same_roots(runs: &[Run]) -> Result<(), CompareError> {
    let first = runs.first();
    let other = runs
        .iter()
        .find(|run| first.is_some_and(|first| run.roots != first.roots));
    match (first, other) {
        (Some(first), Some(other)) => Err(CompareError::Disagree(format!(
            "the roots of {} (run {}) and of {} (run {}) differ, although the tree is the same: please report this",
            first.side, first.repetition, other.side, other.repetition,
        ))),
        _ => Ok(()),
    }
}

/// The runs until now.
#[derive(Default)]
struct Progress {
    runs: Vec<Run>,
    failed: Vec<String>,
    /// Sides with a failed run, whose other runs are left out.
    failed_sides: Vec<String>,
}

impl Comparison<'_> {
    /// Does the runs that are not done yet, and puts all of them next to each other. A run that fails is named
    /// among the results; its side's other runs are left out, those of other sides are done.
    ///
    /// # Errors
    /// Files that cannot be read or written, and runs that must agree and do not.
    pub fn run(&self) -> Result<Outcome, CompareError> {
        let mut progress = Progress::default();
        let planned = self.plan.repetitions;
        for repetition in 1..=planned {
            if !self.round(&mut progress, repetition)? {
                return Ok(self.stopped_after(&progress));
            }
        }
        if planned > 1 && self.is_spread(&progress) {
            (self.tell)(&format!(
                "repetitions differ by more than {:.0} % of their median: running once more",
                100.0 * SPREAD_LIMIT
            ));
            if !self.round(&mut progress, planned + 1)? {
                return Ok(self.stopped_after(&progress));
            }
        }
        let results = Results::of(self.plan, &progress.runs, progress.failed)?;
        Ok(Outcome::Done(Box::new(Found {
            results,
            runs: progress.runs,
        })))
    }

    /// Writes all files of what was found: the envelope of all reports, the rows, and the page.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, found: &Found, envelope: &Envelope) -> Result<(), CompareError> {
        let Found { results, runs } = found;
        rows::write_runs(self.folder, runs)?;
        rows::write_blocks(self.folder, results)?;
        parquet_rows::write_blocks(self.folder, results)?;
        page::write(self.folder, results, runs, envelope)?;
        // Last: who finds it finds the others, too.
        self.folder
            .write_json(&self.folder.path("results.json"), envelope)
    }

    /// One run of each side, in turn; false if somebody asked to stop.
    fn round(&self, progress: &mut Progress, repetition: usize) -> Result<bool, CompareError> {
        let runner = Runner {
            program: self.program,
            plan: self.plan,
            folder: self.folder,
            copy: self.copy,
            tell: self.tell,
        };
        for side in &self.plan.trees {
            if progress.failed_sides.contains(&side.name) {
                continue;
            }
            let name = format!("{}, run {repetition}", side.name);
            if let Some(run) = self.folder.run(side, repetition)? {
                (self.tell)(&format!(
                    "{name}: done before, {:.2} s",
                    run.report.wall_seconds
                ));
                progress.runs.push(run);
                (self.done)(progress.runs.len(), self.planned());
                continue;
            }
            if (self.stopped)() {
                return Ok(false);
            }
            let log = self.folder.of_run(side, repetition, "log");
            (self.tell)(&format!(
                "{name}: replaying; progress is in {}",
                log.display()
            ));
            match runner.run(side, repetition)? {
                Ended::Done(run) => {
                    (self.tell)(&format!("{name}: {:.2} s", run.report.wall_seconds));
                    progress.runs.push(*run);
                    (self.done)(progress.runs.len(), self.planned());
                }
                Ended::Failed(why) => {
                    let failed = format!("{name}: {why}; see {}", log.display());
                    (self.tell)(&failed);
                    progress.failed.push(failed);
                    progress.failed_sides.push(side.name.clone());
                }
                Ended::Stopped => return Ok(false),
            }
        }
        Ok(true)
    }

    fn stopped_after(&self, progress: &Progress) -> Outcome {
        Outcome::Stopped {
            done: progress.runs.len(),
            of: self.planned(),
        }
    }

    fn planned(&self) -> usize {
        self.plan.trees.len() * self.plan.repetitions
    }

    /// Whether the planned repetitions of a side differ by more than they may.
    fn is_spread(&self, progress: &Progress) -> bool {
        self.plan.trees.iter().any(|side| {
            let runs = progress.runs.iter().filter(|run| run.side == side.name);
            let walls = runs.map(|run| run.report.wall_seconds).collect();
            Summary::of(walls).is_some_and(|walls| walls.spread() > SPREAD_LIMIT)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::done;

    #[test]
    fn sides_of_one_tree_have_the_same_roots() {
        let mut runs = vec![done("oak", 1, 1.0, 1), done("oak:deep", 1, 1.0, 1)];
        runs[1].roots = runs[0].roots.clone();
        assert!(same_roots(&runs).is_ok() && same_roots(&[]).is_ok());
        runs[1].roots = "others".to_owned();
        let error = same_roots(&runs).expect_err("they differ").to_string();
        assert!(error.contains("of oak (run 1) and of oak:deep (run 1) differ"));
    }
}
