//! Creating and opening: identity, agreement of store and HEAD file, what a crash left behind.

use std::collections::BTreeSet;
use std::sync::Arc;

use arbor_store::{OverlayStore, Reader, Store, Table};

use crate::cache::{CacheSeed, CachedStore};
use crate::error::VersionsError;
use crate::filters::Filters;
use crate::flush::Files;
use crate::head_file::{
    DirLock, DirReader, FlushedVersion, HeadFile, has_head_file, read_head_file,
};
use crate::identity::{Identity, Schema, StoredIdentity, TableSpec};
use crate::index::{self, Of};
use crate::kept_nodes::KeptNodes;
use crate::layer::Layer;
use crate::layout;
use crate::meta::{HeadRecord, Meta, array, partly_loaded, read_head};
use crate::node_keeping;
use crate::open_id::OpenId;
use crate::options::Options;
use crate::pins::Pins;
use crate::snapshot::Snapshot;
use crate::space::MOVE;
use crate::unflushed::Unflushed;
use crate::version::Version;
use crate::versions::Versions;
use crate::view::read_meta;

/// Reads what database a store has; `None` if it has none.
///
/// # Errors
/// The store's errors; a malformed record.
pub fn stored_identity(store: &dyn Reader) -> Result<Option<Identity>, VersionsError> {
    Ok(read_identity(store)?.map(|stored| stored.identity))
}

impl Versions {
    /// Creates a database without versions in an empty store. `lock` is that of the directory in
    /// which HEAD is to lie; none for a store in memory.
    ///
    /// # Errors
    /// [`VersionsError::AlreadyCreated`]; [`VersionsError::StoreOlder`] if the directory's HEAD says
    /// that versions were flushed here, so that the store has lost them; tables that clash; errors of
    /// the store and of files.
    pub fn create(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        identity: &Identity,
        tables: &[TableSpec],
        options: Options,
    ) -> Result<Self, VersionsError> {
        let schema = Schema::new(tables, identity.space)?;
        if let Some(found) = stored_identity(&*store)? {
            return Err(VersionsError::AlreadyCreated {
                tree: found.tree,
                chain_id: found.chain_id,
            });
        }
        let epoch = options.epoch.clamp(2, 1 << 16);
        let files = files(lock.as_ref(), identity);
        if let Some(files) = &files {
            never_flushed(files)?;
            files.write(None)?;
        }
        let made = StoredIdentity::new(identity, &schema, epoch);
        let write = layout::put(layout::SYSTEM, layout::IDENTITY_KEY, made.encode());
        store
            .write(&[write], true)
            .map_err(VersionsError::store("creating the database"))?;
        let unflushed = Unflushed {
            schema: Arc::new(schema),
            open_id: OpenId::next(),
            epoch,
            layers: Vec::new(),
            pending: Vec::new(),
            head: None,
            oldest: 0,
            indexed: Arc::default(),
            filters: Arc::default(),
            nodes: None,
            answered: Arc::default(),
        };
        Ok(Self::assemble(store, lock, files, unflushed, None, options))
    }

    /// Opens a database at its last flushed version.
    ///
    /// # Errors
    /// [`VersionsError::NotCreated`]; [`VersionsError::Identity`] if it is something else than
    /// asked for; [`VersionsError::StoreOlder`] and [`VersionsError::HeadDiffers`] if the store is
    /// not what was last made durable; errors of the store and of files.
    pub fn open(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        identity: &Identity,
        tables: &[TableSpec],
        options: Options,
    ) -> Result<Self, VersionsError> {
        Self::open_as(Loads::Whole, (store, lock), identity, tables, options)
    }

    /// Like [`open`](Versions::open), but opens a database that is being [loaded](Versions::load), too, so that the load goes on.
    /// Says whether a load began and its version was not flushed.
    ///
    /// # Errors
    /// Those of [`open`](Versions::open), but for [`VersionsError::PartlyLoaded`].
    pub fn open_to_load(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        identity: &Identity,
        tables: &[TableSpec],
        options: Options,
    ) -> Result<(Self, bool), VersionsError> {
        let is_partly_loaded = partly_loaded(&*store)?;
        let versions = Self::open_as(Loads::Partly, (store, lock), identity, tables, options)?;
        let is_loading = is_partly_loaded && versions.head().is_none();
        Ok((versions, is_loading))
    }

    fn open_as(
        loads: Loads,
        (store, lock): (Arc<dyn Store>, Option<DirLock>),
        identity: &Identity,
        tables: &[TableSpec],
        options: Options,
    ) -> Result<Self, VersionsError> {
        let (unflushed, stored, identity) = read_stored(&*store, identity, tables, loads)?;
        let files = files(lock.as_ref(), &identity);
        if let Some(files) = &files {
            agree(files, unflushed.head.as_deref())?;
        }
        remove_unmarked(&*store, Of::Flat, &unflushed.indexed)?;
        match &unflushed.nodes {
            Some(kept) => remove_unmarked(&*store, Of::Nodes, &kept.indexed)?,
            None => remove_unkept(&*store)?,
        }
        let now = StoredIdentity::new(&identity, &unflushed.schema, unflushed.epoch);
        if let Some(before) = read_identity(&*store)?
            && before != now
        {
            // It has tables from here on that it did not know, or those of one tree alone after a move. Until these are dropped, it knows both.
            for table in before
                .tables
                .iter()
                .filter(|table| !now.tables.contains(table))
            {
                let dropped = store.delete_prefix(Table(table.table), &[]);
                dropped.map_err(VersionsError::store("dropping the tables of another tree"))?;
            }
            let write = layout::put(layout::SYSTEM, layout::IDENTITY_KEY, now.encode());
            store
                .write(&[write], true)
                .map_err(VersionsError::store("adding tables to the database"))?;
        }
        let kept = unflushed.nodes.is_some();
        let mut versions = Self::assemble(store, lock, files, unflushed, stored, options);
        if !kept {
            // What is asked for holds from here on, also if no version follows.
            versions.index_nodes()?;
        }
        Ok(versions)
    }

    /// Makes all durable, and opens the database as something else: with a move to another tree, as the tree that it has moved to, or without a move. Tables that it then
    /// does not have are dropped. A crash leaves it as the one or the other.
    ///
    /// After an error it is to be opened again.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush) and of [`open`](Self::open).
    pub fn open_again(
        mut self,
        identity: &Identity,
        tables: &[TableSpec],
    ) -> Result<Self, VersionsError> {
        self.flush()?;
        if let Some(thread) = self.giving_back.take() {
            drop(thread.join());
        }
        let stored = stored_identity(self.base.store())?.ok_or(VersionsError::NotCreated)?;
        let (identity, _) = agreed(&stored, identity)?;
        if let Some(files) = &mut self.files {
            files.identity = identity.clone();
            let head = self.unflushed.head.as_deref();
            files.write(head.map(|head| (head, head.version.0)))?;
        }
        let (store, lock) = (self.base.shared_store(), self._lock.take());
        let options = self.options.clone();
        drop(self);
        Self::open(store, lock, &identity, tables, options)
    }

    fn assemble(
        store: Arc<dyn Store>,
        lock: Option<DirLock>,
        files: Option<Files>,
        unflushed: Unflushed,
        stored: Option<HeadRecord>,
        options: Options,
    ) -> Self {
        let seed = match options.background {
            true => CacheSeed::random(),
            false => CacheSeed::fixed(),
        };
        let mut versions = Self {
            active: Layer::new(&unflushed.schema),
            base: Arc::new(CachedStore::new(store, options.cache_bytes, seed)),
            unflushed,
            options,
            stored,
            truncate: None,
            first_meta: 0,
            undo_bytes: 0,
            drop_epochs: BTreeSet::new(),
            in_flight: None,
            giving_back: None,
            files,
            store_snapshot: None,
            flushed: crate::FlushStats::default(),
            flush_wait: std::time::Duration::ZERO,
            pins: Pins::of(lock.as_ref().map(DirLock::dir)),
            _lock: lock,
        };
        if versions.options.keep_nodes {
            versions.keep_nodes();
        }
        versions
    }
}

impl Snapshot {
    /// Returns what the database says that it is.
    ///
    /// # Errors
    /// A record of it that is missing or cannot be read.
    pub fn identity(&self) -> Result<Identity, VersionsError> {
        let identity = stored_identity(&*self.base)?;
        identity.ok_or_else(|| VersionsError::malformed("identity record", "missing"))
    }

    /// Opens a database for reading alone, at its last flushed version. `dir` is the directory that HEAD
    /// lies in, looked at before the store was opened; none for a store in memory.
    ///
    /// Nothing is locked, and nothing written: another process may write the database meanwhile, if the store that it has is
    /// not the one given here but one that was opened beside it.
    ///
    /// # Errors
    /// As [`Versions::open`].
    pub fn open(
        base: Arc<dyn Reader>,
        dir: Option<DirReader>,
        identity: &Identity,
        tables: &[TableSpec],
    ) -> Result<Self, VersionsError> {
        // HEAD says that a move is given up, and the store does not know yet: nothing of it may be there any more.
        if let Some(stored) = stored_identity(&*base)?
            && stored.moves_to.is_some()
            && stored.tree == identity.tree
            && identity.moves_to.is_none()
        {
            let moved = base.get(MOVE, &[]);
            if moved
                .map_err(VersionsError::store("looking for a move"))?
                .is_some()
            {
                stored.check(identity)?;
            }
        }
        let (unflushed, _, identity) = read_stored(&*base, identity, tables, Loads::Whole)?;
        if let Some(dir) = dir {
            agrees_with(&dir.around()?, &identity, unflushed.head.as_deref())?;
        }
        Ok(Self {
            of_writer: unflushed.layers.len(),
            base,
            unflushed,
        })
    }

    /// Opens the database as of the last flush for writing, which leaves it as it is: what is written goes into an empty store of its own, `over`.
    ///
    /// # Errors
    /// Those of [`Versions::open`].
    pub fn open_over(
        &self,
        over: Arc<dyn Store>,
        options: Options,
    ) -> Result<Versions, VersionsError> {
        let store = Arc::new(OverlayStore::new(self.base.clone(), over));
        let (identity, tables) = (self.identity()?, self.unflushed.schema.named());
        Versions::open(store, None, &identity, &tables, options)
    }

    /// Writes the HEAD file of a directory anew, from what the store there says: where the file was lost or damaged, or knows of
    /// another version than the store.
    ///
    /// That the store was put back to an older state, which HEAD is there to tell, can then no longer be noticed: so it takes somebody
    /// who says that this store is the one that is meant. Nobody may have written to it since the snapshot was opened, for which the
    /// lock must have been taken before.
    ///
    /// # Errors
    /// Those of files.
    pub fn rebuild_head_file(
        &self,
        lock: &DirLock,
        identity: &Identity,
    ) -> Result<(), VersionsError> {
        let files = Files {
            dir: lock.dir().to_owned(),
            identity: identity.clone(),
        };
        let head = self.unflushed.head.as_deref();
        files.write(head.map(|head| (head, head.version.0)))
    }
}

/// Which databases without a version are opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loads {
    /// Those without anything.
    Whole,
    /// Those with a part of a state, too.
    Partly,
}

/// Reads everything but the state from a store that has a database, which must be the one asked for.
fn read_stored(
    store: &dyn Reader,
    identity: &Identity,
    tables: &[TableSpec],
    loads: Loads,
) -> Result<(Unflushed, Option<HeadRecord>, Identity), VersionsError> {
    let found = read_identity(store)?.ok_or(VersionsError::NotCreated)?;
    let (mut identity, has_all) = agreed(&found.identity, identity)?;
    let schema = Schema::new(tables, identity.space)?;
    if has_all {
        found.check_tables(&StoredIdentity::new(&identity, &schema, found.epoch))?;
    }
    let stored = read_head(store)?;
    let head = match stored {
        None if loads == Loads::Whole && partly_loaded(store)? => {
            return Err(VersionsError::PartlyLoaded);
        }
        None => None,
        Some(record) => Some(head_meta(store, record)?),
    };
    if let Some(record) = stored
        && identity.space != found.identity.space
    {
        let oldest = read_meta(store, Version(record.oldest))?;
        identity.since = oldest.map(|oldest| oldest.meta.block_number);
    }
    let unflushed = Unflushed {
        schema: Arc::new(schema),
        open_id: OpenId::next(),
        epoch: found.epoch,
        layers: Vec::new(),
        pending: Vec::new(),
        head: head.map(Arc::new),
        oldest: stored.map_or(0, |record| record.oldest),
        indexed: Arc::new(index::marked(store, Of::Flat)?),
        filters: Arc::new(Filters::default()),
        nodes: KeptNodes::read(store)?,
        answered: Arc::default(),
    };
    Ok((unflushed, stored, identity))
}

/// What a database is from here on, and whether it has all tables from before. It may be asked for with a move that it does not know, as the other tree that it moved to,
/// or without the move that it knows: HEAD, from which callers know what to ask for, is written before the store.
fn agreed(stored: &Identity, wanted: &Identity) -> Result<(Identity, bool), VersionsError> {
    let moves = (stored.moves_to.is_some(), wanted.moves_to.is_some());
    let is = |now: &Identity| now.check(wanted).is_ok();
    let now = match moves {
        (false, true) => Some(stored.moving_to(wanted.moves_to.clone())).filter(is),
        (true, false) => {
            let without = stored.moving_to(None);
            [stored.moved(), Some(without)]
                .into_iter()
                .flatten()
                .find(is)
        }
        _ => None,
    };
    match now {
        Some(now) => Ok((now, moves.1)),
        None => stored.check(wanted).map(|()| (stored.clone(), true)),
    }
}

/// Checks a store that is only read against what HEAD said before and after it was opened. In between a writer
/// may have flushed, so the store may be newer than the one and older than the other.
fn agrees_with(
    heads: &[HeadFile; 2],
    identity: &Identity,
    stored: Option<&Meta>,
) -> Result<(), VersionsError> {
    for head in heads {
        head.identity.check(identity)?;
    }
    let [Some(before), after] = heads.each_ref().map(|file| file.head.as_ref()) else {
        return Ok(());
    };
    let floor = after.map_or(before.floor, |after| after.floor.min(before.floor));
    match stored {
        Some(meta) if meta.version.0 >= floor => {
            let settled = after == Some(before) && before.floor == before.version;
            match settled && before.version == meta.version.0 {
                true => same(before, meta),
                false => Ok(()),
            }
        }
        _ => Err(VersionsError::StoreOlder {
            store: stored.map(|meta| meta.version.0),
            head: floor,
        }),
    }
}

fn files(lock: Option<&DirLock>, identity: &Identity) -> Option<Files> {
    lock.map(|lock| Files {
        dir: lock.dir().to_owned(),
        identity: identity.clone(),
    })
}

/// Checks that no version was ever flushed to a directory whose store is empty.
fn never_flushed(files: &Files) -> Result<(), VersionsError> {
    if !has_head_file(&files.dir) {
        return Ok(());
    }
    match read_head_file(&files.dir)?.head {
        None => Ok(()),
        Some(head) => Err(VersionsError::StoreOlder {
            store: None,
            head: head.floor,
        }),
    }
}

/// Checks store and HEAD file against each other, and brings a HEAD up to date that a crash kept
/// from following the store.
fn agree(files: &Files, stored: Option<&Meta>) -> Result<(), VersionsError> {
    let file = read_head_file(&files.dir)?;
    file.identity.check(&files.identity)?;
    let version = stored.map(|meta| meta.version.0);
    let Some(head) = file.head else {
        // Nothing, or the first flush, whose HEAD was lost.
        return match stored {
            Some(meta) => files.write(Some((meta, meta.version.0))),
            None => Ok(()),
        };
    };
    match stored {
        Some(meta) if meta.version.0 >= head.floor => {
            if meta.version.0 == head.version && head.floor == head.version {
                same(&head, meta)?;
                return Ok(());
            }
            files.write(Some((meta, meta.version.0)))
        }
        _ => Err(VersionsError::StoreOlder {
            store: version,
            head: head.floor,
        }),
    }
}

fn same(head: &FlushedVersion, meta: &Meta) -> Result<(), VersionsError> {
    let hex = const_hex::encode::<[u8; 32]>;
    let (of_store, of_file) = (meta.block_number, head.block_number);
    for (field, store, file) in [
        ("root", hex(meta.root), hex(head.root)),
        ("block hash", hex(meta.block_hash), hex(head.block_hash)),
        ("block number", of_store.to_string(), of_file.to_string()),
    ] {
        if store != file {
            return Err(VersionsError::HeadDiffers {
                version: meta.version.0,
                field,
                store,
                file,
            });
        }
    }
    Ok(())
}

fn read_identity(store: &dyn Reader) -> Result<Option<StoredIdentity>, VersionsError> {
    store
        .get(layout::SYSTEM, layout::IDENTITY_KEY)
        .map_err(VersionsError::store("reading the identity"))?
        .map(|bytes| StoredIdentity::decode(&bytes))
        .transpose()
}

fn head_meta(store: &dyn Reader, record: HeadRecord) -> Result<Meta, VersionsError> {
    let found = read_meta(store, Version(record.version))?;
    let stored = found.ok_or_else(|| {
        VersionsError::malformed(
            format!("meta of head version {}", record.version),
            "missing",
        )
    })?;
    Ok(stored.meta)
}

/// Removes old nodes that are not kept any more: a crash came between the loss of the mark and their removal.
fn remove_unkept(store: &dyn Store) -> Result<(), VersionsError> {
    for table in [layout::OLD_NODES, layout::NODE_INDEX] {
        let scan = store.scan(table, &[], &[]);
        let mut scan = scan.map_err(VersionsError::store("looking for old nodes"))?;
        if scan.next().is_some() {
            drop(scan);
            return node_keeping::remove_all(store);
        }
    }
    Ok(())
}

/// Removes the oldest indexes as long as they have no mark: a crash came between the loss of the
/// mark and the removal. A newer unmarked one is removed when it is built again.
fn remove_unmarked(
    store: &dyn Store,
    of: Of,
    indexed: &BTreeSet<u64>,
) -> Result<(), VersionsError> {
    loop {
        let scan = store.scan(of.table(), &[], &[]);
        let first = scan
            .map_err(VersionsError::store("looking for indexes"))?
            .next();
        let Some(entry) = first else { return Ok(()) };
        let (key, _) = entry.map_err(VersionsError::store("looking for indexes"))?;
        if key.len() < 8 {
            return Err(VersionsError::malformed(
                "index",
                "key shorter than an epoch",
            ));
        }
        let epoch = u64::from_be_bytes(array(&key));
        if indexed.contains(&epoch) {
            return Ok(());
        }
        index::remove(store, of, epoch)?;
    }
}
