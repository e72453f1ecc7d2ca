//! How a database's tree is stored and computed. Its folder remembers in the file `tree-settings` how its nodes are stored.

use std::fmt;
use std::path::PathBuf;

use arbor_state::{Registry, Scope, Setting, Settings, Tree, TreeKind};

use crate::DatabaseError;
use crate::folder::{Folder, io_error};
use crate::remembered::{stored, write_whole};

/// Settings of a tree, each once, in the order of their list. None: the default.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TreeSettings(Vec<String>);

/// What a user should know of the settings that are gone on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingsNotice {
    /// The database was made by a program that did not have its folder remember settings.
    NotRemembered,
    /// These are the settings that the nodes are stored by; none were asked for.
    AsBefore(TreeSettings),
}

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
    ) -> Result<Tree, DatabaseError> {
        Ok((kind.make)(&Settings {
            hash,
            memory: Some(memory),
            words: self.0.clone(),
        })?)
    }

    /// The settings that say how nodes are stored.
    fn of_storing(&self, trees: &Registry) -> Self {
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

    fn parse(text: &str, trees: &Registry) -> Option<Self> {
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
            [] => f.write_str("the default --tree-settings"),
            names => write!(f, "--tree-settings {}", names.join(",")),
        }
    }
}

impl Folder<'_> {
    fn tree_settings_path(self) -> PathBuf {
        self.dir.join("tree-settings")
    }

    /// Reads the settings that the nodes of the database are stored by; `None` if the folder does not have them.
    ///
    /// # Errors
    /// A damaged file.
    pub fn tree_settings(self) -> Result<Option<TreeSettings>, DatabaseError> {
        let wanted =
            "the --tree-settings that the database was made with, or to be removed if it had none";
        let parse =
            |text: &str| TreeSettings::parse(text, self.trees).ok_or_else(|| format!("{text:?}"));
        stored(&self.tree_settings_path(), wanted, parse)
    }

    /// Returns the settings to go on with: nodes are stored as those are that were flushed, if there are any, and nothing else may be asked for; how they are computed
    /// is free.
    ///
    /// # Errors
    /// Settings asked for by which nodes would be stored in another way; a damaged file.
    pub fn agree_on_tree_settings(
        self,
        asked: TreeSettings,
    ) -> Result<(TreeSettings, Option<SettingsNotice>), DatabaseError> {
        let is_made = self.head_file().is_ok_and(|file| file.head.is_some());
        let Some(before) = self.tree_settings()? else {
            let notice = is_made && !asked.0.is_empty();
            return Ok((asked, notice.then_some(SettingsNotice::NotRemembered)));
        };
        let storing = asked.of_storing(self.trees);
        let before = before.of_storing(self.trees);
        if storing == before || !is_made && !asked.0.is_empty() {
            return Ok((asked, None));
        }
        if !storing.0.is_empty() {
            return Err(DatabaseError::OtherTreeSettings {
                dir: self.dir.to_owned(),
                before,
                asked: storing,
            });
        }
        let all = TreeSettings::new(&[&asked.0[..], &before.0[..]].concat(), self.trees);
        Ok((all, Some(SettingsNotice::AsBefore(before))))
    }

    /// Has the folder remember how the nodes of the database's tree are stored, if that can be set of the tree.
    ///
    /// # Errors
    /// A damaged file; one that cannot be written.
    pub fn remember_tree_settings(
        self,
        settings: &TreeSettings,
        kind: &TreeKind,
    ) -> Result<(), DatabaseError> {
        let mut known = kind.settings.iter();
        if !known.any(|setting| setting.scope == Scope::Stored) {
            return Ok(());
        }
        let storing = settings.of_storing(self.trees);
        if self.tree_settings()?.as_ref() == Some(&storing) {
            return Ok(());
        }
        let path = self.tree_settings_path();
        let text = format!("{}\n", storing.0.join(","));
        write_whole(&path, &text).map_err(|source| io_error("writing", path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let trees = arbor_trees::standard();
        let folder = Folder::new(dir.path(), &trees);
        let verkle = trees.find("verkle").expect("a tree");
        let all = verkle.settings.iter();
        let all: Vec<String> = all.map(|setting| setting.name.to_owned()).collect();
        for count in (0..=all.len()).rev() {
            let settings = TreeSettings::new(&all[..count], &trees);
            let written = folder.remember_tree_settings(&settings, verkle);
            written.expect("written");
            assert_eq!(
                folder.tree_settings().expect("read"),
                Some(settings.of_storing(&trees))
            );
            let reversed: Vec<_> = all[..count].iter().rev().cloned().collect();
            assert_eq!(TreeSettings::new(&reversed, &trees), settings);
        }
        for damaged in ["", "compressed", "compresed\n", "compressed,\n"] {
            std::fs::write(folder.tree_settings_path(), damaged).expect("written");
            let error = folder.tree_settings().expect_err(damaged).to_string();
            assert!(error.contains("tree-settings is damaged"), "{error}");
        }
    }
}
