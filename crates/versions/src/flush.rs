//! A flush: one atomic, sorted write that carries the store from one version to another.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arbor_store::{Reader, Table, Value, Write};

use crate::cache::CachedStore;
use crate::error::VersionsError;
use crate::frame::Pending;
use crate::head_file::{FileHead, HeadFile, write_head_file};
use crate::history::stored_cursor;
use crate::identity::{Identity, Schema};
use crate::index;
use crate::layer::{Base, Layer};
use crate::layout;
use crate::meta::{HeadRecord, Meta, StoredMeta, Version};
use crate::open::partly_loaded;
use crate::stats::FlushStats;

/// Everything that a flush needs, so that it can run beside the writer.
pub(crate) struct FlushJob {
    pub(crate) base: Arc<CachedStore>,
    pub(crate) schema: Arc<Schema>,
    pub(crate) layer: Arc<Layer>,
    /// The versions to store, ascending up to `to.version`.
    pub(crate) pending: Vec<Pending>,
    /// What the store has; `None` before the first flush.
    pub(crate) from: Option<HeadRecord>,
    pub(crate) to: HeadRecord,
    /// The meta of `to.version`.
    pub(crate) head: Arc<Meta>,
    /// Stored versions above this one were rolled back.
    pub(crate) truncate: Option<u64>,
    /// Epochs whose index and mark go.
    pub(crate) drop_epochs: Vec<u64>,
    /// Epochs whose index is to be built afterwards.
    pub(crate) build_epochs: Vec<u64>,
    pub(crate) epoch: u64,
    pub(crate) files: Option<Files>,
    pub(crate) ingest_above: usize,
}

/// Where HEAD lies and what it says of the database.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) dir: PathBuf,
    pub(crate) identity: Identity,
}

impl Files {
    pub(crate) fn write(&self, head: Option<(&Meta, u64)>) -> Result<(), VersionsError> {
        let head = head.map(|(meta, floor)| FileHead {
            version: meta.version.0,
            floor,
            block_number: meta.block_number,
            block_hash: meta.block_hash,
            root: meta.root,
        });
        let identity = self.identity.clone();
        write_head_file(&self.dir, &HeadFile { identity, head })
    }
}

/// A key of this crate's tables to its new value.
type OwnWrites = BTreeMap<(Table, Box<[u8]>), Option<Value>>;

impl FlushJob {
    /// Makes the versions durable. After an error the store holds either all or nothing of them.
    pub(crate) fn run(&self) -> Result<FlushStats, VersionsError> {
        let start = Instant::now();
        let mut stats = FlushStats {
            flushes: 1,
            versions: self.pending.len() as u64,
            ..FlushStats::default()
        };
        let own = self.own_writes(&mut stats)?;
        let same = self.compare(&mut stats)?;
        self.announce_rollback()?;
        self.write(own, &same, stats.bytes.total())?;
        if let Some(files) = &self.files {
            files.write(Some((&self.head, self.head.version.0)))?;
        }
        for &epoch in &self.drop_epochs {
            index::remove(self.base.store(), epoch)?;
        }
        for &epoch in &self.build_epochs {
            stats.bytes.index += index::build(self.base.store(), epoch, self.epoch)?;
        }
        stats.time = start.elapsed();
        Ok(stats)
    }

    fn write(&self, own: OwnWrites, same: &[Vec<bool>], bytes: u64) -> Result<(), VersionsError> {
        let tables = self.schema.specs().iter().enumerate().zip(same);
        let changes = tables.flat_map(|((position, spec), same)| {
            let entries = self.layer.entries(position).zip(same);
            entries
                .filter(|(_, same)| !**same)
                .map(|((key, slot), _)| Write {
                    table: spec.table,
                    key,
                    value: slot.value.clone(),
                })
        });
        let own = own
            .into_iter()
            .map(|((table, key), value)| Write { table, key, value });
        // Callers' tables are all below this crate's.
        let mut writes = changes.chain(own);
        let store = self.base.store();
        let written = if bytes > self.ingest_above as u64 {
            store.ingest(&mut writes)
        } else {
            store.write(&writes.collect::<Vec<_>>(), true)
        };
        written.map_err(VersionsError::store("flushing"))
    }

    /// The HEAD file must allow a lower version before the store goes there.
    fn announce_rollback(&self) -> Result<(), VersionsError> {
        let (Some(files), Some(_), Some(from)) = (&self.files, self.truncate, self.from) else {
            return Ok(());
        };
        let stored = stored_meta(&*self.base, from.version)?;
        let floor = self.to.version.min(from.version);
        files.write(Some((&stored.meta, floor)))
    }

    /// Finds what of the layer is the same in the store: by table whether each entry, ascending, is. The cache takes the layer over at once, while what it has of the key is at
    /// hand: until the flush is done the layer is read first, and when it fails the cache is cleared.
    fn compare(&self, stats: &mut FlushStats) -> Result<Vec<Vec<bool>>, VersionsError> {
        // More than the cache has room for would drive out what is used: what is new and was never looked for stays outside then.
        let floods = self.layer.bytes() as u64 > self.base.budget();
        let mut all = Vec::new();
        for (position, spec) in self.schema.specs().iter().enumerate() {
            let bytes = stats.bytes.of_kind(spec.kind);
            let mut of_table = Vec::new();
            for (key, slot) in self.layer.entries(position) {
                let (table, value) = (spec.table, slot.value.as_ref());
                let known = self.base.peek(table, &key);
                let is_known = known.is_some();
                let same = match (known, value) {
                    (Some(stored), _) => stored.as_ref() == value,
                    (None, Some(_)) => false,
                    (None, None) if slot.base == Base::Present => false,
                    // Deleting what is not there would only leave a tombstone behind.
                    (None, None) => {
                        let stored = self.base.store().get(table, &key);
                        let stored =
                            stored.map_err(VersionsError::store("looking before a delete"))?;
                        stored.is_none()
                    }
                };
                if same {
                    stats.skipped += 1;
                } else {
                    stats.keys += 1;
                    *bytes += (key.len() + value.map_or(0, |value| value.len())) as u64;
                    if is_known || slot.base != Base::Absent || !floods {
                        self.base.insert(table, &key, value);
                    }
                }
                of_table.push(same);
            }
            all.push(of_table);
        }
        Ok(all)
    }

    fn own_writes(&self, stats: &mut FlushStats) -> Result<OwnWrites, VersionsError> {
        let mut writes = OwnWrites::new();
        match self.from {
            Some(from) => {
                self.delete_rolled_back(from, &mut writes)?;
                let (start, before) = (Instant::now(), writes.len());
                self.delete_unretained(from, &mut writes)?;
                stats.pruned_keys = (writes.len() - before) as u64;
                stats.prune_time = start.elapsed();
            }
            // With its first version a database that was loaded is whole.
            None if partly_loaded(&*self.base)? => {
                writes.insert((layout::SYSTEM, layout::LOADING_KEY.into()), None);
            }
            None => {}
        }
        for pending in &self.pending {
            self.store_version(pending, &mut writes);
        }
        for &epoch in &self.drop_epochs {
            writes.insert((layout::SYSTEM, layout::indexed_key(epoch)), None);
        }
        let head = Value::from(self.to.encode());
        writes.insert((layout::SYSTEM, layout::HEAD_KEY.into()), Some(head));
        for ((table, key), value) in &writes {
            let bytes = (key.len() + value.as_ref().map_or(0, |value| value.len())) as u64;
            if *table == layout::UNDO {
                stats.bytes.undo += bytes;
            } else {
                stats.bytes.meta += bytes;
            }
        }
        Ok(writes)
    }

    fn store_version(&self, pending: &Pending, writes: &mut OwnWrites) {
        let meta = &pending.meta;
        let version = meta.version.0;
        let mut chunks = 0;
        if let Some(undo) = &pending.undo
            && version > self.to.oldest
        {
            for chunk in &undo.chunks {
                let key = layout::undo_key(version, chunks);
                writes.insert((layout::UNDO, key.into()), Some(chunk.clone()));
                chunks += 1;
            }
        }
        if version >= self.to.oldest_meta {
            let key = version.to_be_bytes();
            let value = Value::from(StoredMeta::encode(meta, chunks));
            writes.insert((layout::META, key.into()), Some(value));
            let number = meta.block_number.to_be_bytes();
            writes.insert((layout::BLOCK, number.into()), Some(Value::from(key)));
        }
    }

    /// Deletes the records of stored versions above a rollback's target.
    fn delete_rolled_back(
        &self,
        from: HeadRecord,
        writes: &mut OwnWrites,
    ) -> Result<(), VersionsError> {
        let Some(target) = self.truncate else {
            return Ok(());
        };
        for version in target + 1..=from.version {
            let stored = stored_meta(&*self.base, version)?;
            delete_undo(&*self.base, &stored, writes)?;
            delete_meta(&stored, true, writes);
        }
        if target < from.version {
            // The target may share its block with a version that was rolled back.
            let stored = stored_meta(&*self.base, target)?;
            let number = stored.meta.block_number.to_be_bytes();
            let value = Some(Value::from(target.to_be_bytes()));
            writes.insert((layout::BLOCK, number.into()), value);
        }
        Ok(())
    }

    /// Deletes stored undo and metas that retention no longer keeps.
    fn delete_unretained(
        &self,
        from: HeadRecord,
        writes: &mut OwnWrites,
    ) -> Result<(), VersionsError> {
        let stored = self
            .truncate
            .map_or(from.version, |target| target.min(from.version));
        for version in from.oldest + 1..=self.to.oldest.min(stored) {
            let stored = stored_meta(&*self.base, version)?;
            delete_undo(&*self.base, &stored, writes)?;
        }
        let mut next: Option<StoredMeta> = None;
        for version in from.oldest_meta..self.to.oldest_meta.min(stored + 1) {
            let this = match next.take() {
                Some(this) => this,
                None => stored_meta(&*self.base, version)?,
            };
            let newer = if version < stored {
                let newer = stored_meta(&*self.base, version + 1)?;
                let number = newer.meta.block_number;
                next = Some(newer);
                Some(number)
            } else {
                let mut metas = self.pending.iter().map(|pending| &pending.meta);
                let next = metas.find(|meta| meta.version.0 == stored + 1);
                next.map(|meta| meta.block_number)
            };
            delete_meta(&this, newer != Some(this.meta.block_number), writes);
        }
        Ok(())
    }
}

/// Deletes a version's undo. Of more than one chunk, which are rare, the last must be there: a damaged number of them could
/// be in the billions.
fn delete_undo(
    base: &dyn Reader,
    stored: &StoredMeta,
    writes: &mut OwnWrites,
) -> Result<(), VersionsError> {
    let (version, chunks) = (stored.meta.version.0, stored.undo_chunks);
    if chunks > 1 {
        stored_cursor(base, version, chunks - 1)?;
    }
    for chunk in 0..chunks {
        writes.insert(
            (layout::UNDO, layout::undo_key(version, chunk).into()),
            None,
        );
    }
    Ok(())
}

fn delete_meta(stored: &StoredMeta, with_block: bool, writes: &mut OwnWrites) {
    let key = stored.meta.version.0.to_be_bytes();
    writes.insert((layout::META, key.into()), None);
    if with_block {
        let number = stored.meta.block_number.to_be_bytes();
        writes.insert((layout::BLOCK, number.into()), None);
    }
}

fn stored_meta(base: &dyn Reader, version: u64) -> Result<StoredMeta, VersionsError> {
    crate::view::read_meta(base, Version(version))?
        .ok_or_else(|| VersionsError::malformed(format!("meta of version {version}"), "missing"))
}
