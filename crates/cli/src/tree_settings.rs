//! How a database's tree is stored and computed: what `--tree-settings` asked for. How it is stored it remembers from when it was made.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arbor_state::Scope;
use arbor_versions::read_head_file;

use crate::trees::{self, TREES};
use crate::{
    output,
    remembered::{self, write_whole},
};

/// Settings, each once, in the order of their list. None: the default.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct TreeSettings(Vec<String>);

impl TreeSettings {
    pub(crate) fn new(settings: &[String]) -> Self {
        let mut settings = settings.to_vec();
        settings.sort_by_cached_key(|word| (place(word), word.clone()));
        settings.dedup();
        Self(settings)
    }

    /// Those that the database in a folder was made with. One that does not say so has the default.
    pub(crate) fn stored(dir: &Path) -> Result<Option<Self>> {
        let wanted =
            "the --tree-settings that the database was made with, or to be removed if it had none";
        remembered::stored(&file(dir), wanted, Self::parse)
    }

    /// As [`stored`](Self::stored), of a database that is only read; `None` if that is not known, which does no harm, since nodes say themselves how they are stored: the user is told.
    pub(crate) fn to_read(dir: &Path) -> Option<Self> {
        remembered::to_read(Self::stored(dir))
    }

    /// The settings to replay with: nodes are stored as those are of the folder's database, if anything was flushed to it, and nothing else may be asked for; how they are computed is
    /// free.
    pub(crate) fn agreed(self, dir: Option<&Path>) -> Result<Self> {
        let Some(dir) = dir else { return Ok(self) };
        let made = read_head_file(dir).is_ok_and(|file| file.head.is_some());
        let Some(stored) = Self::stored(dir)? else {
            // Made by a version that did not remember them.
            if made && !self.0.is_empty() {
                output::tell(&format!(
                    "{} does not say with which --tree-settings it was made; going on with {self}",
                    dir.display()
                ));
            }
            return Ok(self);
        };
        let (asked, stored) = (self.of_storing(), stored.of_storing());
        if asked == stored || !made && !self.0.is_empty() {
            return Ok(self);
        }
        if !asked.0.is_empty() {
            bail!(
                "{} was made with {stored}, not with {asked}: its nodes would be stored in two ways",
                dir.display()
            );
        }
        output::tell(&format!("going on with {stored}, as before"));
        Ok(Self::new(&[self.0, stored.0].concat()))
    }

    /// Those that say how nodes are stored.
    fn of_storing(&self) -> Self {
        let is_stored = |word: &&String| {
            trees::setting(word).is_some_and(|setting| setting.scope == Scope::Stored)
        };
        Self(self.0.iter().filter(is_stored).cloned().collect())
    }

    /// Has the database in a folder remember how its nodes are stored.
    pub(crate) fn remember(&self, dir: &Path) -> Result<()> {
        let storing = self.of_storing();
        if Self::stored(dir)?.as_ref() == Some(&storing) {
            return Ok(());
        }
        let path = file(dir);
        let text = format!("{}\n", storing.0.join(","));
        write_whole(&path, &text).with_context(|| format!("writing {}", path.display()))
    }

    /// The words of the command line.
    pub(crate) fn as_slice(&self) -> &[String] {
        &self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let names = text.strip_suffix('\n')?;
        if names.is_empty() {
            return Some(Self::default());
        }
        let known = |word: &str| trees::setting(word).map(|_| word.to_owned());
        let settings: Option<Vec<_>> = names.split(',').map(known).collect();
        Some(Self::new(&settings?))
    }
}

impl std::fmt::Display for TreeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0[..] {
            [] => f.write_str("the default --tree-settings"),
            names => write!(f, "--tree-settings {}", names.join(",")),
        }
    }
}

/// Where a setting stands in the lists of the trees.
fn place(word: &str) -> Option<usize> {
    let settings = TREES.rows().flat_map(|kind| kind.settings);
    let found = trees::setting(word)?;
    settings
        .enumerate()
        .find_map(|(place, setting)| (setting == found).then_some(place))
}

fn file(dir: &Path) -> PathBuf {
    dir.join("tree-settings")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let dir = folder.path();
        let all = TREES.find("verkle").expect("a tree").settings;
        let all: Vec<String> = all.iter().map(|setting| setting.name.to_owned()).collect();
        for count in (0..=all.len()).rev() {
            let settings = TreeSettings::new(&all[..count]);
            settings.remember(dir).expect("written");
            assert_eq!(
                TreeSettings::stored(dir).expect("read"),
                Some(settings.of_storing())
            );
            let reversed: Vec<_> = all[..count].iter().rev().cloned().collect();
            assert_eq!(TreeSettings::new(&reversed), settings);
        }
        for damaged in ["", "compressed", "compresed\n", "compressed,\n"] {
            std::fs::write(file(dir), damaged).expect("written");
            let error = TreeSettings::stored(dir).expect_err(damaged).to_string();
            assert!(error.contains("tree-settings is damaged"), "{error}");
        }
    }
}
