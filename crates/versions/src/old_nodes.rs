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

use std::collections::BTreeSet;
use std::sync::Arc;

use arbor_store::{Table, Value, Write};

use crate::difference::apply;
use crate::error::VersionsError;
use crate::filters::Filters;
use crate::index::{ChangedBy, Of};
use crate::kept_nodes::{KeptNodes, Old, missing};
use crate::layout;
use crate::space::all_placed;
use crate::undo::{Cursor, found_cursor};
use crate::version::Version;
use crate::view::{Entry, View};

/// Runs of versions whose records tell how large those of all are, and the versions of a run: where several versions have one set of nodes, one of them has all of its bytes.
const SIZED_RUNS: u64 = 16;
const SIZED_RUN: u64 = 16;

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
    /// The version from which on old nodes are kept; `None` if they are not.
    pub fn keeps_nodes_since(self) -> Option<Version> {
        let kept = self.unflushed.nodes.as_ref()?;
        Some(Version(kept.since.max(self.unflushed.oldest)))
    }

    /// About how many bytes the stored records of old nodes have, without their index: so many as those of some versions lead to expect. `None` if they are not kept.
    ///
    /// # Errors
    /// The store's errors.
    pub fn old_node_bytes(self) -> Result<Option<u64>, VersionsError> {
        let (Some(since), Some(head)) = (self.keeps_nodes_since(), &self.unflushed.head) else {
            return Ok(None);
        };
        let versions = head.version.0 - since.0;
        let runs = versions.div_ceil(SIZED_RUN).min(SIZED_RUNS);
        let (mut sized, mut bytes) = (0, 0);
        for run in 0..runs {
            let first = run * versions / runs;
            let next = (run + 1) * versions / runs;
            for version in first..next.min(first + SIZED_RUN) {
                bytes += self.stored_old_nodes(since.0 + 1 + version)?;
                sized += 1;
            }
        }
        Ok(Some(bytes * versions / sized.max(1)))
    }

    /// The bytes of one version's record of old nodes.
    fn stored_old_nodes(self, version: u64) -> Result<u64, VersionsError> {
        let mut bytes = 0;
        for chunk in 0.. {
            let key = layout::undo_key(version, chunk);
            let found = self.base.get(layout::OLD_NODES, &key);
            match found.map_err(VersionsError::store("reading old nodes"))? {
                Some(found) => bytes += (key.len() + found.len()) as u64,
                None => break,
            }
        }
        Ok(bytes)
    }

    /// Whether there are records of old nodes that are not kept any more: the process that dropped them was killed. Opening the database to write removes them.
    ///
    /// # Errors
    /// The store's errors.
    pub fn has_dropped_nodes(self) -> Result<bool, VersionsError> {
        if self.unflushed.nodes.is_some() {
            return Ok(false);
        }
        let scan = self.base.scan(layout::OLD_NODES, &[], &[]);
        let mut scan = scan.map_err(VersionsError::store("looking for old nodes"))?;
        Ok(scan.next().is_some())
    }

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

    /// The nodes that changed from a kept version up to the next kept one, as they were at the first, and that one; `None` if the nodes of neither are known.
    /// `version` is the second. The writes ascend by table and key.
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`]; the store's errors; a malformed record.
    pub fn nodes_before(
        self,
        version: Version,
    ) -> Result<Option<(Version, Vec<Write>)>, VersionsError> {
        self.unflushed.retained(version)?;
        let Some(kept) = &self.unflushed.nodes else {
            return Ok(None);
        };
        let first = kept.since.max(self.unflushed.oldest);
        let Some(before) = self.kept_before(kept, first, version.0)? else {
            return Ok(None);
        };
        let mut writes: Vec<Write> = Vec::new();
        self.each_node(kept, version.0, |cursor| {
            writes.push(Write {
                table: cursor.table(),
                key: cursor.key().into(),
                value: None,
            });
        })?;
        let mut nodes = Vec::with_capacity(writes.len());
        for run in writes.chunk_by(|a, b| a.table == b.table) {
            let keys: Vec<&[u8]> = run.iter().map(|write| &write.key[..]).collect();
            nodes.extend(self.nodes_then(before, run[0].table, &keys)?);
        }
        for (write, node) in writes.iter_mut().zip(nodes) {
            write.value = node;
        }
        Ok(Some((Version(before), all_placed(self.space, writes))))
    }

    /// The last kept version before one, from `first` on, if there is one.
    fn kept_before(
        self,
        kept: &KeptNodes,
        first: u64,
        version: u64,
    ) -> Result<Option<u64>, VersionsError> {
        for before in (first..version).rev() {
            if self.is_kept(kept, before)? {
                return Ok(Some(before));
            }
        }
        Ok(None)
    }

    pub(crate) fn is_kept(self, kept: &KeptNodes, version: u64) -> Result<bool, VersionsError> {
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
        let newest = Self {
            space: 0,
            ..self.newest()
        };
        let mut at_head = newest.multi_get(table, &missing)?.into_iter();
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
        let newest = Self {
            space: 0,
            ..self.newest()
        };
        for entry in newest.scan(table, prefix, from)? {
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
    pub(crate) fn each_node(
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
