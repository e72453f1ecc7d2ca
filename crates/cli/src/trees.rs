//! The trees as words of the command line.

use std::ffi::OsStr;
use std::sync::LazyLock;

use arbor_database::TreeSettings;
use arbor_state::{Registry, Setting, TreeKind};
use arbor_trees::standard;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;

/// The trees that this program knows.
pub(crate) static TREES: LazyLock<Registry> = LazyLock::new(standard);

/// The names of the trees that blocks have witnesses of, with commas between.
pub(crate) static WITH_WITNESSES: LazyLock<String> = LazyLock::new(|| {
    let rows = TREES.rows().filter(|kind| kind.has_witnesses);
    rows.map(|kind| kind.name).collect::<Vec<_>>().join(",")
});

/// The words of the command line that ask for settings of a tree.
pub(crate) fn words(settings: &TreeSettings) -> String {
    match settings.as_slice() {
        [] => "the default --tree-settings".to_owned(),
        names => format!("--tree-settings {}", names.join(",")),
    }
}

/// A tree, or none at all.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TreeChoice {
    /// This tree.
    Tree(&'static TreeKind),
    /// No tree and no store: execution alone.
    None,
}

/// The word for no tree.
const NONE: &str = "none";

impl TreeChoice {
    /// Its name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tree(kind) => kind.name,
            Self::None => NONE,
        }
    }

    /// The tree, if there is one.
    pub(crate) fn kind(self) -> Option<&'static TreeKind> {
        match self {
            Self::Tree(kind) => Some(kind),
            Self::None => None,
        }
    }
}

/// The usual tree of a new database.
pub(crate) fn usual() -> &'static TreeKind {
    TREES.rows().next().expect("invariant: there are trees")
}

/// Parses the name of a tree.
pub(crate) fn tree_parser() -> impl TypedValueParser<Value = &'static TreeKind> {
    parser_of(|_| true)
}

/// A tree with settings, as one word: `TREE` or `TREE:WORD+WORD`.
#[derive(Clone, Debug)]
pub(crate) struct TreeWord {
    /// The tree.
    pub(crate) kind: &'static TreeKind,
    /// Settings of the tree, which it may not have.
    pub(crate) settings: Vec<String>,
}

/// Parses a tree with settings.
#[derive(Clone)]
pub(crate) struct TreeWordParser;

impl TypedValueParser for TreeWordParser {
    type Value = TreeWord;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<TreeWord, clap::Error> {
        let text = value.to_string_lossy();
        let (name, words) = match text.split_once(':') {
            Some((name, words)) => (name, words.split('+').collect()),
            None => (&*text, Vec::new()),
        };
        let settings = words.into_iter().map(|word| {
            let wrong = |why: String| {
                let message = format!("'{word}' in --tree {text} is no setting: {why}\n");
                clap::Error::raw(ErrorKind::InvalidValue, message).with_cmd(command)
            };
            parse_setting(word).map_err(wrong)
        });
        Ok(TreeWord {
            kind: tree_parser().parse_ref(command, arg, OsStr::new(name))?,
            settings: settings.collect::<Result<_, _>>()?,
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(TREES.rows().map(value)))
    }
}

/// Parses the name of a tree that blocks have witnesses of.
pub(crate) fn witness_parser() -> impl TypedValueParser<Value = &'static TreeKind> {
    parser_of(|kind| kind.has_witnesses)
}

/// Parses the name of a tree whose leaves have names.
pub(crate) fn leaves_parser() -> impl TypedValueParser<Value = &'static TreeKind> {
    parser_of(|kind| kind.verify.leaves.is_some())
}

fn parser_of(
    is_meant: impl Fn(&TreeKind) -> bool,
) -> impl TypedValueParser<Value = &'static TreeKind> {
    let values = TREES.rows().filter(|kind| is_meant(kind)).map(value);
    PossibleValuesParser::new(values.collect::<Vec<_>>())
        .map(|name| TREES.find(&name).expect("invariant: it is one of them"))
}

/// Parses the name of a tree, or `none`.
pub(crate) fn choice_parser() -> impl TypedValueParser<Value = TreeChoice> {
    let none = PossibleValue::new(NONE).help("No tree, no store: execution alone");
    let values = TREES.rows().map(value).chain([none]);
    PossibleValuesParser::new(values.collect::<Vec<_>>())
        .map(|name| TREES.find(&name).map_or(TreeChoice::None, TreeChoice::Tree))
}

fn value(kind: &'static TreeKind) -> PossibleValue {
    PossibleValue::new(kind.name).help(kind.summary)
}

/// Returns the setting that a word names, of any tree.
pub(crate) fn setting(word: &str) -> Option<&'static Setting> {
    TREES.rows().find_map(|kind| kind.setting(word))
}

/// Parses a setting of some tree.
pub(crate) fn parse_setting(word: &str) -> Result<String, String> {
    match setting(word) {
        Some(_) => Ok(word.to_owned()),
        None => Err(format!("no tree has it; there are:{}", settings_by_tree())),
    }
}

/// Parses the name of a hash function that a tree can be made with.
pub(crate) fn hash_parser() -> PossibleValuesParser {
    let rows = TREES.rows().filter(|kind| kind.hashes.len() > 1);
    let hashes = rows.flat_map(|kind| {
        let help = |hash| PossibleValue::new(hash).help(format!("For {}", kind.name));
        kind.hashes.iter().copied().map(help)
    });
    PossibleValuesParser::new(hashes.collect::<Vec<_>>())
}

/// All settings by tree, for help texts.
pub(crate) fn settings_by_tree() -> String {
    let mut text = String::new();
    for kind in TREES.rows().filter(|kind| !kind.settings.is_empty()) {
        text += &format!("\n{}:", kind.name);
        for setting in kind.settings {
            let number = if setting.usual.is_some() {
                "=NUMBER"
            } else {
                ""
            };
            text += &format!("\n  {}{number}: {}", setting.name, setting.summary);
        }
    }
    text
}
