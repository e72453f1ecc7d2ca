//! The store in a database's folder.

use std::path::Path;
use std::sync::Arc;

use arbor_store::disk::{Disk, Limits};
use arbor_store::{MemoryStore, Reader, Store};
#[cfg(feature = "fjall")]
use arbor_store_fjall::FjallStore;

use crate::store_kind::StoreKind;
use crate::{Budget, DatabaseError};

/// Makes a store in memory, as slow as a disk with these limits if there are any.
pub(crate) fn memory_store(throttle: Option<Limits>) -> Arc<dyn Store> {
    Disk::new(Arc::new(MemoryStore::default()), throttle)
}

/// Opens the store in a database's folder, or makes one of the kind `wanted` if that is given and `may_create`.
///
/// # Errors
/// A folder without a store, if none is to be made; another store than the one wanted; errors of the store.
pub(crate) fn open_store(
    dir: &Path,
    wanted: Option<StoreKind>,
    may_create: bool,
    budget: Budget,
) -> Result<Arc<dyn Store>, DatabaseError> {
    let kind = match (StoreKind::found_in(dir), wanted) {
        (Some(found), Some(wanted)) if found != wanted && wanted != StoreKind::Memory => {
            return Err(DatabaseError::OtherStore {
                dir: dir.to_owned(),
                found,
                wanted,
            });
        }
        (Some(kind), _) | (None, Some(kind)) => kind,
        (None, None) => return Err(DatabaseError::NoStore(dir.to_owned())),
    };
    let create = wanted.is_some() && may_create;
    let store: Arc<dyn Store> = match kind {
        StoreKind::Memory => return Ok(memory_store(budget.throttle)),
        #[cfg(feature = "fjall")]
        StoreKind::Fjall => {
            let options = arbor_store_fjall::Options {
                cache_bytes: budget.store_cache(),
                create,
                ..Default::default()
            };
            Arc::new(FjallStore::open(&dir.join(kind.name()), &options)?)
        }
        #[cfg(feature = "rocksdb")]
        StoreKind::Rocksdb => {
            let options = arbor_store_rocksdb::Options {
                cache_bytes: budget.store_cache(),
                create,
                ..Default::default()
            };
            let store = arbor_store_rocksdb::RocksStore::open(&dir.join(kind.name()), &options)?;
            Arc::new(store)
        }
    };
    Ok(Disk::new(store, budget.throttle))
}

/// Opens the store in a database's folder for reading alone, next to a process that may write it.
pub(crate) fn open_store_to_read(
    dir: &Path,
    memory: u64,
) -> Result<Arc<dyn Reader>, DatabaseError> {
    // No cache lies above a store that is only read.
    let cache_bytes = memory / 4;
    let reader = match StoreKind::found_in(dir) {
        #[cfg(feature = "fjall")]
        Some(kind @ StoreKind::Fjall) => {
            let options = arbor_store_fjall::Options {
                cache_bytes,
                ..Default::default()
            };
            FjallStore::open_to_read(&dir.join(kind.name()), &options)?
        }
        #[cfg(feature = "rocksdb")]
        Some(kind @ StoreKind::Rocksdb) => {
            let options = arbor_store_rocksdb::Options {
                cache_bytes,
                ..Default::default()
            };
            arbor_store_rocksdb::RocksStore::open_to_read(&dir.join(kind.name()), &options)?
        }
        _ => return Err(DatabaseError::NoStore(dir.to_owned())),
    };
    Ok(Arc::from(reader))
}
