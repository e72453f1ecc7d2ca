//! Keys and values without accounts: leaves that no names lead to.

use alloy_primitives::B256;
use arbor_state_tree::{Check, Computed, KeyValue, KeyValueEntry, KeyValueWrite, StateError, Then};
use arbor_store::Table;
use arbor_tree::Hash;
use arbor_verify::Proof;
use arbor_verify::ar16mt::{Entry, KeysProof};
use arbor_versions::{TableSpec, View};

use super::compute::compute_entries;
use super::multi::multiproof;
use super::records::{decode_leaf, leaf_key};
use super::verify::{check_join, check_part};
use super::{Ar16mt, LEAVES, TABLES, failed};

/// The tree keeps every leaf.
#[derive(Debug, thiserror::Error)]
#[error("key {0} was to be deleted: this tree keeps every leaf")]
struct NoDeletion(B256);

impl KeyValue for Ar16mt {
    fn tables(&self) -> &'static [TableSpec] {
        &TABLES
    }

    fn entries(&self) -> Table {
        LEAVES
    }

    fn decode(&self, key: &[u8], record: &[u8]) -> Result<KeyValueEntry, StateError> {
        let Entry { index, value } = decode_leaf(&leaf_key(key)?, record)?;
        Ok(KeyValueEntry {
            index: Some(index),
            value: value.into(),
        })
    }

    fn can_delete(&self) -> bool {
        false
    }

    fn compute(&self, view: View<'_>, batch: &[KeyValueWrite]) -> Result<Computed, StateError> {
        let entries = batch.iter().map(|write| match write.value {
            Some(value) => Ok((write.key.0, value.0)),
            None => Err(failed(NoDeletion(write.key))),
        });
        let entries: Vec<(Hash, Hash)> = entries.collect::<Result<_, _>>()?;
        compute_entries(*self, view, &entries)
    }

    fn prove(&self, then: &dyn Then, keys: &[B256]) -> Result<Box<dyn Proof>, StateError> {
        let keys: Vec<Hash> = keys.iter().map(|key| key.0).collect();
        let multiproof = multiproof(*self, then, &keys)?.encode().into();
        Ok(Box::new(KeysProof { multiproof }))
    }

    fn check(&self, check: &Check<'_>) -> Result<(), StateError> {
        let firsts: Vec<u8> = (0..=u8::MAX).collect();
        let parts = check_part(check, *self, &firsts)?;
        // The accounts that the leaves might stand for have a root that nothing is compared with.
        check_join(check, *self, &[parts]).map(drop)
    }
}
