//! The writer: applies versions, flushes and rolls back. Pruning is in [`crate::pruning`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arbor_store::{Reader, Write};

use crate::cache::CachedStore;
use crate::changes::{Change, Changes, check_writes};
use crate::error::VersionsError;
use crate::filters::Filters;
use crate::flush::{Files, FlushJob};
use crate::head_file::DirLock;
use crate::identity::TableKind;
use crate::layer::Layer;
use crate::meta::{HeadRecord, Meta, check_order, read_head};
use crate::options::{Options, Retain};
use crate::pins::Pins;
use crate::put::{Putting, put_version, put_writes};
use crate::snapshot::Snapshot;
use crate::stats::{FlushStats, Stats};
use crate::undo::UndoRecord;
use crate::unflushed::{Pending, Unflushed};
use crate::version::Version;
use crate::view::{View, stored_meta};

/// An open database of versions: one writer, whose methods take `&mut self`.
///
/// Reads of the head go through [`view`](Versions::view), from any number of threads while no
/// version is being applied; a [`Snapshot`] reads on while versions are applied.
pub struct Versions {
    pub(crate) unflushed: Unflushed,
    pub(crate) active: Layer,
    pub(crate) base: Arc<CachedStore>,
    pub(crate) options: Options,
    /// What the store has; `None` before the first flush.
    pub(crate) stored: Option<HeadRecord>,
    /// Set while stored versions above it are rolled back only in memory.
    pub(crate) truncate: Option<u64>,
    /// No meta before it is kept.
    pub(crate) first_meta: u64,
    /// Bytes of undo that no flush has taken yet.
    pub(crate) undo_bytes: usize,
    /// Indexes that the next flush removes.
    pub(crate) drop_epochs: BTreeSet<u64>,
    /// The flush in the background; its layer is the first of the unflushed ones.
    pub(crate) in_flight: Option<InFlight>,
    /// The thread that gives back the memory of what was flushed last.
    pub(crate) giving_back: Option<JoinHandle<()>>,
    pub(crate) files: Option<Files>,
    /// The store as of the last flush, if a snapshot has been asked for since.
    pub(crate) store_snapshot: Option<Arc<dyn Reader>>,
    pub(crate) flushed: FlushStats,
    pub(crate) flush_wait: Duration,
    /// Versions that readers keep.
    pub(crate) pins: Pins,
    pub(crate) _lock: Option<DirLock>,
}

pub(crate) struct InFlight {
    job: Arc<FlushJob>,
    thread: JoinHandle<Result<FlushStats, VersionsError>>,
}

impl Versions {
    /// Returns a view of the head and its history.
    pub fn view(&self) -> View<'_> {
        View {
            base: &*self.base,
            unflushed: &self.unflushed,
            active: Some(&self.active),
            deadline: None,
            at: None,
            space: self.unflushed.schema.space,
            root: None,
        }
    }

    /// The view with tables as the store has them.
    pub(crate) fn view_of_store(&self) -> View<'_> {
        View {
            space: 0,
            ..self.view()
        }
    }

    /// What it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the newest version's meta; `None` before the first version.
    pub fn head(&self) -> Option<&Meta> {
        self.unflushed.head.as_deref()
    }

    /// Returns the newest version that is durable: where the database would open after a crash.
    pub fn flushed(&self) -> Option<Version> {
        self.stored.map(|stored| Version(stored.version))
    }

    /// Freezes the present state for reading from other threads.
    ///
    /// Costs a store snapshot at the first call after a flush, and else little; many snapshots
    /// between two flushes share their data.
    ///
    /// # Errors
    /// The store's errors; a failed flush in the background.
    pub fn snapshot(&mut self) -> Result<Snapshot, VersionsError> {
        self.settle(false)?;
        self.snapshot_at_once()
    }

    /// Like [`snapshot`](Self::snapshot), but does not look whether a flush in the background failed: the next call that changes anything
    /// reports that.
    ///
    /// # Errors
    /// The store's errors.
    pub fn snapshot_at_once(&mut self) -> Result<Snapshot, VersionsError> {
        self.freeze();
        let base = match &self.store_snapshot {
            Some(base) => base.clone(),
            None => {
                let taken = self.base.store().snapshot();
                let base: Arc<dyn Reader> =
                    Arc::from(taken.map_err(VersionsError::store("taking a snapshot"))?);
                self.store_snapshot.insert(base).clone()
            }
        };
        let unflushed = self.unflushed.clone();
        let of_writer = unflushed.layers.len();
        Ok(Snapshot {
            base,
            unflushed,
            of_writer,
        })
    }

    /// Applies the next version: number 0 for the first, else the head's number plus one.
    ///
    /// If the data of earlier versions exceed their budget their flush begins first, in the
    /// background if the options say so; one that is still running is waited for.
    ///
    /// # Errors
    /// [`VersionsError::OutOfOrder`], [`VersionsError::BlockOrder`],
    /// [`VersionsError::DuplicateChange`] and table errors. Errors of a flush, now or in the
    /// background: nothing is lost, and the version may be applied again. In all these cases the
    /// version is not applied. Only with [`Options::durable_each`] may the version's own flush
    /// fail after it was applied, as [`head`](Versions::head) tells.
    pub fn apply(&mut self, meta: Meta, changes: Changes) -> Result<(), VersionsError> {
        self.apply_as_one(vec![meta], changes)
    }

    /// Applies consecutive versions whose changes are known only together, like [`apply`](Versions::apply).
    ///
    /// Of more than one only the last can be read, and nothing before it: the history ends there. The others' metas
    /// are remembered. No version at all changes nothing.
    ///
    /// # Errors
    /// As [`apply`](Versions::apply).
    pub fn apply_as_one(
        &mut self,
        metas: Vec<Meta>,
        mut changes: Changes,
    ) -> Result<(), VersionsError> {
        let Some(last) = metas.last().map(|meta| meta.version) else {
            return Ok(());
        };
        self.settle(false)?;
        check_order(self.head(), metas.iter())?;
        changes.prepare(&self.unflushed.schema, last)?;
        debug_assert!(
            changes.flat().all(|change| self.agrees(change)),
            "an old value is not what was applied before"
        );
        self.flush_by_budget()?;

        let alone = metas.len() == 1;
        let nodes = match alone && self.options.retain != Retain::None {
            true => self.old_nodes_of(last.0, std::iter::once(&changes))?,
            false => None,
        };
        let undo = self.put_version(changes, alone && last.0 > 0);
        for meta in metas {
            self.advance(Arc::new(meta), undo.clone(), nodes.clone());
        }
        if !alone {
            self.forget_before(last.0);
            if let Some(kept) = &mut self.unflushed.nodes {
                kept.since = last.0;
            }
        }
        if self.options.durable_each {
            self.flush()?;
        }
        Ok(())
    }

    /// Applies consecutive versions, like [`apply`](Versions::apply) one after the other, but all of them or none, and without a flush between them.
    /// So the nodes of all may come with the last one: those before are read by undoing flat changes.
    ///
    /// # Errors
    /// As [`apply`](Versions::apply).
    pub fn apply_together(
        &mut self,
        mut versions: Vec<(Meta, Changes)>,
    ) -> Result<(), VersionsError> {
        self.settle(false)?;
        check_order(self.head(), versions.iter().map(|(meta, _)| meta))?;
        for (meta, changes) in &mut versions {
            changes.prepare(&self.unflushed.schema, meta.version)?;
        }
        self.flush_by_budget()?;
        // The nodes of those before the last may come with it.
        let last = versions.last().map(|(meta, _)| meta.version.0);
        let is_first = self.head().is_none();
        let mut nodes = match last.filter(|_| self.options.retain != Retain::None) {
            Some(last) => self.old_nodes_of(last, versions.iter().map(|(_, changes)| changes))?,
            None => None,
        };
        for (meta, changes) in versions {
            debug_assert!(
                changes.flat().all(|change| self.agrees(change)),
                "an old value is not what was applied before"
            );
            let undo = self.put_version(changes, meta.version.0 > 0);
            let nodes = match Some(meta.version.0) == last {
                true => nodes.take(),
                false => None,
            };
            self.advance(Arc::new(meta), undo, nodes);
        }
        if let (true, Some(last), Some(kept)) = (is_first, last, &mut self.unflushed.nodes) {
            kept.since = last;
        }
        if self.options.durable_each {
            self.flush()?;
        }
        Ok(())
    }

    /// Puts what a version changes, which was checked, into the active layer; returns what undoes it, if it can be undone and anything is retained.
    fn put_version(&mut self, changes: Changes, undone: bool) -> Option<Arc<UndoRecord>> {
        let undone = undone && self.options.retain != Retain::None;
        let how = Putting {
            undo_chunk: undone.then_some(self.options.undo_chunk),
            with_help: self.options.background,
        };
        put_version(&mut self.active, &self.unflushed.schema, changes, how)
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// Errors of the store and of the HEAD file. Nothing is lost from memory, and the next flush
    /// tries again.
    pub fn flush(&mut self) -> Result<FlushStats, VersionsError> {
        self.settle(true)?;
        let Some(job) = self.prepare() else {
            return Ok(FlushStats::default());
        };
        let start = Instant::now();
        let result = job.run();
        self.flush_wait += start.elapsed();
        let finished = self.finish(&job, result);
        self.give_back(job.layer);
        finished
    }

    /// Writes HEAD anew, by which processes that read the database see that something changed though the version is the same, and open it again.
    ///
    /// # Errors
    /// Those of files.
    pub fn announce(&self) -> Result<(), VersionsError> {
        match (&self.files, self.stored) {
            (Some(files), Some(stored)) => {
                let head = stored_meta(&*self.base, stored.version)?;
                files.write(Some((&head.meta, stored.version)))
            }
            _ => Ok(()),
        }
    }

    /// Goes back to a retained version, in one atomic and durable write.
    ///
    /// `flat` is what [`View::undo_since`] returned for it, `nodes` what the caller's tree makes of
    /// that. Later versions are forgotten; blobs stay.
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`], [`VersionsError::BackgroundFlush`] and table errors: nothing
    /// has changed. An error of the rollback's own flush: it is done in memory, and the next flush
    /// tries again.
    pub fn rollback(
        &mut self,
        to: Version,
        flat: Vec<Write>,
        nodes: Vec<Write>,
    ) -> Result<FlushStats, VersionsError> {
        self.settle(true)?;
        let head = self.unflushed.retained(to)?;
        let meta = self.view().meta(to)?.ok_or_else(|| {
            VersionsError::malformed(format!("meta of version {}", to.0), "missing")
        })?;
        let (flat, nodes) = (
            self.unflushed.schema.placed(flat),
            self.unflushed.schema.placed(nodes),
        );
        check_writes(&self.unflushed.schema, &flat, TableKind::Flat)?;
        check_writes(&self.unflushed.schema, &nodes, TableKind::Nodes)?;
        let old_nodes = self.nodes_rolled_back_to(to.0, &nodes)?;
        let writes = flat.into_iter().chain(nodes);
        put_writes(&mut self.active, &self.unflushed.schema, writes);
        let undone = usize::try_from(head - to.0).unwrap_or(usize::MAX);
        let kept = self.unflushed.pending.len().saturating_sub(undone);
        self.unflushed.pending.truncate(kept);
        self.unflushed.head = Some(Arc::new(meta));
        self.unflushed.filters = Arc::new(Filters::default());
        let is_rewritten = old_nodes.is_some();
        if let Some(kept) = &mut self.unflushed.nodes {
            kept.filters = Arc::default();
            kept.since = kept.since.min(to.0);
            kept.rewritten.retain(|version, _| *version < to.0);
            kept.rewritten
                .extend(old_nodes.map(|record| (to.0, record)));
        }
        if let Some(stored) = self.stored
            && to.0 < stored.version
        {
            let target = self.truncate.map_or(to.0, |target| target.min(to.0));
            self.truncate = Some(target);
        }
        // The index of an epoch that ends with it does not have a record that is written only now.
        self.forget_indexes_beyond(to.0 - u64::from(is_rewritten));
        self.flush()
    }

    /// Returns what was written and read since opening.
    pub fn stats(&self) -> Stats {
        let (cache_hits, cache_misses, cache_bytes) = self.base.usage();
        let layers = self.unflushed.layers.iter().map(|layer| layer.bytes());
        Stats {
            flush: self.flushed,
            dirty_bytes: (self.active.bytes() + layers.sum::<usize>()) as u64,
            pending_undo_bytes: self.unflushed.pending_bytes() as u64,
            cache_bytes,
            unflushed_hits: self.unflushed.answered.load(Ordering::Relaxed),
            cache_hits,
            cache_misses,
            flush_wait: self.flush_wait,
        }
    }

    /// Returns whether a change's old value is the unflushed one, if there is one.
    fn agrees(&self, change: Change<'_>) -> bool {
        let position = self.unflushed.schema.known(change.table);
        let frozen = self.unflushed.layers.iter().rev().map(|layer| &**layer);
        let mut layers = std::iter::once(&self.active).chain(frozen);
        layers
            .find_map(|layer| layer.get(position, change.key))
            .is_none_or(|slot| slot.value.as_deref() == change.old)
    }

    fn advance(
        &mut self,
        meta: Arc<Meta>,
        undo: Option<Arc<UndoRecord>>,
        nodes: Option<Arc<UndoRecord>>,
    ) {
        let version = meta.version.0;
        self.unflushed.head = Some(meta.clone());
        let pending = Pending { meta, undo, nodes };
        self.undo_bytes += pending.bytes();
        self.unflushed.pending.push(pending);
        self.forget_unretained(version);
    }

    /// Returns how many of the unflushed versions the flush in the background has.
    pub(crate) fn flying_versions(&self) -> usize {
        let flight = self.in_flight.as_ref();
        flight.map_or(0, |flight| flight.job.pending.len())
    }

    fn flush_by_budget(&mut self) -> Result<(), VersionsError> {
        let layers = &self.unflushed.layers[usize::from(self.in_flight.is_some())..];
        let layers = layers.iter().map(|layer| layer.bytes()).sum::<usize>();
        let dirty = self.active.bytes() + layers + self.undo_bytes;
        if dirty < self.options.dirty_bytes {
            return Ok(());
        }
        if !self.options.background {
            return self.flush().map(drop);
        }
        self.settle(true)?;
        if let Some(job) = self.prepare() {
            let job = Arc::new(job);
            let running = job.clone();
            let thread = std::thread::spawn(move || running.run());
            self.in_flight = Some(InFlight { job, thread });
        }
        Ok(())
    }

    /// Moves the active layer to the unflushed ones, merging it there with layers that no snapshot has, and with those of
    /// its size or less, so that a snapshot for every version leaves only logarithmically many.
    fn freeze(&mut self) {
        if self.active.is_empty() {
            return;
        }
        let fresh = Layer::new(&self.unflushed.schema);
        let mut newest = std::mem::replace(&mut self.active, fresh);
        let fixed = usize::from(self.in_flight.is_some());
        let layers = &mut self.unflushed.layers;
        while layers.len() > fixed
            && let Some(older) = layers.pop_if(|older| {
                // Nothing is copied but what is new.
                Arc::get_mut(older).is_some() || older.bytes() <= 2 * newest.bytes()
            })
        {
            let mut merged = Arc::unwrap_or_clone(older);
            merged.absorb(&newest);
            newest = merged;
        }
        layers.push(Arc::new(newest));
    }

    /// Gathers everything unflushed into a job; `None` if there is nothing to write. No flush is
    /// in flight.
    fn prepare(&mut self) -> Option<FlushJob> {
        let head = self.unflushed.head.clone()?;
        let to = self.next_record(head.version.0);
        let empty = self.active.is_empty() && self.unflushed.layers.is_empty();
        if empty && self.stored == Some(to) && self.drop_epochs.is_empty() {
            return None;
        }
        let fresh = self.active.successor();
        let active = std::mem::replace(&mut self.active, fresh);
        self.undo_bytes = 0;
        let frozen = std::mem::take(&mut self.unflushed.layers);
        let layer = frozen
            .into_iter()
            .chain([Arc::new(active)])
            .reduce(|older, newer| {
                let mut merged = Arc::unwrap_or_clone(older);
                merged.absorb(&newer);
                Arc::new(merged)
            })?;
        self.unflushed.layers.push(layer.clone());
        Some(FlushJob {
            base: self.base.clone(),
            schema: self.unflushed.schema.clone(),
            layer,
            pending: self.unflushed.pending.clone(),
            from: self.stored,
            to,
            head,
            truncate: self.truncate,
            drop_epochs: self.drop_epochs.iter().copied().collect(),
            build_epochs: self.complete_epochs(to),
            epoch: self.unflushed.epoch,
            build_node_epochs: self.complete_node_epochs(to),
            nodes: self.unflushed.nodes.clone(),
            files: self.files.clone(),
            ingest_above: self.options.ingest_above,
            beside: self.options.background,
        })
    }

    /// Takes over the result of a flush in the background, if it has finished or if told to wait.
    pub(crate) fn settle(&mut self, wait: bool) -> Result<(), VersionsError> {
        let done = |flight: &mut InFlight| wait || flight.thread.is_finished();
        let Some(flight) = self.in_flight.take_if(done) else {
            return Ok(());
        };
        let start = Instant::now();
        let result = match flight.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        self.flush_wait += start.elapsed();
        let version = Version(flight.job.to.version);
        let finished = self.finish(&flight.job, result);
        // Nothing else of the job outlives this: it has the store.
        let flushed = flight.job.layer.clone();
        drop(flight.job);
        self.give_back(flushed);
        match finished {
            Ok(_) => Ok(()),
            Err(source) => Err(VersionsError::BackgroundFlush {
                version,
                source: Box::new(source),
            }),
        }
    }

    /// Gives back the memory of what was flushed, very many small pieces, without waiting for it but for the time before.
    fn give_back(&mut self, flushed: Arc<Layer>) {
        if let Some(before) = self.giving_back.take() {
            drop(before.join());
        }
        let thread = std::thread::Builder::new().spawn(move || drop(flushed));
        self.giving_back = thread.ok();
    }

    fn finish(
        &mut self,
        job: &FlushJob,
        result: Result<FlushStats, VersionsError>,
    ) -> Result<FlushStats, VersionsError> {
        self.store_snapshot = None;
        match result {
            Ok(stats) => {
                self.unflushed.layers.remove(0);
                self.unflushed.pending.drain(..job.pending.len());
                self.stored = Some(job.to);
                self.truncate = None;
                for epoch in &job.drop_epochs {
                    self.drop_epochs.remove(epoch);
                }
                if let Some(kept) = &mut self.unflushed.nodes {
                    kept.rewritten.clear();
                    Arc::make_mut(&mut kept.indexed).extend(&job.build_node_epochs);
                }
                if !job.build_node_epochs.is_empty() && job.build_epochs.is_empty() {
                    self.forget_old_indexes();
                }
                if !job.build_epochs.is_empty() {
                    let indexed = Arc::make_mut(&mut self.unflushed.indexed);
                    indexed.extend(&job.build_epochs);
                    // While it was built, versions of it may have been forgotten.
                    self.forget_old_indexes();
                }
                self.flushed.add(&stats);
                #[cfg(feature = "tracing")]
                tracing::info!(
                    "flushed versions up to {}: {} versions, {} keys, {} bytes, in {:.3} s",
                    job.to.version,
                    stats.versions,
                    stats.keys,
                    stats.bytes.total(),
                    stats.time.as_secs_f64()
                );
                Ok(stats)
            }
            Err(error) => {
                // The write may have happened or not: believe nothing about what lies below, and
                // let the next flush remove marks of indexes that nobody here knows of.
                self.base.clear();
                self.drop_epochs.extend(&job.build_epochs);
                if !job.build_node_epochs.is_empty() {
                    // Both indexes of an epoch go together.
                    let indexed = Arc::make_mut(&mut self.unflushed.indexed);
                    indexed.retain(|epoch| !job.build_node_epochs.contains(epoch));
                    self.drop_epochs.extend(&job.build_node_epochs);
                }
                if let Some(kept) = &mut self.unflushed.nodes
                    && !job.build_epochs.is_empty()
                {
                    let indexed = Arc::make_mut(&mut kept.indexed);
                    indexed.retain(|epoch| !job.build_epochs.contains(epoch));
                }
                self.undo_bytes = self.unflushed.pending_bytes();
                Arc::make_mut(&mut self.unflushed.layers[0]).forget_base();
                if let Ok(stored) = read_head(self.base.store()) {
                    self.stored = stored;
                    self.truncate = self.truncate.filter(|_| stored != Some(job.to));
                }
                Err(error)
            }
        }
    }
}

impl Drop for Versions {
    /// Waits for a flush in the background, so that nothing writes once the lock is given back.
    /// Unflushed versions are lost, as in a crash.
    fn drop(&mut self) {
        if let Some(flight) = self.in_flight.take() {
            drop(flight.thread.join());
        }
    }
}
