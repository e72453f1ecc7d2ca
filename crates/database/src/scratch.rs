//! Temporary stores for versions that lie too far back for memory.

use arbor_state::Scratch;
#[cfg(feature = "fjall")]
use arbor_state::ScratchStore;
#[cfg(feature = "fjall")]
use arbor_store::StoreError;

/// Bytes of memory that a changed record takes while older nodes are rebuilt.
#[cfg(feature = "fjall")]
const CHANGE_BYTES: u64 = 1 << 10;
/// Changes that are in memory together in any case: a store takes more memory than fewer do.
#[cfg(feature = "fjall")]
const LEAST_CHANGES: u64 = 12 << 10;

/// Temporary stores beside a database with so many bytes of memory, in the system's folder for temporary files (`TMPDIR`). Only fjall has them.
#[cfg(feature = "fjall")]
pub(crate) fn scratch(memory: u64) -> Option<Scratch> {
    let changes = (memory / 5 / CHANGE_BYTES).max(LEAST_CHANGES);
    Some(Scratch::new(changes, make))
}

#[cfg(not(feature = "fjall"))]
pub(crate) fn scratch(_: u64) -> Option<Scratch> {
    None
}

#[cfg(feature = "fjall")]
fn make() -> Result<ScratchStore, StoreError> {
    let at = std::env::temp_dir();
    let making = |cause| StoreError::from_io(&at, "making a temporary folder", cause);
    let folder = tempfile::Builder::new().prefix("arbor-").tempdir_in(&at);
    let folder = folder.map_err(making)?;
    let options = arbor_store_fjall::Options {
        cache_bytes: 4 << 20,
        create: true,
        ..Default::default()
    };
    let store = arbor_store_fjall::FjallStore::open(folder.path(), &options)?;
    Ok((std::sync::Arc::new(store), Box::new(folder)))
}
