//! The nodes of older versions, where a database keeps them.
//!
//! Undo leads flat tables back, and a caller's tree rebuilds nodes from those: for one proof, all that changed since is gone through. A database that
//! [keeps old nodes](Versions::keep_nodes) finds each node by some look-ups instead.
//!
//! The rule: a version is *kept* if its nodes can be read: the head, the one with which keeping began, and every later one that has a record here. Versions whose nodes
//! come only with a later one ([`Versions::apply_together`]) are not kept. The record of a kept version has every node that changed since the kept
//! version before it, as it was at that one: absent, or a byte 0 and the record, or a byte 1 and the [difference](crate::difference)
//! from the record at this version. So a node at a kept version is what the first record after it says; if that is a difference, then from what the next one says, and so
//! on; and what the head has if no record says anything. About one in [`WHOLE_IN`](crate::kept_nodes::WHOLE_IN) is whole in any case, so that not many differences follow each other.
//!
//! The records have the form of [undo](crate::undo), in small chunks, and an [index](crate::index) of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arbor_store::{Table, Value, Write};

use crate::changes::Changes;
use crate::difference::apply;
use crate::error::VersionsError;
use crate::filters::Filters;
use crate::identity::TableKind;
use crate::index::{self, ChangedBy, Of};
use crate::kept_nodes::{Changed, KeptNodes, Old, missing, record, since_write};
use crate::layout;
use crate::meta::HeadRecord;
use crate::undo::{Cursor, UndoRecord, found_cursor};
use crate::version::Version;
use crate::versions::Versions;
use crate::view::{Entry, View};

/// What is found of a node on the way from a record to the head.
#[derive(Default)]
struct Search {
    /// The latest one last.
    differences: Vec<Value>,
    /// `None` as long as no record has it whole.
    base: Option<Option<Value>>,
}

impl Search {
    fn take(&mut self, old: Old) {
        match old {
            Old::Absent => self.base = Some(None),
            Old::Whole(record) => self.base = Some(Some(record)),
            Old::Difference(difference) => self.differences.push(difference),
        }
    }

    /// The node, which is this at the head if no record has it whole.
    fn node(self, head: Option<Value>) -> Result<Option<Value>, VersionsError> {
        let base = self.base.unwrap_or(head);
        if self.differences.is_empty() {
            return Ok(base);
        }
        let wrong = || VersionsError::malformed("old nodes", "a difference from another node");
        let mut bytes = base.ok_or_else(wrong)?.to_vec();
        for difference in self.differences.iter().rev() {
            apply(&mut bytes, difference).ok_or_else(wrong)?;
        }
        Ok(Some(bytes.into()))
    }
}

impl<'a> View<'a> {
    /// The first version, not below this one, of which the nodes can be read; `None` if old nodes are not kept from there on.
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`]; the store's errors.
    pub fn kept_from(self, version: Version) -> Result<Option<Version>, VersionsError> {
        let head = self.unflushed.retained(version)?;
        let Some(kept) = &self.unflushed.nodes else {
            return Ok(None);
        };
        if version.0 < kept.since {
            return Ok(None);
        }
        for version in version.0..head {
            if self.is_kept(kept, version)? {
                return Ok(Some(Version(version)));
            }
        }
        Ok(Some(Version(head)))
    }

    fn is_kept(self, kept: &KeptNodes, version: u64) -> Result<bool, VersionsError> {
        Ok(version == kept.since || self.node_cursor(kept, version, 0)?.is_some())
    }

    /// This view as of a version, of which the nodes are [kept](Self::kept_from), as if it were the head. Nodes are best read by their keys: to list some goes
    /// through more records than those.
    #[must_use]
    pub fn as_of(self, meta: &'a crate::Meta) -> Self {
        Self {
            at: Some(meta),
            ..self
        }
    }

    /// Nodes of one table as they were at a kept version.
    pub(crate) fn nodes_then(
        self,
        version: u64,
        table: Table,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>, VersionsError> {
        let head = self.unflushed.retained(Version(version))?;
        let Some(kept) = &self.unflushed.nodes else {
            return Err(VersionsError::malformed("old nodes", "they are not kept"));
        };
        let mut searches: Vec<Search> = keys.iter().map(|_| Search::default()).collect();
        let hashes: Vec<u64> = keys.iter().map(|key| Filters::hash(table, key)).collect();
        let length = self.unflushed.epoch;
        let mut next = version + 1;
        while next <= head && searches.iter().any(|search| search.base.is_none()) {
            let mut open = searches.iter_mut().zip(keys).zip(&hashes);
            let mut open = open
                .by_ref()
                .filter(|((search, _), _)| search.base.is_none());
            let epoch = next / length;
            if kept.indexed.contains(&epoch) {
                open.try_for_each(|((search, key), _)| {
                    self.search_epoch(kept, (epoch, next), (table, key), search)
                })?;
                next = (epoch + 1) * length;
                continue;
            }
            let filter = self.node_filter(kept, next)?;
            open.try_for_each(|((search, key), hash)| {
                if filter.binary_search(hash).is_ok()
                    && let Some(old) = self.node_in(kept, (next, None), (table, key))?
                {
                    search.take(old);
                }
                Ok::<(), VersionsError>(())
            })?;
            next += 1;
        }
        let unfound = |search: &&Search| search.base.is_none();
        let missing: Vec<&[u8]> = keys
            .iter()
            .zip(&searches)
            .filter(|(_, search)| unfound(search))
            .map(|(key, _)| *key)
            .collect();
        let mut at_head = self.newest().multi_get(table, &missing)?.into_iter();
        let nodes = searches.into_iter().map(|search| {
            let head = unfound(&&search).then(|| at_head.next().flatten());
            search.node(head.flatten())
        });
        nodes.collect()
    }

    /// Lists the nodes of one table as they were at a kept version, by the beginning of their keys, ascending. All of them are held in memory; the records of versions that have
    /// no index yet are gone through.
    pub(crate) fn nodes_below_then(
        self,
        version: u64,
        table: Table,
        (prefix, from): (&[u8], &[u8]),
    ) -> Result<Vec<Entry>, VersionsError> {
        let head = self.unflushed.retained(Version(version))?;
        let fits = |key: &[u8]| key.starts_with(prefix) && key >= from;
        let mut keys: BTreeSet<Box<[u8]>> = BTreeSet::new();
        for entry in self.newest().scan(table, prefix, from)? {
            keys.insert(entry?.0);
        }
        let mut next = version + 1;
        while let Some(kept) = &self.unflushed.nodes
            && next <= head
        {
            let epoch = next / self.unflushed.epoch;
            if kept.indexed.contains(&epoch) {
                let head_of = layout::index_key(epoch, table, &[]);
                let begin = layout::index_key(epoch, table, prefix);
                let entries = self.base.scan(layout::NODE_INDEX, &begin, &[]);
                for entry in entries.map_err(VersionsError::store("reading an index"))? {
                    let (key, _) = entry.map_err(VersionsError::store("reading an index"))?;
                    let key = &key[head_of.len()..];
                    if fits(key) {
                        keys.insert(key.into());
                    }
                }
                next = (epoch + 1) * self.unflushed.epoch;
                continue;
            }
            let mut chunk = self.chunk_of(kept, next, (table, prefix))?;
            'record: while let Some(mut cursor) = self.node_cursor(kept, next, chunk)? {
                while cursor.advance()? {
                    let (of, key) = (cursor.table(), cursor.key());
                    if (of, key) > (table, prefix) && !(of == table && key.starts_with(prefix)) {
                        break 'record;
                    }
                    if of == table && fits(key) {
                        keys.insert(key.into());
                    }
                }
                chunk += 1;
                if chunk == cursor.chunks() {
                    break;
                }
            }
            next += 1;
        }
        let wanted: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
        let nodes = self.nodes_then(version, table, &wanted)?;
        let found = keys.into_iter().zip(nodes);
        Ok(found.filter_map(|(key, node)| Some((key, node?))).collect())
    }

    /// Goes through the records of an epoch, from a version on, that have a node.
    fn search_epoch(
        self,
        kept: &KeptNodes,
        (epoch, from): (u64, u64),
        (table, key): (Table, &[u8]),
        search: &mut Search,
    ) -> Result<(), VersionsError> {
        let length = self.unflushed.epoch;
        let changed_by = ChangedBy::read(self.base, Of::Nodes, (epoch, table, key))?;
        for (offset, chunk) in changed_by.from(from % length) {
            let version = epoch * length + offset;
            let old = self.node_in(kept, (version, Some(chunk)), (table, key))?;
            search.take(old.ok_or_else(|| {
                VersionsError::malformed(
                    format!("index of old nodes of epoch {epoch}"),
                    format!("version {version} does not change the node"),
                )
            })?);
            if search.base.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// What the record of a version says of a node, which is in this chunk or a later one if that is known.
    fn node_in(
        self,
        kept: &KeptNodes,
        (version, chunk): (u64, Option<u32>),
        (table, key): (Table, &[u8]),
    ) -> Result<Option<Old>, VersionsError> {
        let mut chunk = match chunk {
            Some(chunk) => chunk,
            None => self.chunk_of(kept, version, (table, key))?,
        };
        while let Some(mut cursor) = self.node_cursor(kept, version, chunk)? {
            while cursor.advance()? {
                match (cursor.table(), cursor.key()).cmp(&(table, key)) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return Old::of(&cursor).map(Some),
                    std::cmp::Ordering::Greater => return Ok(None),
                }
            }
            chunk += 1;
            if chunk == cursor.chunks() {
                break;
            }
        }
        Ok(None)
    }

    /// The last chunk of a version's record that does not begin after a key.
    fn chunk_of(
        self,
        kept: &KeptNodes,
        version: u64,
        wanted: (Table, &[u8]),
    ) -> Result<u32, VersionsError> {
        let Some(first) = self.node_cursor(kept, version, 0)? else {
            return Ok(0);
        };
        let (mut chunk, mut end) = (0, first.chunks());
        while end - chunk > 1 {
            let middle = chunk + (end - chunk) / 2;
            let Some(mut cursor) = self.node_cursor(kept, version, middle)? else {
                return Err(missing(version, middle));
            };
            match cursor.advance()? && (cursor.table(), cursor.key()) <= wanted {
                true => chunk = middle,
                false => end = middle,
            }
        }
        Ok(chunk)
    }

    /// Which nodes a version's record has; none if there is no record.
    fn node_filter(self, kept: &KeptNodes, version: u64) -> Result<Arc<[u64]>, VersionsError> {
        if let Some(filter) = kept.filters.get(version) {
            return Ok(filter);
        }
        let mut hashes = Vec::new();
        self.each_node(kept, version, |cursor| {
            hashes.push(Filters::hash(cursor.table(), cursor.key()));
        })?;
        Ok(kept.filters.insert(version, hashes))
    }

    /// Goes through a version's record, ascending.
    fn each_node(
        self,
        kept: &KeptNodes,
        version: u64,
        mut visit: impl FnMut(&Cursor),
    ) -> Result<(), VersionsError> {
        let mut chunk = 0;
        while let Some(mut cursor) = self.node_cursor(kept, version, chunk)? {
            while cursor.advance()? {
                visit(&cursor);
            }
            chunk += 1;
            if chunk == cursor.chunks() {
                break;
            }
        }
        Ok(())
    }

    fn node_cursor(
        self,
        kept: &KeptNodes,
        version: u64,
        chunk: u32,
    ) -> Result<Option<Cursor>, VersionsError> {
        self.in_time()?;
        let record = match (
            kept.rewritten.get(&version),
            self.unflushed.pending_of(version),
        ) {
            (Some(record), _) => Some(record),
            (None, Some(pending)) => pending.nodes.as_ref(),
            (None, None) => return found_cursor(self.base, layout::OLD_NODES, version, chunk),
        };
        let bytes = record.and_then(|record| record.chunks.get(chunk as usize));
        bytes
            .map(|bytes| Cursor::new(version, chunk, bytes.clone()))
            .transpose()
    }
}

impl Versions {
    /// The version from which on old nodes are kept; `None` if they are not.
    pub fn keeps_nodes_since(&self) -> Option<Version> {
        self.unflushed.nodes.as_ref().map(|kept| {
            let oldest = self.unflushed.oldest;
            Version(kept.since.max(oldest))
        })
    }

    /// Keeps the nodes of the head and of all later versions, so that each can be read as long as its version is retained. The next flush makes that durable, and it stays so
    /// until it is ended. Of a database that keeps them already nothing changes.
    pub fn keep_nodes(&mut self) {
        let head = self.head().map_or(0, |meta| meta.version.0);
        let nodes = &mut self.unflushed.nodes;
        nodes.get_or_insert_with(|| KeptNodes::since(head));
    }

    /// Forgets all old nodes, and keeps none from here on. Durable on return.
    ///
    /// # Errors
    /// As [`flush`](Versions::flush).
    pub fn forget_nodes(&mut self) -> Result<(), VersionsError> {
        self.flush()?;
        self.unflushed.nodes = None;
        for pending in &mut self.unflushed.pending {
            pending.nodes = None;
        }
        let store = self.base.store();
        let failed = || VersionsError::store("forgetting old nodes");
        let mut writes = vec![Write {
            table: layout::SYSTEM,
            key: layout::KEPT_NODES_KEY.into(),
            value: None,
        }];
        for epoch in index::marked(store, Of::Nodes)? {
            writes.push(Write {
                table: layout::SYSTEM,
                key: Of::Nodes.mark(epoch),
                value: None,
            });
        }
        // Without the mark nothing reads them.
        store.write(&writes, true).map_err(failed())?;
        for table in [layout::OLD_NODES, layout::NODE_INDEX] {
            store.delete_prefix(table, &[]).map_err(failed())?;
        }
        self.store_snapshot = None;
        self.announce()
    }

    /// Keeps the nodes of more versions, one by one: those before the first of which they are kept. Each list leads from one version to the one before: all
    /// nodes that differ, as they were there. [`index_nodes`](Versions::index_nodes) makes it durable, and is to be called now and then: every version that has no index is looked at
    /// for each node.
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`] if the version before is not; nodes that are not kept; as [`flush`](Versions::flush).
    pub fn keep_nodes_before(&mut self, versions: Vec<Vec<Write>>) -> Result<(), VersionsError> {
        self.flush()?;
        let Some(kept) = &self.unflushed.nodes else {
            return Err(VersionsError::malformed("old nodes", "they are not kept"));
        };
        let mut since = kept.since;
        let mut writes = Vec::new();
        for mut nodes in versions {
            let before = Version(since.saturating_sub(1));
            self.unflushed.retained(before)?;
            nodes.sort_unstable_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
            crate::changes::check_writes(&self.unflushed.schema, &nodes, TableKind::Nodes)?;
            let mut after: Vec<Option<Value>> = Vec::with_capacity(nodes.len());
            for run in nodes.chunk_by(|a, b| a.table == b.table) {
                let keys: Vec<&[u8]> = run.iter().map(|write| &write.key[..]).collect();
                after.extend(self.node_records_at(since, run[0].table, &keys)?);
            }
            let changed = nodes
                .iter()
                .zip(&after)
                .filter(|(write, after)| write.value != **after);
            let changed: Vec<Changed<'_>> = changed
                .map(|(write, after)| {
                    (
                        write.table,
                        &write.key[..],
                        write.value.clone(),
                        after.as_deref(),
                    )
                })
                .collect();
            for (chunk, bytes) in (0..).zip(record(since, &changed).chunks) {
                writes.push(Write {
                    table: layout::OLD_NODES,
                    key: layout::undo_key(since, chunk).into(),
                    value: Some(bytes),
                });
            }
            // What comes before is read through it.
            self.store_old_nodes(&mut writes, since)?;
            since = before.0;
        }
        Ok(())
    }

    fn node_records_at(
        &self,
        version: u64,
        table: Table,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>, VersionsError> {
        let is_head = self.head().is_some_and(|head| head.version.0 == version);
        match is_head {
            true => self.view().multi_get(table, keys),
            false => self.view().nodes_then(version, table, keys),
        }
    }

    /// Writes the record of the version from which on nodes were kept: they are from the one before it on.
    fn store_old_nodes(
        &mut self,
        writes: &mut Vec<Write>,
        version: u64,
    ) -> Result<(), VersionsError> {
        let since = version - 1;
        writes.push(since_write(since));
        // It does not have this record. Without it each version of the epoch is looked at.
        let epoch = version / self.unflushed.epoch;
        writes.push(Write {
            table: layout::SYSTEM,
            key: Of::Nodes.mark(epoch),
            value: None,
        });
        let store = self.base.store();
        store
            .write(&std::mem::take(writes), false)
            .map_err(VersionsError::store("keeping old nodes"))?;
        if let Some(kept) = &mut self.unflushed.nodes {
            kept.since = since;
            kept.filters.forget(version);
            if kept.indexed.contains(&epoch) {
                Arc::make_mut(&mut kept.indexed).remove(&epoch);
            }
        }
        self.store_snapshot = None;
        Ok(())
    }

    /// Builds the indexes of old nodes that are missing, and makes all that is kept durable.
    ///
    /// # Errors
    /// The store's errors; a malformed record.
    pub fn index_nodes(&mut self) -> Result<(), VersionsError> {
        self.flush()?;
        let (Some(stored), Some(kept)) = (self.stored, &self.unflushed.nodes) else {
            return Ok(());
        };
        let since = [since_write(kept.since)];
        let written = self.base.store().write(&since, true);
        written.map_err(VersionsError::store("keeping old nodes"))?;
        for epoch in self.complete_node_epochs(stored) {
            index::build(self.base.store(), Of::Nodes, epoch, self.unflushed.epoch)?;
            if let Some(kept) = &mut self.unflushed.nodes {
                Arc::make_mut(&mut kept.indexed).insert(epoch);
            }
        }
        self.store_snapshot = None;
        Ok(())
    }

    /// The epochs that are complete at `to` and have no index of old nodes.
    pub(crate) fn complete_node_epochs(&self, to: HeadRecord) -> Vec<u64> {
        let Some(kept) = &self.unflushed.nodes else {
            return Vec::new();
        };
        let length = self.unflushed.epoch;
        let candidates = to.oldest.max(kept.since) / length..(to.version + 1) / length;
        candidates
            .filter(|epoch| !kept.indexed.contains(epoch))
            .filter(|epoch| index::last_version(*epoch, length) > to.oldest)
            .collect()
    }

    /// The record of the nodes that changes of versions which are not applied yet will change, all of them together; `None` if nodes are not kept.
    pub(crate) fn old_nodes_of<'c>(
        &self,
        version: u64,
        changes: impl Iterator<Item = &'c Changes>,
    ) -> Result<Option<Arc<UndoRecord>>, VersionsError> {
        if self.unflushed.nodes.is_none() || version == 0 {
            return Ok(None);
        }
        let nodes = changes.flat_map(Changes::node_entries);
        let mut nodes: Vec<_> = nodes.collect();
        // Of a node that several change the last one counts.
        nodes.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        nodes.dedup_by(|later, first| {
            let same = (later.0, later.1) == (first.0, first.1);
            if same {
                first.2 = later.2;
            }
            same
        });
        let mut changed: Vec<Changed<'_>> = Vec::with_capacity(nodes.len());
        for run in nodes.chunk_by(|a, b| a.0 == b.0) {
            let keys: Vec<&[u8]> = run.iter().map(|(_, key, _)| *key).collect();
            let olds = self.view().multi_get(run[0].0, &keys)?;
            for ((table, key, new), old) in run.iter().zip(olds) {
                if old.as_deref() != *new {
                    changed.push((*table, *key, old, *new));
                }
            }
        }
        Ok(Some(Arc::new(record(version, &changed))))
    }

    /// The record that a version will have after a rollback to it, if it has none because its nodes came with a later version's. `nodes` are the writes of the rollback.
    pub(crate) fn nodes_rolled_back_to(
        &self,
        to: u64,
        nodes: &[Write],
    ) -> Result<Option<Arc<UndoRecord>>, VersionsError> {
        let view = self.view();
        let Some(kept) = &self.unflushed.nodes else {
            return Ok(None);
        };
        let head = self.unflushed.retained(Version(to))?;
        let oldest = self.unflushed.oldest;
        if to <= kept.since.max(oldest) || to == head || view.is_kept(kept, to)? {
            return Ok(None);
        }
        let after = view
            .kept_from(Version(to))?
            .map_or(head, |version| version.0);
        let mut before = to - 1;
        while before > kept.since.max(oldest) && !view.is_kept(kept, before)? {
            before -= 1;
        }
        let written: BTreeMap<(Table, &[u8]), Option<&[u8]>> = nodes
            .iter()
            .map(|write| ((write.table, &write.key[..]), write.value.as_deref()))
            .collect();
        // What changed up to the later version, and what changed and was changed back before it.
        let keys = written.keys().map(|(table, key)| (*table, Box::from(*key)));
        let mut keys: BTreeSet<(Table, Box<[u8]>)> = keys.collect();
        view.each_node(kept, after, |cursor| {
            keys.insert((cursor.table(), cursor.key().into()));
        })?;
        let keys: Vec<(Table, Box<[u8]>)> = keys.into_iter().collect();
        let (mut olds, mut at_head) = (Vec::new(), Vec::new());
        for run in keys.chunk_by(|a, b| a.0 == b.0) {
            let keys: Vec<&[u8]> = run.iter().map(|(_, key)| &key[..]).collect();
            olds.extend(view.nodes_then(before, run[0].0, &keys)?);
            at_head.extend(view.multi_get(run[0].0, &keys)?);
        }
        let changed = keys.iter().zip(olds).zip(&at_head);
        let changed = changed.map(|(((table, key), old), at_head)| {
            let new = written.get(&(*table, &key[..])).copied();
            (*table, &key[..], old, new.unwrap_or(at_head.as_deref()))
        });
        let changed = changed.filter(|(_, _, old, new)| old.as_deref() != *new);
        let changed: Vec<Changed<'_>> = changed.collect();
        Ok(Some(Arc::new(record(to, &changed))))
    }
}
