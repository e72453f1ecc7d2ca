//! Blocks by hash: a database has them by number alone.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use alloy_primitives::B256;
use arbor_state::Head;
use arbor_versions::{Meta, Version, VersionsError};

/// The hashes of the blocks that a database keeps, read when the first block is looked up by its
/// hash: some 60 bytes for each.
#[derive(Default)]
pub(crate) struct BlockHashes(Mutex<Known>);

/// Hashes of pruned blocks that may stay.
const SPARE: u64 = 1_024;

#[derive(Default)]
struct Known {
    /// The versions that have been read, without gaps.
    read: Option<RangeInclusive<u64>>,
    /// The hash of the last of them.
    last: B256,
    versions: HashMap<B256, u64>,
}

impl BlockHashes {
    /// The kept block with this hash; `None` if there is none.
    pub(crate) fn find(&self, head: Head<'_>, hash: B256) -> Result<Option<Meta>, VersionsError> {
        let Some(latest) = head.meta() else {
            return Ok(None);
        };
        if latest.block_hash == hash {
            return Ok(Some(latest.clone()));
        }
        let newest = latest.version.0;
        let oldest = head.view().oldest().map_or(newest, |oldest| oldest.0);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meta) = known.look_up(head, hash)? {
            return Ok(Some(meta));
        }
        known.read(head, oldest..=newest)?;
        known.look_up(head, hash)
    }
}

impl Known {
    fn look_up(&mut self, head: Head<'_>, hash: B256) -> Result<Option<Meta>, VersionsError> {
        let Some(version) = self.versions.get(&hash) else {
            return Ok(None);
        };
        let meta = head.view().meta(Version(*version))?;
        let found = meta.filter(|meta| meta.block_hash == hash);
        if found.is_none() {
            *self = Self::default();
        }
        Ok(found)
    }

    fn read(&mut self, head: Head<'_>, versions: RangeInclusive<u64>) -> Result<(), VersionsError> {
        let (oldest, newest) = versions.into_inner();
        let from = match &self.read {
            Some(read) if read.contains(&oldest) && self.holds(head, *read.end(), newest)? => {
                read.end() + 1
            }
            _ => {
                *self = Self::default();
                oldest
            }
        };
        for version in from..=newest {
            if let Some(meta) = head.view().meta(Version(version))? {
                self.last = meta.block_hash.into();
                self.versions.insert(self.last, version);
            }
        }
        self.read = Some(oldest..=newest);
        Ok(())
    }

    /// Whether what was read up to version `end` is still so: after a rollback the same versions
    /// are of other blocks. Nor is it kept if most of it was pruned.
    fn holds(&self, head: Head<'_>, end: u64, newest: u64) -> Result<bool, VersionsError> {
        let kept = head
            .view()
            .oldest()
            .map_or(1, |oldest| newest.saturating_sub(oldest.0) + 1);
        if end > newest || self.versions.len() as u64 > 2 * kept + SPARE {
            return Ok(false);
        }
        let meta = head.view().meta(Version(end))?;
        Ok(meta.is_some_and(|meta| meta.block_hash == self.last))
    }
}
