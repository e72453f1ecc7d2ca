//! How a version in the middle of a recovery is known.

use alloy_primitives::B256;
use arbor_state_tree::{StateError, Unfinished};
use arbor_tree::Hash;
use arbor_versions::Meta;

/// The hash of no block: that of versions in the middle of a recovery.
pub(super) const RECOVERING: B256 = B256::repeat_byte(0xff);

/// Whether a version of this block hash is one in the middle of a recovery: some of a state's leaves.
#[must_use]
pub fn is_recovering(block_hash: &Hash) -> bool {
    *block_hash == RECOVERING
}

/// Refuses a database that has some of a state's leaves only.
pub(crate) fn check_recovered(head: Option<&Meta>) -> Result<(), StateError> {
    match head.is_some_and(|head| is_recovering(&head.block_hash)) {
        true => Err(StateError::Unfinished(Unfinished::Recovery)),
        false => Ok(()),
    }
}
