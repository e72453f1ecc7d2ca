//! Versions by what their blocks are called: number, hash, root.

use alloy_primitives::B256;
use arbor_versions::{Meta, Version};

use crate::history::Historical;
use crate::{Head, StateError};

impl<'a> Head<'a> {
    /// The state at the latest version.
    ///
    /// # Errors
    /// A state without any version.
    pub fn latest(self) -> Result<Historical<'a>, StateError> {
        let head = self.meta().map(|head| head.version);
        let head = head.ok_or_else(|| StateError::Read("the state has no version yet".into()))?;
        self.at(head)
    }

    /// The state after the block with this number, as it was at the newest version of that block.
    ///
    /// # Errors
    /// [`StateError::NoBlock`] if no retained version is of that block; the store's errors.
    pub fn at_block(self, number: u64) -> Result<Historical<'a>, StateError> {
        let found = self.view().version_of_block(number)?;
        // The store keeps the numbers of blocks that a session has left behind.
        if let Some(version) = found
            && self.view().retained(version).is_ok()
            && let Some(meta) = self.view().meta(version)?
            && meta.block_number == number
        {
            return self.at(version);
        }
        Err(self.no_block(format!("{number}")))
    }

    /// The state after the block with this hash. Looks at the retained versions one after another, newest first.
    ///
    /// # Errors
    /// Those of [`at_block`](Self::at_block).
    pub fn at_block_hash(self, hash: B256) -> Result<Historical<'a>, StateError> {
        self.newest(
            |meta| meta.block_hash == hash.0,
            || format!("with hash {hash}"),
        )
    }

    /// The newest state with this root. Looks at the retained versions one after another, newest first.
    ///
    /// # Errors
    /// Those of [`at_block`](Self::at_block).
    pub fn at_root(self, root: B256) -> Result<Historical<'a>, StateError> {
        self.newest(|meta| meta.root == root.0, || format!("with root {root}"))
    }

    fn newest(
        self,
        is_wanted: impl Fn(&Meta) -> bool,
        wanted: impl Fn() -> String,
    ) -> Result<Historical<'a>, StateError> {
        let view = self.view();
        let versions = match (view.oldest(), self.meta()) {
            (Some(oldest), Some(head)) => oldest.0..head.version.0 + 1,
            _ => 0..0,
        };
        for version in versions.rev() {
            if view
                .meta(Version(version))?
                .is_some_and(|meta| is_wanted(&meta))
            {
                return self.at(Version(version));
            }
        }
        Err(self.no_block(wanted()))
    }

    fn no_block(self, wanted: String) -> StateError {
        let oldest = self.view().oldest();
        let oldest = oldest.and_then(|oldest| self.view().meta(oldest).ok().flatten());
        let (Some(oldest), Some(newest)) = (oldest, self.meta()) else {
            return StateError::Read("the state has no version yet".into());
        };
        StateError::NoBlock {
            wanted,
            oldest: oldest.block_number,
            newest: newest.block_number,
        }
    }
}
