//! The genesis that a database's folder keeps.

use std::fmt;
use std::path::PathBuf;

use alloy_primitives::B256;
use arbor_chain::genesis::Genesis;

use crate::DatabaseError;
use crate::folder::{Folder, NO_CHAIN, io_error};
use crate::names::GENESIS;
use crate::remembered::write_whole;
use arbor_state::Network;

/// What another genesis than the kept one changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OtherGenesis {
    /// The kept one cannot be read.
    Damaged(PathBuf),
    /// It begins another chain.
    OtherChain {
        /// The file.
        path: PathBuf,
        /// The hash of block 0 that was kept.
        kept: B256,
        /// The hash of the one that takes its place.
        now: B256,
    },
    /// It has other rules.
    OtherRules {
        /// The file.
        path: PathBuf,
        /// The first difference, in words.
        difference: String,
    },
}

impl fmt::Display for OtherGenesis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(path) => write!(f, "{} is damaged: it is written anew", path.display()),
            Self::OtherChain { path, kept, now } => {
                let path = path.display();
                write!(
                    f,
                    "{path} is that of genesis {kept}: that of {now} takes its place"
                )
            }
            Self::OtherRules { path, difference } => write!(
                f,
                "by the genesis now given {difference}: it takes the place of {}",
                path.display()
            ),
        }
    }
}

impl Folder<'_> {
    /// The file of the genesis.
    #[must_use]
    pub fn genesis_path(self) -> PathBuf {
        self.dir.join(GENESIS)
    }

    /// Reads the genesis that the folder keeps. Its specification does not have the rules that the folder [remembers](Self::rules) besides.
    ///
    /// # Errors
    /// A database without a chain; a genesis that is missing or damaged.
    pub fn genesis(self) -> Result<Genesis, DatabaseError> {
        let path = self.genesis_path();
        let unusable = |what, source| DatabaseError::Genesis {
            path: path.clone(),
            what,
            source,
        };
        if !self.has(GENESIS)? {
            let unfinished = self.unfinished_conversion();
            if let Some(error) = unfinished.or_else(|| self.part_of_conversion()) {
                return Err(error);
            }
            return Err(match self.head_file() {
                Ok(file) if file.identity.genesis == NO_CHAIN.genesis_hash.0 => {
                    DatabaseError::NoChain(self.dir.to_owned())
                }
                Ok(_) => unusable("missing", None),
                Err(_) if !self.has("")? => DatabaseError::NoFolder(self.dir.to_owned()),
                Err(_) => DatabaseError::NoHead(self.dir.to_owned()),
            });
        }
        if !path.is_file() {
            return Err(unusable("no regular file", None));
        }
        Genesis::from_file(&path).map_err(|source| unusable("damaged", Some(source)))
    }

    /// Reads the network of the database, and the text of its genesis; no text if the database belongs to no chain.
    ///
    /// # Errors
    /// Those of [`network`](Self::network); a genesis that cannot be read.
    pub fn chain(self) -> Result<(Network, Option<String>), DatabaseError> {
        let network = self.network()?;
        let path = self.genesis_path();
        match path.exists() {
            false => Ok((network, None)),
            true => {
                let text = Genesis::read_text(&path).map_err(DatabaseError::GenesisText)?;
                Ok((network, Some(text)))
            }
        }
    }

    /// Keeps the text of the genesis that the database was opened with: the latest one, because forks to come are no part of its hash. Returns what it
    /// changes, if another one was kept.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep_genesis(self, text: &str) -> Result<Option<OtherGenesis>, DatabaseError> {
        let path = self.genesis_path();
        // A FIFO is not waited for, and replaced.
        let other = match path.is_file().then(|| Genesis::read_text(&path)) {
            Some(Ok(kept)) if kept == text => return Ok(None),
            Some(Ok(kept)) if !kept.is_empty() => self.compare_genesis(&kept, text),
            _ => None,
        };
        write_whole(&path, text).map_err(|source| io_error("writing", path, source))?;
        Ok(other)
    }

    /// Returns what another genesis changes, if it is more than spaces.
    fn compare_genesis(self, kept: &str, text: &str) -> Option<OtherGenesis> {
        let path = self.genesis_path();
        let read = |text| Genesis::from_json(text);
        let (Ok(kept), Ok(now)) = (read(kept), read(text)) else {
            return Some(OtherGenesis::Damaged(path));
        };
        if kept.hash != now.hash {
            let (kept, now) = (kept.hash, now.hash);
            return Some(OtherGenesis::OtherChain { path, kept, now });
        }
        let difference = kept.spec.differences(&now.spec).into_iter().next()?;
        Some(OtherGenesis::OtherRules { path, difference })
    }
}
