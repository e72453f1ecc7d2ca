//! What came of the fixtures, by network and category.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::mode::Mode;
use crate::run::Verdict;

/// The categories: folders of the collections.
const CATEGORIES: [&str; 6] = [
    "blockchain_tests",
    "ValidBlocks",
    "InvalidBlocks",
    "TransitionTests",
    "GeneralStateTests",
    "StateTests",
];

/// Passed, failed, unsupported.
#[derive(Clone, Copy, Default)]
struct Counts([usize; 3]);

#[derive(Default)]
pub(crate) struct Table {
    /// By network and category.
    counts: BTreeMap<(String, &'static str), Counts>,
    /// Those of the sample, by mode.
    sampled: BTreeMap<Mode, Counts>,
    /// By reason.
    unsupported: BTreeMap<&'static str, Vec<String>>,
}

impl Table {
    /// Counts a fixture, and says what failed at once.
    pub(crate) fn add(&mut self, path: &str, name: &str, network: &str, verdict: Verdict) {
        let which = match verdict {
            Verdict::Passed => 0,
            Verdict::Failed(why) => {
                println!("FAILED {path} {name}: {why}");
                1
            }
            Verdict::Unsupported(why) => {
                let names = self.unsupported.entry(why).or_default();
                names.push(format!("{path} {name}"));
                2
            }
        };
        let key = (network.to_owned(), category(path));
        self.counts.entry(key).or_default().0[which] += 1;
    }

    /// Counts a fixture of the sample in another mode than that of the run.
    pub(crate) fn add_sampled(&mut self, path: &str, name: &str, mode: Mode, verdict: Verdict) {
        let which = match verdict {
            Verdict::Passed => 0,
            Verdict::Failed(why) => {
                println!("FAILED {} {path} {name}: {why}", mode.word());
                1
            }
            Verdict::Unsupported(_) => 2,
        };
        self.sampled.entry(mode).or_default().0[which] += 1;
    }

    fn sums(&self) -> Counts {
        let mut sums = Counts::default();
        for counts in self.counts.values() {
            (0..3).for_each(|which| sums.0[which] += counts.0[which]);
        }
        sums
    }

    /// Whether nothing failed, and something ran.
    pub(crate) fn is_success(&self) -> bool {
        let Counts([passed, failed, unsupported]) = self.sums();
        let failed = self
            .sampled
            .values()
            .fold(failed, |sum, counts| sum + counts.0[1]);
        failed == 0 && passed + unsupported > 0
    }

    /// Prints it; with the names of what is unsupported if `names` says so.
    pub(crate) fn print(&self, took: Duration, names: bool) {
        println!("| network | category | passed | failed | unsupported |\n|---|---|---|---|---|");
        let line = |network: &str, category: &str, counts: Counts| {
            let [passed, failed, unsupported] = counts.0;
            println!("| {network} | {category} | {passed} | {failed} | {unsupported} |");
        };
        for ((network, category), counts) in &self.counts {
            line(network, category, *counts);
        }
        line("all", "all", self.sums());
        for (mode, counts) in &self.sampled {
            line("sample", mode.word(), *counts);
        }
        for (why, fixtures) in &self.unsupported {
            println!("{} unsupported: {why}", fixtures.len());
            for fixture in fixtures.iter().filter(|_| names) {
                println!("  {fixture}");
            }
        }
        // As the other test programs end.
        let (word, passed, failed) = match self.is_success() {
            true => ("ok", 1, 0),
            false => ("FAILED", 0, 1),
        };
        let seconds = took.as_secs_f64();
        println!(
            "test result: {word}. {passed} passed; {failed} failed; finished in {seconds:.1}s"
        );
    }
}

fn category(path: &str) -> &'static str {
    let found = CATEGORIES
        .into_iter()
        .find(|category| path.split('/').any(|part| part == *category));
    found.unwrap_or("other")
}
