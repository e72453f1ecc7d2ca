//! Pruning: which versions keep undo, metas and indexes.
//!
//! There is one rule: **undo is there for the versions `oldest + 1 ..= head`, and for no other.** So the readable versions are
//! `oldest ..= head`, because undo leads from a version to the one before it. `oldest` never goes down.
//!
//! - *In memory*, [`Versions::forget_before`] raises `oldest`, and drops the undo of unflushed versions at once.
//! - *In the store*, the next flush deletes the undo of the versions that fell behind ([`FlushJob::delete_unretained`]) or were rolled
//!   back ([`FlushJob::delete_rolled_back`]), in the atomic write that stores the new head record.
//! - *An index* is there only for an epoch whose versions all have undo. Its mark goes in the same write, its entries afterwards.
//! - *Metas* are there for [`Options::metas_below`](crate::Options::metas_below) versions more than can be read.
//!
//! `docs/design/flushes.md` has a test for each guard.

use std::sync::Arc;

use arbor_store::{Reader, Value};

use crate::error::VersionsError;
use crate::flush::{FlushJob, OwnWrites};
use crate::index;
use crate::kept_nodes;
use crate::layout;
use crate::meta::{HeadRecord, StoredMeta};
use crate::options::Retain;
use crate::stats::PruneStats;
use crate::undo::stored_cursor;
use crate::version::Version;
use crate::versions::Versions;
use crate::view::stored_meta;

impl Retain {
    /// Returns the oldest version that stays readable under `head`, if `oldest` is the oldest one now.
    pub(crate) fn oldest(self, head: u64, oldest: u64) -> u64 {
        match self {
            Self::None => head,
            Self::Last(n) => oldest.max(head.saturating_sub(n)),
            Self::All => oldest,
        }
    }
}

impl HeadRecord {
    /// Returns whether the store has undo of a version, up to the head.
    pub(crate) const fn keeps_undo(self, version: u64) -> bool {
        version > self.oldest
    }

    /// Returns whether the store has the meta of a version, up to the head.
    pub(crate) const fn keeps_meta(self, version: u64) -> bool {
        version >= self.oldest_meta
    }
}

impl Versions {
    /// Forgets history beyond `keep`, and flushes. Work is bounded by what the pruned versions
    /// changed; snapshots that exist read on.
    ///
    /// # Errors
    /// As [`flush`](Versions::flush).
    pub fn prune(&mut self, keep: Retain) -> Result<PruneStats, VersionsError> {
        let Some(head) = self.head().map(|meta| meta.version.0) else {
            return Ok(PruneStats::default());
        };
        let oldest = keep.oldest(head, self.unflushed.oldest);
        let oldest = self.not_pinned(oldest);
        self.prune_before(Version(oldest))
    }

    /// Forgets the versions before `oldest`, and flushes, like [`prune`](Versions::prune).
    ///
    /// # Errors
    /// [`VersionsError::NotRetained`] if `oldest` itself is not readable; else as
    /// [`flush`](Versions::flush).
    pub fn prune_before(&mut self, oldest: Version) -> Result<PruneStats, VersionsError> {
        self.settle(true)?;
        self.unflushed.retained(oldest)?;
        let versions = oldest.0 - self.unflushed.oldest;
        let epochs = self.forget_before(oldest.0);
        self.flush()?;
        Ok(PruneStats { versions, epochs })
    }

    /// Forgets all versions before the head, and all record of those before `first`, which is not above it: they led up to the
    /// head, but are none of its history. What is stored of them goes with the next flush.
    pub fn forget_beginning(&mut self, first: Version) {
        if let Some(head) = self.head().map(|meta| meta.version.0) {
            self.forget_before(head);
            self.first_meta = first.0.min(head);
        }
    }

    /// Forgets what the options do not retain under a new head.
    pub(crate) fn forget_unretained(&mut self, head: u64) {
        let oldest = self.options.retain.oldest(head, self.unflushed.oldest);
        let oldest = self.not_pinned(oldest);
        self.forget_before(oldest);
    }

    /// Returns the oldest version that stays readable, if this one is to be it: an older one that a reader keeps.
    fn not_pinned(&mut self, oldest: u64) -> u64 {
        let pinned = self.pins.oldest().unwrap_or(oldest);
        oldest.min(pinned).max(self.unflushed.oldest)
    }

    /// Moves the oldest readable version up: drops unflushed undo at once, the rest at a flush. Returns how many indexes go.
    pub(crate) fn forget_before(&mut self, oldest: u64) -> u64 {
        let head = self.unflushed.head.as_ref();
        let head = head.map_or(0, |meta| meta.version.0);
        let first_pending = (head + 1).saturating_sub(self.unflushed.pending.len() as u64);
        let taken = self.flying_versions();
        for version in (self.unflushed.oldest + 1).max(first_pending)..=oldest {
            let place = usize::try_from(version - first_pending).expect("invariant: in memory");
            let dropped = self.unflushed.pending[place].forget();
            if place >= taken {
                self.undo_bytes -= dropped;
            }
        }
        self.unflushed.oldest = oldest;
        if let Some(kept) = &mut self.unflushed.nodes {
            kept.rewritten.retain(|version, _| *version > oldest);
        }
        self.forget_old_indexes()
    }

    /// Forgets the indexes of epochs that end at the oldest readable version or before. Returns how many.
    pub(crate) fn forget_old_indexes(&mut self) -> u64 {
        let (oldest, length) = (self.unflushed.oldest, self.unflushed.epoch);
        self.drop_indexes(|epoch| index::last_version(epoch, length) <= oldest)
    }

    /// Forgets the indexes of epochs that reach beyond a version to which the database is rolled back.
    pub(crate) fn forget_indexes_beyond(&mut self, to: u64) {
        let length = self.unflushed.epoch;
        self.drop_indexes(|epoch| index::last_version(epoch, length) > to);
    }

    /// Takes indexes out of use at once, and has the next flush remove them. Returns how many.
    fn drop_indexes(&mut self, gone: impl Fn(u64) -> bool) -> u64 {
        let indexed = self.unflushed.indexed.iter().copied();
        let dropped: Vec<u64> = indexed.filter(|epoch| gone(*epoch)).collect();
        if !dropped.is_empty() {
            let indexed = Arc::make_mut(&mut self.unflushed.indexed);
            indexed.retain(|epoch| !gone(*epoch));
            self.drop_epochs.extend(&dropped);
        }
        if let Some(kept) = &mut self.unflushed.nodes
            && kept.indexed.iter().any(|epoch| gone(*epoch))
        {
            let indexed = Arc::make_mut(&mut kept.indexed);
            self.drop_epochs
                .extend(indexed.extract_if(.., |epoch| gone(*epoch)));
        }
        dropped.len() as u64
    }

    /// Returns the head record that the next flush stores, with `head` as its version.
    pub(crate) fn next_record(&self, head: u64) -> HeadRecord {
        let oldest = self.unflushed.oldest;
        let oldest_meta = oldest.saturating_sub(self.options.metas_below);
        let oldest_meta = oldest_meta.max(self.first_meta);
        // Metas that are gone do not come back when more of them are to be kept.
        let stored = self.stored.map_or(0, |stored| stored.oldest_meta);
        HeadRecord {
            version: head,
            oldest,
            oldest_meta: oldest_meta.max(stored),
        }
    }

    /// Returns the epochs that are complete and wholly retained at `to` but have no index.
    pub(crate) fn complete_epochs(&self, to: HeadRecord) -> Vec<u64> {
        let length = self.unflushed.epoch;
        let candidates = to.oldest / length..(to.version + 1) / length;
        candidates
            .filter(|epoch| to.keeps_undo(index::first_undo(*epoch, length)))
            .filter(|epoch| !self.unflushed.indexed.contains(epoch))
            .collect()
    }
}

impl FlushJob {
    /// Deletes the records of stored versions above a rollback's target.
    pub(crate) fn delete_rolled_back(
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
            self.delete_old_nodes(version, writes)?;
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
    pub(crate) fn delete_unretained(
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
            self.delete_old_nodes(version, writes)?;
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
                // A later one that is kept puts the block back.
                None
            };
            delete_meta(&this, newer != Some(this.meta.block_number), writes);
        }
        Ok(())
    }
}

impl FlushJob {
    /// Deletes the nodes that a stored version keeps of the one before, if old nodes are kept.
    fn delete_old_nodes(&self, version: u64, writes: &mut OwnWrites) -> Result<(), VersionsError> {
        if self.nodes.is_some() {
            let keys = kept_nodes::stored_keys(&*self.base, version)?;
            writes.extend(keys.map(|key| ((layout::OLD_NODES, key), None)));
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
        let key = layout::undo_key(version, chunk).into();
        writes.insert((layout::UNDO, key), None);
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
