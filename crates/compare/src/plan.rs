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
    /// Whether one thread does everything in turn, whatever the plan's number of threads is.
    #[serde(default)]
    pub in_turn: bool,
    /// The database that each run begins with; none to begin with the genesis.
    pub start: Option<String>,
    /// The move to another tree while blocks go on, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Move>,
}

/// A move of a side to another tree: flags of its replays.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Move {
    /// The other tree: `--convert-to`.
    pub to: String,
    /// The first block that moves something: `--at`.
    pub at: u64,
    /// Accounts and slots that a block moves: `--stride`.
    pub stride: u64,
}

/// Why words are no side.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SideError {
    /// Nothing stands before or after a colon or a plus sign.
    #[error("'{0}' has an empty part: write TREE or TREE:WORD+WORD")]
    Empty(String),
    /// Words of a move that are not all there, or no numbers.
    #[error("'{0}': a move needs convert-to=TREE, at=BLOCK and stride=N, with numbers from 1 on")]
    Move(String),
    /// The same side twice.
    #[error("{0} is named twice")]
    Twice(String),
}

/// Flushes every block at once, whatever the tree's settings are.
const WRITE_THROUGH: &str = "write-through";
/// Computes with portable code.
const PORTABLE: &str = "portable";

/// A word after a colon that every tree has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SideWord {
    /// The word.
    pub word: &'static str,
    /// What it does, as a command.
    pub effect: &'static str,
    /// The technique that it switches off, for somebody who does not know the program.
    pub technique: &'static str,
}

/// The words of a move to another tree.
const MOVE: [&str; 3] = ["convert-to", "at", "stride"];

impl Side {
    /// The word that replays on one thread.
    pub const IN_TURN: &str = "in-turn";

    /// The words after a colon that every tree has.
    pub const WORDS: [SideWord; 3] = [
        SideWord {
            word: WRITE_THROUGH,
            effect: "flush every block to the store at once",
            technique: "changes of many blocks flushed to the store together",
        },
        SideWord {
            word: PORTABLE,
            effect: "compute without the processor's wide instructions",
            technique: "the processor's wide instructions",
        },
        SideWord {
            word: Self::IN_TURN,
            effect: "execute, compute roots and flush in turn, on one thread",
            technique: "execution, roots and flushes at the same time, on all threads",
        },
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
        let of_move = |name: &str| {
            words
                .iter()
                .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let found = MOVE.map(of_move);
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let moves = match found {
            [None, None, None] => None,
            [Some(to), Some(at), Some(stride)] => match (number(at), number(stride)) {
                (Some(at), Some(stride)) if !to.is_empty() => Some(Move {
                    to: to.to_owned(),
                    at,
                    stride,
                }),
                _ => return Err(SideError::Move(text.to_owned())),
            },
            _ => return Err(SideError::Move(text.to_owned())),
        };
        let own = |word: &&str| {
            let is_of_move = word
                .split_once('=')
                .is_some_and(|(name, _)| MOVE.contains(&name));
            !is_of_move && !Self::WORDS.iter().any(|known| known.word == *word)
        };
        Ok(Self {
            moves,
            name: text.to_owned(),
            tree: tree.to_owned(),
            write_through: words.contains(&WRITE_THROUGH),
            portable: words.contains(&PORTABLE),
            in_turn: words.contains(&Self::IN_TURN),
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
    /// The folder of the large state that the sides begin with, and the workload of the blocks over it.
    #[serde(default)]
    pub state: Option<(String, String)>,
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
    /// Whether the database of each side's first run is checked as a whole.
    #[serde(default = "yes")]
    pub verify: bool,
    /// Whether each side's database is surveyed: tables, depths, proofs, updates.
    pub survey: bool,
    /// Blocks along the chain after which each side's database is inspected, the last block included. A survey
    /// inspects the database after the last block in any case.
    pub growth: u64,
}

/// The value for plans that were written before the field existed.
const fn yes() -> bool {
    true
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
        Value::Array(values) => {
            let name = |value: &Value| {
                let name = value["name"].as_str()?;
                Some(match value["start"].as_str() {
                    Some(start) => format!("{name} (from {start})"),
                    None => name.to_owned(),
                })
            };
            match values.iter().map(name).collect() {
                Some::<Vec<_>>(names) => names.join(","),
                None => value.to_string(),
            }
        }
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
        let in_turn = Side::parse("oak:in-turn").expect("a side");
        assert!(in_turn.in_turn && in_turn.settings.is_empty() && !plain.in_turn);
        for bad in ["", ":", "oak:", "oak:+deep", ":deep", "oak:deep++wide"] {
            assert_eq!(Side::parse(bad), Err(SideError::Empty(bad.into())), "{bad}");
        }
        let moving = Side::parse("oak:convert-to=elm+at=7+stride=20+deep").expect("a side");
        let wanted = Move {
            to: "elm".into(),
            at: 7,
            stride: 20,
        };
        assert_eq!(
            (moving.moves, &moving.settings[..]),
            (Some(wanted), &["deep".to_owned()][..])
        );
        for bad in [
            "oak:at=7",
            "oak:convert-to=elm+at=7",
            "oak:convert-to=elm+at=0+stride=2",
        ] {
            assert_eq!(Side::parse(bad), Err(SideError::Move(bad.into())), "{bad}");
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
