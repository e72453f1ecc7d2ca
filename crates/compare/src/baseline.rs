//! Comparison with an earlier one.

use crate::figure::Kind;
use crate::{FigureRow, Results, Side};

/// A figure of a side, then and now.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The side.
    pub side: String,
    /// The figure's name.
    pub figure: String,
    /// The earlier median.
    pub before: f64,
    /// The median now.
    pub now: f64,
    /// Whether it is one of those that may not grow, and grew by more than is allowed.
    pub is_too_much: bool,
}

impl Change {
    /// The growth as a part of the earlier value; infinite from zero.
    pub fn growth(&self) -> f64 {
        match self.before == self.now {
            true => 0.0,
            false => self.now / self.before - 1.0,
        }
    }
}

/// What changed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Drift {
    /// Figures that differ, and all times.
    pub changes: Vec<Change>,
    /// How many counts and bytes were compared.
    pub compared: usize,
}

impl Drift {
    /// The changes that are too much.
    pub fn too_much(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.is_too_much)
    }
}

/// Checks before any run that every side of the earlier results is one of these.
///
/// # Errors
/// The sides that are missing, and how to add them.
pub fn check_sides(before: &Results, sides: &[Side]) -> Result<(), String> {
    let names = |names: Vec<&str>| names.join(",");
    let is_missing = |name: &&str| !sides.iter().any(|side| side.name == *name);
    let all = before.trees.iter().map(|column| column.side.name.as_str());
    let missing: Vec<&str> = all.clone().filter(is_missing).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "the baseline compared {}, and --trees has no {}: name all of the baseline's trees, with their settings",
            names(all.collect()),
            names(missing)
        )),
    }
}

/// Compares results with earlier ones. Counts and bytes may grow by `allowed`, a part of the earlier value; times
/// are only put next to each other.
///
/// # Errors
/// Results that cannot be compared: of other blocks, or without a side of the earlier ones.
pub fn check(before: &Results, now: &Results, allowed: f64) -> Result<Drift, String> {
    if before.chain != now.chain {
        return Err(format!(
            "the baseline is of blocks {} to {} ({}), this comparison of blocks {} to {} ({})",
            before.chain.first_block,
            before.chain.last_block,
            before.chain.last_hash,
            now.chain.first_block,
            now.chain.last_block,
            now.chain.last_hash,
        ));
    }
    let mut drift = Drift::default();
    for (then, column) in before.trees.iter().enumerate() {
        let name = &column.side.name;
        let here = now
            .trees
            .iter()
            .position(|column| column.side.name == *name);
        let here = here.ok_or_else(|| format!("{name} of the baseline is not compared here"))?;
        for row in &before.figures {
            compare(
                &mut drift,
                (row, then),
                (now.figure(&row.name), here),
                (name, allowed),
            );
        }
    }
    Ok(drift)
}

fn compare(
    drift: &mut Drift,
    (row, then): (&FigureRow, usize),
    (now, here): (Option<&FigureRow>, usize),
    (side, allowed): (&str, f64),
) {
    let Some(Some(before)) = row.trees.get(then) else {
        return;
    };
    // A figure that no side has any more is gone, which is no growth.
    let median = now.and_then(|row| row.trees.get(here)?.as_ref());
    let median = median.map_or(0.0, |summary| summary.median);
    // An earlier program may have called it something else.
    let kind = now.map_or(row.kind, |now| now.kind);
    let may_not_grow = kind.may_not_grow();
    drift.compared += usize::from(may_not_grow);
    let change = Change {
        side: side.to_owned(),
        figure: row.name.clone(),
        before: before.median,
        now: median,
        is_too_much: may_not_grow && median > before.median * (1.0 + allowed),
    };
    if matches!(kind, Kind::Time | Kind::Observed) || change.before != change.now {
        drift.changes.push(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{done, plan};

    fn results(nodes: u64, wall: f64) -> Results {
        let runs = [done("oak", 1, 1.0, 100), done("elm", 1, wall, nodes)];
        Results::of(&plan(&["oak", "elm"]), &runs, Vec::new()).expect("results")
    }

    #[test]
    fn counts_may_not_grow_and_times_may() {
        let drift = |nodes, allowed| check(&results(100, 1.0), &results(nodes, 9.0), allowed);
        let too_much = |nodes, allowed| {
            let drift = drift(nodes, allowed).expect("comparable");
            let names = drift.too_much().map(|change| change.figure.clone());
            names.collect::<Vec<_>>()
        };
        assert_eq!(too_much(100, 0.0), Vec::<String>::new());
        assert_eq!(too_much(101, 0.0), ["nodes", "hashes"]);
        assert_eq!(too_much(101, 0.01), Vec::<String>::new());
        assert_eq!(too_much(50, 0.0), Vec::<String>::new());
        let drift = drift(101, 0.01).expect("comparable");
        let wall = drift
            .changes
            .iter()
            .find(|change| change.side == "elm" && change.figure == "wall_s");
        assert_eq!(wall.map(Change::growth), Some(8.0));
        assert!(drift.compared >= 8, "{}", drift.compared);
    }

    /// More hits of a cache were reported as a cost.
    #[test]
    fn hits_of_a_cache_may_grow() {
        let drift = check(&results(100, 1.0), &results(101, 1.0), 0.0).expect("comparable");
        let mut hits = drift.changes.iter();
        let hits = hits.find(|change| change.figure == "cache_hits" && change.side == "elm");
        assert_eq!(
            hits.map(|hits| (hits.now, hits.is_too_much)),
            Some((101.0, false))
        );
    }

    /// It was found out after all runs.
    #[test]
    fn a_side_that_is_missing_is_named_before_any_run() {
        let before = results(100, 1.0);
        let side = |name: &str| Side::parse(name).expect("a side");
        assert_eq!(
            check_sides(&before, &[side("elm"), side("oak"), side("ash")]),
            Ok(())
        );
        let error = check_sides(&before, &[side("oak")]).expect_err("no elm");
        assert!(
            error.contains("compared oak,elm, and --trees has no elm"),
            "{error}"
        );
    }

    #[test]
    fn other_blocks_and_missing_sides_are_refused() {
        let (mut before, now) = (results(100, 1.0), results(100, 1.0));
        before.trees[1].side.name = "ash".to_owned();
        let error = check(&before, &now, 0.0).expect_err("no ash");
        assert!(
            error.contains("ash of the baseline is not compared"),
            "{error}"
        );
        before.chain.last_block = 10;
        let error = check(&before, &now, 0.0).expect_err("other blocks");
        assert!(error.contains("blocks 1 to 10"), "{error}");
    }
}
