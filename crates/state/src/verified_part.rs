//! Parts of a check of a whole database, which machines share.

use std::collections::BTreeSet;

use alloy_primitives::{B256, hex, keccak256};
use arbor_state_tree::{CheckedPart, PartOf, VerifyReport};
use arbor_versions::Identity;
use serde::{Deserialize, Serialize};

use crate::{StateError, StateSnapshot};

/// The form of the file of a part.
const FORM: &str = "arbor verify part, form 2";

/// Why bytes are no part of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAPart {
    /// They do not begin like one.
    #[error("it is not a part of a verification, or it is of another version of this program")]
    OtherForm,
    /// They begin like one.
    #[error("it is cut or damaged: make this part again")]
    Damaged,
}

/// What a check of a part of a database has found, for the [join](StateSnapshot::verify_join) of all parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VerifiedPart {
    /// Which part it is.
    pub part: PartOf,
    /// The database.
    pub database: Identity,
    /// Its latest block.
    pub block: u64,
    /// The hash of that block.
    pub block_hash: B256,
    /// The root after that block.
    pub root: B256,
    /// Accounts that were checked.
    pub accounts: u64,
    /// Slots that were checked.
    pub slots: u64,
    /// Codes that were checked.
    pub codes: u64,
    /// Nodes that were rebuilt and compared.
    pub nodes: u64,
    /// Faults that were found.
    pub fault_count: u64,
    /// The first hundred faults.
    pub faults: Vec<String>,
    /// What the tree compares over all parts.
    pub(crate) tree: CheckedPart,
}

/// All parts of one check, ascending.
pub struct VerifiedParts(pub(crate) Vec<VerifiedPart>);

/// Why parts are not all parts of one check. The parts are numbered as they were given, from 0 on.
#[derive(Debug, thiserror::Error)]
pub enum PartsError {
    /// A part of another database, or of another block.
    #[error("it is part {part} of {found}, and this is {wanted}")]
    Foreign {
        /// Which of the parts.
        at: usize,
        /// The part.
        part: PartOf,
        /// What the part says that it was made of.
        found: String,
        /// What the database is.
        wanted: String,
    },
    /// A part of another number of parts.
    #[error("it is part {part}, and does not belong to part {first}")]
    OtherNumber {
        /// Which of the parts.
        at: usize,
        /// The part.
        part: PartOf,
        /// The first of all.
        first: PartOf,
    },
    /// A part that is there twice.
    #[error("it is part {part}, which is there already")]
    Twice {
        /// Which of the parts.
        at: usize,
        /// The part.
        part: PartOf,
    },
    /// Parts that are not there.
    #[error("part {} is missing", .0.iter().map(PartOf::to_string).collect::<Vec<_>>().join(", part "))]
    Missing(Vec<PartOf>),
    /// The database could not be read.
    #[error(transparent)]
    Read(#[from] StateError),
}

impl PartsError {
    /// Which of the parts is wrong; `None` if that cannot be said.
    pub fn at(&self) -> Option<usize> {
        match self {
            Self::Foreign { at, .. } | Self::OtherNumber { at, .. } | Self::Twice { at, .. } => {
                Some(*at)
            }
            Self::Missing(_) | Self::Read(_) => None,
        }
    }
}

impl VerifiedPart {
    /// Returns the bytes of a file: a line with the name of the form and the Keccak-256 of what follows, then JSON.
    pub fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("invariant: maps have text as keys");
        let head = format!("{FORM} {}\n", keccak256(&json));
        [head.as_bytes(), &json].concat()
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Bytes that are no part, or a part that is cut or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotAPart> {
        let rest = bytes.strip_prefix(FORM.as_bytes());
        let rest = rest.and_then(|rest| rest.strip_prefix(b" 0x"));
        let rest = rest.ok_or(NotAPart::OtherForm)?;
        let (hash, json) = rest.split_at_checked(64).ok_or(NotAPart::Damaged)?;
        let json = json.strip_prefix(b"\n").ok_or(NotAPart::Damaged)?;
        if hash != hex::encode(keccak256(json)).as_bytes() {
            return Err(NotAPart::Damaged);
        }
        let part: Self = serde_json::from_slice(json).map_err(|_| NotAPart::Damaged)?;
        let PartOf { number, of } = part.part;
        let is_part = (1..=of).contains(&number) && of <= PartOf::RANGES;
        match is_part && part.tree.subtrees.len() == part.part.ranges().len() {
            true => Ok(part),
            false => Err(NotAPart::Damaged),
        }
    }

    /// The database and the block, in words.
    fn of(&self) -> String {
        let Identity {
            tree,
            revision,
            hash,
            chain_id,
            genesis,
            ..
        } = &self.database;
        format!(
            "a database with tree {tree} ({revision}, {hash}) of chain {chain_id} with genesis {} at block {} ({}) with root {}",
            B256::from(*genesis),
            self.block,
            self.block_hash,
            self.root
        )
    }

    pub(crate) fn report(&self) -> VerifyReport {
        VerifyReport {
            accounts: self.accounts,
            slots: self.slots,
            codes: self.codes,
            nodes: self.nodes,
            fault_count: self.fault_count,
            faults: self.faults.clone(),
            ..VerifyReport::default()
        }
    }
}

impl StateSnapshot {
    /// Checks that these are all parts of this database at its latest block.
    ///
    /// # Errors
    /// A part of another database, block or number of parts, a part that is there twice, parts that are missing.
    pub fn all_parts(&self, mut parts: Vec<VerifiedPart>) -> Result<VerifiedParts, PartsError> {
        let own = self.part_of(PartOf::whole())?;
        let first = parts.first().map_or(PartOf::whole(), |first| first.part);
        let mut there = BTreeSet::new();
        for (at, of) in parts.iter().enumerate() {
            let part = of.part;
            if of.of() != own.of() || of.database != own.database {
                let (found, wanted) = (of.of(), own.of());
                return Err(PartsError::Foreign {
                    at,
                    part,
                    found,
                    wanted,
                });
            }
            if part.of != first.of {
                return Err(PartsError::OtherNumber { at, part, first });
            }
            if !there.insert(part.number) {
                return Err(PartsError::Twice { at, part });
            }
        }
        let missing = (1..=first.of).filter(|number| !there.contains(number));
        let missing = missing.map(|number| PartOf {
            number,
            of: first.of,
        });
        let missing: Vec<PartOf> = missing.collect();
        if !missing.is_empty() {
            return Err(PartsError::Missing(missing));
        }
        parts.sort_by_key(|part| part.part);
        Ok(VerifiedParts(parts))
    }

    /// A part of this database of which nothing is checked yet.
    pub(crate) fn part_of(&self, part: PartOf) -> Result<VerifiedPart, StateError> {
        let head = self.reader();
        let (block, block_hash) = head.meta().map_or_else(Default::default, |meta| {
            (meta.block_number, meta.block_hash)
        });
        Ok(VerifiedPart {
            part,
            database: self.versions.identity()?,
            block,
            block_hash: block_hash.into(),
            root: head.root(),
            accounts: 0,
            slots: 0,
            codes: 0,
            nodes: 0,
            fault_count: 0,
            faults: Vec::new(),
            tree: CheckedPart::default(),
        })
    }
}
