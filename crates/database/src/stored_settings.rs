//! The settings by which a database's nodes are stored, which its folder remembers in the file `tree-settings`.

use std::path::PathBuf;

use arbor_state::{Scope, TreeKind};

use crate::DatabaseError;
use crate::folder::{Folder, io_error};
use crate::names::TREE_SETTINGS;
use crate::remembered::{stored, write_whole};
use crate::tree_settings::TreeSettings;

/// What a user should know of the settings that are gone on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingsNotice {
    /// The database was made by a program that did not have its folder remember settings.
    NotRemembered,
    /// These are the settings that the nodes are stored by; none were asked for.
    AsBefore(TreeSettings),
}

impl Folder<'_> {
    fn tree_settings_path(self) -> PathBuf {
        self.dir.join(TREE_SETTINGS)
    }

    /// Reads the settings that the nodes of the database are stored by; `None` if the folder does not have them.
    ///
    /// # Errors
    /// A damaged file.
    pub fn tree_settings(self) -> Result<Option<TreeSettings>, DatabaseError> {
        let wanted =
            "the tree settings that the database was made with, or to be removed if it had none";
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
            let notice = is_made && !asked.as_slice().is_empty();
            return Ok((asked, notice.then_some(SettingsNotice::NotRemembered)));
        };
        let storing = asked.of_storing(self.trees);
        let before = before.of_storing(self.trees);
        if storing == before || !is_made && !asked.as_slice().is_empty() {
            return Ok((asked, None));
        }
        if !storing.as_slice().is_empty() {
            return Err(DatabaseError::OtherTreeSettings {
                dir: self.dir.to_owned(),
                before,
                asked: storing,
            });
        }
        let all = TreeSettings::new(&[asked.as_slice(), before.as_slice()].concat(), self.trees);
        Ok((all, Some(SettingsNotice::AsBefore(before))))
    }

    /// Has the folder forget the settings, for another tree.
    pub(crate) fn forget_tree_settings(self) -> Result<(), DatabaseError> {
        let path = self.tree_settings_path();
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io_error("removing", path, error))
            }
            _ => Ok(()),
        }
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
        let text = storing.to_text();
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
