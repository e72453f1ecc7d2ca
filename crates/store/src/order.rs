//! Checks on what is written.

use crate::engine_key::parts;
use crate::{MAX_KEY_BYTES, OWNER_BYTES, StoreError, Table, Write};

/// Checks a key's length.
///
/// # Errors
/// [`StoreError::KeyTooLong`], [`StoreError::NoOwner`].
pub fn check_key(table: Table, key: &[u8]) -> Result<(), StoreError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(StoreError::KeyTooLong { length: key.len() });
    }
    if table.is_by_owner() && key.len() < OWNER_BYTES {
        let key = key.into();
        return Err(StoreError::NoOwner { table, key });
    }
    Ok(())
}

/// Checks that an ingestion's writes ascend strictly [by table and key](Write::cmp_place), one at a time.
#[derive(Default, Debug)]
pub struct Ascending {
    count: u64,
    last: Option<(Table, Vec<u8>)>,
}

impl Ascending {
    /// Accepts the next write.
    ///
    /// # Errors
    /// [`StoreError::Unsorted`] if it is not above the one before it,
    /// [`StoreError::KeyTooLong`], [`StoreError::NoOwner`].
    pub fn accept(&mut self, write: &Write) -> Result<(), StoreError> {
        check_key(write.table, &write.key)?;
        match &mut self.last {
            Some((table, key)) if parts(table, key) >= parts(&write.table, &write.key) => {
                return Err(StoreError::Unsorted {
                    index: self.count,
                    table: write.table,
                    key: write.key.clone(),
                    previous_table: *table,
                    previous_key: key.as_slice().into(),
                });
            }
            Some((table, key)) => {
                *table = write.table;
                key.clear();
                key.extend_from_slice(&write.key);
            }
            None => self.last = Some((write.table, write.key.to_vec())),
        }
        self.count += 1;
        Ok(())
    }
}
