//! Ablations: one tree with all its techniques is compared with the same tree without each of them.

use arbor_metrics::Table;
use serde::{Deserialize, Serialize};

use crate::figure::Kind;
use crate::table::show;
use crate::{CompareError, Results, Side, SideError, Summary, median};

/// A technique that can be switched off.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Switch {
    /// The technique, for somebody who does not know the tree.
    pub technique: String,
    /// The word of a [`Side`] that switches it off.
    pub word: String,
}

/// The costs of a replay, or the ratios of these costs to the costs of another replay. A figure is `None` if the system does not count it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Costs {
    /// Wall time of the blocks in seconds, without the start and the end of the process, the median of all runs.
    pub blocks_s: Option<f64>,
    /// Processor time in seconds, of the program and of the system for it, start and end included, the median of all runs.
    pub cpu_s: Option<f64>,
    /// Bytes handed to the store.
    pub store_bytes: Option<f64>,
    /// Bytes on disk after the last block.
    pub disk_bytes: Option<f64>,
}

/// A tree without one technique.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Without {
    /// The technique, and the word that switched it off.
    #[serde(flatten)]
    pub switch: Switch,
    /// The side's name.
    pub side: String,
    /// The costs of its replays.
    pub costs: Costs,
    /// The costs, divided by those of the tree with all techniques.
    pub ratios: Costs,
    /// The distance between the least and the greatest time of the blocks in the runs, as a part of the median; `None` if
    /// there is one run.
    pub spread: Option<f64>,
}

/// The costs of a tree with all techniques, and without each of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Ablation {
    /// The side with all techniques.
    pub side: String,
    /// The costs of the replays with all techniques.
    pub all_on: Costs,
    /// The spread of its times, as in [`Without::spread`].
    pub spread: Option<f64>,
    /// The tree without each technique. A side whose runs failed is left out.
    pub without: Vec<Without>,
}

impl Ablation {
    /// Returns the sides to compare: the tree with all techniques, then without each of them.
    ///
    /// # Errors
    /// A technique without a word, or two with the same one.
    pub fn sides(tree: &str, switches: &[Switch]) -> Result<Vec<Side>, SideError> {
        let names = switches.iter().map(|switch| name_without(tree, switch));
        let names = std::iter::once(tree.to_owned()).chain(names);
        let sides: Vec<Side> = names
            .map(|name| Side::parse(&name))
            .collect::<Result<_, _>>()?;
        Side::check_distinct(&sides)?;
        Ok(sides)
    }

    /// Compares the [sides](Self::sides) of a tree in the results of their comparison.
    ///
    /// # Errors
    /// No runs with all techniques.
    pub fn of(tree: &str, switches: &[Switch], results: &Results) -> Result<Self, CompareError> {
        let all_on = costs(results, tree).ok_or_else(|| CompareError::NoReference {
            name: tree.to_owned(),
            failed: results.failed.clone(),
        })?;
        let without = switches.iter().filter_map(|switch| {
            let side = name_without(tree, switch);
            let costs = costs(results, &side)?;
            Some(Without {
                switch: switch.clone(),
                costs,
                ratios: costs.divided_by(&all_on),
                spread: spread(results, &side),
                side,
            })
        });
        Ok(Self {
            side: tree.to_owned(),
            all_on,
            spread: spread(results, tree),
            without: without.collect(),
        })
    }

    /// Returns the table for a terminal: the costs with all techniques, then the ratios without each.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "without",
            "switched off by",
            "time of blocks",
            "CPU time",
            "to the store",
            "on disk",
            "spread of the time",
        ]);
        let spread = |part: Option<f64>| match part {
            Some(part) => format!("{:.1} %", 100.0 * part),
            None => "-".to_owned(),
        };
        let figures = |costs: &Costs| {
            costs.each().map(|(kind, value)| match value {
                Some(value) => show(kind, value),
                None => "-".to_owned(),
            })
        };
        let ratios = |costs: &Costs| {
            costs.each().map(|(_, value)| match value {
                Some(value) => format!("{value:.2}x"),
                None => "-".to_owned(),
            })
        };
        let begin = ["(nothing: all are on)".to_owned(), String::new()];
        let figures = figures(&self.all_on).into_iter();
        table.row(
            begin
                .into_iter()
                .chain(figures)
                .chain([spread(self.spread)]),
        );
        for without in &self.without {
            let begin = [
                without.switch.technique.clone(),
                without.switch.word.clone(),
            ];
            let ratios = ratios(&without.ratios).into_iter();
            table.row(
                begin
                    .into_iter()
                    .chain(ratios)
                    .chain([spread(without.spread)]),
            );
        }
        table
    }
}

impl Costs {
    fn each(&self) -> [(Kind, Option<f64>); 4] {
        [
            (Kind::Time, self.blocks_s),
            (Kind::Time, self.cpu_s),
            (Kind::Bytes, self.store_bytes),
            (Kind::Observed, self.disk_bytes),
        ]
    }

    fn divided_by(&self, other: &Self) -> Self {
        let ratio = |mine: Option<f64>, other: Option<f64>| {
            Some(mine? / other.filter(|other| *other != 0.0)?)
        };
        Self {
            blocks_s: ratio(self.blocks_s, other.blocks_s),
            cpu_s: ratio(self.cpu_s, other.cpu_s),
            store_bytes: ratio(self.store_bytes, other.store_bytes),
            disk_bytes: ratio(self.disk_bytes, other.disk_bytes),
        }
    }
}

/// The name of the side without a technique.
fn name_without(tree: &str, switch: &Switch) -> String {
    format!("{tree}:{}", switch.word)
}

/// Returns the costs of a side's replays; `None` if the side has no runs.
fn costs(results: &Results, side: &str) -> Option<Costs> {
    let mut columns = results.trees.iter();
    let place = columns.position(|column| column.side.name == side)?;
    let of = |name: &str| -> Option<&Summary> { results.figure(name)?.trees[place].as_ref() };
    // Both are in the order of the runs.
    let cpu = of("user_s").zip(of("sys_s")).and_then(|(user, system)| {
        let sums = user.values.iter().zip(&system.values);
        let sums: Vec<f64> = sums.map(|(user, system)| user + system).collect();
        median(&sums)
    });
    let middle = |name: &str| Some(of(name)?.median);
    Some(Costs {
        blocks_s: middle("blocks_s"),
        cpu_s: cpu,
        store_bytes: middle("store_bytes"),
        disk_bytes: middle("disk_bytes"),
    })
}

/// The spread of the times of a side's runs; `None` if there are not several.
fn spread(results: &Results, side: &str) -> Option<f64> {
    let mut columns = results.trees.iter();
    let place = columns.position(|column| column.side.name == side)?;
    let times = results.figure("blocks_s")?.trees[place].as_ref()?;
    (times.values.len() > 1).then(|| times.spread())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::run::tests::{done, plan};

    fn switch(word: &str) -> Switch {
        Switch {
            technique: format!("no {word}"),
            word: word.to_owned(),
        }
    }

    /// A run with times of its own; the record of a replay on this machine has others.
    fn run(side: &str, repetition: usize, wall: f64, cpu: [f64; 2]) -> Run {
        let mut run = done(side, repetition, wall, 7);
        [run.report.process.user_s, run.report.process.sys_s] = cpu.map(Some);
        run
    }

    #[test]
    fn ratios_are_to_the_tree_with_all_techniques() {
        let switches = [switch("shallow"), switch("portable"), switch("in-turn")];
        let sides = Ablation::sides("oak", &switches).expect("sides");
        let names: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
        let expected = ["oak", "oak:shallow", "oak:portable", "oak:in-turn"];
        assert_eq!(names, expected);
        assert!(sides[2].portable && sides[3].in_turn && sides[1].settings == ["shallow"]);
        let twice = [switch("shallow"), switch("shallow")];
        assert!(Ablation::sides("oak", &twice).is_err());

        // The medians of user and of system time are of different runs.
        let runs = [
            run("oak", 1, 2.0, [1.0, 1.0]),
            run("oak", 2, 2.0, [4.0, 0.0]),
            run("oak", 3, 2.0, [2.0, 3.0]),
            run("oak:shallow", 1, 3.0, [6.0, 0.0]),
            run("oak:in-turn", 1, 1.0, [2.0, 0.0]),
        ];
        let plan = plan(&expected);
        let results = Results::of(&plan, &runs, vec!["oak:portable failed".to_owned()]);
        let results = results.expect("results");
        let found = Ablation::of("oak", &switches, &results).expect("an ablation");
        assert_eq!(found.all_on.cpu_s, Some(4.0));
        assert_eq!(found.all_on.store_bytes, Some(30.0));
        let [shallow, in_turn] = &found.without[..] else {
            panic!("{found:?}");
        };
        assert_eq!(
            (shallow.ratios.blocks_s, shallow.ratios.cpu_s),
            (Some(1.5), Some(1.5))
        );
        assert_eq!(
            (in_turn.ratios.blocks_s, in_turn.ratios.cpu_s),
            (Some(0.5), Some(0.5))
        );
        assert_eq!(shallow.ratios.store_bytes, Some(1.0));
        assert_eq!((found.spread, shallow.spread), (Some(0.0), None));
        assert_eq!(
            shallow.ratios.disk_bytes, None,
            "these runs have no such figure"
        );
        let table = found.table().text(None);
        assert!(
            table.contains("no shallow") && table.contains("1.50x"),
            "{table}"
        );
        assert!(
            table.contains("2.00 s") && table.contains("30.0 B"),
            "{table}"
        );
        let text = serde_json::to_string(&found).expect("JSON");
        let again: Ablation = serde_json::from_str(&text).expect("an ablation");
        assert_eq!(again, found);
        assert!(text.contains(r#""word":"in-turn""#), "{text}");

        let rest = Results::of(&plan, &runs[3..], vec!["oak, run 1: why".to_owned()]);
        let error = Ablation::of("oak", &switches, &rest.expect("results"));
        let error = error.expect_err("no reference").to_string();
        assert!(
            error.contains("oak failed") && error.contains("run 1: why"),
            "{error}"
        );
    }
}
