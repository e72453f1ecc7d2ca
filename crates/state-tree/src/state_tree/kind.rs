//! A tree as everything else knows it: one row, and the registry of the rows that a program knows.

use arbor_verify::VerifyKind;
use arbor_versions::{Identity, TableSpec};

use crate::Tree;
use crate::conformance::ModelOf;
use crate::key_value::KEY_VALUE_REVISION;

/// A tree: its names, its tables, and how it is made. Every list of trees in the project comes from
/// these rows.
#[derive(Debug)]
pub struct TreeKind {
    /// The one word for it on the command line, in reports and in documentation.
    pub name: &'static str,
    /// The words for it in a database's identity.
    pub stored_as: StoredAs,
    /// One line for help texts, without a full stop.
    pub summary: &'static str,
    /// Layout of flat records and node records; a change of either raises it.
    pub layout: u32,
    /// The tables of a database with this tree.
    pub tables: &'static [TableSpec],
    /// Where this tree's roots are found besides the database.
    pub roots: RootPlace,
    /// What becomes of a leaf whose value returns to zero.
    pub zeros: Zeros,
    /// The hash functions that nodes can be hashed with, by the names in a database's identity; the
    /// first is the usual one.
    pub hashes: &'static [&'static str],
    /// What else can be set.
    pub settings: &'static [Setting],
    /// The forms of its proofs.
    pub verify: &'static VerifyKind,
    /// Whether all that a block reads and changes can be proven in a witness.
    pub has_witnesses: bool,
    /// The threads that a replay computes roots on.
    pub threads: RootThreads,
    /// Measured bytes of memory for each new leaf of a large block.
    pub block_memory: BlockMemory,
    /// The naive tree that suites compare one made by this row with; `None` if the crate of the trees is built without it.
    pub model: Option<ModelOf>,
    /// Makes the tree.
    pub make: fn(&Settings) -> Result<Tree, SettingError>,
}

/// The tree and its revision, as a database's identity names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredAs {
    /// The tree.
    pub tree: &'static str,
    /// The revision of the tree, or of the way in which accounts are laid out in it.
    pub revision: &'static str,
}

/// Where a tree's roots are found besides the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RootPlace {
    /// In the headers of blocks, and in the receipts from before Byzantium.
    InHeaders,
    /// Nowhere else.
    Apart,
}

/// What becomes of a leaf whose value returns to zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zeros {
    /// The leaf is deleted, so that a root follows from the state alone.
    Forgotten,
    /// The leaf stays, so that a root follows from all states that there were.
    Kept,
}

/// The threads that a replay computes roots on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RootThreads {
    /// Some of its own, if there are many.
    Own,
    /// Those of the whole program.
    Shared,
}

/// Measured bytes of memory for each new leaf of a large block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockMemory {
    /// In the first block of a database.
    pub first: u64,
    /// In later blocks, which touch more nodes while the block before is still being written.
    pub later: u64,
}

/// One thing that can be set of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name on the command line, in reports and in a database's folder.
    pub name: &'static str,
    /// One line for help texts, without a full stop.
    pub summary: &'static str,
    /// What depends on it.
    pub scope: Scope,
    /// The usual number of one that is set as `name=NUMBER`; `None` for one that is named alone.
    pub usual: Option<u64>,
    /// The technique that it switches off; `None` if it switches off none, or several.
    pub technique: Option<Technique>,
}

/// A technique that a tree has by default and that a setting switches off, so that its worth can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Technique {
    /// A few words for somebody who does not know the tree, without a full stop.
    pub name: &'static str,
    /// The setting as it is written to switch the technique off: its name, or `name=NUMBER`.
    pub off: &'static str,
}

/// What depends on a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// How nodes are stored: a database remembers it.
    Stored,
    /// How nodes are computed: it can change at any time.
    Computing,
}

/// What a tree is made with.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Settings {
    /// The hash function; `None` for the usual one.
    pub hash: Option<String>,
    /// Bytes of memory for everything together, from which a tree takes its share; `None` for the
    /// tree's usual amounts.
    pub memory: Option<u64>,
    /// Settings by name, or as `name=NUMBER`.
    pub words: Vec<String>,
}

/// Names next to each other.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

/// Why a tree cannot be made with some settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SettingError {
    /// A setting that the tree does not have.
    #[error("the tree {tree} does not have the setting '{word}'; it has: {}", listed(.known))]
    Unknown {
        /// The tree's name.
        tree: &'static str,
        /// The setting as it was given.
        word: String,
        /// The settings that the tree has.
        known: Vec<&'static str>,
    },
    /// Two numbers for one setting.
    #[error("the settings '{first}' and '{second}' contradict each other: give one of them")]
    Contradiction {
        /// The setting as it was given first.
        first: String,
        /// The same setting with another number.
        second: String,
    },
}

impl TreeKind {
    /// Makes the tree with its usual settings.
    ///
    /// # Panics
    /// If the row refuses the default of [`Settings`], which no row does.
    pub fn tree(&self) -> Tree {
        (self.make)(&Settings::default()).expect("invariant: default settings make a tree")
    }

    /// Returns the setting with this name, or `name=NUMBER`.
    pub fn setting(&self, word: &str) -> Option<&'static Setting> {
        let (name, number) = match word.split_once('=') {
            Some((name, number)) => (name, Some(number)),
            None => (word, None),
        };
        let has_number = number.is_some_and(|number| number.parse::<u64>().is_ok());
        let named = |setting: &&Setting| {
            setting.name == name
                && setting.usual.is_some() == number.is_some()
                && setting.usual.is_some() == has_number
        };
        self.settings.iter().find(named)
    }

    /// Checks that the tree has the hash function and the settings that are asked for, and that no setting has two numbers.
    ///
    /// # Errors
    /// The first setting that the tree does not have; two settings that contradict each other.
    pub fn check(&self, settings: &Settings) -> Result<(), SettingError> {
        let error = |word: &str, known| SettingError::Unknown {
            tree: self.name,
            word: word.to_owned(),
            known,
        };
        if let Some(hash) = &settings.hash
            && !self.hashes.contains(&&**hash)
        {
            return Err(error(hash, self.hashes.to_vec()));
        }
        for word in &settings.words {
            if self.setting(word).is_none() {
                let known = self.settings.iter().map(|setting| setting.name);
                return Err(error(word, known.collect()));
            }
        }
        settings.contradiction().map_or(Ok(()), Err)
    }
}

impl Settings {
    /// Whether a setting without a number is on.
    pub fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }

    /// Finds two words that give one setting different numbers.
    fn contradiction(&self) -> Option<SettingError> {
        let with_number = |word: &String| {
            let (name, number) = word.split_once('=')?;
            Some((name.to_owned(), number.parse::<u64>().ok()?))
        };
        self.words.iter().enumerate().find_map(|(place, second)| {
            let (name, number) = with_number(second)?;
            let mut before = self.words[..place].iter();
            let first = before.find(|first| {
                with_number(first).is_some_and(|(of, other)| of == name && other != number)
            })?;
            Some(SettingError::Contradiction {
                first: first.clone(),
                second: second.clone(),
            })
        })
    }

    /// The number of a setting.
    pub fn number(&self, name: &str) -> Option<u64> {
        let numbers = self.words.iter().filter_map(|word| word.split_once('='));
        let mut numbers = numbers.filter(|(of, _)| *of == name);
        numbers.next_back()?.1.parse().ok()
    }
}

/// The trees that a program knows: a value, so that tests and embedders can add their own.
#[derive(Clone, Debug)]
pub struct Registry {
    rows: Vec<&'static TreeKind>,
}

impl Registry {
    /// A registry of some trees, the usual one first.
    pub fn new(rows: impl IntoIterator<Item = &'static TreeKind>) -> Self {
        let rows = rows.into_iter().collect();
        Self { rows }
    }

    /// Adds a tree.
    #[must_use]
    pub fn with(mut self, row: &'static TreeKind) -> Self {
        self.rows.push(row);
        self
    }

    /// All trees, the usual one first.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'static TreeKind> + '_ {
        self.rows.iter().copied()
    }

    /// Returns the tree with this name.
    pub fn find(&self, name: &str) -> Option<&'static TreeKind> {
        self.rows().find(|row| row.name == name)
    }

    /// Returns the tree that a database with this identity has.
    pub fn of_identity(&self, identity: &Identity) -> Option<&'static TreeKind> {
        self.rows().find(|row| {
            row.stored_as.tree == identity.tree
                && row.stored_as.revision == identity.revision
                && row.hashes.contains(&&*identity.hash)
        })
    }

    /// Returns the tree of a database with this identity, if the database has keys and values
    /// without accounts.
    pub fn of_key_value(&self, identity: &Identity) -> Option<&'static TreeKind> {
        self.rows().find(|row| {
            row.stored_as.tree == identity.tree
                && identity.revision == KEY_VALUE_REVISION
                && row.hashes.contains(&&*identity.hash)
        })
    }
}
