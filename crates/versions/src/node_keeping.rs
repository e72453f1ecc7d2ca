//! Keeping the nodes of older versions: their records are made with each version, or afterwards. [`old_nodes`](crate::old_nodes) reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arbor_store::{Store, Table, Value, Write};

use crate::changes::{Changes, check_writes};
use crate::error::VersionsError;
use crate::identity::TableKind;
use crate::index::{self, Of};
use crate::kept_nodes::{Changed, KeptNodes, record, since_write};
use crate::layout;
use crate::meta::HeadRecord;
use crate::undo::UndoRecord;
use crate::version::Version;
use crate::versions::Versions;

/// Removes all old nodes, of which no mark tells any more.
pub(crate) fn remove_all(store: &dyn Store) -> Result<(), VersionsError> {
    for table in [layout::OLD_NODES, layout::NODE_INDEX] {
        let removed = store.delete_prefix(table, &[]);
        removed.map_err(VersionsError::store("forgetting old nodes"))?;
    }
    Ok(())
}

impl Versions {
    /// The version from which on old nodes are kept; `None` if they are not.
    pub fn keeps_nodes_since(&self) -> Option<Version> {
        self.view().keeps_nodes_since()
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
        // Without the mark nothing reads them. As long as the store may have it, each version needs its record.
        store.write(&writes, true).map_err(failed())?;
        self.unflushed.nodes = None;
        for pending in &mut self.unflushed.pending {
            pending.nodes = None;
        }
        remove_all(store)?;
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
        for nodes in versions {
            let mut nodes = self.unflushed.schema.placed(nodes);
            let before = Version(since.saturating_sub(1));
            self.unflushed.retained(before)?;
            nodes.sort_unstable_by(|a, b| (a.table, &a.key).cmp(&(b.table, &b.key)));
            check_writes(&self.unflushed.schema, &nodes, TableKind::Nodes)?;
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
            true => self.view_of_store().multi_get(table, keys),
            false => self.view_of_store().nodes_then(version, table, keys),
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
            let olds = self.view_of_store().multi_get(run[0].0, &keys)?;
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
        let view = self.view_of_store();
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
