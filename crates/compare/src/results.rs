//! What a comparison found, made of the records of its runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::figure::{self, Kind};
use crate::run::Run;
use crate::statistics::SPREAD_LIMIT;
use crate::{CompareError, Plan, Side, Summary};

/// The blocks that every run replayed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Chain {
    /// The first block.
    pub first_block: u64,
    /// The last block.
    pub last_block: u64,
    /// The last block's hash.
    pub last_hash: String,
    /// Their number.
    pub blocks: u64,
    /// Their transactions.
    pub transactions: u64,
    /// Their gas.
    pub gas: u64,
}

/// A side with its runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// The side.
    #[serde(flatten)]
    pub side: Side,
    /// How many runs there are.
    pub runs: usize,
    /// The run whose wall time is the median one, or the one before: its rows are in `blocks.csv`.
    pub median_run: usize,
    /// Distance between the shortest and the longest wall time, as a part of the median.
    pub spread: f64,
    /// The root after the last block.
    pub root: String,
    /// The commands of the first run; the first of them is measured.
    pub commands: Vec<String>,
    /// What was in the operating system's cache when runs began.
    pub cache: String,
}

/// A figure of all sides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FigureRow {
    /// Its name.
    pub name: String,
    /// What it is called in tables.
    pub label: String,
    /// Its kind.
    pub kind: Kind,
    /// In the order of the sides; null for a side that does not have it.
    pub trees: Vec<Option<Summary>>,
    /// Each side's median, divided by the first side's; null if either is missing or zero.
    pub ratios: Vec<Option<f64>>,
}

/// All that a comparison found: the `results` of its report.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The blocks.
    pub chain: Chain,
    /// The sides, in their order.
    pub trees: Vec<Column>,
    /// Whether runs were done once more, since repetitions differed by more than `spread_limit`.
    pub ran_once_more: bool,
    /// The part of the median by which repetitions may differ.
    pub spread_limit: f64,
    /// Runs that failed, with what failed and where the log is.
    pub failed: Vec<String>,
    /// The figures.
    pub figures: Vec<FigureRow>,
    /// By side, what proofs, updates and witnesses cost over its database.
    #[serde(default)]
    pub surveys: BTreeMap<String, Value>,
    /// By side, what its database consists of after the last block.
    #[serde(default)]
    pub inspections: BTreeMap<String, Value>,
    /// By side, the tables of its database along the chain.
    #[serde(default)]
    pub growth: BTreeMap<String, Vec<Value>>,
}

impl Results {
    /// Puts runs next to each other.
    ///
    /// # Errors
    /// No runs, or runs that end at different blocks or with different roots.
    pub fn of(plan: &Plan, runs: &[Run], failed: Vec<String>) -> Result<Self, CompareError> {
        let first = runs.first().ok_or(CompareError::NoRuns)?;
        let chain = chain(first)?;
        let of_side = |side: &&Side| {
            let runs = runs.iter().filter(|run| run.side == side.name);
            runs.collect::<Vec<_>>()
        };
        let sides = plan.trees.iter().map(|side| (side, of_side(&side)));
        let sides: Vec<(&Side, Vec<&Run>)> = sides.filter(|(_, runs)| !runs.is_empty()).collect();
        let mut trees = Vec::new();
        for (side, runs) in &sides {
            for run in runs {
                agree(&chain, runs[0], run)?;
            }
            trees.push(column(side, runs));
        }
        let mut growth = BTreeMap::new();
        for run in runs.iter().filter(|run| !run.growth.is_empty()) {
            growth.insert(run.side.clone(), run.growth.clone());
        }
        Ok(Self {
            chain,
            ran_once_more: trees.iter().any(|column| column.runs > plan.repetitions),
            trees,
            spread_limit: SPREAD_LIMIT,
            failed,
            figures: rows(&sides),
            surveys: by_side(runs, |run| run.survey.clone()),
            inspections: by_side(runs, |run| run.inspection.clone()),
            growth,
        })
    }

    /// Returns a figure by name.
    pub fn figure(&self, name: &str) -> Option<&FigureRow> {
        self.figures.iter().find(|row| row.name == name)
    }
}

/// What runs have that not every run has, by side.
fn by_side(runs: &[Run], of: impl Fn(&Run) -> Option<Value>) -> BTreeMap<String, Value> {
    let found = runs.iter();
    let found = found.filter_map(|run| Some((run.side.clone(), of(run)?)));
    found.collect()
}

/// The blocks that a run replayed.
fn chain(run: &Run) -> Result<Chain, CompareError> {
    let results = &run.report.results;
    let (total, head) = (&results["total"], &results["head"]);
    let number = |name: &str| total[name].as_u64().unwrap_or_default();
    if number("blocks") == 0 {
        return Err(CompareError::Disagree(
            "there is nothing to compare: the chain has no block after the one that runs begin with"
                .to_owned(),
        ));
    }
    Ok(Chain {
        first_block: number("first_block"),
        last_block: head["block"].as_u64().unwrap_or_default(),
        last_hash: text(&head["hash"]),
        blocks: number("blocks"),
        transactions: number("transactions"),
        gas: number("gas"),
    })
}

/// Checks that a run ends where the others do, with the roots of its side's first run.
fn agree(expected: &Chain, first: &Run, run: &Run) -> Result<(), CompareError> {
    let found = chain(run)?;
    let name = |run: &Run| format!("{} (run {})", run.side, run.repetition);
    if found != *expected {
        return Err(CompareError::Disagree(format!(
            "{} replayed {} blocks and ends at block {} {}; the first run replayed {} and ends at block {} {}",
            name(run),
            found.blocks,
            found.last_block,
            found.last_hash,
            expected.blocks,
            expected.last_block,
            expected.last_hash,
        )));
    }
    if run.roots != first.roots {
        return Err(CompareError::Disagree(format!(
            "the roots of {} and of {} differ, although the tree and its settings are the same: please report this",
            name(first),
            name(run),
        )));
    }
    Ok(())
}

fn column(side: &Side, runs: &[&Run]) -> Column {
    let walls = runs.iter().map(|run| run.report.wall_seconds).collect();
    let walls = Summary::of(walls).unwrap_or_default();
    let mut by_wall: Vec<&&Run> = runs.iter().collect();
    by_wall.sort_by(|a, b| a.report.wall_seconds.total_cmp(&b.report.wall_seconds));
    Column {
        side: side.clone(),
        runs: runs.len(),
        median_run: by_wall[(by_wall.len() - 1) / 2].repetition,
        spread: walls.spread(),
        root: text(&runs[0].report.results["head"]["stateRoot"]),
        commands: runs[0].commands.clone(),
        cache: runs[0].cache.clone(),
    }
}

/// The figures of all sides, in the order of the first side that has them.
fn rows(sides: &[(&Side, Vec<&Run>)]) -> Vec<FigureRow> {
    let mut rows: Vec<FigureRow> = Vec::new();
    for (index, (_, runs)) in sides.iter().enumerate() {
        let mut values: Vec<(figure::Figure, Vec<f64>)> = Vec::new();
        for figure in runs.iter().flat_map(|run| figure::of_run(run)) {
            match values
                .iter_mut()
                .find(|(known, _)| known.name == figure.name)
            {
                Some((_, values)) => values.push(figure.value),
                None => values.push((figure.clone(), vec![figure.value])),
            }
        }
        for (figure, values) in values {
            let row = rows.iter().position(|row| row.name == figure.name);
            let row = row.unwrap_or_else(|| {
                rows.push(FigureRow {
                    name: figure.name,
                    label: figure.label,
                    kind: figure.kind,
                    trees: vec![None; sides.len()],
                    ratios: vec![None; sides.len()],
                });
                rows.len() - 1
            });
            rows[row].trees[index] = Summary::of(values);
        }
    }
    for row in &mut rows {
        let median = |side: &Option<Summary>| side.as_ref().map(|side| side.median);
        let first = row
            .trees
            .first()
            .and_then(median)
            .filter(|first| *first != 0.0);
        let ratio = |side: &Option<Summary>| Some(median(side)? / first?);
        row.ratios = row.trees.iter().map(ratio).collect();
    }
    // A counter that no side has moved says nothing.
    let is_moved = |side: &Option<Summary>| side.as_ref().is_some_and(|side| side.median != 0.0);
    rows.retain(|row| row.kind == Kind::Time || row.trees.iter().any(is_moved));
    rows
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{done, plan};

    fn runs() -> Vec<Run> {
        let mut runs = Vec::new();
        for (repetition, wall) in [(1, 1.0), (2, 1.25), (3, 1.5)] {
            runs.push(done("oak", repetition, wall, 100));
            runs.push(done("elm", repetition, 2.0 * wall, 50));
        }
        runs
    }

    #[test]
    fn medians_and_ratios_stand_next_to_each_other() {
        let results = Results::of(&plan(&["oak", "elm"]), &runs(), Vec::new()).expect("results");
        let figure = |name: &str| results.figure(name).expect("a figure");
        assert_eq!(figure("wall_s").ratios, [Some(1.0), Some(2.0)]);
        assert_eq!(figure("nodes").ratios, [Some(1.0), Some(0.5)]);
        assert_eq!(figure("hashes").kind, Kind::Count);
        let stored = figure("store_bytes").trees[1].as_ref().expect("a summary");
        assert_eq!(stored.median, 30.0);
        assert_eq!(results.figure("roots"), None, "no side moved this counter");
        let column = &results.trees[0];
        assert_eq!(
            (column.runs, column.median_run, column.root.as_str()),
            (3, 2, "0xoak")
        );
        assert!((column.spread - 0.5 / 1.25).abs() < 1e-12);
        // The plan has two repetitions.
        assert!(results.ran_once_more);
        assert_eq!(results.chain.gas, 7);
        let text = serde_json::to_string(&results).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Results>(&text).expect("results"),
            results
        );
        let table = crate::terminal_table(&results).text(None);
        assert!(table.contains("2.50 s  2.00x"), "{table}");
        // The page said 40 % of the same runs, and the terminal ±20 %.
        assert!(
            table.contains("3, 40.0 %") && !table.contains('±'),
            "{table}"
        );
    }

    #[test]
    fn a_side_without_runs_is_left_out() {
        let failed = vec!["elm, run 1: arbor replay ended with 1".to_owned()];
        let oak: Vec<Run> = runs().into_iter().filter(|run| run.side == "oak").collect();
        let results = Results::of(&plan(&["elm", "oak"]), &oak, failed).expect("results");
        assert_eq!(results.trees.len(), 1);
        assert_eq!(
            results.figure("wall_s").map(|row| row.ratios.clone()),
            Some(vec![Some(1.0)])
        );
        let none = Results::of(&plan(&["elm"]), &[], Vec::new());
        assert!(matches!(none, Err(CompareError::NoRuns)));
    }

    #[test]
    fn runs_that_disagree_are_no_comparison() {
        let of = |run: Run| {
            let runs = [runs(), vec![run]].concat();
            let disagreement = Results::of(&plan(&["oak", "elm"]), &runs, Vec::new());
            disagreement.expect_err("they disagree").to_string()
        };
        let mut other_end = done("elm", 4, 1.0, 50);
        other_end.report.results["head"]["hash"] = "0x0a".into();
        assert!(of(other_end).contains("ends at block 9 0x0a"));
        let mut other_roots = done("elm", 4, 1.0, 50);
        other_roots.roots = "ash".to_owned();
        assert!(of(other_roots).contains("the roots of elm (run 1) and of elm (run 4) differ"));
    }
}
