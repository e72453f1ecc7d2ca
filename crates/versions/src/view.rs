//! Reading: the head through layers and store. History is in [`crate::history`].

use std::iter::Peekable;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arbor_store::{Reader, Table, Value};

use crate::error::VersionsError;
use crate::identity::TableKind;
use crate::layer::Layer;
use crate::layout;
use crate::meta::{Meta, StoredMeta};
use crate::open_id::OpenId;
use crate::space::placed;
use crate::unflushed::Unflushed;
use crate::version::Version;

/// A key and its value.
pub type Entry = (Box<[u8]>, Value);
/// Keys and values, ascending by key.
pub type Entries<'a> = Box<dyn Iterator<Item = Result<Entry, VersionsError>> + 'a>;

/// How many entries are looked at before a scan is.
const FEW: usize = 8;

/// One consistent state and its history, for reading.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The store, or a snapshot of it.
    pub(crate) base: &'a dyn Reader,
    pub(crate) unflushed: &'a Unflushed,
    /// The layer above the unflushed ones, which only the writer has.
    pub(crate) active: Option<&'a Layer>,
    /// When reading ends, if it does.
    pub(crate) deadline: Option<Instant>,
    /// The version that it is [of](View::as_of); `None` for the newest one.
    pub(crate) at: Option<&'a Meta>,
    /// The [space](crate::space) whose tables are named as if there were no other.
    pub(crate) space: u8,
    /// The root that a tree is to take for the newest version's; `None` for the one that its meta has.
    pub(crate) root: Option<[u8; 32]>,
}

impl<'a> View<'a> {
    /// Has every read fail from a moment on, so that whatever reads on and on comes to an end.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..self
        }
    }

    /// The root of a tree at the newest version; `None` before the first version.
    pub fn root(self) -> Option<[u8; 32]> {
        self.root.or_else(|| self.head().map(|head| head.root))
    }

    /// This view with another root for the newest version: one of two trees has another one than the version.
    #[must_use]
    pub fn with_root(self, root: [u8; 32]) -> Self {
        let root = Some(root);
        Self { root, ..self }
    }

    /// This view with the tables of the other [space](crate::OTHER_SPACE) named as those of this one are.
    #[must_use]
    pub fn in_other_space(self) -> Self {
        Self {
            space: 1 - self.space,
            ..self
        }
    }

    /// The table that a caller names, of one that the store has.
    pub fn named(self, table: Table) -> Table {
        placed(self.space, table)
    }

    /// This view with tables as the store has them, and a table so.
    pub(crate) fn placed(self, table: Table) -> (Self, Table) {
        (Self { space: 0, ..self }, placed(self.space, table))
    }

    /// When reading ends, if it does.
    pub fn deadline(self) -> Option<Instant> {
        self.deadline
    }

    /// Checks that reading has not come to its end.
    pub(crate) fn in_time(self) -> Result<(), VersionsError> {
        match self.deadline {
            Some(deadline) if Instant::now() > deadline => Err(VersionsError::Late),
            _ => Ok(()),
        }
    }

    /// This view as of the newest version.
    #[must_use]
    pub fn newest(self) -> Self {
        Self { at: None, ..self }
    }

    /// Returns which open database is read.
    pub fn open_id(self) -> OpenId {
        self.unflushed.open_id
    }

    /// Returns the newest version's meta; `None` before the first version.
    pub fn head(self) -> Option<&'a Meta> {
        self.at.or(self.unflushed.head.as_deref())
    }

    /// Returns the oldest version that can be read; `None` before the first version.
    pub fn oldest(self) -> Option<Version> {
        self.unflushed
            .head
            .as_ref()
            .map(|_| Version(self.unflushed.oldest))
    }

    /// Checks that a version can be read.
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`], with the versions that can.
    pub fn retained(self, version: Version) -> Result<(), VersionsError> {
        self.unflushed.retained(version).map(drop)
    }

    /// Returns a key's value at the head.
    ///
    /// # Errors
    /// An unknown table; the store's errors.
    pub fn get(self, table: Table, key: &[u8]) -> Result<Option<Value>, VersionsError> {
        let (view, table) = self.placed(table);
        view.in_time()?;
        let position = view.unflushed.schema.position(table)?;
        if let Some(at) = view.at {
            let then = view.multi_get_at(at.version, (position, table), &[key])?;
            return Ok(then.into_iter().next().flatten());
        }
        match view.unflushed(position, key) {
            Some(value) => {
                view.unflushed.answered.fetch_add(1, Ordering::Relaxed);
                Ok(value)
            }
            None => view
                .base
                .get(table, key)
                .map_err(VersionsError::store("reading a value")),
        }
    }

    /// Returns the values of keys at the head, in their order.
    ///
    /// # Errors
    /// An unknown table; the store's errors.
    pub fn multi_get(
        self,
        table: Table,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>, VersionsError> {
        let (view, table) = self.placed(table);
        view.in_time()?;
        let position = view.unflushed.schema.position(table)?;
        if let Some(at) = view.at {
            return view.multi_get_at(at.version, (position, table), keys);
        }
        let mut values = vec![None; keys.len()];
        let mut missing: Vec<(usize, &[u8])> = keys.iter().copied().enumerate().collect();
        for layer in view.layers() {
            layer.find_all(position, &mut missing, |place, slot| {
                values[place].clone_from(&slot.value);
            });
        }
        let found = (keys.len() - missing.len()) as u64;
        view.unflushed.answered.fetch_add(found, Ordering::Relaxed);
        if missing.is_empty() {
            return Ok(values);
        }
        let wanted: Vec<&[u8]> = missing.iter().map(|(_, key)| *key).collect();
        let read = view
            .base
            .multi_get(table, &wanted)
            .map_err(VersionsError::store("reading values"))?;
        for ((place, _), value) in missing.into_iter().zip(read) {
            values[place] = value;
        }
        Ok(values)
    }

    fn multi_get_at(
        self,
        version: Version,
        (position, table): (usize, Table),
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Value>>, VersionsError> {
        match self.unflushed.schema.specs()[position].kind {
            TableKind::Flat => {
                let values = keys.iter().map(|key| self.get_at(version, table, key));
                values.collect()
            }
            TableKind::Nodes => self.nodes_then(version.0, table, keys),
            TableKind::Blobs => self.newest().multi_get(table, keys),
        }
    }

    /// Scans the keys at the head that begin with `prefix` and are not below `from`.
    ///
    /// Reads the store as far as the iterator is driven. In a table of nodes every unflushed entry
    /// is looked at first; in a flat table only those that are returned.
    ///
    /// # Errors
    /// An unknown table; the store's errors, also from the iterator.
    pub fn scan(
        self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Entries<'a>, VersionsError> {
        let (view, table) = self.placed(table);
        if let Some(at) = view.at {
            let position = view.unflushed.schema.position(table)?;
            return match view.unflushed.schema.specs()[position].kind {
                TableKind::Flat => view.scan_at(at.version, table, prefix, from),
                TableKind::Nodes => {
                    let nodes = view.nodes_below_then(at.version.0, table, (prefix, from))?;
                    Ok(Box::new(nodes.into_iter().map(Ok)))
                }
                TableKind::Blobs => view.newest().scan(table, prefix, from),
            };
        }
        view.scan_under(Vec::new(), table, prefix, from)
    }

    /// An entry of a flat table that begins with `prefix` and is not below `from`, if one is found at once. Others may come before it. So where there is but one, no scan has to
    /// look for it.
    ///
    /// # Errors
    /// An unknown table; the store's errors.
    pub fn at_hand(
        self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Option<Entry>, VersionsError> {
        let (view, table) = self.placed(table);
        let Some(at) = view.at else {
            let position = view.unflushed.schema.position(table)?;
            let newest = view.layers().find(|layer| !layer.is_empty());
            let first = newest.and_then(|layer| layer.scan(position, prefix, from).next());
            return Ok(first.and_then(|(key, slot)| Some((key, slot.value.clone()?))));
        };
        // What was there is mostly there still.
        for entry in view.newest().scan(table, prefix, from)?.take(FEW) {
            let (key, _) = entry?;
            if let Some(value) = view.get_at(at.version, table, &key)? {
                return Ok(Some((key, value)));
            }
        }
        Ok(None)
    }

    /// Scans the head with entries laid over it that ascend and fit the scan.
    pub(crate) fn scan_under(
        self,
        over: Vec<(Box<[u8]>, Option<Value>)>,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Entries<'a>, VersionsError> {
        let position = self.unflushed.schema.position(table)?;
        self.in_time()?;
        let base = self
            .base
            .scan(table, prefix, from)
            .map_err(VersionsError::store("starting a scan"))?
            .map(move |entry| {
                self.in_time()?;
                let (key, value) = entry.map_err(VersionsError::store("scanning"))?;
                Ok((key, value))
            });
        if over.is_empty() && self.layers().all(Layer::is_empty) {
            return Ok(Box::new(base));
        }
        let base = base.map(|entry| entry.map(|(key, value)| (key, Some(value))));
        let mut sources: Vec<Source<'a>> = Vec::new();
        if !over.is_empty() {
            sources.push(source(over.into_iter().map(Ok)));
        }
        for layer in self.layers() {
            let entries = layer.scan(position, prefix, from);
            sources.push(source(
                entries.map(|(key, slot)| Ok((key, slot.value.clone()))),
            ));
        }
        sources.push(source(base));
        Ok(Box::new(Merge { sources }))
    }

    /// Returns the meta of a version; `None` if it is not kept (any more). The readable versions have theirs, and
    /// [`Options::metas_below`](crate::Options::metas_below) more before them.
    ///
    /// # Errors
    /// The store's errors; a malformed record.
    pub fn meta(self, version: Version) -> Result<Option<Meta>, VersionsError> {
        if let Some(pending) = self.unflushed.pending_of(version.0) {
            return Ok(Some((*pending.meta).clone()));
        }
        if self.head().is_none_or(|head| version > head.version) {
            return Ok(None);
        }
        Ok(read_meta(self.base, version)?.map(|stored| stored.meta))
    }

    /// Returns the newest version of a block; `None` if there is none or it is forgotten.
    ///
    /// # Errors
    /// The store's errors; a malformed record.
    pub fn version_of_block(self, number: u64) -> Result<Option<Version>, VersionsError> {
        if let Some(head) = self.head()
            && head.block_number == number
        {
            // Also while the store still maps the block to a version that was rolled back.
            return Ok(Some(head.version));
        }
        let pending = &self.unflushed.pending;
        let after = pending.partition_point(|p| p.meta.block_number <= number);
        if let Some(newest) = after.checked_sub(1).map(|place| &pending[place].meta)
            && newest.block_number == number
        {
            return Ok(Some(newest.version));
        }
        let found = self
            .base
            .get(layout::BLOCK, &number.to_be_bytes())
            .map_err(VersionsError::store("reading a block's version"))?;
        let Some(bytes) = found else { return Ok(None) };
        let version = <[u8; 8]>::try_from(&*bytes).map_err(|_| {
            VersionsError::malformed(format!("version of block {number}"), "not 8 bytes")
        })?;
        let version = Version(u64::from_be_bytes(version));
        Ok(self
            .head()
            .is_some_and(|head| version <= head.version)
            .then_some(version))
    }

    fn unflushed(self, position: usize, key: &[u8]) -> Option<Option<Value>> {
        self.layers()
            .find_map(|layer| layer.get(position, key))
            .map(|slot| slot.value.clone())
    }

    /// The layers, newest first.
    fn layers(self) -> impl Iterator<Item = &'a Layer> {
        let frozen = self.unflushed.layers.iter().rev().map(|layer| &**layer);
        self.active.into_iter().chain(frozen)
    }
}

/// Reads the stored meta of a version.
pub(crate) fn read_meta(
    base: &dyn Reader,
    version: Version,
) -> Result<Option<StoredMeta>, VersionsError> {
    base.get(layout::META, &version.0.to_be_bytes())
        .map_err(VersionsError::store("reading a version's meta"))?
        .map(|bytes| StoredMeta::decode(version, &bytes))
        .transpose()
}

/// Reads the stored meta of a version that must have one.
pub(crate) fn stored_meta(base: &dyn Reader, version: u64) -> Result<StoredMeta, VersionsError> {
    read_meta(base, Version(version))?
        .ok_or_else(|| VersionsError::malformed(format!("meta of version {version}"), "missing"))
}

type Item = Result<(Box<[u8]>, Option<Value>), VersionsError>;
type Source<'a> = Peekable<Box<dyn Iterator<Item = Item> + 'a>>;

fn source<'a>(entries: impl Iterator<Item = Item> + 'a) -> Source<'a> {
    let entries: Box<dyn Iterator<Item = Item> + 'a> = Box::new(entries);
    entries.peekable()
}

/// Merges ascending sources, newest first; deletions hide what older sources have.
struct Merge<'a> {
    sources: Vec<Source<'a>>,
}

impl Iterator for Merge<'_> {
    type Item = Result<(Box<[u8]>, Value), VersionsError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut least: Option<(usize, Box<[u8]>)> = None;
            for (place, source) in self.sources.iter_mut().enumerate() {
                match source.peek() {
                    None => {}
                    Some(Err(_)) => {
                        let error = source.next().and_then(Result::err);
                        self.sources.clear();
                        return error.map(Err);
                    }
                    Some(Ok((key, _))) if least.as_ref().is_some_and(|(_, other)| key >= other) => {
                    }
                    Some(Ok((key, _))) => least = Some((place, key.clone())),
                }
            }
            let (newest, key) = least?;
            let mut value = None;
            for (place, source) in self.sources.iter_mut().enumerate() {
                let same = |item: &Item| matches!(item, Ok((other, _)) if *other == key);
                if let Some(Ok((_, found))) = source.next_if(same)
                    && place == newest
                {
                    value = found;
                }
            }
            if let Some(value) = value {
                return Some(Ok((key, value)));
            }
        }
    }
}
