//! What is compared, and under which conditions.

use std::collections::HashSet;
use std::path::PathBuf;

use arbor_metrics::Versions;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Cache;

/// A tree with its settings: one column of a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Side {
    /// The words by which it was asked for: `TREE` or `TREE:WORD+WORD`.
    pub name: String,
    /// The tree.
    pub tree: String,
    /// Its settings.
    pub settings: Vec<String>,
    /// Whether every block is flushed to the store at once.
    pub write_through: bool,
    /// Whether portable code is used instead of the processor's wide instructions.
    pub portable: bool,
    /// The database that each run begins with; none to begin with the genesis.
    pub start: Option<String>,
}

/// Why words are no side.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SideError {
    /// Nothing stands before or after a colon or a plus sign.
    #[error("'{0}' has an empty part: write TREE or TREE:WORD+WORD")]
    Empty(String),
    /// The same side twice.
    #[error("{0} is named twice")]
    Twice(String),
}

/// Flushes every block at once, whatever the tree's settings are.
const WRITE_THROUGH: &str = "write-through";
/// Computes with portable code.
const PORTABLE: &str = "portable";

impl Side {
    /// The words after a colon that every tree has, with an explanation of each.
    pub const WORDS: [(&str, &str); 2] = [
        (WRITE_THROUGH, "flush every block to the store at once"),
        (
            PORTABLE,
            "compute without the processor's wide instructions",
        ),
    ];

    /// Takes `TREE` or `TREE:WORD+WORD` apart. Which trees and settings there are is not asked here.
    ///
    /// # Errors
    /// [`SideError::Empty`].
    pub fn parse(text: &str) -> Result<Self, SideError> {
        let (tree, words) = match text.split_once(':') {
            Some((tree, words)) => (tree, words.split('+').collect()),
            None => (text, Vec::new()),
        };
        if tree.is_empty() || words.iter().any(|word| word.is_empty()) {
            return Err(SideError::Empty(text.to_owned()));
        }
        let own = |word: &&str| !Self::WORDS.iter().any(|(name, _)| name == word);
        Ok(Self {
            name: text.to_owned(),
            tree: tree.to_owned(),
            write_through: words.contains(&WRITE_THROUGH),
            portable: words.contains(&PORTABLE),
            settings: words.into_iter().filter(own).map(str::to_owned).collect(),
            start: None,
        })
    }

    /// Checks that no side is named twice: their files have their names.
    ///
    /// # Errors
    /// [`SideError::Twice`].
    pub fn check_distinct(sides: &[Self]) -> Result<(), SideError> {
        let mut names = HashSet::new();
        match sides.iter().find(|side| !names.insert(side.file_name())) {
            Some(side) => Err(SideError::Twice(side.name.clone())),
            None => Ok(()),
        }
    }

    /// The name in names of files.
    pub(crate) fn file_name(&self) -> String {
        let plain = |letter: char| match letter.is_ascii_alphanumeric() || "-_+=".contains(letter) {
            true => letter,
            false => '-',
        };
        self.name.chars().map(plain).collect()
    }
}

/// The program that all runs are processes of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// What it was built from.
    pub versions: Versions,
    /// Length of the file and when it was written, which tell apart builds of one commit.
    pub bytes: u64,
    /// Seconds since 1970.
    pub written: u64,
}

/// A whole comparison. Two runs of a command with equal plans belong together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The program.
    pub program: Program,
    /// Files and folders of the chain, with their lengths in bytes.
    pub chain: Vec<(String, u64)>,
    /// The same files and folders, whose names need not be text.
    #[serde(skip)]
    pub paths: Vec<PathBuf>,
    /// The genesis, as `--genesis` names it.
    pub genesis: Option<String>,
    /// The sides, in their order; the others are compared with the first.
    pub trees: Vec<Side>,
    /// Runs of each side.
    pub repetitions: usize,
    /// What is in the operating system's cache at the begin of a run.
    pub cache: Cache,
    /// `--memory` of each run, in bytes.
    pub memory_bytes: u64,
    /// `--write-back` of each run that does not write through, in bytes; none for the usual share.
    pub write_back_bytes: Option<u64>,
    /// `--retain` of each run.
    pub retain: String,
    /// `--threads` of each run.
    pub threads: usize,
    /// `--to` of each run.
    pub to: Option<u64>,
    /// `--throttle` of each run.
    pub throttle: Option<String>,
    /// Blocks whose witnesses are made; 0 for none.
    pub witnesses: u64,
    /// Whether each side's database is surveyed: tables, depths, proofs, updates.
    pub survey: bool,
    /// Blocks along the chain after which each side's database is inspected, the last block included. A survey
    /// inspects the database after the last block in any case.
    pub growth: u64,
}

impl Plan {
    /// Names what differs from another plan, field by field.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let fields = |plan: &Self| match serde_json::to_value(plan) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (mine, theirs) = (fields(self), fields(other));
        let differing = mine
            .iter()
            .filter(|(name, value)| theirs.get(*name) != Some(value));
        let told = differing.map(|(name, value)| {
            let there = theirs.get(name).map_or("nothing".to_owned(), short);
            format!("{name}: {there} there, {} now", short(value))
        });
        told.collect()
    }
}

/// A value for a message.
fn short(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => match values.iter().map(|value| value["name"].as_str()).collect() {
            Some::<Vec<_>>(names) => names.join(","),
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_taken_apart() {
        let side = Side::parse("oak:deep+size=3+write-through+portable").expect("a side");
        assert_eq!(
            (side.tree.as_str(), side.write_through, side.portable),
            ("oak", true, true)
        );
        assert_eq!(side.settings, ["deep", "size=3"]);
        assert_eq!(side.file_name(), "oak-deep+size=3+write-through+portable");
        let plain = Side::parse("oak").expect("a side");
        assert!(plain.settings.is_empty() && !plain.write_through && !plain.portable);
        for bad in ["", ":", "oak:", "oak:+deep", ":deep", "oak:deep++wide"] {
            assert_eq!(Side::parse(bad), Err(SideError::Empty(bad.into())), "{bad}");
        }
        let twice = [side.clone(), plain.clone(), side.clone()];
        assert_eq!(Side::check_distinct(&twice[..2]), Ok(()));
        assert_eq!(
            Side::check_distinct(&twice),
            Err(SideError::Twice(side.name))
        );
    }

    #[test]
    fn differences_are_named() {
        let plan = crate::run::tests::plan(&["oak", "elm"]);
        assert_eq!(plan.differences(&plan), Vec::<String>::new());
        let mut other = plan.clone();
        other.memory_bytes = 1;
        other.to = Some(7);
        other.trees.pop();
        assert_eq!(
            other.differences(&plan),
            [
                "memory_bytes: 1048576 there, 1 now",
                "to: none there, 7 now",
                "trees: oak,elm there, oak now",
            ]
        );
    }
}
