//! The records of old nodes; [`old_nodes`](crate::old_nodes) reads and makes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arbor_store::{Reader, Table, Value, Write};

use crate::difference::difference;
use crate::error::VersionsError;
use crate::filters::Filters;
use crate::identity::{Schema, TableKind};
use crate::index::{self, Of};
use crate::layout;
use crate::undo::{Cursor, UndoRecord, encode, found_cursor};

/// The largest chunk of a record in bytes, but for a longer node: a node is searched in one.
const CHUNK: usize = 4 << 10;
/// Of so many changes of a node about one keeps it whole.
pub(crate) const WHOLE_IN: u64 = 32;
/// The first byte of a node that is whole.
const WHOLE: u8 = 0;
/// The first byte of a node that is a difference.
const DIFFERENCE: u8 = 1;

/// What is known of the nodes that are kept.
#[derive(Clone, Debug)]
pub(crate) struct KeptNodes {
    /// The version with which keeping began.
    pub(crate) since: u64,
    /// Epochs that have an index.
    pub(crate) indexed: Arc<BTreeSet<u64>>,
    pub(crate) filters: Arc<Filters>,
    /// Records of versions to which the database was rolled back, until a flush has them.
    pub(crate) rewritten: BTreeMap<u64, Arc<UndoRecord>>,
}

impl KeptNodes {
    pub(crate) fn since(version: u64) -> Self {
        Self {
            since: version,
            indexed: Arc::default(),
            filters: Arc::default(),
            rewritten: BTreeMap::new(),
        }
    }

    /// Reads what a store keeps.
    pub(crate) fn read(store: &dyn Reader) -> Result<Option<Self>, VersionsError> {
        let mark = store
            .get(layout::SYSTEM, layout::KEPT_NODES_KEY)
            .map_err(VersionsError::store("reading what nodes are kept"))?;
        let Some(mark) = mark else { return Ok(None) };
        let since = <[u8; 8]>::try_from(&*mark)
            .map_err(|_| VersionsError::malformed("mark of kept nodes", "not 8 bytes"))?;
        Ok(Some(Self {
            indexed: Arc::new(index::marked(store, Of::Nodes)?),
            ..Self::since(u64::from_be_bytes(since))
        }))
    }
}

/// A node in a record, as it was at the kept version before.
pub(crate) enum Old {
    Absent,
    Whole(Value),
    Difference(Value),
}

impl Old {
    pub(crate) fn of(cursor: &Cursor) -> Result<Self, VersionsError> {
        match cursor.old() {
            None => Ok(Self::Absent),
            Some([WHOLE, record @ ..]) => Ok(Self::Whole(record.into())),
            Some([DIFFERENCE, difference @ ..]) => Ok(Self::Difference(difference.into())),
            Some(_) => Err(cursor.malformed("a node in no known form")),
        }
    }
}

/// A node that changed: its key, and its records before and after.
pub(crate) type Changed<'c> = (Table, &'c [u8], Option<Value>, Option<&'c [u8]>);

/// Encodes the nodes that changed up to a version, ascending by table and key.
pub(crate) fn record(version: u64, changed: &[Changed<'_>]) -> UndoRecord {
    let olds = changed.iter().map(|(table, key, old, new)| {
        let old = old.as_deref()?;
        let spread = version.wrapping_mul(0x9e37_79b9);
        let is_whole = Filters::hash(*table, key)
            .wrapping_add(spread)
            .is_multiple_of(WHOLE_IN);
        let short = new
            .filter(|_| !is_whole)
            .and_then(|new| difference(new, old));
        let (form, bytes) = match &short {
            Some(difference) => (DIFFERENCE, &difference[..]),
            None => (WHOLE, old),
        };
        Some([&[form], bytes].concat())
    });
    let olds: Vec<Option<Vec<u8>>> = olds.collect();
    let entries = changed.iter().zip(&olds);
    encode(
        entries.map(|((table, key, ..), old)| (*table, *key, old.as_deref())),
        CHUNK,
    )
}

pub(crate) fn missing(version: u64, chunk: u32) -> VersionsError {
    VersionsError::malformed(
        format!("old nodes of version {version}, chunk {chunk}"),
        "missing",
    )
}

/// The write of the version from which on nodes are kept.
pub(crate) fn since_write(since: u64) -> Write {
    layout::put(
        layout::SYSTEM,
        layout::KEPT_NODES_KEY,
        since.to_be_bytes().to_vec(),
    )
}

/// The keys of a version's stored record.
pub(crate) fn stored_keys(
    base: &dyn Reader,
    version: u64,
) -> Result<impl Iterator<Item = Box<[u8]>> + use<>, VersionsError> {
    let first = found_cursor(base, layout::OLD_NODES, version, 0)?;
    let chunks = first.map_or(0, |cursor| cursor.chunks());
    if chunks > 1 && found_cursor(base, layout::OLD_NODES, version, chunks - 1)?.is_none() {
        return Err(missing(version, chunks - 1));
    }
    Ok((0..chunks).map(move |chunk| layout::undo_key(version, chunk).into()))
}

/// Checks a stored chunk; `last` is the key before it, table and all.
pub(crate) fn check_chunk(
    schema: &Schema,
    (version, chunk): (u64, u32),
    value: &Value,
    last: &mut Vec<u8>,
) -> Result<u32, VersionsError> {
    let mut cursor = Cursor::new(version, chunk, value.clone())?;
    while cursor.advance()? {
        schema.position_of_kind(cursor.table(), TableKind::Nodes)?;
        Old::of(&cursor)?;
        if cursor.table_and_key() <= &last[..] {
            return Err(cursor.malformed("keys do not ascend from chunk to chunk"));
        }
        cursor.table_and_key().clone_into(last);
    }
    Ok(cursor.chunks())
}
