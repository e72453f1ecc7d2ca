//! What a version changes, and the checks on it before anything is touched.

use arbor_store::{Table, Value, Write};

use crate::error::VersionsError;
use crate::identity::{Schema, TableKind};
use crate::meta::Version;

/// A change of a flat key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// A flat table.
    pub table: Table,
    /// The key.
    pub key: Box<[u8]>,
    /// The value that it had before, which the caller has read.
    pub old: Option<Value>,
    /// The new value; `None` deletes.
    pub new: Option<Value>,
}

/// What a version changes. The order of entries is free; a key may occur once.
#[derive(Clone, Default, Debug)]
pub struct Changes {
    /// Changes of flat tables. Sorted by table and key they are applied fastest.
    pub flat: Vec<Change>,
    /// Nodes written and deleted.
    pub nodes: Vec<Write>,
    /// Blobs; one that exists is left as it is.
    pub blobs: Vec<Write>,
}

impl Changes {
    /// Checks tables and keys, sorts the flat changes and drops those that change nothing.
    pub(crate) fn prepare(
        &mut self,
        schema: &Schema,
        version: Version,
    ) -> Result<(), VersionsError> {
        for change in &self.flat {
            schema.position_of_kind(change.table, TableKind::Flat)?;
        }
        check_writes(schema, &self.nodes, TableKind::Nodes)?;
        check_writes(schema, &self.blobs, TableKind::Blobs)?;
        let ascends = |a: &Change, b: &Change| (a.table, &a.key) < (b.table, &b.key);
        if !self.flat.is_sorted_by(ascends) {
            self.flat
                .sort_unstable_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
            if let Some(pair) = self
                .flat
                .windows(2)
                .find(|pair| !ascends(&pair[0], &pair[1]))
            {
                return Err(VersionsError::DuplicateChange {
                    version,
                    table: schema.specs()[schema.position(pair[0].table)?].name,
                    key: hex::encode(&pair[0].key),
                });
            }
        }
        self.flat.retain(|change| change.old != change.new);
        Ok(())
    }
}

/// Checks that writes go to tables of one kind and that no blob is deleted.
pub(crate) fn check_writes(
    schema: &Schema,
    writes: &[Write],
    kind: TableKind,
) -> Result<(), VersionsError> {
    for write in writes {
        schema.position_of_kind(write.table, kind)?;
        if kind == TableKind::Blobs && write.value.is_none() {
            return Err(VersionsError::Table {
                table: write.table.0,
                reason: "blobs are never deleted",
            });
        }
    }
    Ok(())
}
