//! What a database is: stored when it is created, checked whenever it is opened.

use arbor_store::{Table, Write};
use serde::{Deserialize, Serialize};

use crate::error::VersionsError;
use crate::space::{FIRST_OWN_TABLE, all_placed, placed};

/// What a database commits to and how.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// The tree, for example `mpt`.
    pub tree: String,
    /// The revision of its specification.
    pub revision: String,
    /// The hash function or commitment.
    pub hash: String,
    /// The version of the stored layout; raised when any table's format changes.
    pub layout: u32,
    /// The chain's EIP-155 number.
    pub chain_id: u64,
    /// The hash of the chain's genesis block.
    #[serde(with = "hex_array")]
    pub genesis: [u8; 32],
    /// The [space](crate::OTHER_SPACE) of the tree's tables: 0, or 1 after a move to another tree. The database says which, not whoever opens it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub space: u8,
    /// The move to another tree, if there is one under way or ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves_to: Option<MovesTo>,
    /// The first block whose version has this tree's root, after a move from another tree. Versions before it are remembered with other roots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// A move of the state to another tree, block by block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MovesTo {
    /// The first block that moves something.
    pub at: u64,
    /// Accounts and slots that a block moves.
    pub stride: u64,
    /// The tree.
    pub tree: String,
    /// The revision of its specification.
    pub revision: String,
    /// The hash function or commitment.
    pub hash: String,
    /// The version of the stored layout.
    pub layout: u32,
}

fn is_zero(space: &u8) -> bool {
    *space == 0
}

impl Identity {
    /// This database with another move, or none.
    #[must_use]
    pub fn moving_to(&self, moves_to: Option<MovesTo>) -> Self {
        Self {
            moves_to,
            ..self.clone()
        }
    }

    /// This database once it has moved: with the other tree, in the other space. None if it moves nowhere.
    pub fn moved(&self) -> Option<Self> {
        let MovesTo {
            tree,
            revision,
            hash,
            layout,
            ..
        } = self.moves_to.clone()?;
        Some(Self {
            tree,
            revision,
            hash,
            layout,
            space: 1 - self.space.min(1),
            moves_to: None,
            ..self.clone()
        })
    }

    /// Checks that `self`, as stored, is what the caller wants. The space, and the blocks of moves, are not compared.
    ///
    /// # Errors
    /// [`VersionsError::Identity`] names the first field that differs.
    pub fn check(&self, wanted: &Self) -> Result<(), VersionsError> {
        let fields = [
            ("tree", self.tree.clone(), wanted.tree.clone()),
            ("revision", self.revision.clone(), wanted.revision.clone()),
            ("hash", self.hash.clone(), wanted.hash.clone()),
            (
                "chain id",
                self.chain_id.to_string(),
                wanted.chain_id.to_string(),
            ),
            (
                "genesis",
                const_hex::encode(self.genesis),
                const_hex::encode(wanted.genesis),
            ),
        ];
        let moves = |identity: &Self| {
            let moves = identity.moves_to.as_ref();
            moves.map_or_else(
                || "nothing".to_owned(),
                |to| format!("{} ({}, {})", to.tree, to.revision, to.hash),
            )
        };
        let fields =
            fields
                .into_iter()
                .chain([("tree that it moves to", moves(self), moves(wanted))]);
        for (field, stored, wanted) in fields {
            if stored != wanted {
                return Err(VersionsError::Identity {
                    field,
                    stored,
                    wanted,
                });
            }
        }
        if self.layout != wanted.layout {
            return Err(VersionsError::Layout {
                tree: self.tree.clone(),
                stored: self.layout,
                wanted: wanted.layout,
            });
        }
        Ok(())
    }
}

/// How a table's values change over versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TableKind {
    /// State itself: undone by rollback, readable at every retained version, ordered in memory.
    Flat,
    /// Derived from flat tables: a rollback writes what the caller gives; no history.
    Nodes,
    /// Content-addressed: a key's value never changes and outlives a rollback.
    Blobs,
}

impl TableKind {
    fn word(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Nodes => "nodes",
            Self::Blobs => "blobs",
        }
    }
}

/// A caller's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableSpec {
    /// The table's byte, below 0xee.
    pub table: Table,
    /// Its name in messages.
    pub name: &'static str,
    /// Its kind.
    pub kind: TableKind,
}

/// The caller's tables as the store has them, ascending.
#[derive(Debug)]
pub(crate) struct Schema {
    specs: Vec<TableSpec>,
    positions: [u8; 256],
    /// The [space](crate::space) of the tables that callers name.
    pub(crate) space: u8,
}

const UNKNOWN: u8 = u8::MAX;

impl Schema {
    /// The tables, as a caller names them, of a database in a space.
    pub(crate) fn new(specs: &[TableSpec], space: u8) -> Result<Self, VersionsError> {
        let mut specs = specs.to_vec();
        for spec in &mut specs {
            spec.table = placed(space, spec.table);
        }
        specs.sort_by_key(|spec| spec.table);
        let mut positions = [UNKNOWN; 256];
        for (position, spec) in specs.iter().enumerate() {
            let slot = &mut positions[usize::from(spec.table.0)];
            let reason = if spec.table.0 >= FIRST_OWN_TABLE {
                "bytes from 0xee belong to the versions themselves"
            } else if *slot != UNKNOWN {
                "declared twice"
            } else {
                *slot = u8::try_from(position).expect("invariant: fewer than 240 tables");
                continue;
            };
            return Err(VersionsError::Table {
                table: spec.table.0,
                reason,
            });
        }
        Ok(Self {
            specs,
            positions,
            space,
        })
    }

    /// The tables as a caller names them.
    pub(crate) fn named(&self) -> Vec<TableSpec> {
        let named = |spec: &TableSpec| TableSpec {
            table: placed(self.space, spec.table),
            ..*spec
        };
        self.specs.iter().map(named).collect()
    }

    /// A caller's writes, to the tables of the store.
    pub(crate) fn placed(&self, writes: Vec<Write>) -> Vec<Write> {
        all_placed(self.space, writes)
    }

    pub(crate) fn specs(&self) -> &[TableSpec] {
        &self.specs
    }

    /// Returns the place of a table among the specs.
    pub(crate) fn position(&self, table: Table) -> Result<usize, VersionsError> {
        match self.positions[usize::from(table.0)] {
            UNKNOWN => Err(VersionsError::Table {
                table: table.0,
                reason: "not declared",
            }),
            position => Ok(usize::from(position)),
        }
    }

    /// Returns the place of a table that was checked before.
    pub(crate) fn known(&self, table: Table) -> usize {
        let position = self.positions[usize::from(table.0)];
        debug_assert_ne!(position, UNKNOWN, "table {table:?} was not checked");
        usize::from(position)
    }

    /// Returns the place of a table that must be of `kind`.
    pub(crate) fn position_of_kind(
        &self,
        table: Table,
        kind: TableKind,
    ) -> Result<usize, VersionsError> {
        let position = self.position(table)?;
        if self.specs[position].kind != kind {
            return Err(VersionsError::Table {
                table: table.0,
                reason: match kind {
                    TableKind::Flat => "not a flat table",
                    TableKind::Nodes => "not a table of nodes",
                    TableKind::Blobs => "not a table of blobs",
                },
            });
        }
        Ok(position)
    }
}

/// The stored form of everything that is fixed at creation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct StoredIdentity {
    pub(crate) identity: Identity,
    pub(crate) tables: Vec<StoredTable>,
    /// Versions an index epoch.
    pub(crate) epoch: u64,
}

/// A table in [`StoredIdentity`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct StoredTable {
    pub(crate) table: u8,
    name: String,
    kind: String,
}

impl StoredIdentity {
    pub(crate) fn new(identity: &Identity, schema: &Schema, epoch: u64) -> Self {
        let tables = schema
            .specs
            .iter()
            .map(|spec| StoredTable {
                table: spec.table.0,
                name: spec.name.into(),
                kind: spec.kind.word().into(),
            })
            .collect();
        Self {
            identity: identity.clone(),
            tables,
            epoch,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("invariant: strings and numbers always serialise")
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, VersionsError> {
        serde_json::from_slice(bytes)
            .map_err(|error| VersionsError::malformed("identity record", error.to_string()))
    }

    /// Checks the tables against those that the caller wants. A table that the database does not know yet is empty.
    pub(crate) fn check_tables(&self, wanted: &Self) -> Result<(), VersionsError> {
        if !self
            .tables
            .iter()
            .all(|table| wanted.tables.contains(table))
        {
            let list = |tables: &[StoredTable]| {
                let words = tables
                    .iter()
                    .map(|t| format!("{:#04x} {} ({})", t.table, t.name, t.kind));
                words.collect::<Vec<_>>().join(", ")
            };
            return Err(VersionsError::Identity {
                field: "tables",
                stored: list(&self.tables),
                wanted: list(&wanted.tables),
            });
        }
        Ok(())
    }
}

/// Serde of 32 bytes as hex with `0x`.
pub(crate) mod hex_array {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("0x{}", const_hex::encode(bytes)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        let digits = text
            .strip_prefix("0x")
            .filter(|digits| !digits.starts_with("0x"))
            .ok_or_else(|| D::Error::custom("hex without one 0x"))?;
        let mut bytes = [0; 32];
        const_hex::decode_to_slice(digits, &mut bytes).map_err(D::Error::custom)?;
        Ok(bytes)
    }
}
