//! Checking what this crate stores, record against record.

use std::collections::{BTreeMap, BTreeSet};

use arbor_store::{Reader, Table, Value};

use crate::error::VersionsError;
use crate::identity::{StoredIdentity, TableKind};
use crate::index::{self, Of};
use crate::kept_nodes::{KeptNodes, check_chunk};
use crate::layout;
use crate::meta::{HeadRecord, Meta, StoredMeta, array, read_head};
use crate::snapshot::Snapshot;
use crate::undo::Cursor;
use crate::unflushed::Unflushed;
use crate::version::Version;

/// What [`Snapshot::verify_records`] looked at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RecordCounts {
    /// Metas of versions.
    pub metas: u64,
    /// Undo chunks, each of them decoded.
    pub undo_chunks: u64,
    /// Chunks of old nodes, each of them decoded.
    pub old_node_chunks: u64,
    /// Index entries, each compared with the undo that it was made from.
    pub index_entries: u64,
}

impl Snapshot {
    /// Checks the stored records of this crate against each other: metas without a gap, blocks that
    /// lead to them, undo that decodes and is all there, indexes equal to what the undo gives, and
    /// nothing else. Everything is read twice, by a scan and by its key, since an engine finds a key
    /// by other means than a scan does.
    ///
    /// Looks at what is stored: versions that no flush has taken yet have no records.
    ///
    /// `meta` is called for every meta, ascending, and returns what is wrong with what only the
    /// caller understands; `fault` is told of everything that is wrong.
    ///
    /// # Errors
    /// A store that cannot be read; a record so damaged that the others cannot be judged by it.
    pub fn verify_records(
        &self,
        meta: &mut dyn FnMut(&Meta) -> Result<(), String>,
        fault: &mut dyn FnMut(String),
    ) -> Result<RecordCounts, VersionsError> {
        let mut check = Check {
            base: &*self.base,
            unflushed: &self.unflushed,
            stored: read_head(&*self.base)?,
            fault,
            counts: RecordCounts::default(),
        };
        check.system()?;
        check.other_tables()?;
        if let Some(stored) = check.stored {
            let metas = check.metas(stored, meta)?;
            check.blocks(&metas)?;
            check.undo(stored, &metas)?;
            check.old_nodes(stored)?;
            check.indexes(Of::Flat, stored)?;
            check.indexes(Of::Nodes, stored)?;
        }
        Ok(check.counts)
    }
}

fn is_mark(key: &[u8]) -> bool {
    [Of::Flat, Of::Nodes]
        .iter()
        .any(|of| key.starts_with(of.marks()))
}

/// Block number and number of undo chunks of each version.
type Metas = BTreeMap<u64, (u64, u32)>;

struct Check<'a> {
    base: &'a dyn Reader,
    unflushed: &'a Unflushed,
    stored: Option<HeadRecord>,
    fault: &'a mut dyn FnMut(String),
    counts: RecordCounts,
}

impl<'a> Check<'a> {
    /// Scans a table, and looks every key up.
    fn each(
        &mut self,
        table: Table,
        prefix: &[u8],
        mut visit: impl FnMut(&mut Self, &[u8], &Value) -> Result<(), VersionsError>,
    ) -> Result<(), VersionsError> {
        let failed = || VersionsError::store("verifying");
        let store = self.base;
        for entry in store.scan(table, prefix, &[]).map_err(failed())? {
            let (key, value) = entry.map_err(failed())?;
            let found = store.get(table, &key).map_err(failed())?;
            if found.as_ref() != Some(&value) {
                (self.fault)(format!(
                    "record {} of table {:#04x}: looking it up gives something else than a scan",
                    const_hex::encode(&key),
                    table.0
                ));
            }
            visit(self, &key, &value)?;
        }
        Ok(())
    }

    fn system(&mut self) -> Result<(), VersionsError> {
        self.each(layout::SYSTEM, &[], |check, key, value| {
            match key {
                layout::IDENTITY_KEY => {
                    if StoredIdentity::decode(value)?.encode() != **value {
                        (check.fault)("identity record: not in the form it is written in".into());
                    }
                }
                // Held against the metas and undo that it promises.
                layout::HEAD_KEY => {}
                layout::KEPT_NODES_KEY if value.len() == 8 => {}
                key if is_mark(key) && value.is_empty() => {}
                key => (check.fault)(format!("system record {}: unknown", const_hex::encode(key))),
            }
            Ok(())
        })
    }

    /// Tables that nobody has declared hold nothing.
    fn other_tables(&mut self) -> Result<(), VersionsError> {
        let specs = self.unflushed.schema.specs();
        let mut declared: BTreeSet<Table> = specs.iter().map(|spec| spec.table).collect();
        // Those of a tree that the state has moved from, which the next writer drops.
        let stored = self.base.get(layout::SYSTEM, layout::IDENTITY_KEY);
        if let Some(stored) = stored.map_err(VersionsError::store("verifying"))? {
            let stored = StoredIdentity::decode(&stored)?;
            if stored.identity.moves_to.is_some() {
                declared.extend(stored.tables.iter().map(|table| Table(table.table)));
            }
        }
        for table in (0..=u8::MAX).map(Table) {
            if declared.contains(&table) || (layout::OLD_NODES..=layout::SYSTEM).contains(&table) {
                continue;
            }
            let scan = self.base.scan(table, &[], &[]);
            let first = scan.map_err(VersionsError::store("verifying"))?.next();
            if first.is_some() {
                (self.fault)(format!("table {:#04x}: records of no known kind", table.0));
            }
        }
        Ok(())
    }

    fn metas(
        &mut self,
        stored: HeadRecord,
        visit: &mut dyn FnMut(&Meta) -> Result<(), String>,
    ) -> Result<Metas, VersionsError> {
        let mut metas = Metas::new();
        self.each(layout::META, &[], |check, key, value| {
            let Ok(key) = <[u8; 8]>::try_from(key) else {
                (check.fault)(format!(
                    "meta {}: key of another length",
                    const_hex::encode(key)
                ));
                return Ok(());
            };
            let version = u64::from_be_bytes(key);
            check.counts.metas += 1;
            let found = match StoredMeta::decode(Version(version), value) {
                Ok(found) => found,
                Err(error) => {
                    (check.fault)(error.to_string());
                    return Ok(());
                }
            };
            if let Err(what) = visit(&found.meta) {
                (check.fault)(format!("meta of version {version}: {what}"));
            }
            let number = found.meta.block_number;
            if let Some((_, (before, _))) = metas.last_key_value()
                && number < *before
            {
                (check.fault)(format!(
                    "meta of version {version}: block {number} below its parent's {before}"
                ));
            }
            metas.insert(version, (number, found.undo_chunks));
            Ok(())
        })?;
        let wanted = stored.oldest_meta..=stored.version;
        for version in wanted
            .clone()
            .filter(|version| !metas.contains_key(version))
        {
            (self.fault)(format!("meta of version {version}: missing"));
        }
        for version in metas.keys().filter(|version| !wanted.contains(version)) {
            (self.fault)(format!(
                "meta of version {version}: not one of those that are kept"
            ));
        }
        Ok(metas)
    }

    fn blocks(&mut self, metas: &Metas) -> Result<(), VersionsError> {
        let newest = metas
            .iter()
            .map(|(version, (number, _))| (*number, *version));
        let mut newest: BTreeMap<u64, u64> = newest.collect();
        self.each(layout::BLOCK, &[], |check, key, value| {
            let number = <[u8; 8]>::try_from(key).map(u64::from_be_bytes);
            let version = <[u8; 8]>::try_from(&**value).map(u64::from_be_bytes);
            let right = match (number, version) {
                (Ok(number), Ok(version)) => newest.remove(&number) == Some(version),
                _ => false,
            };
            if !right {
                (check.fault)(format!(
                    "version of block {}: not the newest one that is kept",
                    const_hex::encode(key)
                ));
            }
            Ok(())
        })?;
        for number in newest.keys() {
            (self.fault)(format!("version of block {number}: missing"));
        }
        Ok(())
    }

    fn undo(&mut self, stored: HeadRecord, metas: &Metas) -> Result<(), VersionsError> {
        let mut chunks: BTreeMap<u64, u32> = BTreeMap::new();
        let mut last: Vec<u8> = Vec::new();
        self.each(layout::UNDO, &[], |check, key, value| {
            let Ok(key) = <[u8; 12]>::try_from(key) else {
                (check.fault)(format!(
                    "undo {}: key of another length",
                    const_hex::encode(key)
                ));
                return Ok(());
            };
            let version = u64::from_be_bytes(array(&key));
            let chunk = u32::from_be_bytes(array(&key[8..]));
            check.counts.undo_chunks += 1;
            let known = chunks.entry(version).or_default();
            if chunk == 0 {
                last.clear();
            }
            let total = metas.get(&version).map_or(0, |(_, chunks)| *chunks);
            if chunk != *known || chunk >= total {
                (check.fault)(format!(
                    "undo of version {version}, chunk {chunk}: not one of its {total}"
                ));
            }
            *known = chunk + 1;
            if let Err(error) = check.chunk(version, chunk, total, value, &mut last) {
                (check.fault)(error.to_string());
            }
            Ok(())
        })?;
        // The first version of all has no undo.
        for version in stored.oldest + 1..=stored.version {
            let total = metas.get(&version).map_or(0, |(_, chunks)| *chunks);
            let found = chunks.remove(&version).unwrap_or(0);
            if found == 0 || found != total {
                (self.fault)(format!(
                    "undo of version {version}: {found} of {total} chunks are stored"
                ));
            }
        }
        for version in chunks.keys() {
            (self.fault)(format!(
                "undo of version {version}: not one of those that are kept"
            ));
        }
        Ok(())
    }

    /// Decodes a chunk whose keys must come after `last`.
    fn chunk(
        &self,
        version: u64,
        chunk: u32,
        total: u32,
        value: &Value,
        last: &mut Vec<u8>,
    ) -> Result<(), VersionsError> {
        let place = || format!("undo of version {version}, chunk {chunk}");
        let mut cursor = Cursor::new(version, chunk, value.clone())?;
        if cursor.chunks() != total {
            return Err(VersionsError::malformed(
                place(),
                "another number of chunks than in the meta",
            ));
        }
        let schema = &self.unflushed.schema;
        while cursor.advance()? {
            schema.position_of_kind(cursor.table(), TableKind::Flat)?;
            if cursor.table_and_key() <= &last[..] {
                return Err(VersionsError::malformed(
                    place(),
                    "keys do not ascend from chunk to chunk",
                ));
            }
            cursor.table_and_key().clone_into(last);
        }
        Ok(())
    }

    /// Old nodes of versions that can be read: whole records. If none are kept, those that are there are what a crash left, and are not read.
    fn old_nodes(&mut self, stored: HeadRecord) -> Result<(), VersionsError> {
        let Some(kept) = KeptNodes::read(self.base)? else {
            return Ok(());
        };
        let (mut last, mut open): (Vec<u8>, Option<(u64, u32, u32)>) = (Vec::new(), None);
        self.each(layout::OLD_NODES, &[], |check, key, value| {
            let Ok(key) = <[u8; 12]>::try_from(key) else {
                let key = const_hex::encode(key);
                (check.fault)(format!("old nodes {key}: key of another length"));
                return Ok(());
            };
            let version = u64::from_be_bytes(array(&key));
            let chunk = u32::from_be_bytes(array(&key[8..]));
            check.counts.old_node_chunks += 1;
            let first = stored.oldest.max(kept.since);
            if version <= first || version > stored.version {
                (check.fault)(format!(
                    "old nodes of version {version}: not one of those that are kept"
                ));
            }
            let before = open.filter(|(of, ..)| *of == version);
            let expected = before.map_or(0, |(_, chunk, _)| chunk + 1);
            if expected == 0 {
                check.all_chunks(open);
                last.clear();
            }
            match check_chunk(
                &check.unflushed.schema,
                (version, chunk),
                value,
                &mut last,
            ) {
                Ok(chunks) => {
                    if chunk != expected || before.is_some_and(|(.., of)| of != chunks) {
                        (check.fault)(format!(
                            "old nodes of version {version}, chunk {chunk}: not the one that comes next"
                        ));
                    }
                    open = Some((version, chunk, chunks));
                }
                Err(error) => {
                    (check.fault)(error.to_string());
                    open = None;
                }
            }
            Ok(())
        })?;
        self.all_chunks(open);
        Ok(())
    }

    /// Checks that a record's last chunk was met.
    fn all_chunks(&mut self, last: Option<(u64, u32, u32)>) {
        if let Some((version, chunk, chunks)) = last.filter(|(_, chunk, of)| chunk + 1 != *of) {
            (self.fault)(format!(
                "old nodes of version {version}: {} of {chunks} chunks are stored",
                chunk + 1
            ));
        }
    }

    /// Entries of epochs without a mark are what a crash left, and are not read. Nor is what an entry says of versions
    /// that are pruned, as long as they come first.
    fn indexes(&mut self, of: Of, stored: HeadRecord) -> Result<(), VersionsError> {
        let unflushed = self.unflushed;
        for epoch in index::marked(self.base, of)? {
            let start = epoch * unflushed.epoch;
            let first = index::first_undo(epoch, unflushed.epoch).max(stored.oldest + 1);
            let mut rebuilt =
                match index::Builder::new(self.base, of, (epoch, unflushed.epoch), first) {
                    Ok(rebuilt) => rebuilt,
                    Err(error) => {
                        (self.fault)(format!("index of epoch {epoch}: {error}"));
                        continue;
                    }
                };
            let mut next = || {
                let entry = rebuilt.next_entry()?;
                Ok::<_, VersionsError>(entry.filter(|entry| entry.table == of.table()))
            };
            let mut wrong = false;
            self.each(of.table(), &epoch.to_be_bytes(), |check, key, value| {
                check.counts.index_entries += 1;
                let (pairs, rest) = value.as_chunks::<4>();
                let pruned = |pair: &&[u8; 4]| {
                    start + u64::from(u16::from_be_bytes(array(&pair[..]))) < first
                };
                let live = &pairs[pairs.iter().take_while(pruned).count()..];
                wrong |= !rest.is_empty();
                if !wrong && !live.is_empty() {
                    wrong = next()?.is_none_or(|entry| {
                        entry.key[..] != *key || entry.value.as_deref() != Some(live.as_flattened())
                    });
                }
                Ok(())
            })?;
            if wrong || next()?.is_some() {
                (self.fault)(format!(
                    "index of epoch {epoch}: not what the {} give",
                    match of {
                        Of::Flat => "undo records",
                        Of::Nodes => "old nodes",
                    }
                ));
            }
        }
        Ok(())
    }
}
