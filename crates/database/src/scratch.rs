//! Temporary stores for versions that lie too far back for memory.

use arbor_state::Scratch;
#[cfg(feature = "fjall")]
use arbor_state::ScratchStore;
#[cfg(feature = "fjall")]
use arbor_store::{StoreError, TemporaryFolder, TemporaryUse};

/// Bytes of memory that a changed record takes while older nodes are rebuilt.
#[cfg(feature = "fjall")]
const CHANGE_BYTES: u64 = 1 << 10;
/// Changes that are in memory together in any case: a store takes more memory than fewer do.
#[cfg(feature = "fjall")]
const LEAST_CHANGES: u64 = 12 << 10;

/// Returns temporary stores for a database with this many bytes of memory. They lie in folders `arbor-past-XXXXXX` of the system's folder for temporary files (`TMPDIR`). A
/// folder that a killed process leaves is removed when the next one is made. Only fjall has such stores.
#[cfg(feature = "fjall")]
pub(crate) fn scratch(memory: u64) -> Option<Scratch> {
    let changes = (memory / 5 / CHANGE_BYTES).max(LEAST_CHANGES);
    Some(Scratch::new(changes, std::env::temp_dir(), make))
}

#[cfg(not(feature = "fjall"))]
pub(crate) fn scratch(_: u64) -> Option<Scratch> {
    None
}

#[cfg(feature = "fjall")]
fn make() -> Result<ScratchStore, StoreError> {
    let folder = TemporaryFolder::make(TemporaryUse::Past)?;
    let options = arbor_store_fjall::Options {
        cache_bytes: 4 << 20,
        create: true,
        ..Default::default()
    };
    let store = arbor_store_fjall::FjallStore::open(folder.path(), &options)?;
    Ok((std::sync::Arc::new(store), Box::new(folder)))
}
