//! Records of entries: keys and values of 32 bytes without accounts.

use arbor_state_tree::{StateError, corrupt};
use arbor_store::Table;
use arbor_tree::Hash;
use arbor_tree_eip8297::{LeafUpdate, Path};
use arbor_versions::Change;

use super::failed;

/// Values by key.
pub(super) const ENTRIES: Table = Table(7);

/// The path of a key of 32 bytes.
pub(super) fn path(key: &[u8]) -> Result<Path, StateError> {
    match key.len() {
        32 => Path::of_key(key).map_err(failed),
        _ => Err(corrupt("entries", key, "a key that does not have 32 bytes")),
    }
}

/// The value of an entry.
pub(super) fn decode(key: &[u8], record: &[u8]) -> Result<Hash, StateError> {
    match Hash::try_from(record) {
        Ok(value) if value == Hash::default() => Err(corrupt(
            "entries",
            key,
            "a value of zeros, which is absence",
        )),
        Ok(value) => Ok(value),
        Err(_) => Err(corrupt(
            "entries",
            key,
            "a value that does not have 32 bytes",
        )),
    }
}

/// The update of the leaf of an entry.
pub(super) fn entry_update(change: &Change<'_>) -> Result<LeafUpdate, StateError> {
    let value = change.new.map(|record| decode(change.key, record));
    Ok(LeafUpdate {
        key: path(change.key)?,
        value: value.transpose()?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_value_of_32_bytes_that_is_not_zero() {
        let value = [&[0; 31][..], &[7]].concat();
        assert_eq!(decode(&[1; 32], &value).expect("a value"), value[..]);
        for wrong in [&[][..], &[7; 31], &[7; 33], &[0; 32]] {
            assert!(decode(&[1; 32], wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(path(&[1; 32]).expect("a key").len(), 256);
        assert!(path(&[1; 31]).is_err() && path(&[1; 33]).is_err());
    }
}
