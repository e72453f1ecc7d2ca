//! The rules of a database's blocks beyond its genesis, which its folder remembers in the file `rules`.

use std::path::PathBuf;

use arbor_chain::rules::{ChainRules, RulesError};

use crate::DatabaseError;
use crate::folder::{Folder, io_error};
use crate::names::RULES;
use crate::remembered::{stored, write_whole};

/// The rules to go on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgreedRules {
    /// The rules.
    pub rules: ChainRules,
    /// How they differ from what was asked for, or remembered.
    pub notice: Option<RulesNotice>,
}

/// What a user should know of the rules that are gone on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RulesNotice {
    /// The rules are those of the blocks before; none were asked for.
    AsBefore,
    /// The rules asked for take the place of these, by which no block was replayed.
    InPlaceOf(ChainRules),
}

impl Folder<'_> {
    fn rules_path(self) -> PathBuf {
        self.dir.join(RULES)
    }

    /// Reads the rules of the database's blocks; `None` if the folder does not have them.
    ///
    /// # Errors
    /// A damaged file, or one that a later program wrote.
    pub fn rules(self) -> Result<Option<ChainRules>, DatabaseError> {
        let wanted = "the record of the rules that its blocks were replayed with, or to be removed, so that they are asked for again";
        let parse = |text: &str| {
            // Without its line feed a record may have been cut short.
            let record = text.strip_suffix('\n');
            let record = record.ok_or_else(|| format!("{text:?}"))?;
            ChainRules::from_text(record).map_err(|error| match error {
                RulesError::Version(_) => error.to_string(),
                RulesError::Malformed { .. } => format!("{text:?}"),
            })
        };
        stored(&self.rules_path(), wanted, parse)
    }

    /// Returns the rules to go on with: those of the blocks in the database, which must be the ones asked for if any are. If there is no block,
    /// the rules asked for count.
    ///
    /// # Errors
    /// Rules asked for that are not those of the blocks; a damaged file.
    pub fn agree_on_rules(self, asked: ChainRules) -> Result<AgreedRules, DatabaseError> {
        let agreed = |rules, notice| Ok(AgreedRules { rules, notice });
        let before = match self.rules()? {
            Some(before) if before != asked => before,
            _ => return agreed(asked, None),
        };
        if !self.has_blocks() {
            return agreed(asked, Some(RulesNotice::InPlaceOf(before)));
        }
        if asked != ChainRules::default() {
            return Err(DatabaseError::OtherRules {
                dir: self.dir.to_owned(),
                before: Box::new(before),
                asked: Box::new(asked),
            });
        }
        agreed(before, Some(RulesNotice::AsBefore))
    }

    /// Has the folder remember rules; but not that there are none, if the database has blocks of which it does not know the rules.
    ///
    /// # Errors
    /// A damaged file; one that cannot be written.
    pub fn remember_rules(self, rules: ChainRules) -> Result<(), DatabaseError> {
        let before = self.rules()?;
        let is_unknown = before.is_none() && rules == ChainRules::default() && self.has_blocks();
        if is_unknown || before == Some(rules) {
            return Ok(());
        }
        let (path, text) = (self.rules_path(), format!("{}\n", rules.to_text()));
        write_whole(&path, &text).map_err(|source| io_error("writing", path, source))
    }
}
