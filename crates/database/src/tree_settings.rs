//! How a database's tree is stored and computed.

use std::fmt;

use arbor_state::{Registry, Scope, Setting, SettingError, Settings, Tree, TreeKind};

/// Settings of a tree, each once, in the order of their list. None: the default.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TreeSettings(Vec<String>);

/// Returns the setting that a word names, of any tree.
fn setting(trees: &Registry, word: &str) -> Option<&'static Setting> {
    trees.rows().find_map(|kind| kind.setting(word))
}

impl TreeSettings {
    /// Puts settings into the order of their list.
    #[must_use]
    pub fn new(settings: &[String], trees: &Registry) -> Self {
        let place = |word: &str| {
            let found = setting(trees, word)?;
            let mut settings = trees.rows().flat_map(|kind| kind.settings);
            settings.position(|setting| setting == found)
        };
        let mut settings = settings.to_vec();
        settings.sort_by_cached_key(|word| (place(word), word.clone()));
        settings.dedup();
        Self(settings)
    }

    /// Makes a tree with these settings. `hash` is its hash function, the usual one if not given; `memory` the bytes for everything together.
    ///
    /// # Errors
    /// A setting that the tree does not have.
    pub fn tree(
        &self,
        kind: &TreeKind,
        hash: Option<String>,
        memory: u64,
    ) -> Result<Tree, SettingError> {
        (kind.make)(&Settings {
            hash,
            memory: Some(memory),
            words: self.0.clone(),
        })
    }

    /// The settings that say how nodes are stored.
    pub(crate) fn of_storing(&self, trees: &Registry) -> Self {
        let is_stored = |word: &&String| {
            setting(trees, word).is_some_and(|setting| setting.scope == Scope::Stored)
        };
        Self(self.0.iter().filter(is_stored).cloned().collect())
    }

    /// The settings by name, or as `name=NUMBER`.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// The words as a folder keeps them, with a line feed.
    pub(crate) fn to_text(&self) -> String {
        format!("{}\n", self.0.join(","))
    }

    /// Reads the words of [`to_text`](Self::to_text).
    pub(crate) fn parse(text: &str, trees: &Registry) -> Option<Self> {
        let names = text.strip_suffix('\n')?;
        if names.is_empty() {
            return Some(Self::default());
        }
        let known = |word: &str| setting(trees, word).map(|_| word.to_owned());
        let settings: Option<Vec<_>> = names.split(',').map(known).collect();
        Some(Self::new(&settings?, trees))
    }
}

impl fmt::Display for TreeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [] => f.write_str("the default tree settings"),
            names => write!(f, "the tree settings {}", names.join(",")),
        }
    }
}
