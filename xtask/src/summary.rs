//! The summary of a test run.

use std::collections::{BTreeMap, BTreeSet};

/// How reasons for lack of data begin, as `arbor-testdata` writes them.
const NO_DATA: &str = "no test data";

/// What a run of `cargo test` printed and recorded.
#[derive(Default)]
pub(crate) struct Summary {
    passed: usize,
    failed: usize,
    failures: BTreeSet<String>,
    /// Reasons by test.
    skipped: BTreeMap<String, BTreeSet<String>>,
}

impl Summary {
    /// Reads a line that `cargo test` printed.
    pub(crate) fn read_line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += count(result, "passed");
            self.failed += count(result, "failed");
        } else if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|test| test.strip_suffix(" ... FAILED"))
        {
            self.failures.insert(name.to_owned());
        }
    }

    /// Reads a line that a test recorded: its name, a tab, and why it is skipped.
    pub(crate) fn read_skipped(&mut self, line: &str) {
        let (test, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
        let reasons = self.skipped.entry(test.to_owned()).or_default();
        reasons.insert(reason.to_owned());
    }

    /// Returns the summary; `succeeded`: how `cargo test` ended.
    pub(crate) fn text(&self, succeeded: bool) -> String {
        let mut lines = Vec::new();
        if !self.failures.is_empty() {
            lines.push("failed:".to_owned());
            lines.extend(self.failures.iter().map(|name| format!("  {name}")));
        }
        if !succeeded && self.failed == 0 {
            lines.push(
                "cargo test failed before or between the tests: see its messages above".into(),
            );
        }
        let (no_data, other): (Vec<_>, Vec<_>) = self
            .skipped
            .iter()
            .partition(|(_, reasons)| reasons.iter().any(|reason| reason.starts_with(NO_DATA)));
        for (title, tests) in [
            ("skipped, in whole or in part, for lack of data:", &no_data),
            ("skipped, in whole or in part, for other reasons:", &other),
        ] {
            if !tests.is_empty() {
                lines.push(title.to_owned());
            }
            for (test, reasons) in tests {
                let reasons = reasons.iter().map(|reason| {
                    let name = reason.strip_prefix(NO_DATA).unwrap_or(reason);
                    name.trim_start_matches([':', ' '])
                });
                let reasons: Vec<&str> = reasons.collect();
                lines.push(format!("  {test}: {}", reasons.join(", ")));
            }
        }
        if !no_data.is_empty() {
            lines.push(
                "scripts/fetch-testdata.py fetches what is public into ../shared, or into the folder that ARBOR_TESTDATA \
                 names. testdata/README.md says where the rest comes from."
                    .to_owned(),
            );
        }
        // A skipped test has passed as far as the test harness knows.
        let passed = self.passed.saturating_sub(self.skipped.len());
        let (failed, skipped) = (self.failed, self.skipped.len());
        lines.push(format!(
            "{passed} passed, {failed} failed, {skipped} skipped"
        ));
        lines.join("\n")
    }
}

/// Returns the number before a word: 3 for `passed` in `ok. 3 passed; 0 failed`.
fn count(result: &str, word: &str) -> usize {
    let mut words = result.split([' ', ';']).filter(|word| !word.is_empty());
    let mut before = "";
    words
        .find(|found| {
            let is_it = *found == word;
            if !is_it {
                before = found;
            }
            is_it
        })
        .and_then(|_| before.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(lines: &[&str], skipped: &[&str]) -> Summary {
        let mut summary = Summary::default();
        lines.iter().for_each(|line| summary.read_line(line));
        skipped.iter().for_each(|line| summary.read_skipped(line));
        summary
    }

    #[test]
    fn results_of_all_programs_are_added_up() {
        let lines = [
            "test one ... ok",
            "test two::three ... FAILED",
            "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "FAILED path name: the official runner's line names no test",
            "test result: ok. 1 passed; 0 failed; finished in 0.1s",
        ];
        let text = summary(&lines, &[]).text(false);
        assert_eq!(text, "failed:\n  two::three\n5 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn skipped_tests_are_listed_and_are_not_passed() {
        let lines = ["test result: ok. 9 passed; 0 failed; 0 ignored"];
        let skipped = [
            "chains\tno test data: data/chains",
            "mounts\tno right to mount",
            "chains\tno test data: data/era1",
        ];
        let text = summary(&lines, &skipped).text(true);
        let expected = "skipped, in whole or in part, for lack of data:
  chains: data/chains, data/era1
skipped, in whole or in part, for other reasons:
  mounts: no right to mount
scripts/fetch-testdata.py fetches what is public into ../shared, or into the folder that ARBOR_TESTDATA \
                        names. testdata/README.md says where the rest comes from.
7 passed, 0 failed, 2 skipped";
        assert_eq!(text, expected);
    }

    /// A compile error leaves no result of a test.
    #[test]
    fn a_run_that_does_not_compile_is_no_success_without_failures() {
        let text = summary(&[], &[]).text(false);
        assert!(text.starts_with("cargo test failed"), "{text}");
        assert!(text.ends_with("0 passed, 0 failed, 0 skipped"), "{text}");
    }
}
